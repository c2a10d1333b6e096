//! seen = written + dropped + sampled_out + open, exactly, whatever happens.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use collander_tests::{LoadJob, Request, Session, Setup, places, protocol::HANG_VARIABLE};

use super::{all_reduces, opened, settled, setup, until};

/// Runs a load to its end; its operations, and the sessions.
fn loaded(setup: Setup, job: LoadJob) -> Result<(u64, Vec<Session>)> {
    let mut child = setup.spawn()?;
    let report = child.ask(&Request::Load(job))?.report.context("a report")?;
    ensure!(report.failed_calls == 0, "{report:?}");
    child.end()?;
    let sessions: Vec<Session> = child.output()?.sessions()?.into_values().collect();
    for session in &sessions {
        session.check_final()?;
    }
    Ok((report.operations.coll, sessions))
}

fn burst(operations: u64) -> Request {
    Request::Load(LoadJob { operations, channels: 1, no_finalize: true, ..LoadJob::default() })
}

/// A million operations while no file can grow; then it can again.
#[test]
fn burst_of_a_million_operations_with_a_full_disk() -> Result<()> {
    let (mut child, context) = opened(setup()?, None)?;
    all_reduces(&mut child, context, 0, 10)?;
    until(|| Ok(child.output()?.session().is_ok_and(|session| session.operations.len() == 10)))?;
    child.ask(&Request::LimitFiles(Some(0)))?;
    child.ask(&burst(1_000_000))?;
    child.ask(&Request::LimitFiles(None))?;
    let lost = |child: &collander_tests::Child| -> Result<u64> {
        child.output()?.session()?.count(&["dropped", "write_failed"])
    };
    // It resumes by itself.
    until(|| Ok(lost(&child)? > 0))?;
    all_reduces(&mut child, context, 10, 10)?;
    settled(&child, 1_000_020)?;
    child.ask(&Request::Finalize(context))?;
    child.end()?;
    let session = child.output()?.session()?;
    session.check_final()?;
    ensure!(session.count(&["seen", "total"])? == 1_000_020, "{}", session.last()?);
    ensure!(session.count(&["written"])? >= 20, "{}", session.last()?);
    Ok(())
}

/// A million operations while writes do not return; then they do.
#[test]
fn burst_of_a_million_operations_with_a_hung_disk() -> Result<()> {
    let setup = setup()?;
    let Some(interposer) = places::interposer(setup.folder())? else { return Ok(()) };
    let hang: PathBuf = setup.folder().join("hang");
    let setup = setup.variable("LD_PRELOAD", interposer).variable(HANG_VARIABLE, &hang);
    let (mut child, context) = opened(setup.variable("COLLANDER_SINK_QUEUE_OPERATIONS", "1024"), None)?;
    all_reduces(&mut child, context, 0, 10)?;
    until(|| Ok(child.output()?.session().is_ok_and(|session| session.operations.len() == 10)))?;
    std::fs::write(&hang, "")?;
    child.ask(&burst(1_000_000))?;
    std::fs::remove_file(&hang)?;
    all_reduces(&mut child, context, 10, 10)?;
    settled(&child, 1_000_020)?;
    child.end()?;
    let session = child.output()?.session()?;
    session.check_final()?;
    ensure!(session.count(&["seen", "total"])? == 1_000_020, "{}", session.last()?);
    ensure!(session.count(&["dropped", "queue_full"])? > 0, "{}", session.last()?);
    Ok(())
}

/// With a disk that hangs for ever the process still ends, in about a second.
#[test]
fn a_disk_that_hangs_for_ever_does_not_hold_up_the_end() -> Result<()> {
    let setup = setup()?;
    let Some(interposer) = places::interposer(setup.folder())? else { return Ok(()) };
    let hang: PathBuf = setup.folder().join("hang");
    let setup = setup.variable("LD_PRELOAD", interposer).variable(HANG_VARIABLE, &hang);
    std::fs::write(&hang, "")?;
    let (mut child, context) = opened(setup, None)?;
    all_reduces(&mut child, context, 0, 10)?;
    let reply = child.ask(&Request::Finalize(context))?;
    ensure!(reply.log.iter().any(|line| line.contains("did not finish in time")), "{:?}", reply.log);
    child.end()
}

/// What kill -9 leaves: whole lines, and stats that agree with the lines before them.
#[test]
fn kill_9_leaves_what_was_flushed() -> Result<()> {
    for compression in ["zstd", "gzip", "plain"] {
        let mut child = setup()?.variable("COLLANDER_SINK_COMPRESSION", compression).spawn()?;
        child.send(&Request::Load(LoadJob { operations: u64::MAX, ..LoadJob::default() }))?;
        until(|| Ok(child.output()?.session().is_ok_and(|session| session.stats.len() >= 4)))?;
        child.kill()?;
        let session = child.output()?.session()?;
        session.check_each()?;
        let last = session.last()?;
        ensure!(last["final"] == false && last["written"].as_u64() > Some(0), "{compression}: {last}");
    }
    Ok(())
}

/// 64 user threads and their 64 proxy threads, with memory for their rings.
#[test]
fn burst_from_64_threads() -> Result<()> {
    let setup = setup()?
        .variable("COLLANDER_RING_TOTAL_BYTES", "256MiB")
        .variable("COLLANDER_RING_LARGE_BYTES", "1MiB")
        .variable("COLLANDER_RING_SMALL_BYTES", "256KiB");
    let mut child = setup.spawn()?;
    let job = LoadJob { threads: 64, operations: 250, no_finalize: true, ..LoadJob::default() };
    let told = child.ask(&Request::Load(job))?.report.context("a report")?.operations.coll;
    ensure!(told == 64 * 250, "{told}");
    settled(&child, told)?;
    child.end()?;
    let last = child.output()?.session()?.check_final()?.clone();
    ensure!(last["seen"]["total"] == told && last["anomalies"]["events_unobserved"].is_null(), "{last}");
    Ok(())
}

#[test]
fn burst_of_10_000_communicators_opened_and_closed() -> Result<()> {
    let job = LoadJob { threads: 2, communicators: 5000, operations: 2, ..LoadJob::default() };
    let (told, sessions) = loaded(setup()?, job)?;
    let session = sessions.first().context("a session")?;
    ensure!(sessions.len() as u64 >= 1 && told == 20_000, "{told}");
    let seen: u64 = sessions.iter().map(|session| session.count(&["seen", "total"])).sum::<Result<u64>>()?;
    ensure!(seen == told, "{seen} seen, {told} told; {}", session.last()?);
    let communicators: u64 = sessions.iter().map(|session| session.count(&["communicators"])).sum::<Result<u64>>()?;
    ensure!(communicators == 10_000, "{communicators}");
    Ok(())
}

#[test]
fn burst_of_10_000_communicators_open_at_once() -> Result<()> {
    let job = LoadJob { threads: 2, communicators: 5000, operations: 2, all_open_at_once: true, ..LoadJob::default() };
    let (told, sessions) = loaded(setup()?, job)?;
    let session = sessions.first().context("a session")?;
    ensure!(session.count(&["seen", "total"])? == told && told == 20_000, "{told}: {}", session.last()?);
    ensure!(session.count(&["communicators"])? == 10_000, "{}", session.last()?);
    Ok(())
}

/// NCCL unloads the library after its last communicator, and loads it again for the next.
#[test]
fn reloading_overwrites_nothing() -> Result<()> {
    let mut child = setup()?.spawn()?;
    child.ask(&Request::Open(None))?;
    let mut earlier: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for load in 0..4 {
        let context = child.ask(&Request::Init(collander_tests::Naming::new(7, "again")))?.context;
        ensure!(all_reduces(&mut child, context, 0, 1000 + load)?.handles == 1000 + load, "not recorded");
        child.ask(&Request::Finalize(context))?;
        child.ask(&Request::Reopen)?;
        for (path, bytes) in &earlier {
            ensure!(std::fs::read(path)? == *bytes, "{} has changed", path.display());
        }
        let files = child.output()?.files;
        ensure!(files.len() as u64 == load + 1, "{} files after {load} loads", files.len());
        earlier =
            files.into_iter().map(|file| Ok((file.path.clone(), std::fs::read(&file.path)?))).collect::<Result<_>>()?;
    }
    child.end()?;
    let sessions = child.output()?.sessions()?;
    ensure!(sessions.keys().map(|(_, session)| *session).eq(1..=4), "{:?}", sessions.keys());
    for (((_, _), session), load) in sessions.iter().zip(0..) {
        let last = session.check_final()?;
        ensure!(last["seen"]["total"] == 1000 + load && last["dropped"]["total"] == 0, "{last}");
    }
    Ok(())
}

/// Threads of several loads, many communicators, all at once.
#[test]
fn burst_over_three_loads_adds_up() -> Result<()> {
    let job = LoadJob { threads: 8, communicators: 5, operations: 100, loads: 3, ..LoadJob::default() };
    let job = LoadJob { all_open_at_once: true, ..job };
    let (told, sessions) = loaded(setup()?, job)?;
    let seen: u64 = sessions.iter().map(|session| session.count(&["seen", "total"])).sum::<Result<u64>>()?;
    ensure!(told == 3 * 8 * 5 * 100 && seen == told, "{seen} seen, {told} told");
    Ok(())
}

/// Rings that are far too small, read far too seldom.
#[test]
fn burst_that_overruns_the_rings() -> Result<()> {
    let setup = setup()?
        .variable("COLLANDER_RING_TOTAL_BYTES", "1MiB")
        .variable("COLLANDER_RING_LARGE_BYTES", "256KiB")
        .variable("COLLANDER_RING_SMALL_BYTES", "64KiB")
        .variable("COLLANDER_DRAIN_PERIOD", "1s");
    let (told, sessions) = loaded(setup, LoadJob { operations: 100_000, ..LoadJob::default() })?;
    let session = sessions.first().context("a session")?;
    ensure!(session.count(&["seen", "total"])? == told, "{told} told: {}", session.last()?);
    ensure!(session.count(&["dropped", "ring_overrun"])? > 0, "{}", session.last()?);
    ensure!(session.count(&["anomalies", "records_overtaken"])? > 0, "{}", session.last()?);
    Ok(())
}

/// The oldest files go when there are too many bytes; their operations stay counted.
#[test]
fn burst_beyond_the_bound_on_disk() -> Result<()> {
    let bound = 256 << 10;
    let setup = setup()?
        .variable("COLLANDER_SINK_COMPRESSION", "plain")
        .variable("COLLANDER_SINK_MAX_BYTES", bound.to_string())
        .variable("COLLANDER_SINK_ROTATE_BYTES", "32KiB");
    let mut child = setup.spawn()?;
    child.ask(&Request::Load(LoadJob { operations: 20_000, no_finalize: true, ..LoadJob::default() }))?;
    settled(&child, 20_000)?;
    child.end()?;
    let output = child.output()?;
    let bytes = output.files.iter().map(|file| Ok(file.path.metadata()?.len())).sum::<Result<u64>>()?;
    ensure!(bytes <= bound, "{bytes} bytes");
    let session = output.session()?;
    session.check_final()?;
    let (written, deleted) = (session.count(&["written"])?, session.count(&["deleted"])?);
    ensure!(deleted > 0 && written - deleted == session.operations.len() as u64, "{}", session.last()?);
    ensure!(session.count(&["seen", "total"])? == 20_000, "{}", session.last()?);
    Ok(())
}
