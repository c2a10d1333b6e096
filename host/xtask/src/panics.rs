//! That no callback can panic: looks for calls of panicking functions in the library's machine code.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::steps::{cargo, output, succeed, target_folder};

/// Where callbacks begin: `startEvent`, `stopEvent`, `recordEventState` and what they jump to.
const ENTRIES: &str = "collander_plugin::c_api::";
/// What is followed from there; anything else that is called is checked by its name only.
const FOLLOWED: [&str; 4] =
    [ENTRIES, "collander_plugin::callbacks::", "collander_plugin::intern::", "collander_ring::producer::"];
/// `init` and `finalize`: what they call runs inside the unwind guard. So does what is in a function that catches.
const GUARDED: [&str; 3] = ["::init", "::finalize", "collander_plugin::guard::"];
/// Part of `catch_unwind`, whether it was inlined or not.
const CATCHES: &str = "panicking::catch_unwind";

/// Builds the library as it is shipped, but with its symbols, and checks its callbacks. Without `objdump` it says so and
/// checks nothing.
///
/// # Errors
/// The build fails, the listing cannot be understood, or a callback calls something that panics; the message names both.
pub fn check() -> Result<()> {
    if Command::new("objdump").arg("--version").output().is_err() {
        eprintln!("xtask: callbacks are not searched for panics: install binutils for `objdump`");
        return Ok(());
    }
    let args = ["rustc", "--quiet", "--profile", "dist", "-p", "collander-plugin", "--lib", "--", "-Cstrip=none"];
    succeed(&mut cargo(&args))?;
    check_library(&target_folder().join("dist/libcollander_plugin.so"))
}

fn check_library(library: &Path) -> Result<()> {
    let objdump =
        |what: &str| output(Command::new("objdump").args([what, "--demangle", "--no-show-raw-insn"]).arg(library));
    let calls = calls(&objdump("--disassemble")?, &objdump("--dynamic-reloc")?);
    let entries = calls.keys().filter(|name| name.starts_with(ENTRIES)).count();
    ensure!(entries >= 8, "only {entries} functions of {ENTRIES} found in {}", library.display());
    let found = panics(&calls);
    if found.is_empty() {
        eprintln!("{entries} callbacks, none calls what panics");
        return Ok(());
    }
    let lines: Vec<String> = found.iter().map(|(caller, callee)| format!("{caller} calls {callee}")).collect();
    bail!("callbacks can panic:\n  {}", lines.join("\n  "))
}

/// Callers and panicking callees among all that is reached from the callbacks.
fn panics(calls: &BTreeMap<String, BTreeSet<String>>) -> Vec<(String, String)> {
    let is_guarded = |name: &str| GUARDED.iter().any(|guarded| name.contains(guarded));
    let mut waiting: Vec<&String> =
        calls.keys().filter(|name| name.starts_with(ENTRIES) && !is_guarded(name)).collect();
    let mut seen: BTreeSet<&String> = waiting.iter().copied().collect();
    let mut found = Vec::new();
    while let Some(caller) = waiting.pop() {
        let Some(callees) = calls.get(caller).filter(|callees| !callees.iter().any(|name| name.contains(CATCHES)))
        else {
            continue;
        };
        for callee in callees {
            if is_panic(callee) {
                found.push((caller.clone(), callee.clone()));
            } else if FOLLOWED.iter().any(|followed| callee.starts_with(followed))
                && !is_guarded(callee)
                && seen.insert(callee)
            {
                waiting.push(callee);
            }
        }
    }
    found.sort();
    found
}

/// `panic_cannot_unwind` too: it is there if the compiler sees an unwind that could reach the C boundary.
fn is_panic(name: &str) -> bool {
    let named = ["panic", "unwrap_failed", "expect_failed", "handle_alloc_error", "capacity_overflow"];
    named.iter().any(|part| name.contains(part)) && !name.contains("thread::panicking")
}

/// Who calls, or jumps to, whom: by name in the listing, or through an address in the global offset table.
fn calls(listing: &str, relocations: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut at: HashMap<u64, &str> = HashMap::new();
    for line in listing.lines() {
        if let Some((address, name)) = header(line) {
            at.insert(address, name);
        }
    }
    let slots: HashMap<u64, &str> = relocations.lines().filter_map(|line| slot(line, &at)).collect();
    let mut calls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut caller = None;
    for line in listing.lines() {
        if let Some((_, name)) = header(line) {
            caller = Some(name);
            calls.entry(name.to_owned()).or_default();
        } else if let (Some(caller), Some(callee)) = (caller, callee(line, &slots))
            && caller != callee
        {
            calls.entry(caller.to_owned()).or_default().insert(callee.to_owned());
        }
    }
    calls
}

/// `0000000000059e80 <name>:`
fn header(line: &str) -> Option<(u64, &str)> {
    let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
    Some((u64::from_str_radix(address, 16).ok()?, name))
}

/// `00000000001c47b8 R_X86_64_RELATIVE  *ABS*+0x0000000000059e80`, or a function of another library by its name.
fn slot<'a>(line: &'a str, at: &HashMap<u64, &'a str>) -> Option<(u64, &'a str)> {
    let mut words = line.split_whitespace();
    let place = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?;
    let value = words.next()?;
    if kind.ends_with("_RELATIVE") {
        let target = u64::from_str_radix(value.rsplit_once("0x")?.1, 16).ok()?;
        return Some((place, at.get(&target)?));
    }
    kind.starts_with("R_").then_some((place, value))
}

/// The function that an instruction calls or jumps to.
fn callee<'a>(line: &'a str, slots: &HashMap<u64, &'a str>) -> Option<&'a str> {
    let (_, instruction) = line.split_once(":\t")?;
    let name = instruction.split_whitespace().next()?;
    if !(name.starts_with("call") || name.starts_with('j') || name == "bl" || name == "b" || name.starts_with("b.")) {
        return None;
    }
    if let Some((_, comment)) = instruction.split_once("# ") {
        let address = u64::from_str_radix(comment.split_whitespace().next()?, 16).ok()?;
        return slots.get(&address).copied();
    }
    let symbol = instruction.split_once('<')?.1.strip_suffix('>')?;
    // `name+0x30` is a place inside it.
    Some(symbol.rsplit_once("+0x").map_or(symbol, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\
0000000000001000 <collander_plugin::c_api::stop_event>:
    1000:\tpush   %rax
    1001:\tjne    1010 <collander_plugin::c_api::stop_event+0x10>
    1003:\tcall   *0x16a8c9(%rip)        # 5008 <_DYNAMIC+0x238>
    1009:\tjmp    3000 <collander_plugin::callbacks::stops::rare>

0000000000002000 <core::panicking::panic_bounds_check>:
    2000:\tud2

0000000000003000 <collander_plugin::callbacks::stops::rare>:
    3000:\tcall   4000 <collander_plugin::intern::NameCache::slow>

0000000000004000 <collander_plugin::intern::NameCache::slow>:
    4000:\tcall   2000 <core::panicking::panic_bounds_check>
    4005:\tcall   5000 <std::panicking::catch_unwind::cleanup>
";

    #[test]
    fn a_panic_behind_the_offset_table_is_found_and_one_in_the_guard_is_not() {
        let relocations = "0000000000005008 R_X86_64_RELATIVE  *ABS*+0x0000000000002000\n";
        let found = panics(&calls(LISTING, relocations));
        let expected = ("collander_plugin::c_api::stop_event", "core::panicking::panic_bounds_check");
        assert_eq!(found, [(expected.0.to_owned(), expected.1.to_owned())]);
        let relocations = "0000000000005008 R_X86_64_GLOB_DAT  memcpy@GLIBC_2.14\n";
        assert!(panics(&calls(LISTING, relocations)).is_empty());
        let to_rare = &calls(LISTING, relocations)["collander_plugin::c_api::stop_event"];
        assert!(to_rare.contains("memcpy@GLIBC_2.14") && to_rare.contains("collander_plugin::callbacks::stops::rare"));
    }
}
