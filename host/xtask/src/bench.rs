//! `cargo xtask bench`

use std::process::Command;

use anyhow::{Result, bail};

use crate::steps::{cargo, succeed, target_folder};
use crate::{artifacts, install, panics, steps};

/// Builds what is shipped and the bench, looks for panics in the callbacks, and compares the library with the floors.
///
/// # Errors
/// An argument is unknown, the build fails, the library cannot be driven, or a limit is exceeded.
pub fn run(args: &[&str]) -> Result<()> {
    if let Some(unknown) = args.iter().find(|arg| !["--quick", "--json"].contains(arg)) {
        bail!("bench {unknown}: expected --quick, --json or nothing");
    }
    install::c_compiler()?;
    if let Err(error) = install::program("valgrind", &["valgrind"]) {
        eprintln!("xtask: instructions per call will not be counted: {error:#}");
    }
    eprintln!("building (dist; some minutes the first time)");
    panics::check()?;
    let built = artifacts::build("dist")?;
    succeed(&mut cargo(&["build", "--release", "-p", "collander-bench"]))?;
    let mut suite = Command::new(target_folder().join("release/collander-bench"));
    suite.arg("suite").arg(&built.library).args(args);
    if steps::root().join("host/pipeline/benches/assemble.rs").exists() && !args.contains(&"--json") {
        eprintln!("operations a second through drain and assembler, one core:");
        succeed(&mut cargo(&["bench", "--quiet", "-p", "collander-pipeline", "--bench", "assemble"]))?;
    }
    succeed(&mut suite)
}
