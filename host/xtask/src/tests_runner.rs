//! Runs tests with nextest, or with `cargo test` where that is not to be had, and keeps the summary.

use std::io::{BufRead, BufReader, IsTerminal as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::steps::{cargo, show};

/// Runs `cargo nextest run ARGS` (or `cargo test ARGS`), with filters by name, after `adjust` has changed the command.
/// The lines that sum up what ran are appended to `summary`, also when tests fail.
///
/// # Errors
/// A test fails or does not compile; no test matches the filters.
pub fn run(
    nextest: bool,
    args: &[&str],
    filters: &[&str],
    summary: &mut Vec<String>,
    adjust: impl FnOnce(&mut Command),
) -> Result<()> {
    let mut command = if nextest {
        let mut command = cargo(&["nextest", "run", "--no-fail-fast"]);
        if std::io::stderr().is_terminal() {
            command.args(["--color", "always"]);
        }
        command.args(args).args(filters);
        command
    } else {
        // libtest runs what matches any of its filters.
        let mut command = cargo(&["test", "--no-fail-fast"]);
        command.args(args).arg("--").args(filters);
        command
    };
    adjust(&mut command);
    if nextest {
        command.stderr(Stdio::piped());
    } else {
        command.stdout(Stdio::piped());
    }
    let mut child = command.spawn().with_context(|| format!("cannot run {}", show(&command)))?;
    let mut counts = Counts::default();
    let mut summing_up = false;
    let mut take = |line: &str| {
        if nextest {
            summing_up |= line.contains("Summary") && line.contains("run");
            if summing_up {
                summary.push(line.to_owned());
            }
        } else {
            counts.add(line);
        }
    };
    if let Some(pipe) = child.stderr.take() {
        each_line(pipe, |line| {
            eprintln!("{line}");
            take(line);
        });
    } else if let Some(pipe) = child.stdout.take() {
        each_line(pipe, |line| {
            println!("{line}");
            take(line);
        });
    }
    let status = child.wait()?;
    if !nextest {
        summary.push(counts.summary());
    }
    ensure!(status.success(), "{} ended with {status}", show(&command));
    Ok(())
}

fn each_line(pipe: impl std::io::Read, mut work: impl FnMut(&str)) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        work(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
}

/// Sums over libtest's result lines.
#[derive(Debug, Default)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Counts {
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = result.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    fn summary(&self) -> String {
        let Self { passed, failed, ignored } = self;
        format!("Summary: {} tests run: {passed} passed, {failed} failed, {ignored} skipped", passed + failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_results_are_summed() {
        let mut counts = Counts::default();
        counts.add("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        counts.add("test some::test ... ok");
        counts.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 4 filtered out; finished in 1.00s");
        assert_eq!(counts.summary(), "Summary: 17 tests run: 15 passed, 2 failed, 1 skipped");
    }
}
