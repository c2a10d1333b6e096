//! What NCCL would load, given NCCL_PROFILER_PLUGIN, and the mistakes that people make with it.
//!
//! NCCL tries the value itself as a file name or path, then `libnccl-profiler-VALUE.so` unless the value has a `/` or
//! already looks like `lib….so`; without a value it tries `libnccl-profiler.so`. What has no `/` is searched by the
//! dynamic linker. If nothing is found it looks for profiler symbols in the network plugin.

use std::path::Path;

use super::Check;
use super::elf::{self, OWN_MACHINE};
use super::loader::Loaded;
use super::surroundings::Surroundings;
use crate::library_path::SHIPPED;

/// The variable.
pub const VARIABLE: &str = "NCCL_PROFILER_PLUGIN";
const ID: &str = "nccl_profiler_plugin";
/// NCCL keeps so many characters of a name.
const LONGEST: usize = 254;

/// What NCCL does with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// No profiler at all.
    Off,
    /// Symbols of the program itself.
    Static,
    /// These, one after the other, until one loads.
    Names(Vec<String>),
}

/// Applies NCCL's rules.
pub fn choice(value: Option<&str>) -> Choice {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Choice::Names(vec!["libnccl-profiler.so".into()]);
    };
    if value.eq_ignore_ascii_case("none") {
        return Choice::Off;
    }
    // NCCL compares as many characters as the value has: every beginning of the word counts.
    if "STATIC_PLUGIN".get(..value.len()).is_some_and(|start| start.eq_ignore_ascii_case(value)) {
        return Choice::Static;
    }
    let mut names = vec![value.to_owned()];
    let whole = value.starts_with("lib") && value.ends_with(".so");
    if !value.contains('/') && !whole {
        names.push(format!("libnccl-profiler-{value}.so"));
    }
    Choice::Names(names)
}

/// Checks the variable; `load` tries a name as the dynamic linker would, `ours` is the library to recommend.
pub fn check(surroundings: &Surroundings, ours: Option<&Path>, load: &dyn Fn(&str) -> Loaded) -> Vec<Check> {
    let value = surroundings.get(VARIABLE);
    let recommended = ours.map_or_else(|| SHIPPED.to_owned(), |path| path.display().to_string());
    let set = format!("export {VARIABLE}={recommended}");
    let source = match surroundings.source(VARIABLE) {
        "" | "the environment" => String::new(),
        file => format!(" (from {file})"),
    };
    let shown = value.map_or_else(|| format!("{VARIABLE} is not set"), |value| format!("{VARIABLE}={value}{source}"));
    let mut checks = Vec::new();
    if let Some(value) = value {
        checks.extend(mistakes(value, &set));
    }
    let names = match choice(value) {
        Choice::Off => {
            checks.push(Check::fail(ID, format!("{shown}: NCCL loads no profiler"), set));
            return checks;
        }
        Choice::Static => {
            let what =
                format!("{shown}: NCCL takes it as (the beginning of) STATIC_PLUGIN and looks in the program itself");
            checks.push(Check::fail(ID, what, set));
            return checks;
        }
        Choice::Names(names) => names,
    };
    let mut refused = Vec::new();
    for name in &names {
        let loaded = load(name);
        if let Some(error) = loaded.error {
            refused.push(format!("{name}: {error}"));
            continue;
        }
        let path = loaded.path.clone().unwrap_or_else(|| name.clone());
        checks.push(match loaded.versions.last() {
            None => Check::fail(ID, format!("{shown}: NCCL loads {path}, which is no profiler plugin"), set),
            Some(_) if !path.contains("collander") => Check::warn(
                ID,
                format!("{shown}: NCCL loads {path}, another profiler plugin; NCCL can load only one"),
                set,
            ),
            Some(version) => Check::ok(ID, format!("{shown}: NCCL loads {path} (interface up to v{version})")),
        });
        return checks;
    }
    let hint = names.iter().find_map(|name| explain(name));
    let what = if value.is_some() {
        format!("{shown}: NCCL finds no library and goes on without a profiler. Tried {}", refused.join("; "))
    } else {
        format!("{shown}: NCCL looks for libnccl-profiler.so, which is not there, and goes on without a profiler")
    };
    let folder = ours.and_then(Path::parent);
    let fix = match (hint, folder) {
        (Some(hint), _) => format!("{hint}; {set}"),
        (None, Some(folder)) if value.is_some() && !names[0].contains('/') => {
            format!(
                "{set}; or add the folder to LD_LIBRARY_PATH: export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH",
                folder.display()
            )
        }
        _ => set,
    };
    checks.push(if value.is_some() { Check::fail(ID, what, fix) } else { Check::warn(ID, what, fix) });
    checks
}

/// Why a path does not load, if the file itself tells.
fn explain(name: &str) -> Option<String> {
    let path = Path::new(name);
    if !name.contains('/') {
        return None;
    }
    match std::fs::metadata(path) {
        Err(error) => return Some(format!("{name}: {error}")),
        Ok(meta) if meta.is_dir() => return Some(format!("{name} is a folder: name the file in it")),
        Ok(_) => {}
    }
    match elf::read(path) {
        Err(why) => Some(format!("{name}: {why}")),
        Ok(elf) if elf.machine != OWN_MACHINE => {
            Some(format!("{name} is built for {}: take the one for this machine", elf.machine_name()))
        }
        Ok(elf) if elf.needs_musl() => {
            Some(format!("{name} is linked against musl; NCCL runs with glibc: build it for a -gnu target"))
        }
        Ok(_) => None,
    }
}

/// Mistakes that the text of the value shows.
fn mistakes(value: &str, set: &str) -> Vec<Check> {
    const ID: &str = "nccl_profiler_plugin_value";
    let mut checks = Vec::new();
    let mut fail = |what: String| checks.push(Check::fail(ID, what, set.to_owned()));
    if value.trim() != value {
        fail(format!("{VARIABLE} begins or ends with white space, which NCCL keeps as part of the name"));
    }
    if value.contains(['"', '\'']) {
        fail(format!("{VARIABLE} contains quotes, which NCCL keeps as part of the name: {value}"));
    }
    if value.starts_with('~') || value.contains('$') {
        fail(format!("{VARIABLE} contains ~ or $, which nobody expands there: {value}"));
    }
    if value.contains([',', ';']) || (value.contains(':') && !Path::new(value).exists()) {
        fail(format!("{VARIABLE} looks like a list; NCCL loads one profiler plugin only: {value}"));
    }
    if value.len() > LONGEST {
        fail(format!("{VARIABLE} has {} characters; NCCL cuts it after {LONGEST}", value.len()));
    }
    if !value.contains('/') {
        let whole = value.starts_with("lib") && value.ends_with(".so");
        let short = value.strip_prefix("lib").unwrap_or(value);
        let short = short.strip_suffix(".so").unwrap_or(short);
        let short = short.strip_prefix("nccl-profiler-").unwrap_or(short);
        if !whole && short != value && !short.is_empty() {
            fail(format!(
                "{VARIABLE}={value}: NCCL adds `libnccl-profiler-` and `.so` itself and looks for \
                 libnccl-profiler-{value}.so; write only `{short}`, or the whole file name, or a path"
            ));
        }
    } else if !value.starts_with('/') && !value.starts_with(['~', '$']) {
        checks.push(Check::warn(
            ID,
            format!("{VARIABLE}={value} is a relative path: it holds only in ranks that start in this folder"),
            set.to_owned(),
        ));
    }
    checks
}

/// Other variables that mislead.
pub fn other_variables(surroundings: &Surroundings) -> Vec<Check> {
    let mut checks = Vec::new();
    if surroundings.get("NCCL_PROFILE_EVENT_MASK").is_some() {
        checks.push(Check::warn(
            "event_mask",
            "NCCL_PROFILE_EVENT_MASK is set: only NVIDIA's example plugin reads it; collander asks for what its \
             configuration needs",
            "unset NCCL_PROFILE_EVENT_MASK; use [capture] in collander.toml",
        ));
    }
    let inspector = surroundings.names("NCCL_INSPECTOR_");
    if !inspector.is_empty() {
        let both = surroundings.get(VARIABLE).is_some_and(|value| value.contains("inspector"));
        let what = format!("variables of NVIDIA Inspector are set: {}", inspector.join(", "));
        checks.push(if both {
            Check::fail(
                "inspector",
                format!("{what}, and {VARIABLE} loads Inspector"),
                "NCCL loads one plugin: choose one",
            )
        } else {
            Check::warn(
                "inspector",
                format!("{what}; collander obeys those that it has an equivalent for"),
                "unset them if you did not mean collander",
            )
        });
    }
    checks
}
