//! Installs what a command needs, and says what; where that fails, says what to do.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::steps::{cargo, succeed};

/// Whether a program is found on the path.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether a command runs and says that all is well, quietly.
pub fn works(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Makes sure that `program` is there, from Debian packages if it is not.
///
/// # Errors
/// It is not there and cannot be installed; the message names the packages.
pub fn program(program: &str, packages: &[&str]) -> Result<()> {
    if has(program) {
        return Ok(());
    }
    let wanted = packages.join(" ");
    let advice =
        || format!("{program} is missing: install it (on Debian and Ubuntu: apt-get install {wanted}) and try again");
    if !has("apt-get") {
        bail!(advice());
    }
    eprintln!("installing {wanted} (for {program})");
    apt_get(&["update", "-qq"]).ok();
    let mut args = vec!["install", "-y", "-qq", "--no-install-recommends"];
    args.extend_from_slice(packages);
    apt_get(&args).with_context(advice)?;
    if has(program) { Ok(()) } else { bail!(advice()) }
}

fn apt_get(args: &[&str]) -> Result<()> {
    // As root directly, else through sudo if that asks for no password.
    let am_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    let mut command = Command::new(if am_root { "apt-get" } else { "sudo" });
    if !am_root {
        command.args(["-n", "apt-get"]);
    }
    succeed(command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()))
}

/// Makes sure that a C compiler is there: zstd is C, and so are the bench's floors.
///
/// # Errors
/// It is not there and cannot be installed.
pub fn c_compiler() -> Result<()> {
    if std::env::var_os("CC").is_some() { Ok(()) } else { program("cc", &["gcc", "libc6-dev"]) }
}

/// Makes sure that `cargo nextest` is there. Returns false if it is not and cannot be installed: `cargo test` will do.
pub fn nextest() -> bool {
    if works(&mut cargo(&["nextest", "--version"])) {
        return true;
    }
    eprintln!("installing cargo-nextest (cargo install cargo-nextest --locked; some minutes)");
    let mut install = cargo(&["install", "cargo-nextest", "--locked", "--quiet"]);
    // Outside the workspace's target folder, and whatever flags the caller has for the workspace.
    install.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    match succeed(&mut install) {
        Ok(()) => works(&mut cargo(&["nextest", "--version"])),
        Err(error) => {
            eprintln!("cargo-nextest cannot be installed ({error:#}): falling back to `cargo test`");
            false
        }
    }
}

/// Makes sure that a component of the Rust toolchain is there.
///
/// # Errors
/// It is not there and rustup cannot add it.
pub fn component(subcommand: &str, component: &str) -> Result<()> {
    if works(&mut cargo(&[subcommand, "--version"])) {
        return Ok(());
    }
    eprintln!("installing the Rust component {component}");
    succeed(Command::new("rustup").args(["component", "add", component])).with_context(|| {
        format!("`cargo {subcommand}` is missing: run `rustup component add {component}` and try again")
    })
}

/// Whether the standard library of a target is there, for the given compiler.
pub fn has_target(rustc: &Path, target: &str) -> bool {
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output();
    let Ok(output) = output else { return false };
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let Ok(entries) = std::fs::read_dir(&folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
}
