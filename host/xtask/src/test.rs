//! `cargo xtask test`

use anyhow::{Result, bail};

use crate::steps::{Steps, cargo, succeed, target_folder};
use crate::{artifacts, conclude, install, tests_runner, tidy};

/// Variable under which tests find the program; the plugin ignores what begins with `COLLANDER_TEST_`.
pub const PROGRAM_VARIABLE: &str = "COLLANDER_TEST_PROGRAM";

/// Everything that a change must pass; with filters only the tests whose names contain one of them.
///
/// # Errors
/// Something failed; what, stands in the message.
pub fn run(filters: &[&str]) -> Result<()> {
    let everything = filters.is_empty();
    let mut steps = Steps::default();
    let mut summary = Vec::new();
    let nextest = steps.step("install", || {
        install::c_compiler()?;
        if everything {
            install::component("fmt", "rustfmt")?;
            install::component("clippy", "clippy")?;
        }
        Ok(install::nextest())
    });
    let Some(nextest) = nextest else { return conclude(&steps.summary()) };
    if everything {
        steps.step("format", || succeed(&mut cargo(&["fmt", "--all", "--check"])));
        steps.step("tidy", tidy::files);
    }
    let built = steps.step("library and program", || artifacts::build("dev"));
    if everything {
        if let Some(built) = &built {
            steps.step("exported symbols", || artifacts::check_exports(&built.library));
        }
        let lints = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"];
        steps.step("lints, benches compile", || succeed(&mut cargo(&lints)));
        steps.step("ring model (loom)", loom);
        steps.step("documentation and its examples", || {
            succeed(cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "--deny warnings"))?;
            succeed(&mut cargo(&["test", "--workspace", "--doc", "--quiet"]))
        });
    }
    steps.step("tests", || {
        let Some(built) = &built else { bail!("the library was not built") };
        tests_runner::run(nextest, &["--workspace"], filters, &mut summary, |command| {
            command.env("COLLANDER_LIBRARY", &built.library).env(PROGRAM_VARIABLE, &built.program);
        })
    });
    let failed = steps.summary();
    for line in &summary {
        eprintln!("{line}");
    }
    conclude(&failed)
}

/// The ring's protocol under every interleaving; its own target folder, since the flag reaches every crate.
fn loom() -> Result<()> {
    let args = ["test", "-p", "collander-ring", "--release", "--test", "loom_model", "--quiet"];
    succeed(cargo(&args).env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target_folder().join("loom")))
}
