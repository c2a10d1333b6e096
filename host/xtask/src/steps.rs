//! Steps with names and durations, and the commands that they run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// The repository's root: that of the workspace which `cargo xtask` was called in, else the one that this was built from.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.ancestors().nth(2).map_or_else(|| here.clone(), Path::to_path_buf)
}

/// Cargo's target folder: `CARGO_TARGET_DIR`, else `target` in the root.
pub fn target_folder() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target")))
}

/// The cargo that runs us, in the root.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.args(args).current_dir(root());
    command
}

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started, or ends with another code than 0.
pub fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", show(command)))?;
    ensure!(status.success(), "{} ended with {status}", show(command));
    Ok(())
}

/// What a command prints on its standard output; its errors go to ours.
///
/// # Errors
/// It cannot be started, or ends with another code than 0.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", show(command)))?;
    ensure!(output.status.success(), "{} ended with {}", show(command), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A command as one would type it.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Runs steps one after the other, also after one has failed.
#[derive(Debug, Default)]
pub struct Steps {
    done: Vec<(String, Duration, bool)>,
}

impl Steps {
    /// Runs one step; says so before and after. Returns what it made, or None if it failed.
    pub fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        eprintln!("==> {name}");
        let before = Instant::now();
        let result = work();
        let took = before.elapsed();
        if let Err(error) = &result {
            eprintln!("xtask: {name}: {error:#}");
        }
        eprintln!("<== {name}: {} in {}", if result.is_ok() { "ok" } else { "FAILED" }, seconds(took));
        self.done.push((name.to_owned(), took, result.is_ok()));
        result.ok()
    }

    /// Prints all steps with their durations; returns the names of those that failed.
    pub fn summary(&self) -> Vec<String> {
        eprintln!("\nsteps");
        for (name, took, ok) in &self.done {
            eprintln!("  {name:<44} {:>8}  {}", seconds(*took), if *ok { "ok" } else { "FAILED" });
        }
        let total = self.done.iter().map(|(_, took, _)| *took).sum();
        eprintln!("  {:<44} {:>8}", "together", seconds(total));
        self.done.iter().filter(|(_, _, ok)| !ok).map(|(name, _, _)| name.clone()).collect()
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
