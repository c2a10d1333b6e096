//! Operations as they were told, and as they were written, in one form.

use std::collections::HashMap;

use anyhow::{Result, bail};
use collander_sim::{ExpectedOperation, OperationKind, Report};
use serde_json::Value;

use crate::output::Session;

/// An operation, with what both sides know exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "named as in the output")]
pub struct Seen {
    pub hash: u64,
    pub rank: i64,
    pub ranks: Option<u64>,
    pub name: String,
    pub kind: String,
    pub function: String,
    /// NCCL's; None for what has none.
    pub seq: Option<u64>,
    pub count: u64,
    pub datatype: String,
    pub algo: String,
    pub proto: String,
    /// 0 where there are none, or the version does not tell.
    pub channels: u64,
    pub root: i64,
    pub peer: i64,
    pub user_tag: u64,
    /// First start and last stop over the channels whose stop came; None if none did.
    pub gpu: Option<(u64, u64)>,
    pub channels_seen: u64,
    pub proxy_operations: u64,
    pub proxy_steps: u64,
}

/// Collectives with a root.
const ROOTED: [&str; 4] = ["Broadcast", "Reduce", "Gather", "Scatter"];

fn rooted(function: &str) -> bool {
    ROOTED.iter().any(|name| name.eq_ignore_ascii_case(function))
}

/// The operations that a report lists. Of replays the sequence number is the library's own count: it is left out.
#[must_use]
pub fn of_report(report: &Report) -> Vec<Seen> {
    report.expected.iter().map(|operation| expected(operation, report.api)).collect()
}

fn expected(operation: &ExpectedOperation, api: u8) -> Seen {
    let kind = match operation.kind {
        OperationKind::Coll => "coll",
        OperationKind::P2p => "p2p",
        OperationKind::CopyEngine => "copy_engine",
        OperationKind::ApiOnly => "api",
    };
    let pairs = operation.kernel_channels.iter().filter_map(|channel| Some((channel.start, channel.stop?)));
    let first = pairs.clone().map(|(start, _)| start).min();
    let last = pairs.map(|(_, stop)| stop).max();
    let p2p = ["Send", "Recv"].contains(&operation.function.as_str());
    let mut channels: Vec<u8> = operation.kernel_channels.iter().map(|channel| channel.channel).collect();
    channels.sort_unstable();
    channels.dedup();
    Seen {
        hash: operation.communicator,
        rank: operation.rank.into(),
        ranks: u64::try_from(operation.ranks).ok().filter(|ranks| *ranks > 0),
        name: operation.communicator_name.clone().unwrap_or_default(),
        kind: kind.to_owned(),
        function: operation.function.clone(),
        // Before v5 a replay is not told from a first launch.
        seq: operation.sequence.filter(|_| !operation.graph_replay || api < 5),
        count: operation.count,
        datatype: operation.datatype.clone(),
        algo: operation.algorithm.clone().unwrap_or_default(),
        proto: operation.protocol.clone().unwrap_or_default(),
        channels: operation.channels.map_or(0, u64::from),
        root: if rooted(&operation.function) { operation.root_or_peer.into() } else { -1 },
        peer: if p2p && kind == "p2p" { operation.root_or_peer.into() } else { -1 },
        user_tag: operation.user_tag,
        gpu: first.zip(last).filter(|_| api >= 4),
        channels_seen: channels.len() as u64,
        proxy_operations: operation.proxy_operations.into(),
        proxy_steps: operation.proxy_steps.into(),
    }
}

/// The operations that a session wrote.
///
/// # Errors
/// One lacks what the format promises.
pub fn of_session(session: &Session) -> Result<Vec<Seen>> {
    session.operations.iter().map(|operation| of_operation(session, operation)).collect()
}

/// One operation that a session wrote.
///
/// # Errors
/// As [`of_session`].
pub fn of_operation(session: &Session, operation: &Value) -> Result<Seen> {
    let Some(communicator) = session.communicator_of(operation) else { bail!("no communicator: {operation}") };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let bits =
        |value: &Value| value.as_str().and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    let spelled = |own: &str, understood: &str| {
        let own = &operation[own];
        text(if own.is_string() { own } else { &operation[understood] })
    };
    let flags = operation["flags"].as_array().cloned().unwrap_or_default();
    let kind = text(&operation["kind"]);
    let function = spelled("function", "collective");
    let replay = flags.iter().any(|flag| flag == "replay");
    Ok(Seen {
        hash: bits(&communicator["hash"]).unwrap_or(0),
        rank: communicator["rank"].as_i64().unwrap_or(-1),
        ranks: communicator["ranks"].as_u64(),
        name: text(&communicator["name"]),
        seq: operation["seq"].as_u64().filter(|_| !replay && matches!(&kind[..], "coll" | "copy_engine")),
        count: operation["count"].as_u64().unwrap_or(u64::MAX),
        datatype: spelled("datatype_text", "datatype"),
        algo: text(&operation["algo"]),
        proto: text(&operation["proto"]),
        channels: operation["channels"].as_u64().unwrap_or(0),
        root: if rooted(&function) { operation["root"].as_i64().unwrap_or(-1) } else { -1 },
        peer: operation["peer"].as_i64().unwrap_or(-1),
        user_tag: bits(&operation["user_tag"]).unwrap_or(0),
        gpu: operation["gpu_start"].as_u64().zip(operation["gpu_stop"].as_u64()),
        channels_seen: operation["channels_seen"].as_u64().unwrap_or(u64::MAX),
        proxy_operations: operation["proxy_operations"].as_u64().unwrap_or(0),
        proxy_steps: operation["proxy_steps"].as_u64().unwrap_or(0),
        function,
        kind,
    })
}

/// Compares two lists as sets with multiplicity; the error lists what differs.
///
/// # Errors
/// They differ.
pub fn compare(told: &[Seen], written: &[Seen]) -> Result<()> {
    let mut balance: HashMap<&Seen, i64> = HashMap::new();
    told.iter().for_each(|operation| *balance.entry(operation).or_default() += 1);
    written.iter().for_each(|operation| *balance.entry(operation).or_default() -= 1);
    let mut differing: Vec<_> = balance.into_iter().filter(|(_, count)| *count != 0).collect();
    if differing.is_empty() {
        return Ok(());
    }
    differing.sort();
    let lines: Vec<String> = differing
        .iter()
        .take(12)
        .map(|(operation, count)| {
            format!("{} ×{}: {operation:?}", if *count > 0 { "not written" } else { "not told" }, count.abs())
        })
        .collect();
    bail!("{} told, {} written, {} differ:\n{}", told.len(), written.len(), differing.len(), lines.join("\n"))
}
