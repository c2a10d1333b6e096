//! `docs/reference/config.md`, from the table of keys.

use std::fmt::Write as _;

use crate::env::array_variable;
use crate::keys::{ARRAYS, KEYS, Key, Kind, OTHER_VARIABLES};
use crate::raw::top_names;
use crate::units::{show_bytes, show_duration};

const HEAD: &str = "# Configuration

Generated from the code (`BLESS=1 cargo test -p collander-config` rewrites it). Without any configuration collander works: operations go to
zstd JSON Lines under `collander-<job id>/`.

The file is TOML; `COLLANDER_CONFIG` names it, and without that none is read. Every key is also an environment variable, which beats the
file. A key or variable that does not exist, or a value that does not fit, is an error that names it; the plugin then stays off and the job
runs on.

- Spans of time: a number and `ns`, `us`, `ms`, `s`, `min` or `h`; a number alone is milliseconds.
- Sizes: a number and `B`, `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024) or `kB`, `MB`, `GB`, `TB` (powers of 1000); a number alone is bytes.
- In a variable: lists are `a,b` or a TOML list, tables `a=b,c=d` or a TOML table, true and false also 1 and 0.
- `[[label]]`, `[[sample]]`, `[[sink]]` may be there several times; in a variable they are TOML lists of tables, which replace the file's:
  `COLLANDER_SAMPLE='[{ size = \"..64KiB\", keep = \"1/16\" }]'`.
- `COLLANDER_SINK_…` change the first JSON Lines sink, be it from the file, from `COLLANDER_SINK` or the default one.
- Of the label rules, and of the sampling rules, the first that matches an operation decides. What no sampling rule matches is kept.
";

/// The text of `docs/reference/config.md`.
#[must_use]
pub fn reference() -> String {
    let mut text = HEAD.to_owned();
    for section in
        top_names().map(|name| if KEYS.iter().any(|k| k.section.is_empty() && k.name == name) { "" } else { name })
    {
        let title = match section {
            "" => "Top".to_owned(),
            name if ARRAYS.contains(&name) => format!("`[[{name}]]`"),
            name => format!("`[{name}]`"),
        };
        let _ = write!(text, "\n## {title}\n\n");
        if ARRAYS.contains(&section) {
            let _ = write!(text, "As a variable: `{}`.\n\n", array_variable(section));
        }
        text.push_str("| key | variable | value | default | meaning |\n|---|---|---|---|---|\n");
        for key in KEYS.iter().filter(|key| key.section == section) {
            text.push_str(&row(key));
        }
    }
    text.push_str("\n## Other variables\n\n| variable | meaning |\n|---|---|\n");
    for (name, meaning) in OTHER_VARIABLES {
        let _ = writeln!(text, "| `{name}` | {meaning} |");
    }
    text.push_str("\n`NCCL_INSPECTOR_…` are read too, if no sink is configured: see [Inspector compatibility](../inspector-compatibility.md).\n");
    text
}

fn row(key: &Key) -> String {
    let variable = key.variable().map_or("-".to_owned(), |variable| format!("`{variable}`"));
    format!("| `{}` | {variable} | {} | {} | {} |\n", key.name, value(key.kind), key.default, key.doc)
}

fn value(kind: Kind) -> String {
    let span = |ns| show_duration(std::time::Duration::from_nanos(ns));
    match kind {
        Kind::Bool => "true or false".to_owned(),
        Kind::Duration { min, max, zero } => {
            format!("span of time, {} to {}{}", span(min), span(max), if zero { ", or 0" } else { "" })
        }
        Kind::Bytes { min, max, power_of_two } => {
            let power = if power_of_two { ", a power of two" } else { "" };
            format!("size, {} to {}{power}", show_bytes(min), show_bytes(max))
        }
        Kind::Integer { min, max } => format!("whole number, {min} to {max}"),
        Kind::Text => "text".to_owned(),
        Kind::Texts => "text or list of texts".to_owned(),
        Kind::Choice(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Choices(words) => {
            format!("list of {}", words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))
        }
        Kind::Range => "`8`, `[2, 8]`, `\"2..8\"`, `\"2..\"`, `\"..8\"`; both ends belong to it".to_owned(),
        Kind::Sizes => {
            "`\"1MiB..\"`, `\"..64KiB\"`, `\"1KiB..1MiB\"`, `[1024, 2048]`; the upper end does not belong to it"
                .to_owned()
        }
        Kind::Keep => "`all`, `none`, `\"1/16\"`, `\"100/s\"`".to_owned(),
        Kind::TextTable => "table of texts".to_owned(),
    }
}
