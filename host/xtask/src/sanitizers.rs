//! `cargo xtask test --asan` and `--tsan`: the sanitizers that the stable compiler has, switched on.

use std::process::Command;

use anyhow::{Result, bail};

use crate::steps::{Steps, target_folder};
use crate::{artifacts, conclude, install, test, tests_runner};

/// With a target given, flags do not reach build scripts and procedural macros.
#[cfg(target_arch = "x86_64")]
const TARGET: &str = "x86_64-unknown-linux-gnu";
#[cfg(target_arch = "aarch64")]
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// What ThreadSanitizer must not report: results of tests and threads are handed over inside the standard library, whose
/// synchronisation it does not see. No frame of a test has this in its name.
const SUPPRESSIONS: &str = "\
    race:test::event::CompletedTest\nrace:std::thread::lifecycle::Packet<\nrace:std::thread::thread::Inner\n";

/// AddressSanitizer: library and tests instrumented; runs the tests whose names contain `asan` (the replay of every
/// recording with late, doubled, stale and foreign handles and contexts).
///
/// # Errors
/// The build fails, or a test does, or no test has the name.
pub fn address() -> Result<()> {
    let adjust = |command: &mut Command| {
        command
            .env("RUSTC_BOOTSTRAP", "1")
            // The run-time part lies in the program: it must show its symbols to the libraries that the program loads.
            .env("RUSTFLAGS", "-Zsanitizer=address -Clink-arg=-Wl,--export-dynamic")
            // What lives as long as the process is not lost: the library is never unmapped.
            .env("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=1")
            .env("CARGO_TARGET_DIR", target_folder().join("asan"));
    };
    sanitized("AddressSanitizer", &["-p", "collander-tests"], "asan", adjust, true)
}

/// ThreadSanitizer on the ring's tests with two threads.
///
/// # Errors
/// The build fails, or a test does, or no test has the name.
pub fn thread() -> Result<()> {
    let folder = target_folder().join("tsan");
    std::fs::create_dir_all(&folder)?;
    let suppressions = folder.join("suppressions");
    std::fs::write(&suppressions, SUPPRESSIONS)?;
    let adjust = |command: &mut Command| {
        command
            .env("RUSTC_BOOTSTRAP", "1")
            // The standard library is not instrumented; what is checked is the ring's own accesses.
            .env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer")
            .env("TSAN_OPTIONS", format!("halt_on_error=1:suppressions={}", suppressions.display()))
            .env("CARGO_TARGET_DIR", &folder);
    };
    sanitized("ThreadSanitizer", &["-p", "collander-ring"], "thread", adjust, false)
}

fn sanitized(
    sanitizer: &str,
    packages: &[&str],
    filter: &str,
    adjust: impl Fn(&mut Command),
    with_library: bool,
) -> Result<()> {
    let mut steps = Steps::default();
    let mut summary = Vec::new();
    let nextest = steps.step("install", || {
        install::c_compiler()?;
        Ok(install::nextest())
    });
    let Some(nextest) = nextest else { return conclude(&steps.summary()) };
    let library = with_library.then(|| {
        steps.step(&format!("library with {sanitizer}"), || artifacts::build_with("dev", Some(TARGET), &adjust))
    });
    steps.step(&format!("tests under {sanitizer}"), || {
        if let Some(None) = &library {
            bail!("the library was not built");
        }
        let mut args = vec!["--target", TARGET];
        args.extend_from_slice(packages);
        tests_runner::run(nextest, &args, &[filter], &mut summary, |command| {
            adjust(command);
            if let Some(Some(built)) = &library {
                command.env("COLLANDER_LIBRARY", &built.library).env(test::PROGRAM_VARIABLE, &built.program);
            }
        })
    });
    let failed = steps.summary();
    for line in &summary {
        eprintln!("{line}");
    }
    conclude(&failed)
}
