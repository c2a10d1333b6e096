//! Writes all that follows from `layout/packed.toml`, and checks that what is committed is what it would write.
//! `BLESS=1 cargo test -p collander-engine --test packed_layout` writes.

use std::fmt::Write as _;
use std::io::Write as IoWrite;
use std::path::Path;
use std::process::{Command, Stdio};

use toml::{Table, Value};

#[derive(Clone, Debug)]
struct Field {
    name: String,
    word: usize,
    from: u32,
    to: u32,
    ty: String,
    unit: String,
    present: Option<String>,
    doc: String,
}

#[derive(Debug)]
struct Layout {
    records: Vec<(String, usize, String, Vec<Field>)>,
    enums: Vec<(String, Vec<String>)>,
    flags: Vec<(String, Vec<String>)>,
    verdicts: Vec<(String, i64)>,
}

fn text(table: &Table, key: &str) -> String {
    table.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn names(table: &Table, section: &str) -> Vec<(String, Vec<String>)> {
    let list = |v: &Value| v.as_array().unwrap().iter().map(|s| s.as_str().unwrap().to_owned()).collect();
    table[section].as_table().unwrap().iter().map(|(k, v)| (k.clone(), list(v))).collect()
}

fn load() -> Layout {
    let table: Table = include_str!("../layout/packed.toml").parse().unwrap();
    let record = |name: &str| {
        let record = table[name].as_table().unwrap();
        let fields = record["fields"].as_array().unwrap().iter().map(|field| {
            let field = field.as_table().unwrap();
            let bit = |at: usize| field.get("bits").map(|b| b[at].as_integer().unwrap() as u32);
            Field {
                name: text(field, "name"),
                word: field["word"].as_integer().unwrap() as usize,
                from: bit(0).unwrap_or(0),
                to: bit(1).unwrap_or(64),
                ty: text(field, "type"),
                unit: text(field, "unit"),
                present: field.get("present").map(|p| p.as_str().unwrap().to_owned()),
                doc: text(field, "doc"),
            }
        });
        (name.to_owned(), record["words"].as_integer().unwrap() as usize, text(record, "doc"), fields.collect())
    };
    let verdicts = table["verdicts"].as_table().unwrap();
    Layout {
        records: vec![record("operation"), record("child")],
        enums: names(&table, "enums"),
        flags: names(&table, "flags"),
        verdicts: verdicts.iter().map(|(k, v)| (k.clone(), v.as_integer().unwrap())).collect(),
    }
}

fn camel(name: &str) -> String {
    name.split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect()
}

const NOTE: &str = "Generated from host/engine/layout/packed.toml by host/engine/tests/packed_layout.rs. Do not edit.";

/// Constants for the host.
fn host(layout: &Layout) -> String {
    let mut out = format!("//! Layout of the packed records.\n//!\n//! {NOTE}\n");
    for (record, words, doc, fields) in &layout.records {
        let upper = record.to_uppercase();
        let _ = write!(out, "\n/// Words of a record: {doc}\npub const {upper}_WORDS: usize = {words};\n");
        for field in fields {
            let name = field.name.to_uppercase();
            let _ = write!(
                out,
                "\n/// {}\npub(crate) const {upper}_{name}: (usize, u32) = ({}, {});\n",
                field.doc, field.word, field.from
            );
        }
    }
    for (flags, list) in layout.flags.iter().filter(|(name, _)| name == "present") {
        for (bit, name) in list.iter().enumerate() {
            let upper = format!("{}_{}", flags.to_uppercase(), name.to_uppercase());
            let _ = write!(out, "\n/// Bit of `present`.\npub(crate) const {upper}: u64 = 1 << {bit};\n");
        }
    }
    for (name, list) in layout.enums.iter().filter(|(name, _)| name == "child_kind") {
        for (value, case) in list.iter().enumerate() {
            let upper = format!("{}_{}", name.to_uppercase(), case.to_uppercase());
            let _ = write!(out, "\n/// Value of `child_kind`.\npub(crate) const {upper}: u64 = {value};\n");
        }
    }
    for (name, value) in &layout.verdicts {
        let _ = write!(out, "\n/// A verdict.\npub(crate) const VERDICT_{}: u8 = {value};\n", name.to_uppercase());
    }
    out
}

fn rust_type(layout: &Layout, ty: &str) -> String {
    let named = layout.enums.iter().chain(&layout.flags).any(|(name, _)| name == ty);
    if named { camel(ty) } else { ty.to_owned() }
}

/// The view of the Rust SDK.
fn rust(layout: &Layout) -> String {
    let mut out = format!(
        "//! Views of the packed records: they read like structures and cost what a load costs.\n//!\n//! {NOTE}\n#![forbid(unsafe_code)]\n"
    );
    for (name, cases) in &layout.enums {
        let camel_name = camel(name);
        let _ = write!(
            out,
            "\n/// `{name}` of the interface.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u8)]\n#[allow(missing_docs, reason = \"documented in wit/since-v0.1.0/traffic.wit\")]\npub enum {camel_name} {{\n"
        );
        for (value, case) in cases.iter().enumerate() {
            let _ = writeln!(out, "    {} = {value},", camel(case));
        }
        let last = cases.len() - 1;
        let _ = write!(
            out,
            "}}\n\nimpl {camel_name} {{\n    /// All, in order.\n    pub const ALL: [Self; {}] = [\n",
            cases.len()
        );
        for case in cases {
            let _ = writeln!(out, "        Self::{},", camel(case));
        }
        let fallback = if cases[0] == "unknown" { 0 } else { last };
        let _ = write!(
            out,
            "    ];\n\n    /// From its number; what is not known becomes `{0}`.\n    #[must_use]\n    #[inline]\n    pub const fn from_number(number: u8) -> Self {{\n        if (number as usize) < Self::ALL.len() {{ Self::ALL[number as usize] }} else {{ Self::{0} }}\n    }}\n\n    /// Its name, as the interface spells it.\n    #[must_use]\n    pub const fn name(self) -> &'static str {{\n        match self {{\n",
            camel(&cases[fallback])
        );
        for case in cases {
            let _ = writeln!(out, "            Self::{} => \"{}\",", camel(case), case.replace('_', "-"));
        }
        out.push_str("        }\n    }\n}\n");
    }
    for (name, list) in &layout.flags {
        let (ty, width) = (camel(name), if name == "present" { "u16" } else { "u32" });
        let _ = write!(
            out,
            "\n/// `{name}`: a bit each.\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]\npub struct {ty}(pub {width});\n\n#[allow(missing_docs, reason = \"documented in wit/since-v0.1.0/traffic.wit\")]\nimpl {ty} {{\n"
        );
        for (bit, flag) in list.iter().enumerate() {
            let _ = writeln!(out, "    pub const {}: Self = Self(1 << {bit});", flag.to_uppercase());
        }
        out.push_str(
            "\n    /// Whether all bits of `other` are set.\n    #[must_use]\n    #[inline]\n    pub const fn has(self, other: Self) -> bool {\n        self.0 & other.0 == other.0\n    }\n}\n",
        );
    }
    for (record, words, doc, fields) in &layout.records {
        let (ty, upper) = (camel(record), record.to_uppercase());
        let _ = write!(
            out,
            "\n/// Words of a record.\npub const {upper}_WORDS: usize = {words};\n\n/// {doc}\n#[derive(Clone, Copy, Debug)]\n#[repr(transparent)]\npub struct {ty}<'a>(pub &'a [u64; {upper}_WORDS]);\n\nimpl<'a> {ty}<'a> {{\n    /// The records of a batch, in order.\n    #[inline]\n    pub fn all(mut words: &'a [u64]) -> impl Iterator<Item = Self> + use<'a> {{\n        std::iter::from_fn(move || {{\n            let (first, rest) = words.split_first_chunk()?;\n            words = rest;\n            Some(Self(first))\n        }})\n    }}\n"
        );
        for field in fields {
            let mut doc = field.doc.clone();
            if !field.unit.is_empty() {
                let _ = write!(doc, " Unit: {}.", field.unit);
            }
            if field.present.is_some() {
                doc.push_str(" None if it is not known.");
            }
            let width = field.to - field.from;
            let word = format!("self.0[{}]", field.word);
            let shifted = if field.from == 0 { word } else { format!("({word} >> {})", field.from) };
            let masked = if width.is_power_of_two() && width >= 8 {
                shifted
            } else {
                format!("({shifted} & {})", (1u64 << width) - 1)
            };
            let ty = rust_type(layout, &field.ty);
            let value = match field.ty.as_str() {
                "u64" => format!("self.0[{}]", field.word),
                "f64" => format!("f64::from_bits(self.0[{}])", field.word),
                "bool" => format!("{masked} != 0"),
                "u8" | "u16" | "u32" | "i32" => format!("{masked} as {}", field.ty),
                name if layout.flags.iter().any(|(n, _)| n == name) => {
                    format!("{ty}({masked} as {})", if name == "present" { "u16" } else { "u32" })
                }
                _ => format!("{ty}::from_number({masked} as u8)"),
            };
            let (ty, value) = match &field.present {
                Some(bit) => (
                    format!("Option<{ty}>"),
                    format!(
                        "if self.present().has(Present::{}) {{ Some({value}) }} else {{ None }}",
                        bit.to_uppercase()
                    ),
                ),
                None => (ty, value),
            };
            let _ = write!(
                out,
                "\n    /// {doc}\n    #[must_use]\n    #[inline]\n    pub fn {}(&self) -> {ty} {{\n        {value}\n    }}\n",
                field.name
            );
        }
        out.push_str("}\n");
    }
    for (name, value) in &layout.verdicts {
        let _ = write!(out, "\n/// Verdict byte.\npub const VERDICT_{}: u8 = {value};\n", name.to_uppercase());
    }
    out
}

/// The header for C.
fn c(layout: &Layout) -> String {
    let mut out = format!(
        "/* Views of the packed records.\n * {NOTE} */\n#ifndef COLLANDER_PACKED_H\n#define COLLANDER_PACKED_H\n\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n"
    );
    for (name, cases) in layout.enums.iter().chain(&layout.flags) {
        let flags = layout.flags.iter().any(|(n, _)| n == name);
        let _ = write!(out, "\nenum collander_{name} {{\n");
        for (value, case) in cases.iter().enumerate() {
            let value = if flags { format!("1u << {value}") } else { value.to_string() };
            let _ = writeln!(out, "  COLLANDER_{}_{} = {value},", name.to_uppercase(), case.to_uppercase());
        }
        out.push_str("};\n");
    }
    for (record, words, doc, fields) in &layout.records {
        let upper = record.to_uppercase();
        let _ = write!(
            out,
            "\n/* {doc} */\n#define COLLANDER_{upper}_WORDS {words}\ntypedef struct collander_{record} {{\n  uint64_t words[COLLANDER_{upper}_WORDS];\n}} collander_{record}_t;\n"
        );
        for field in fields {
            let width = field.to - field.from;
            let word = format!("r->words[{}]", field.word);
            let shifted = if field.from == 0 { word.clone() } else { format!("({word} >> {})", field.from) };
            let masked = if width == 64 { shifted } else { format!("({shifted} & {:#x}u)", (1u64 << width) - 1) };
            let ty = match field.ty.as_str() {
                "u8" | "u16" | "u32" | "u64" => format!("u{}_t", field.ty.replace('u', "int")),
                "i32" => "int32_t".to_owned(),
                "f64" => "double".to_owned(),
                "bool" => "bool".to_owned(),
                name if layout.flags.iter().any(|(n, _)| n == name) => "uint32_t".to_owned(),
                name => format!("enum collander_{name}"),
            };
            let mut doc = field.doc.clone();
            if !field.unit.is_empty() {
                let _ = write!(doc, " Unit: {}.", field.unit);
            }
            if field.present.is_some() {
                doc.push_str(" 0 if it is not known: see the function `…_has_…`.");
            }
            let body = match field.ty.as_str() {
                "f64" => format!("double v;\n  memcpy(&v, &r->words[{}], sizeof v);\n  return v;", field.word),
                _ => format!("return ({ty}){masked};"),
            };
            let function = format!("collander_{record}_{}", field.name);
            let _ = write!(
                out,
                "/* {doc} */\nstatic inline {ty} {function}(const collander_{record}_t *r) {{\n  {body}\n}}\n"
            );
            if let Some(bit) = &field.present {
                let _ = write!(
                    out,
                    "static inline bool collander_{record}_has_{}(const collander_{record}_t *r) {{\n  return (collander_operation_present(r) & COLLANDER_PRESENT_{}) != 0;\n}}\n",
                    field.name,
                    bit.to_uppercase()
                );
            }
        }
    }
    out.push('\n');
    for (name, value) in &layout.verdicts {
        let _ = writeln!(out, "#define COLLANDER_VERDICT_{} {value}", name.to_uppercase());
    }
    out.push_str("\n#endif\n");
    out
}

/// The page for people.
fn page(layout: &Layout) -> String {
    let mut out = format!(
        "# Layout of the packed records\n\n<!-- {NOTE} -->\n\nWhat `tail-packed.observe` of [the interface](../wit/since-v0.1.0/filter.wit) is given: `batch`, 32 words an operation, and\n`children`, 12 words each. Words are 64 bits, little-endian in the guest's memory. A field that can be absent is 0 then, and its bit in `present` is\nnot set. What is not listed is reserved and 0.\n"
    );
    for (record, words, doc, fields) in &layout.records {
        let _ = write!(
            out,
            "\n## {record}: {words} words\n\n{doc}\n\n| word | bits | field | type | unit | meaning |\n| --- | --- | --- | --- | --- | --- |\n"
        );
        for field in fields {
            let bits = if (field.from, field.to) == (0, 64) {
                String::new()
            } else {
                format!("{}–{}", field.from, field.to - 1)
            };
            let doc = if field.present.is_some() { format!("{} Can be absent.", field.doc) } else { field.doc.clone() };
            let _ =
                writeln!(out, "| {} | {bits} | `{}` | {} | {} | {doc} |", field.word, field.name, field.ty, field.unit);
        }
    }
    out.push_str("\n## Enums\n\n| enum | values, from 0 |\n| --- | --- |\n");
    for (name, cases) in &layout.enums {
        let _ = writeln!(out, "| `{name}` | {} |", cases.join(", "));
    }
    out.push_str("\n## Flag sets\n\n| set | bits, from 0 |\n| --- | --- |\n");
    for (name, cases) in &layout.flags {
        let _ = writeln!(out, "| `{name}` | {} |", cases.join(", "));
    }
    out.push_str("\n## Verdicts\n\nA byte an operation, in the same order; an empty list keeps all.\n\n| byte | meaning |\n| --- | --- |\n| 0 | drop |\n| 1 | keep |\n| 128 + bits | keep, to the sinks of bits 0 to 6 instead of its own; 128 alone: keep |\n\nEvery other byte, or a bit without a sink, is an error of the filter: the batch takes its fallback.\n");
    out
}

/// As `cargo fmt` would leave it.
fn formatted(source: &str) -> String {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rustfmt: rustup component add rustfmt");
    rustfmt.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let output = rustfmt.wait_with_output().unwrap();
    assert!(output.status.success(), "rustfmt failed");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_is_committed_is_what_the_layout_says() {
    let layout = load();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut different = Vec::new();
    for (path, wanted) in [
        ("host/engine/src/layout.rs", formatted(&host(&layout))),
        ("sdk/rust/src/packed.rs", formatted(&rust(&layout))),
        ("sdk/c/collander_packed.h", c(&layout)),
        ("docs/packed-layout.md", page(&layout)),
    ] {
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(root.join(path), &wanted).unwrap();
        } else if std::fs::read_to_string(root.join(path)).unwrap_or_default() != wanted {
            different.push(path);
        }
    }
    assert!(different.is_empty(), "{different:?}: run BLESS=1 cargo test -p collander-engine --test packed_layout");
}

#[test]
fn no_two_fields_overlap() {
    for (record, words, _, fields) in &load().records {
        let mut taken = vec![0u64; *words];
        for field in fields {
            let mask =
                if field.to - field.from == 64 { u64::MAX } else { ((1 << (field.to - field.from)) - 1) << field.from };
            assert_eq!(taken[field.word] & mask, 0, "{record}.{}", field.name);
            taken[field.word] |= mask;
        }
    }
}
