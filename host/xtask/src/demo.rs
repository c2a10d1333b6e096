//! `cargo xtask demo`

use std::process::Command;

use anyhow::Result;

use crate::steps::succeed;
use crate::{artifacts, install};

/// Builds the library and the program and runs `collander demo` with the arguments given.
///
/// # Errors
/// A C compiler is missing, the build fails, or the demo does.
pub fn run(args: &[&str]) -> Result<()> {
    install::c_compiler()?;
    eprintln!("building (release; some minutes the first time)");
    let built = artifacts::build("release")?;
    succeed(Command::new(&built.program).arg("demo").args(args).env("COLLANDER_LIBRARY", &built.library))
}
