//! Replays of real NCCL's calls: what is written is what was told.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use collander_sim::{Report, recording_jobs};
use collander_tests::{
    ProxyKey, ProxyTruth, Request, Seen, Session, Setup, compare, of_operation, of_report, of_session, places,
    proxy_truth,
};
use serde_json::Value;

use super::{options, setup};

fn replayed(file: &Path, setup: Setup) -> Result<(Report, Vec<Session>)> {
    let mut child = setup.spawn()?;
    let job = recording_jobs(&[file.to_owned()], &options(None)).pop().context("a job")?;
    let report = child.ask(&Request::Job(Box::new(job)))?.report.context("a report")?;
    child.end()?;
    Ok((report, child.output()?.sessions()?.into_values().collect()))
}

fn check(file: &Path, everything: bool) -> Result<()> {
    let setup = if everything { setup()?.everything() } else { setup()? };
    let (report, sessions) = replayed(file, setup)?;
    ensure!(sessions.len() as u64 == report.loads, "{} sessions, {} loads", sessions.len(), report.loads);
    let mut written: Vec<Seen> = Vec::new();
    for session in &sessions {
        let last = session.check_final()?;
        ensure!(last["dropped"]["total"] == 0 && last["sampled_out"]["total"] == 0, "{last}");
        for operation in &session.operations {
            check_times(operation)?;
        }
        written.extend(of_session(session)?);
    }
    let told = of_report(&report);
    ensure!(!told.is_empty(), "nothing was told");
    compare(&told, &written)?;
    if everything {
        check_proxies(&sessions, &proxy_truth(file)?)?;
    }
    Ok(())
}

/// With GPU times of all channels the duration is theirs.
fn check_times(operation: &Value) -> Result<()> {
    let span = || Some(operation["gpu_stop"].as_u64()? - operation["gpu_start"].as_u64()?);
    if operation["timing"] == "gpu" {
        ensure!(operation["duration_ns"].as_u64() == span(), "{operation}");
    }
    ensure!(
        operation["timing"] == "gpu" || operation["channels_seen"].as_u64() < Some(1) || operation["flags"].is_array(),
        "{operation}"
    );
    Ok(())
}

fn check_proxies(sessions: &[Session], truth: &HashMap<ProxyKey, ProxyTruth>) -> Result<()> {
    let mut written: HashMap<ProxyKey, ProxyTruth> = HashMap::new();
    for (session, operation) in sessions.iter().flat_map(|session| session.operations.iter().map(move |o| (session, o)))
    {
        let count = |key: &str| operation[key].as_u64().unwrap_or(0);
        if count("proxy_operations") == 0 {
            continue;
        }
        let told = of_operation(session, operation)?;
        let last = if told.kind == "p2p" { told.peer } else { told.seq.context("a number")? as i64 };
        let sums = written.entry((told.hash, told.rank, told.function, last)).or_default();
        sums.sent += count("sent_bytes");
        sums.received += count("received_bytes");
        sums.operations += count("proxy_operations");
        sums.steps += count("proxy_steps");
        check_lists(operation)?;
    }
    for (key, wanted) in truth {
        ensure!(written.get(key) == Some(wanted), "{key:?}: {wanted:?} recorded, {:?} written", written.get(key));
    }
    ensure!(written.len() == truth.len(), "{} with proxies, {} recorded", written.len(), truth.len());
    Ok(())
}

/// The lists are whole, and the sums are theirs.
fn check_lists(operation: &Value) -> Result<()> {
    let proxies = operation["proxies"].as_array().with_context(|| format!("no proxies: {operation}"))?;
    let sum = |direction: &str| -> u64 {
        proxies.iter().filter(|proxy| proxy["direction"] == direction).filter_map(|proxy| proxy["bytes"].as_u64()).sum()
    };
    ensure!(operation["sent_bytes"].as_u64().unwrap_or(0) == sum("send"), "{operation}");
    ensure!(operation["received_bytes"].as_u64().unwrap_or(0) == sum("recv"), "{operation}");
    let steps: usize = proxies.iter().filter_map(|proxy| proxy["step_list"].as_array()).map(Vec::len).sum();
    ensure!(operation["proxy_steps"].as_u64().unwrap_or(0) == steps as u64, "{operation}");
    Ok(())
}

/// Checks every recording; names all that fail.
fn every(everything: bool) {
    let failed: Vec<String> = places::recordings()
        .iter()
        .filter_map(|file| {
            let error = check(file, everything).err()?;
            Some(format!("{}: {error:#}", file.display()))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn replay_of_every_recording_writes_its_operations() {
    every(false);
}

#[test]
fn replay_with_everything_recorded_writes_proxies_too() {
    every(true);
}
