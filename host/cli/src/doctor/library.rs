//! Whether the library is one that NCCL can load.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::Check;
use super::elf::{self, OWN_MACHINE};
use super::loader::Loaded;

const ID: &str = "library";

/// NCCL versions by the highest interface that they look for.
pub const NCCL_BY_INTERFACE: [(u8, &str); 7] = [
    (1, "2.23"),
    (2, "2.24, 2.25"),
    (3, "2.26"),
    (4, "2.27"),
    (5, "2.28, 2.29"),
    (6, "2.30 and late 2.29"),
    (7, "2.31 and later"),
];

/// Loads a name in a child process: what crashes there does not crash us.
///
/// # Errors
/// When this program cannot be started again.
pub fn load_in_child(name: &str) -> Result<Loaded> {
    let program = std::env::current_exe().context("finding this program")?;
    let output = Command::new(program)
        .args(["doctor-load", "--", name])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .context("starting a child process")?;
    let last = output.stdout.split(|b| *b == b'\n').rev().find(|line| !line.is_empty()).unwrap_or_default();
    Ok(serde_json::from_slice(last).unwrap_or_else(|_| Loaded {
        error: Some(format!("loading it ended the process: {}", output.status)),
        ..Loaded::default()
    }))
}

/// Checks the file, then loads it.
pub fn check(path: &Path, load: &dyn Fn(&str) -> Loaded) -> Vec<Check> {
    let shown = path.display();
    let elf = match elf::read(path) {
        Ok(elf) => elf,
        Err(why) => {
            let fix = "make the file and its folders readable for this user, or build it again";
            return vec![Check::fail(ID, format!("{shown}: {why}"), fix)];
        }
    };
    if elf.machine != OWN_MACHINE {
        let what = format!("{shown} is built for {}", elf.machine_name());
        return vec![Check::fail(ID, what, "build it for this machine")];
    }
    if elf.needs_musl() {
        let what = format!("{shown} is linked against musl, and NCCL runs with glibc");
        return vec![Check::fail(ID, what, "build it for a -gnu target")];
    }
    let mut checks = Vec::new();
    let on_noexec = rustix::fs::statvfs(path).is_ok_and(|fs| fs.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC));
    if on_noexec {
        checks.push(Check::fail(
            ID,
            format!("{shown} lies on a file system mounted noexec: the dynamic linker refuses it"),
            "copy it to another file system",
        ));
    }
    let loaded = load(&path.to_string_lossy());
    match (&loaded.error, loaded.versions.last()) {
        (Some(error), _) => checks.push(Check::fail(
            ID,
            format!("{shown} cannot be loaded: {error}"),
            "see the message of the dynamic linker",
        )),
        (None, None) => {
            checks.push(Check::fail(ID, format!("{shown} exports no ncclProfiler_vN"), "it is another library"))
        }
        (None, Some(_)) => checks.push(Check::ok(ID, format!("{shown} loads"))),
    }
    checks.push(symbols(&elf));
    checks
}

fn symbols(elf: &elf::Elf) -> Check {
    let versions = elf.profiler_versions();
    let others: Vec<&str> =
        elf.exports.iter().map(String::as_str).filter(|name| !name.starts_with("ncclProfiler_v")).take(5).collect();
    let picks: Vec<String> = NCCL_BY_INTERFACE
        .iter()
        .filter_map(|(highest, nccl)| {
            let picked = versions.iter().filter(|version| *version <= highest).max()?;
            Some(format!("NCCL {nccl}: v{picked}"))
        })
        .collect();
    if versions != [1, 2, 3, 4, 5, 6, 7] {
        let what = format!("it exports the interface versions {versions:?}, expected 1 to 7; {}", picks.join(" · "));
        return Check::warn("symbols", what, "older or newer NCCL may find no symbol: take a complete build");
    }
    if !others.is_empty() {
        let what = format!("beside ncclProfiler_v1 to v7 it exports {}", others.join(", "));
        return Check::warn("symbols", what, "take a release build: other symbols can clash with the program's");
    }
    Check::ok("symbols", format!("exports ncclProfiler_v1 to v7 and nothing else; {}", picks.join(" · ")))
}
