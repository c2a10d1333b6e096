//! The example scenarios, at their own pace: what is written is what was told.

use anyhow::{Context as _, Result, ensure};
use collander_tests::{Seen, Session, compare, of_report, of_session, places};

use super::{paced_request, setup};

fn played(name: &str) -> Result<Session> {
    let mut child = setup()?.spawn()?;
    let report = child.ask(&paced_request(&places::scenario(name)?, None)?)?.report.context("a report")?;
    child.end()?;
    let session = child.output()?.session()?;
    let last = session.check_final()?;
    ensure!(last["dropped"]["total"] == 0 && last["seen"]["total"] == report.operations.total(), "{last}");
    // Proxies are in no default detail.
    let told: Vec<Seen> =
        of_report(&report).into_iter().map(|seen| Seen { proxy_operations: 0, proxy_steps: 0, ..seen }).collect();
    compare(&told, &of_session(&session)?).with_context(|| name.to_owned())?;
    Ok(session)
}

fn flagged(session: &Session, flag: &str) -> usize {
    let has = |flags: &Vec<serde_json::Value>| flags.iter().any(|other| other == flag);
    session.operations.iter().filter(|operation| operation["flags"].as_array().is_some_and(has)).count()
}

#[test]
fn a_job_with_a_straggler_and_one_with_a_slow_link() -> Result<()> {
    for name in ["tp-dp-straggler.toml", "slow-link.toml"] {
        let session = played(name)?;
        ensure!(session.operations.iter().all(|operation| operation["timing"] == "gpu"), "{name}: not timed");
        ensure!(flagged(&session, "aborted") == 0, "{name}: aborted");
    }
    Ok(())
}

#[test]
fn a_job_that_is_aborted_and_one_that_hangs() -> Result<()> {
    for name in ["abort.toml", "hang.toml"] {
        let session = played(name)?;
        let (aborted, closed) = (flagged(&session, "aborted"), session.count(&["anomalies", "closed_by_finalize"])?);
        ensure!(aborted > 0 && aborted as u64 == closed, "{name}: {aborted} aborted, {closed} closed by finalize");
    }
    Ok(())
}

#[test]
fn graphs_captured_and_replayed() -> Result<()> {
    let session = played("graphs.toml")?;
    // Two collectives on four ranks, in each of 50 steps but the first.
    ensure!(flagged(&session, "replay") == 2 * 4 * 49, "{} replays", flagged(&session, "replay"));
    Ok(())
}
