//! Our format, docs/output-fields.md: headers, communicators, stats, and which lines a file needs.

use std::collections::HashMap;
use std::sync::Arc;

use collander_config::Job;
use collander_event::{Accounting, Communicator, DropReason, OpKind, Operation};
use collander_pipeline::Snapshot;

use super::json::{bits, field, field_or_null, put, string, text};
use super::operation;
use crate::ProcessInfo;

/// Version of the format.
const VERSION: u32 = 1;

/// What the headers of all files of a sink share.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The sink's name.
    pub sink: String,
    /// The job.
    pub job: Job,
    /// The process.
    pub process: ProcessInfo,
}

/// A stats record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stats<'s> {
    /// The common account.
    pub snapshot: &'s Snapshot,
    /// The sink's whole account, what this flush writes included.
    pub account: &'s Accounting,
    /// Number of the record.
    pub flush: u64,
    /// The session's last.
    pub last: bool,
}

/// A communicator and where it was described.
struct Known {
    communicator: Arc<Communicator>,
    /// The frame that last referred to it.
    frame: u64,
    /// The last frame in whose lines it is described before it is referred to.
    described: u64,
}

/// Operations as lines, and the communicators that they need.
#[derive(Default)]
pub(crate) struct CollanderFormat {
    lines: Vec<u8>,
    /// Described in the open file, or in `lines`.
    known: HashMap<u32, Known>,
    /// Number of the frame that is being collected.
    frame: u64,
    api: Option<u8>,
}

impl CollanderFormat {
    /// Bytes that wait.
    pub fn pending_bytes(&self) -> usize {
        self.lines.len()
    }

    /// Adds an operation, behind its communicator if the file does not have it as it is now.
    pub fn accept(&mut self, op: &Operation) {
        let communicator = &op.communicator;
        self.api = self.api.or(Some(communicator.api));
        let frame = self.frame;
        match self.known.get_mut(&communicator.ordinal) {
            Some(known) if Arc::ptr_eq(&known.communicator, communicator) || known.communicator == *communicator => {
                known.frame = frame;
            }
            known => {
                let described = known.filter(|known| known.frame == frame).map_or(frame, |known| known.described);
                describe(&mut self.lines, communicator);
                let communicator = Arc::clone(communicator);
                self.known.insert(communicator.ordinal, Known { communicator, frame, described });
            }
        }
        operation::operation(&mut self.lines, op);
    }

    /// Appends the frame: header and communicators if the file is new, the lines, the stats. Can be called again.
    pub fn build(&self, out: &mut Vec<u8>, new_file: Option<(&Identity, u32, u64)>, stats: Option<(&str, Stats<'_>)>) {
        if let Some((identity, number, now_ns)) = new_file {
            header(out, identity, number, now_ns, self.api);
            let needed = |known: &&Known| known.frame == self.frame && known.described != self.frame;
            let mut needed: Vec<&Known> = self.known.values().filter(needed).collect();
            needed.sort_unstable_by_key(|known| known.communicator.ordinal);
            for known in needed {
                describe(out, &known.communicator);
            }
        }
        out.extend_from_slice(&self.lines);
        if let Some((sink, record)) = stats {
            write_stats(out, sink, &record);
        }
    }

    /// The frame is in a file; `new_file`: it was the first there, so only what it described is described there.
    pub fn written(&mut self, new_file: bool) {
        if new_file {
            let frame = self.frame;
            self.known.retain(|_, known| known.frame == frame);
        }
        self.next_frame();
    }

    /// The frame is lost; what it described is not described anywhere.
    pub fn lost(&mut self) {
        self.known.clear();
        self.next_frame();
    }

    fn next_frame(&mut self) {
        self.lines.clear();
        self.frame += 1;
    }
}

/// Whether an operation counts in the account.
pub(crate) fn counts(op: &Operation) -> bool {
    op.kind != OpKind::InferredGroup
}

/// Appends a header record.
pub(crate) fn header(out: &mut Vec<u8>, identity: &Identity, number: u32, now_ns: u64, api: Option<u8>) {
    let Identity { sink, job, process } = identity;
    put(out, "{\"type\":\"header\",\"format\":\"collander-jsonl\"");
    field(out, ",\"version\":", VERSION);
    text(out, ",\"collander\":", env!("CARGO_PKG_VERSION"));
    text(out, ",\"host\":", &job.host);
    field(out, ",\"pid\":", process.pid);
    field(out, ",\"process_start_ns\":", process.start_unix_ns);
    field(out, ",\"session\":", process.session);
    field(out, ",\"file\":", number);
    field(out, ",\"created_ns\":", now_ns);
    text(out, ",\"sink\":", sink);
    text(out, ",\"job\":", &job.id);
    text(out, ",\"job_source\":", &job.id_source);
    put(out, ",\"labels\":{");
    for (at, (name, value)) in job.labels.iter().enumerate() {
        put(out, if at > 0 { "," } else { "" });
        string(out, name, false);
        text(out, ":", value);
    }
    field_or_null(out, "},\"api\":", process.api.or(api));
    match &process.gpu_uuid {
        Some(uuid) => text(out, ",\"gpu_uuid\":", uuid),
        None => put(out, ",\"gpu_uuid\":null"),
    }
    text(out, ",\"clock\":", process.clock);
    put(out, "}\n");
}

fn describe(out: &mut Vec<u8>, communicator: &Communicator) {
    field(out, "{\"type\":\"communicator\",\"comm\":", communicator.ordinal);
    put(out, ",\"hash\":");
    if communicator.hash == 0 {
        put(out, "null");
    } else {
        bits(out, communicator.hash);
    }
    text(out, ",\"name\":", &communicator.name);
    text(out, ",\"label\":", &communicator.label);
    field_or_null(out, ",\"rank\":", u32::try_from(communicator.rank).ok());
    field_or_null(out, ",\"ranks\":", communicator.ranks);
    field_or_null(out, ",\"nodes\":", communicator.nodes);
    field(out, ",\"api\":", communicator.api);
    field(out, ",\"opened_ns\":", communicator.opened_ns);
    put(out, "}\n");
}

/// Appends a stats record.
pub(crate) fn write_stats(out: &mut Vec<u8>, sink: &str, stats: &Stats<'_>) {
    let Stats { snapshot, account, flush, last } = stats;
    text(out, "{\"type\":\"stats\",\"sink\":", sink);
    field(out, ",\"flush\":", *flush);
    field(out, ",\"unix_ns\":", snapshot.unix_ns);
    put(out, if *last { ",\"final\":true" } else { ",\"final\":false" });
    field(out, ",\"seen\":{\"total\":", account.seen);
    field(out, ",\"coll\":", snapshot.seen.coll);
    field(out, ",\"p2p\":", snapshot.seen.p2p);
    field(out, ",\"copy_engine\":", snapshot.seen.copy_engine);
    field(out, ",\"api\":", snapshot.seen.api);
    field(out, ",\"unknown\":", snapshot.seen.unknown);
    field(out, "},\"written\":", account.written);
    field(out, ",\"dropped\":{\"total\":", account.dropped_total());
    for reason in DropReason::ALL {
        if reason != DropReason::Deleted {
            text(out, ",", reason.name());
            field(out, ":", account.dropped[reason as usize]);
        }
    }
    field(out, "},\"deleted\":", account.dropped[DropReason::Deleted as usize]);
    field(out, ",\"sampled_out\":{\"total\":", account.sampled_out());
    field(out, ",\"head\":", account.sampled_head);
    field(out, ",\"filter\":", account.sampled_filter);
    field(out, ",\"unrouted\":", account.unrouted);
    field(out, "},\"open\":", account.open);
    field(out, ",\"records\":", snapshot.records);
    field(out, ",\"inferred_groups\":", snapshot.inferred_groups);
    field(out, ",\"communicators\":", snapshot.communicators);
    put(out, ",\"anomalies\":{");
    for (at, (anomaly, count)) in snapshot.anomalies.nonzero().enumerate() {
        text(out, if at > 0 { "," } else { "" }, anomaly.name());
        field(out, ":", count);
    }
    put(out, "}}\n");
}
