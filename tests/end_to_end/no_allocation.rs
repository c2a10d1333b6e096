//! No allocation, lock or system call on a thread of NCCL's after its first events. (A lock that is held makes a system
//! call; the two threads and the drain run at the same time.)

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use collander_tests::{Quiet, Reply, Request, Setup, places};

use super::{opened, setup};

const OPERATIONS: u64 = 20_000;

fn quiet(setup: Setup) -> Result<(Reply, serde_json::Value)> {
    let (mut child, context) = opened(setup, None)?;
    let reply = child.ask(&Request::Quiet(Quiet { context, warm_up: 3000, operations: OPERATIONS }))?;
    super::settled(&child, OPERATIONS + 3000)?;
    child.ask(&Request::Finalize(context))?;
    child.end()?;
    let last = child.output()?.session()?.check_final()?.clone();
    ensure!(last["seen"]["total"] == OPERATIONS + 3000, "{last}");
    ensure!(reply.quiet.len() == 2, "{reply:?}");
    Ok((reply, last))
}

fn variants() -> Result<[(&'static str, Setup); 3]> {
    let none = "[[sample]]\nkeep = \"1/4\"\n";
    Ok([("default", setup()?), ("everything", setup()?.everything()), ("sampled", setup()?.configuration(none)?)])
}

#[test]
fn burst_without_an_allocation() -> Result<()> {
    for (name, setup) in variants()? {
        let Some(interposer) = places::interposer(setup.folder())? else { return Ok(()) };
        let (reply, _) = quiet(setup.variable("LD_PRELOAD", interposer))?;
        for (thread, allocations) in &reply.quiet {
            let allocations = allocations.context("the interposer was not loaded")?;
            ensure!(allocations == 0, "{name}: thread {thread} made {allocations} allocations");
        }
    }
    Ok(())
}

#[test]
fn burst_without_a_system_call() -> Result<()> {
    let works = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) || places::runner().is_some() {
        eprintln!("note: strace is not there, or may not trace");
        return Ok(());
    }
    for (name, setup) in variants()? {
        let trace = tempfile::NamedTempFile::new()?;
        let path = trace.path().to_string_lossy().into_owned();
        let (reply, _) = quiet(setup.under(&["strace", "-f", "-o", &path]))?;
        let text = std::fs::read_to_string(trace.path())?;
        for (thread, _) in &reply.quiet {
            let calls = between_markers(&text, *thread).with_context(|| format!("{name}: no markers of {thread}"))?;
            ensure!(
                calls.is_empty(),
                "{name}: thread {thread} made {} system calls, as {:?}",
                calls.len(),
                calls.first()
            );
        }
    }
    Ok(())
}

/// Lines of a thread between its two markers.
fn between_markers(trace: &str, thread: i32) -> Option<Vec<&str>> {
    let thread = thread.to_string();
    let mut lines = trace.lines().filter_map(|line| {
        let (id, rest) = line.split_once(' ')?;
        (id == thread).then(|| rest.trim_start())
    });
    let marker = |line: &&str| line.starts_with("getppid(");
    lines.find(marker)?;
    let mut calls = Vec::new();
    for line in lines {
        if line.starts_with("getppid(") {
            return Some(calls);
        }
        if !line.contains("getppid resumed") {
            calls.push(line);
        }
    }
    None
}

#[test]
fn markers_are_found_in_a_trace() {
    let trace = "7 mmap(0) = 1\n7 getppid() = 3\n8 read(0) = 1\n7 futex(0, 1) = 0\n7  getppid() = 3\n7 write(1) = 1\n";
    assert_eq!(between_markers(trace, 7), Some(vec!["futex(0, 1) = 0"]));
    assert_eq!(between_markers(trace, 8), None);
}
