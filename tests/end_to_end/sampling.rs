//! What the rules leave out is counted, the same on all ranks, and costs no record.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use collander_tests::{Collectives, Naming, Request, Session, of_session};

use super::{all_reduces, opened, scenario_request, setup};

const SCENARIO: &str = r#"
ranks = 4
processes = false
steps = 40
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
channels = 2
repeat = 4

[[operation]]
communicator = "pair"
function = "AllGather"
bytes = 65536
channels = 2

[[operation]]
communicator = "world"
function = "SendRecv"
count = 4096
channels = 1
"#;

/// Runs the scenario with these rules; the account balances with what was told.
fn sampled(rules: &str) -> Result<Session> {
    let mut child = setup()?.configuration(rules)?.spawn()?;
    let report = child.ask(&scenario_request(SCENARIO, None)?)?.report.context("a report")?;
    child.end()?;
    let session = child.output()?.session()?;
    let last = session.check_final()?;
    ensure!(last["seen"]["total"] == report.operations.total(), "{:?}: {last}", report.operations);
    ensure!(last["dropped"]["total"] == 0, "{last}");
    ensure!(
        session.operations.len() as u64 + session.count(&["sampled_out", "total"])? == report.operations.total(),
        "{last}"
    );
    let odd = ["orphan_child", "unknown_handle", "channels_missing", "sequence_gap"];
    ensure!(odd.iter().all(|name| last["anomalies"][*name].is_null()), "{last}");
    Ok(session)
}

/// By communicator (hash) and function, then by rank: sequence numbers.
type Kept = BTreeMap<(u64, String), BTreeMap<i64, BTreeSet<u64>>>;

/// Per communicator and function: which sequence numbers each rank kept.
fn kept(session: &Session) -> Result<Kept> {
    let mut kept = Kept::new();
    for operation in of_session(session)?.into_iter().filter(|operation| operation.kind == "coll") {
        let ranks = kept.entry((operation.hash, operation.function)).or_default();
        ranks.entry(operation.rank).or_default().insert(operation.seq.context("a number")?);
    }
    Ok(kept)
}

#[test]
fn one_in_some_keeps_the_same_on_all_ranks() -> Result<()> {
    let mut before: Option<BTreeMap<_, BTreeSet<u64>>> = None;
    for rate in ["1/2", "1/4", "1/16"] {
        let session =
            sampled(&format!("[[sample]]\ncollectives = [\"AllReduce\", \"AllGather\"]\nkeep = \"{rate}\"\n"))?;
        let mut sets = BTreeMap::new();
        for (key, ranks) in kept(&session)? {
            let first = ranks.values().next().context("a rank")?.clone();
            ensure!(ranks.values().all(|set| *set == first), "{rate}: {key:?} differs between ranks");
            ensure!(ranks.len() == if key.1 == "AllReduce" { 4 } else { 2 }, "{rate}: {key:?} of some ranks only");
            sets.insert(key, first);
        }
        // What the greater number keeps, the smaller one keeps too.
        if let Some(before) = &before {
            for (key, set) in &sets {
                ensure!(before.get(key).is_some_and(|all| set.is_subset(all)), "{rate}: {key:?} does not nest");
            }
        }
        let operations = session.count(&["seen", "coll"])?;
        let collectives = kept(&session)?.values().flat_map(BTreeMap::values).map(BTreeSet::len).sum::<usize>() as u64;
        ensure!(session.count(&["sampled_out", "head"])? == operations - collectives, "{}", session.last()?);
        before = Some(sets);
    }
    Ok(())
}

/// A send and the receive that it meets are kept or left out together.
#[test]
fn one_in_some_keeps_both_ends_of_a_transfer() -> Result<()> {
    let session = sampled("[[sample]]\ncollectives = [\"Send\", \"Recv\"]\nkeep = \"1/4\"\n")?;
    let (mut sent, mut received) = (BTreeSet::new(), BTreeSet::new());
    for operation in session.operations.iter().filter(|operation| operation["kind"] == "p2p") {
        let rank = session.communicator_of(operation).context("a communicator")?["rank"].as_i64();
        let (peer, seq) = (operation["peer"].as_i64(), operation["seq"].as_u64());
        if operation["collective"] == "Send" {
            sent.insert((rank, peer, seq))
        } else {
            received.insert((peer, rank, seq))
        };
    }
    ensure!(!sent.is_empty() && sent.len() < 4 * 40, "{} kept", sent.len());
    ensure!(sent == received, "sent {sent:?}\nreceived {received:?}");
    Ok(())
}

#[test]
fn rules_choose_by_communicator_and_size() -> Result<()> {
    let session = sampled("[[sample]]\ncommunicator = \"pa*\"\nkeep = \"none\"\n")?;
    let kinds: BTreeSet<String> = of_session(&session)?.into_iter().map(|operation| operation.function).collect();
    ensure!(kinds.iter().eq(["AllReduce", "Recv", "Send"]), "{kinds:?}");
    ensure!(session.count(&["sampled_out", "head"])? == 4 * 40, "{}", session.last()?);

    let session = sampled("[[sample]]\nsize = \"..100KiB\"\nkeep = \"none\"\n")?;
    let kinds: BTreeSet<String> = of_session(&session)?.into_iter().map(|operation| operation.function).collect();
    ensure!(kinds.iter().eq(["AllReduce"]), "{kinds:?}");

    // The bound lies within a power of two: decided exactly, later.
    let (mut child, context) =
        opened(setup()?.configuration("[[sample]]\nsize = \"..1100KiB\"\nkeep = \"none\"\n")?, None)?;
    for (elements, first) in [(1 << 18, 0), (270 << 10, 10), (300 << 10, 20), (1 << 20, 30)] {
        child.ask(&Request::Collectives(Collectives { elements, ..Collectives::new(context, first, 10) }))?;
    }
    child.end()?;
    let session = child.output()?.session()?;
    let last = session.check_final()?;
    ensure!(last["seen"]["total"] == 40 && last["sampled_out"]["total"] == 10 + 10, "{last}");
    ensure!(session.operations.iter().all(|operation| operation["bytes"].as_u64() >= Some(1100 << 10)), "sizes");
    Ok(())
}

/// Nothing of a collective that is left out is recorded, its kernels included.
#[test]
fn what_is_left_out_makes_no_record() -> Result<()> {
    let (mut child, context) = opened(setup()?.configuration("[[sample]]\nkeep = \"none\"\n")?, None)?;
    let reply = all_reduces(&mut child, context, 0, 1000)?;
    ensure!(reply.called == 0 || reply.called == 1000, "{reply:?}");
    child.end()?;
    let last = child.output()?.session()?.check_final()?.clone();
    ensure!(last["records"] == 0 && last["written"] == 0 && last["seen"]["total"] == reply.called, "{last}");

    let rules = "[[sample]]\ncommunicator = \"quiet\"\nkeep = \"none\"\n";
    let (mut child, context) = opened(setup()?.configuration(rules)?, None)?;
    all_reduces(&mut child, context, 0, 10)?;
    let records = |child: &mut collander_tests::Child| -> Result<u64> {
        child.end()?;
        child.output()?.session()?.count(&["records"])
    };
    let alone = records(&mut child)?;
    let (mut child, context) = opened(setup()?.configuration(rules)?, None)?;
    all_reduces(&mut child, context, 0, 10)?;
    let quiet = child.ask(&Request::Init(Naming::new(5, "quiet")))?.context;
    let reply = all_reduces(&mut child, quiet, 0, 1000)?;
    ensure!(reply.called == 1000, "{reply:?}");
    ensure!(records(&mut child)? == alone, "records of what is left out");
    let last = child.output()?.session()?.check_final()?.clone();
    ensure!(last["sampled_out"]["head"] == 1000 && last["written"] == 10, "{last}");
    Ok(())
}

/// At most so many a second: what is beyond is left out, and counted.
#[test]
fn a_rate_leaves_out_what_is_beyond_it() -> Result<()> {
    let (mut child, context) = opened(setup()?.configuration("[[sample]]\nkeep = \"50/s\"\n")?, None)?;
    let mut told = 0;
    super::until(|| {
        told += all_reduces(&mut child, context, told, 500)?.called;
        Ok(child
            .output()?
            .session()
            .is_ok_and(|session| session.count(&["sampled_out", "head"]).is_ok_and(|n| n > 500)))
    })?;
    child.end()?;
    let last = child.output()?.session()?.check_final()?.clone();
    ensure!(last["seen"]["total"] == told && last["dropped"]["total"] == 0, "{told}: {last}");
    Ok(())
}
