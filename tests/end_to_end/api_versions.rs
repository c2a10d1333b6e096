//! The same job over each version of the interface.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use collander_tests::{Seen, Session, compare, of_report, of_session, places};

use super::{scenario_request, setup};

/// What every version has: collectives, sends and receives, a root, two communicators.
const PLAIN: &str = r#"
ranks = 4
processes = false
steps = 6
realtime = 0

[[communicator]]
name = "world"

[[communicator]]
name = "pair"
size = 2

[[operation]]
communicator = "world"
function = "AllReduce"
bytes = 1048576
channels = 3
repeat = 3

[[operation]]
communicator = "pair"
function = "AllGather"
datatype = "ncclFloat16"
bytes = 65536
channels = 2

[[operation]]
communicator = "world"
function = "Reduce"
count = 1000
channels = 1
root = 2

[[operation]]
communicator = "world"
function = "SendRecv"
count = 4096
channels = 1
"#;

fn driven(text: &str, api: u8, everything: bool) -> Result<(Vec<Seen>, Session)> {
    let setup = if everything { setup()?.everything() } else { setup()? };
    let mut child = setup.spawn()?;
    let report = child.ask(&scenario_request(text, Some(api))?)?.report.context("a report")?;
    child.end()?;
    let session = child.output()?.session()?;
    let last = session.check_final()?;
    ensure!(last["dropped"]["total"] == 0, "v{api}: {last}");
    let told = of_report(&report);
    ensure!(report.operations.total() == last["seen"]["total"], "v{api}: {:?}, {last}", report.operations);
    compare(&told, &of_session(&session)?).with_context(|| format!("v{api}"))?;
    Ok((told, session))
}

/// What all versions know of an operation.
fn common(seen: &Seen) -> Seen {
    let Seen { hash, rank, name, kind, function, seq, count, datatype, algo, proto, root, peer, .. } = seen.clone();
    Seen { hash, rank, name, kind, function, seq, count, datatype, algo, proto, root, peer, ..Seen::default() }
}

#[test]
fn the_same_scenario_gives_the_same_operations() -> Result<()> {
    let mut first: Option<Vec<Seen>> = None;
    for api in 1..=7 {
        let (_, session) = driven(PLAIN, api, false)?;
        let mut operations: Vec<Seen> = of_session(&session)?.iter().map(common).collect();
        operations.sort();
        match &first {
            None => first = Some(operations),
            Some(first) => compare(first, &operations).with_context(|| format!("v{api} and v1"))?,
        }
        check_limits(&session, api)?;
    }
    Ok(())
}

/// What a version cannot know is null, and no more.
fn check_limits(session: &Session, api: u8) -> Result<()> {
    ensure!(session.header["api"] == api, "{}", session.header);
    let mut timings: BTreeMap<String, u64> = BTreeMap::new();
    for operation in &session.operations {
        let communicator = session.communicator_of(operation).context("a communicator")?;
        ensure!(communicator["ranks"].is_u64() == (api >= 4), "v{api}: {communicator}");
        let timing = operation["timing"].as_str().unwrap_or_default();
        *timings.entry(timing.to_owned()).or_default() += 1;
        // Without the number of ranks there is no bus bandwidth, with it and a time there is one.
        let timed = !matches!(timing, "enqueue_only" | "unobservable");
        let bus = operation["busbw_gbs"].is_number();
        ensure!(bus == (timed && api >= 4), "v{api}: {operation}");
    }
    let expected = match api {
        1 | 2 => "enqueue_only",
        3 => "kernel_cpu",
        _ => "gpu",
    };
    ensure!(timings.keys().eq([expected]), "v{api}: {timings:?}");
    Ok(())
}

/// Every kind of event that a version has, as far as our mask asks for it.
#[test]
fn everything_of_each_version() -> Result<()> {
    // Two threads that know nothing of each other's pace would let kernels end before their proxies begin.
    let text = places::scenario("everything.toml")?.replace("kernel_thread = true", "kernel_thread = false");
    for api in 1..=7 {
        let (told, session) = driven(&text, api, true)?;
        let kinds = |kind: &str| told.iter().filter(|operation| operation.kind == kind).count();
        ensure!((kinds("api") > 0) == (api >= 6), "v{api}: {} api-only", kinds("api"));
        ensure!((kinds("copy_engine") > 0) == (api >= 6), "v{api}: {} by copy engines", kinds("copy_engine"));
        ensure!(kinds("coll") > 0 && kinds("p2p") > 0, "v{api}");
        let tagged = told.iter().filter(|operation| operation.user_tag == 77).count();
        ensure!((tagged > 0) == (api == 7), "v{api}: {tagged} tagged");
        let replays =
            session.operations.iter().filter(|o| o["flags"].as_array().is_some_and(|f| f.contains(&"replay".into())));
        ensure!((replays.count() > 0) == (api >= 5), "v{api}: replays");
    }
    Ok(())
}

/// Ranks from the configuration stand in where the interface does not tell.
#[test]
fn assumed_ranks_give_bus_bandwidths_in_old_versions() -> Result<()> {
    let mut child = setup()?.variable("COLLANDER_CAPTURE_ASSUME_RANKS", "4").spawn()?;
    child.ask(&scenario_request(PLAIN, Some(3))?)?;
    child.end()?;
    let session = child.output()?.session()?;
    session.check_final()?;
    ensure!(!session.operations.is_empty(), "no operations");
    ensure!(session.operations.iter().all(|operation| operation["busbw_gbs"].is_number()), "no bus bandwidth");
    Ok(())
}
