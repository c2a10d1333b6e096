//! The library under the name that NCCL looks for, and the program beside it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::steps::{cargo, output, succeed, target_folder};

/// The library's file name: `NCCL_PROFILER_PLUGIN=collander` finds it. Cargo cannot name a library so.
pub const LIBRARY: &str = "libnccl-profiler-collander.so";
/// The program's file name.
pub const PROGRAM: &str = "collander";

/// What was built.
#[derive(Clone, Debug)]
pub struct Artifacts {
    /// The library.
    pub library: PathBuf,
    /// The program, beside it.
    pub program: PathBuf,
}

/// Builds both with one profile and puts the library beside the program.
///
/// # Errors
/// The build fails.
pub fn build(profile: &str) -> Result<Artifacts> {
    build_with(profile, None, |_| ())
}

/// As [`build`], for a target, with changes to cargo's command.
///
/// # Errors
/// The build fails.
pub fn build_with(profile: &str, target: Option<&str>, adjust: impl FnOnce(&mut Command)) -> Result<Artifacts> {
    let mut command = cargo(&["build", "--profile", profile, "-p", "collander-plugin", "-p", "collander-cli"]);
    if let Some(target) = target {
        command.args(["--target", target]);
    }
    adjust(&mut command);
    let base = command
        .get_envs()
        .find(|(name, _)| *name == "CARGO_TARGET_DIR")
        .and_then(|(_, value)| value.map(PathBuf::from))
        .unwrap_or_else(target_folder);
    succeed(&mut command)?;
    let folder = match target {
        Some(target) => base.join(target),
        None => base,
    }
    .join(if profile == "dev" { "debug" } else { profile });
    place(&folder)
}

fn place(folder: &Path) -> Result<Artifacts> {
    let (built, library) = (folder.join("libcollander_plugin.so"), folder.join(LIBRARY));
    // Written beside and renamed: a process that has the old one mapped keeps it.
    let fresh = folder.join(format!("{LIBRARY}.new"));
    std::fs::copy(&built, &fresh).with_context(|| format!("cannot copy {}", built.display()))?;
    std::fs::rename(&fresh, &library).with_context(|| format!("cannot write {}", library.display()))?;
    Ok(Artifacts { library, program: folder.join(PROGRAM) })
}

/// Checks that the library exports `ncclProfiler_v1` to `v7` and nothing else.
///
/// # Errors
/// `nm` is missing, or the symbols differ; the message names them.
pub fn check_exports(library: &Path) -> Result<()> {
    let listing = output(Command::new("nm").args(["--dynamic", "--defined-only", "--format=posix"]).arg(library))
        .context("`nm` is needed to list symbols: install binutils")?;
    let mut found: Vec<&str> = listing.lines().filter_map(|line| line.split_whitespace().next()).collect();
    found.sort_unstable();
    let expected: Vec<String> = (1..=7).map(|version| format!("ncclProfiler_v{version}")).collect();
    ensure!(found == expected, "{} exports {found:?}, expected {expected:?}", library.display());
    Ok(())
}
