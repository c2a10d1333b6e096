//! `cargo xtask test --aarch64`: Grace is as much a home as x86-64 is.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::steps::{Steps, cargo, succeed, target_folder};
use crate::{artifacts, conclude, install, test, tests_runner, toolchain};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const EMULATOR: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Crates whose tests run under the emulator: all that is architecture's business, and all that they feed.
const PACKAGES: [&str; 8] = ["ring", "event", "pipeline", "recording", "sim", "sinks", "config", "plugin"];

/// Builds the workspace for aarch64 and runs its tests under qemu.
///
/// # Errors
/// A tool cannot be installed, the build or a test fails.
pub fn run() -> Result<()> {
    let mut steps = Steps::default();
    let mut summary = Vec::new();
    let tools = steps.step("install", || {
        install::c_compiler()?;
        install::program("aarch64-linux-gnu-gcc", &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"])?;
        install::program("qemu-aarch64", &["qemu-user"])?;
        Ok((toolchain::for_target(TARGET)?, install::nextest()))
    });
    let Some((rustc, nextest)) = tools else { return conclude(&steps.summary()) };
    let built = steps.step("library and program for aarch64", || {
        let built = artifacts::build_with("dev", Some(TARGET), |command| for_aarch64(command, rustc.as_ref()))?;
        artifacts::check_exports(&built.library)?;
        Ok(built)
    });
    steps.step("workspace for aarch64", || {
        let mut build = cargo(&["build", "--workspace", "--all-targets", "--target", TARGET]);
        for_aarch64(&mut build, rustc.as_ref());
        succeed(&mut build)
    });
    let packages: Vec<String> = PACKAGES.iter().map(|name| format!("collander-{name}")).collect();
    let mut args = vec!["--target", TARGET, "--lib", "--bins", "--tests"];
    args.extend(packages.iter().flat_map(|package| ["-p", package.as_str()]));
    steps.step("tests under qemu", || {
        let Some(built) = &built else { bail!("the library was not built") };
        tests_runner::run(nextest, &args, &[], &mut summary, |command| {
            for_aarch64(command, rustc.as_ref());
            command.env("COLLANDER_LIBRARY", &built.library).env(test::PROGRAM_VARIABLE, &built.program);
        })
    });
    steps.step("replays under qemu", || {
        let Some(built) = &built else { bail!("the library was not built") };
        let args = ["--target", TARGET, "-p", "collander-tests"];
        tests_runner::run(nextest, &args, &["replay"], &mut summary, |command| {
            for_aarch64(command, rustc.as_ref());
            command.env("COLLANDER_LIBRARY", &built.library).env(test::PROGRAM_VARIABLE, &built.program);
        })
    });
    let failed = steps.summary();
    for line in &summary {
        eprintln!("{line}");
    }
    conclude(&failed)
}

fn for_aarch64(command: &mut Command, rustc: Option<&PathBuf>) {
    command
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR)
        .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        // For tests that compile a library in C and load it.
        .env("COLLANDER_TEST_CC", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_DIR", target_folder().join("aarch64"));
    if let Some(rustc) = rustc {
        command.env("RUSTC", rustc);
    }
}
