//! From the records in a black box to operations.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use collander_config::{Environment, load_from};
use collander_event::{Collective, OpKind, OpenOperation, Operation, Record};
use collander_pipeline::Assembler;
use collander_ring::{Image, RingInfo};
use serde::Serialize;

use crate::output::{Ui, printable};
use crate::show::text::{Column, table};
use crate::units;

/// What is printed.
#[derive(Debug, Serialize)]
pub struct Dump {
    pid: u32,
    /// Unix time of the newest record, ns; ages count back from it.
    newest_ns: u64,
    records: usize,
    rings: Vec<Ring>,
    communicators: Vec<CommunicatorEntry>,
    events_unobserved: u64,
    operations: Vec<Entry>,
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct Ring {
    ring: u8,
    thread: u32,
    state: String,
    capacity: u64,
    written: u64,
    overwritten: u64,
}

#[derive(Debug, Serialize)]
struct CommunicatorEntry {
    comm: u32,
    hash: String,
    name: String,
    label: String,
    rank: i32,
    ranks: Option<u32>,
    open: bool,
}

#[derive(Debug, Serialize)]
struct Entry {
    id: u64,
    kind: &'static str,
    open: bool,
    /// From its start to the newest record, ns.
    age_ns: u64,
    comm: u32,
    communicator: String,
    rank: i32,
    collective: &'static str,
    seq: u64,
    bytes: Option<u64>,
    partner: Option<i32>,
    channels: u16,
    channels_started: Option<u16>,
    channels_ended: Option<u16>,
    enqueued_ns: u64,
    duration_ns: Option<u64>,
    timing: &'static str,
    flags: Vec<&'static str>,
}

/// Whether its partner means something: NCCL gives every collective a root.
const fn has_partner(operation: &Operation) -> bool {
    matches!(operation.kind, OpKind::P2p)
        || matches!(
            operation.collective,
            Collective::Broadcast | Collective::Reduce | Collective::Gather | Collective::Scatter
        )
}

impl Entry {
    fn new(operation: &Operation, open: Option<&OpenOperation>, newest_ns: u64) -> Self {
        let communicator = &operation.communicator;
        let names = [&communicator.label, &communicator.name].map(String::as_str);
        let given = names.into_iter().find(|name| !name.is_empty()).unwrap_or("");
        let hash = format!("{:016x}", communicator.hash);
        let flags = collander_event::Flags::NAMES.iter().filter(|(_, bit)| operation.flags.has(*bit));
        Self {
            id: operation.id,
            kind: operation.kind.name(),
            open: open.is_some(),
            age_ns: newest_ns.saturating_sub(operation.enqueued_ns),
            comm: communicator.ordinal,
            communicator: format!("{given} {}", &hash[..6]).trim_start().to_owned(),
            rank: communicator.rank,
            collective: operation.collective.name(),
            seq: operation.sequence,
            bytes: operation.bytes.or(operation.rank_bytes),
            partner: (operation.partner >= 0 && has_partner(operation)).then_some(operation.partner),
            channels: operation.channels,
            channels_started: open.map(|open| open.channels_started),
            channels_ended: open.map(|open| open.channels_ended),
            enqueued_ns: operation.enqueued_ns,
            // Of what is open only a part is known.
            duration_ns: operation.duration_ns.filter(|_| open.is_none()),
            timing: operation.timing.name(),
            flags: flags.map(|(name, _)| *name).collect(),
        }
    }
}

impl Dump {
    /// Of an image; at most the `last` operations.
    ///
    /// # Errors
    /// When our own default configuration is refused, which is a defect.
    pub fn of(image: &Image, last: Option<usize>) -> Result<Self> {
        let calibration = image.calibration();
        let records = image.records();
        let newest = records.iter().flat_map(|(_, records)| records.last()).map(Record::ticks).max();
        let newest_ns = newest.map_or(0, |ticks| calibration.unix_ns(ticks));
        let (closed, open) = assemble(image, &records, newest_ns)?;
        let mut operations: Vec<Entry> = closed
            .iter()
            .filter(|operation| operation.kind != OpKind::InferredGroup)
            .map(|operation| Entry::new(operation, None, newest_ns))
            .chain(open.iter().map(|open| Entry::new(&open.operation, Some(open), newest_ns)))
            .collect();
        operations.sort_by_key(|entry| (entry.enqueued_ns, entry.id));
        let left_out = last.map_or(0, |last| operations.len().saturating_sub(last));
        operations.drain(..left_out);
        Ok(Self {
            pid: image.pid(),
            newest_ns,
            records: records.iter().map(|(_, records)| records.len()).sum(),
            rings: image.rings().iter().map(ring).collect(),
            communicators: image
                .communicators()
                .into_iter()
                .map(|(c, open)| CommunicatorEntry {
                    comm: c.ordinal,
                    hash: format!("{:#018x}", c.hash),
                    name: c.name,
                    label: c.label,
                    rank: c.rank,
                    ranks: c.ranks,
                    open,
                })
                .collect(),
            events_unobserved: image.events_unobserved(),
            operations,
            left_out,
        })
    }
}

fn ring(info: &RingInfo) -> Ring {
    Ring {
        ring: info.ring,
        thread: info.thread,
        state: format!("{:?}", info.state).to_lowercase(),
        capacity: info.capacity,
        written: info.written,
        overwritten: info.written.saturating_sub(info.capacity),
    }
}

/// For people.
pub fn text(dump: &Dump, ui: &Ui) -> String {
    let mut text = String::new();
    let columns = [
        Column::right("age"),
        Column::left("state", 4),
        Column::left("comm", 8),
        Column::right("rank"),
        Column::left("collective", 9),
        Column::right("seq"),
        Column::right("size"),
        Column::right("took"),
        Column::left("notes", 8),
    ];
    let rows: Vec<Vec<String>> = dump.operations.iter().map(cells).collect();
    if rows.is_empty() {
        text.push_str("no operations\n");
    } else {
        text.push_str(&table(&columns, &rows, ui.width, ui.paint));
    }
    let open = dump.operations.iter().filter(|entry| entry.open).count();
    let _ = writeln!(
        text,
        "\nprocess {}: {} records, rings: {}, communicators: {}; {} operations, {open} of them open; ages count from the \
         newest record",
        dump.pid,
        units::count(dump.records as u64),
        dump.rings.len(),
        dump.communicators.len(),
        units::count(dump.operations.len() as u64)
    );
    let overwritten: u64 = dump.rings.iter().map(|ring| ring.overwritten).sum();
    if overwritten > 0 {
        let _ = writeln!(text, "{} older records are overwritten", units::count(overwritten));
    }
    if dump.left_out > 0 {
        let _ = writeln!(text, "{} earlier operations left out (--last)", units::count(dump.left_out as u64));
    }
    if dump.events_unobserved > 0 {
        let _ = writeln!(text, "{} events found no ring", units::count(dump.events_unobserved));
    }
    text
}

fn cells(entry: &Entry) -> Vec<String> {
    let mut notes: Vec<String> = entry.flags.iter().map(|flag| (*flag).to_owned()).collect();
    if let Some(partner) = entry.partner {
        notes.insert(0, format!("{} {partner}", if entry.kind == "p2p" { "peer" } else { "root" }));
    }
    if let (Some(started), Some(ended)) = (entry.channels_started, entry.channels_ended) {
        notes.insert(0, format!("{ended} of {started} of {} channels ended", entry.channels));
    }
    vec![
        units::nanoseconds(entry.age_ns as f64),
        if entry.open { "open".into() } else { "done".into() },
        printable(&entry.communicator),
        entry.rank.to_string(),
        entry.collective.to_owned(),
        entry.seq.to_string(),
        entry.bytes.map_or_else(|| "?".to_owned(), units::bytes),
        match entry.duration_ns {
            Some(ns) => units::nanoseconds(ns as f64),
            None => "–".into(),
        },
        notes.join(", "),
    ]
}

/// The records' operations: those that ended, and those that were open at the newest record.
fn assemble(
    image: &Image,
    records: &[(u8, Vec<Record>)],
    newest_ns: u64,
) -> Result<(Vec<Operation>, Vec<OpenOperation>)> {
    // Everything is shown: no file, no variables, and no bound that a black box could exceed.
    let mut config = load_from(None, &Environment::default()).context("the default configuration")?.config;
    config.drain.operation_timeout = Duration::ZERO;
    config.drain.max_open = usize::MAX >> 1;
    config.drain.max_orphans = usize::MAX >> 1;
    let settle_ns = u64::try_from(config.drain.settle.as_nanos()).unwrap_or(u64::MAX / 4);
    let mut assembler = Assembler::new(&config);
    *assembler.names() = image.names();
    assembler.calibrate(image.calibration());
    let communicators = image.communicators();
    for (communicator, _) in &communicators {
        assembler.communicator_opened(Arc::new(communicator.clone()));
    }
    for (ring, records) in records {
        for record in records {
            assembler.push(*ring, record);
        }
    }
    // Children wait two periods for their parents, and operations that lack channels a settling time for them.
    for pass in 0..4 {
        assembler.end_of_pass(newest_ns.saturating_add(settle_ns / 2 * pass), false);
    }
    for (communicator, _) in communicators.iter().filter(|(_, open)| !open) {
        assembler.communicator_closed(communicator.ordinal);
    }
    let mut closed = Vec::new();
    assembler.take_finished(&mut closed);
    Ok((closed, assembler.open_operations(usize::MAX)))
}

#[cfg(test)]
mod tests;
