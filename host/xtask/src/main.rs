//! `cargo xtask`: everything that one does with this repository, in one command each.
//!
//! Each command installs what it needs and says what. Nothing here is part of what is shipped.

#![forbid(unsafe_code)]

mod artifacts;
mod bench;
mod cross;
mod demo;
mod install;
mod links;
mod package;
mod panics;
mod sanitizers;
mod steps;
mod test;
mod tests_runner;
mod tidy;
mod toolchain;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  demo                       builds collander (release) and runs an 8-rank job with a straggler through the library
  test [FILTER…]             format, lints, tidy, models, documentation, all tests; with filters only the tests they match
  test --aarch64             the workspace for aarch64, and its tests under qemu
  test --asan                the tests named `asan` under AddressSanitizer
  test --tsan                the ring's two-thread tests under ThreadSanitizer
  tidy                       file sizes, links, lints switched on, exported symbols (part of `test`)
  bench [--quick] [--json]   what a callback costs, beside two floors of the same run, and whether each limit holds
  package [--out DIR]        a tarball of the library and the program, checked against the size limit

Exit code: 0 all went well, 1 something failed, 2 the command line makes no sense.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result: Result<()> = match args.as_slice() {
        ["demo", rest @ ..] => demo::run(rest),
        ["test", "--aarch64"] => cross::run(),
        ["test", "--asan"] => sanitizers::address(),
        ["test", "--tsan"] => sanitizers::thread(),
        ["test", filters @ ..] if filters.iter().all(|filter| !filter.starts_with('-')) => test::run(filters),
        ["tidy"] => tidy::run(),
        ["bench", rest @ ..] => bench::run(rest),
        ["package"] => package::run("target/package"),
        ["package", "--out", folder] => package::run(folder),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Ends a command with an error if anything in `failed` is named.
fn conclude(failed: &[String]) -> Result<()> {
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}
