//! Beginnings and ends: names, finalize, exit, fork, threads, signals, bad configurations.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use collander_tests::{Child, Collectives, Naming, Request};

use super::{all_reduces, opened, setup, until};

#[test]
fn names_may_be_null_empty_hostile_and_long() -> Result<()> {
    let long = vec![b'x'; 10_000];
    let hostile = b"a\xff\"\\\n\x01{\xf0\x9f".to_vec();
    let names = [None, Some(Vec::new()), Some(hostile), Some(long)];
    let mut child = setup()?.spawn()?;
    child.ask(&Request::Open(None))?;
    let mut contexts = Vec::new();
    for (id, name) in (1..).zip(names) {
        let naming = Naming { id, name, ranks: 4, rank: 2 };
        let raw = naming.name.as_ref().is_some_and(|name| name.len() > 8000);
        let request = if raw { Request::RawInit(naming) } else { Request::Init(naming) };
        let context = child.ask(&request)?.context;
        ensure!(context != 0, "no context");
        ensure!(all_reduces(&mut child, context, 0, 5)?.handles == 5, "not recorded");
        contexts.push(context);
    }
    for context in contexts {
        child.ask(&Request::Finalize(context))?;
    }
    child.end()?;
    let session = child.output()?.session()?;
    let last = session.check_final()?;
    ensure!(last["written"] == 20, "{last}");
    let name = |comm: u64| session.communicators[&comm]["name"].as_str().unwrap_or("none").to_owned();
    ensure!(name(0).is_empty() && name(1).is_empty(), "{:?}", session.communicators);
    ensure!(name(2) == String::from_utf8_lossy(b"a\xff\"\\\n\x01{\xf0\x9f"), "{}", name(2));
    ensure!(!name(3).is_empty() && name(3).bytes().all(|byte| byte == b'x'), "{}", name(3));
    Ok(())
}

#[test]
fn finalize_with_operations_open_closes_them() -> Result<()> {
    let (mut child, context) = opened(setup()?, None)?;
    all_reduces(&mut child, context, 0, 10)?;
    child.ask(&Request::Collectives(Collectives { finished: false, ..Collectives::new(context, 10, 7) }))?;
    child.ask(&Request::Finalize(context))?;
    child.end()?;
    let session = child.output()?.session()?;
    let last = session.check_final()?;
    ensure!(last["written"] == 17 && last["anomalies"]["closed_by_finalize"] == 7, "{last}");
    let aborted =
        session.operations.iter().filter(|o| o["flags"].as_array().is_some_and(|f| f.contains(&"aborted".into())));
    ensure!(aborted.count() == 7, "flags");
    Ok(())
}

#[test]
fn finalize_from_any_thread_twice_and_of_nothing() -> Result<()> {
    let (mut child, context) = opened(setup()?, None)?;
    let other = child.ask(&Request::Init(Naming::new(2, "other")))?.context;
    all_reduces(&mut child, context, 0, 10)?;
    for context in [0, 1, u64::MAX, context ^ (1 << 50), context, context] {
        child.ask(&Request::OnThread(Box::new(Request::Finalize(context))))?;
    }
    // The other one is still open.
    ensure!(all_reduces(&mut child, other, 0, 10)?.handles == 10, "not recorded");
    child.ask(&Request::OnThread(Box::new(Request::Finalize(other))))?;
    child.ask(&Request::Finalize(other))?;
    child.end()?;
    let last = child.output()?.session()?.check_final()?.clone();
    ensure!(last["written"] == 20 && last["seen"]["total"] == 20, "{last}");
    Ok(())
}

#[test]
fn events_after_finalize_are_counted_and_recorded_nowhere() -> Result<()> {
    let (mut child, context) = opened(setup()?, None)?;
    let other = child.ask(&Request::Init(Naming::new(2, "other")))?.context;
    child.ask(&Request::Finalize(other))?;
    let late = all_reduces(&mut child, other, 0, 10)?;
    ensure!(late.called == 10 && late.handles == 0, "{late:?}");
    child.ask(&Request::Finalize(context))?;
    // Nor is anything when all are closed.
    let late = all_reduces(&mut child, context, 0, 10)?;
    ensure!(late.handles == 0, "{late:?}");
    child.end()?;
    let session = child.output()?.session()?;
    let last = session.check_final()?;
    ensure!(last["seen"]["total"] == 0 && last["anomalies"]["late_context"].as_u64() >= Some(10), "{last}");
    Ok(())
}

#[test]
fn exit_without_finalize_writes_everything() -> Result<()> {
    for by_request in [false, true] {
        let mut child = setup()?.variable("COLLANDER_SINK_FLUSH", "1h").spawn()?;
        child.ask(&Request::Open(None))?;
        let context = child.ask(&Request::Init(Naming::new(1, "world")))?.context;
        all_reduces(&mut child, context, 0, 1000)?;
        if by_request {
            child.send(&Request::Exit)?;
        }
        child.end()?;
        let last = child.output()?.session()?.check_final()?.clone();
        ensure!(last["written"] == 1000, "{last}");
    }
    Ok(())
}

#[test]
fn a_forked_child_is_inert() -> Result<()> {
    let (mut child, context) = opened(setup()?, None)?;
    all_reduces(&mut child, context, 0, 100)?;
    let requests = vec![
        Request::Init(Naming::new(3, "in the child")),
        Request::Garbage,
        Request::OnThread(Box::new(Request::Collectives(Collectives::new(context, 100, 50)))),
        Request::Finalize(context),
        Request::Collectives(Collectives::new(context, 100, 50)),
    ];
    let forked = child.ask(&Request::Forked(requests))?;
    ensure!(forked.status == Some(0) && forked.handles == 0, "{forked:?}");
    let opened = child.ask(&Request::Forked(vec![Request::Init(Naming::new(3, "in the child"))]))?;
    ensure!(opened.status == Some(0) && opened.context == 0, "{opened:?}");
    ensure!(all_reduces(&mut child, context, 100, 100)?.handles == 100, "the parent goes on");
    child.ask(&Request::Finalize(context))?;
    child.end()?;
    let last = child.output()?.session()?.check_final()?.clone();
    ensure!(last["seen"]["total"] == 200 && last["written"] == 200, "{last}");
    Ok(())
}

#[test]
fn unknown_kinds_and_garbage_handles_are_counted() -> Result<()> {
    let (mut child, context) = opened(setup()?, None)?;
    ensure!(child.ask(&Request::UnknownKinds(context))?.handles == 0, "a handle for an unknown kind");
    child.ask(&Request::Garbage)?;
    all_reduces(&mut child, context, 0, 10)?;
    child.ask(&Request::Finalize(context))?;
    child.end()?;
    let session = child.output()?.session()?;
    let last = session.check_final()?;
    ensure!(last["seen"]["total"] == 10 && last["written"] == 10, "{last}");
    ensure!(last["anomalies"]["unknown_kind"] == 5, "{last}");
    // A state and a stop of each of five.
    ensure!(last["anomalies"]["foreign_handle"] == 10, "{last}");
    Ok(())
}

/// Signals 32 and 33.
const OF_THE_C_LIBRARY: u64 = 3 << 31;

/// Names and blocked signals of our threads in the process.
fn threads(child: &Child) -> Result<Vec<(String, u64)>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{}/task", child.pid()))?.flatten() {
        // A thread may end meanwhile.
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else { continue };
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
        let name = field("Name:");
        if name.starts_with("collander-") && name != "collander-test-" {
            threads.push((name, u64::from_str_radix(&field("SigBlk:"), 16)?));
        }
    }
    threads.retain(|(name, _)| !name.starts_with("collander-test"));
    Ok(threads)
}

/// Signals with a handler, without the two that the C library keeps for itself.
fn caught_signals(child: &Child) -> Result<u64> {
    let status = child.proc("status")?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).context("SigCgt")?;
    Ok(u64::from_str_radix(caught.trim(), 16)? & !OF_THE_C_LIBRARY)
}

#[test]
fn our_threads_block_all_signals_and_end_with_the_last_communicator() -> Result<()> {
    let mut child = setup()?.spawn()?;
    child.ask(&Request::Look)?;
    let before = caught_signals(&child)?;
    child.ask(&Request::Open(None))?;
    for _ in 0..2 {
        let context = child.ask(&Request::Init(Naming::new(1, "world")))?.context;
        until(|| Ok(threads(&child)?.len() >= 2))?;
        let ours = threads(&child)?;
        ensure!(ours.len() <= 3, "{ours:?}");
        // All but SIGKILL and SIGSTOP, which cannot be, and the two that the C library keeps for itself.
        let all = !((1_u64 << 8) | (1 << 18) | OF_THE_C_LIBRARY);
        for (name, blocked) in &ours {
            ensure!(blocked & all == all, "{name}: {blocked:016x}");
        }
        all_reduces(&mut child, context, 0, 100)?;
        child.ask(&Request::Finalize(context))?;
        ensure!(threads(&child)?.is_empty(), "{:?}", threads(&child)?);
    }
    let after = caught_signals(&child)?;
    ensure!(after == before, "signal handlers have changed: {before:x}, then {after:x}");
    child.end()
}

#[test]
fn a_bad_configuration_is_named_and_switches_off() -> Result<()> {
    let cases = [
        ("COLLANDER_SINK_FLUSH", "banana", vec!["COLLANDER_SINK_FLUSH", "banana"]),
        ("COLLANDER_DRAIN_PERIODE", "5ms", vec!["COLLANDER_DRAIN_PERIODE"]),
        ("COLLANDER_CAPTURE_DETAIL", "chanels", vec!["COLLANDER_CAPTURE_DETAIL", "chanels"]),
        ("COLLANDER_CONFIG", "/nowhere/collander.toml", vec!["/nowhere/collander.toml"]),
    ];
    for (variable, value, named) in cases {
        let mut child = setup()?.variable(variable, value).spawn()?;
        check_off(&mut child, &named).with_context(|| format!("{variable}={value}"))?;
    }
    let mut child = setup()?.configuration("[drain]\nperiod = \"5ms\"\nperoid = 3\n")?.spawn()?;
    check_off(&mut child, &["peroid", "collander.toml"])
}

fn check_off(child: &mut Child, named: &[&str]) -> Result<()> {
    child.ask(&Request::Open(None))?;
    let opened = child.ask(&Request::Init(Naming::new(1, "world")))?;
    ensure!(opened.context == 0 && opened.mask == 0, "{opened:?}");
    let text = opened.log.join("\n");
    for name in named {
        ensure!(text.contains(name), "no {name} in {text}");
    }
    let reply = all_reduces(child, 0, 0, 10)?;
    ensure!(reply.called == 0, "{reply:?}");
    ensure!(threads(child)?.is_empty(), "threads");
    child.ask(&Request::Finalize(0))?;
    child.end()?;
    ensure!(!child.out().exists(), "it wrote");
    Ok(())
}

#[test]
fn switched_off_it_does_nothing() -> Result<()> {
    let mut child = setup()?.variable("COLLANDER_ENABLED", "false").spawn()?;
    check_off(&mut child, &[])
}

#[test]
fn one_line_at_init_says_what_holds() -> Result<()> {
    let mut child = setup()?.spawn()?;
    child.ask(&Request::Open(Some(6)))?;
    let opened = child.ask(&Request::Init(Naming::new(1, "world")))?;
    let [line] = &opened.log[..] else { anyhow::bail!("{:?}", opened.log) };
    let mask = format!("{:#x}", opened.mask);
    let out = child.out().display().to_string();
    for word in ["collander", "v6", "jsonl", &out, &mask] {
        ensure!(line.contains(word), "no {word} in {line}");
    }
    let second = child.ask(&Request::Init(Naming::new(2, "second")))?;
    ensure!(second.log.is_empty(), "{:?}", second.log);
    child.end()
}
