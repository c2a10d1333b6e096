//! Calls that NCCL should not make: late, doubled, stale, and with handles and contexts of another process.

use anyhow::{Context as _, Result, ensure};
use collander_sim::{Faults, Options, recording_jobs};
use collander_tests::{Request, Seen, compare, of_report, of_session, places};

use super::{options, setup};

/// Who it was: what no fault can change.
fn identity(seen: &Seen) -> Seen {
    Seen { gpu: None, channels_seen: 0, proxy_operations: 0, proxy_steps: 0, ..seen.clone() }
}

fn disturbed(file: &std::path::Path, seed: u64, everything: bool) -> Result<()> {
    let setup = if everything { setup()?.everything() } else { setup()? };
    let mut child = setup.spawn()?;
    let options = Options { faults: Some(Faults::all(0.05, seed)), ..options(None) };
    let job = recording_jobs(&[file.to_owned()], &options).pop().context("a job")?;
    let report = child.ask(&Request::Job(Box::new(job)))?.report.context("a report")?;
    child.end()?;
    ensure!(report.injected.total() > 0, "nothing was injected");
    let (mut written, mut odd) = (Vec::new(), 0);
    for session in child.output()?.sessions()?.into_values() {
        let last = session.check_final()?;
        ensure!(last["dropped"]["total"] == 0, "{last}");
        odd += last["anomalies"].as_object().map_or(0, serde_json::Map::len);
        written.extend(of_session(&session)?);
    }
    ensure!(odd > 0, "nothing odd was counted");
    let told = of_report(&report);
    compare(&told.iter().map(identity).collect::<Vec<_>>(), &written.iter().map(identity).collect::<Vec<_>>())
}

#[test]
fn asan_replay_of_every_recording_disturbed() {
    let failed: Vec<String> = places::recordings()
        .iter()
        .flat_map(|file| [(file, 1, false), (file, 2, true), (file, 3, true)])
        .filter_map(|(file, seed, everything)| {
            let error = disturbed(file, seed, everything).err()?;
            Some(format!("{}, seed {seed}: {error:#}", file.display()))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
