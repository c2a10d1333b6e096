//! Inspector's formats v4.0 and v4.2, docs/inspector-compatibility.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use collander_config::{JsonFormat, Jsonl};
use collander_event::{Communicator, OpKind, Operation};

use super::format_collander::Identity;
use super::inspector_numbers::{Numbers, Rules, numbers};
use super::json::{field, put, string};

/// Longest text that Inspector's writer takes, bytes.
const LONGEST: usize = 2048;
/// Digits of a dump's time stamp in µs, until the year 2286.
const STAMP_DIGITS: usize = 16;

/// Records of one communicator that wait, and its totals.
#[derive(Default)]
struct Dump {
    communicator: Arc<Communicator>,
    lines: Vec<u8>,
    /// Where in `lines` the time of the dump belongs.
    stamps: Vec<usize>,
    records: [u64; 2],
    dropped_total: [u64; 2],
    dropped_now: [u64; 2],
    p2p_number: u64,
}

/// Operations as Inspector's lines, by communicator.
pub(crate) struct InspectorFormat {
    version42: bool,
    verbose: bool,
    rules: Rules,
    metadata: (String, u32),
    dumps: BTreeMap<u32, Dump>,
    pending_bytes: usize,
}

impl InspectorFormat {
    /// Nothing yet.
    pub fn new(config: &Jsonl, identity: &Identity) -> Self {
        Self {
            version42: config.format == JsonFormat::Inspector42,
            verbose: config.verbose,
            rules: Rules { require_kernel_timing: config.require_kernel_timing, min_size_bytes: config.min_size_bytes },
            metadata: (identity.job.host.clone(), identity.process.pid),
            dumps: BTreeMap::new(),
            pending_bytes: 0,
        }
    }

    /// Bytes that wait.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Adds an operation; false if the format cannot say it or its rules leave it out.
    pub fn accept(&mut self, op: &Operation) -> bool {
        let p2p = op.kind == OpKind::P2p;
        let mut p2p_number = 0;
        if p2p {
            if !self.version42 {
                return false;
            }
            let dump = self.dumps.entry(op.communicator.ordinal).or_default();
            p2p_number = dump.p2p_number;
            dump.p2p_number += 1;
        }
        let Some(numbers) = numbers(op, self.rules) else { return false };
        let dump = self.dumps.entry(op.communicator.ordinal).or_default();
        if !Arc::ptr_eq(&dump.communicator, &op.communicator) {
            dump.communicator = Arc::clone(&op.communicator);
        }
        let before = dump.lines.len();
        let Dump { lines: out, stamps, .. } = dump;
        stamps.push(framing(out, &op.communicator, self.version42, &self.metadata));
        if p2p {
            p2p_perf(out, op, &numbers, p2p_number);
        } else {
            coll_perf(out, op, &numbers, self.version42);
        }
        if self.verbose {
            event_trace(out, op, if p2p { "p2p" } else { "coll" });
        }
        put(out, "}}\n");
        self.pending_bytes += out.len() - before;
        dump.records[usize::from(p2p)] += 1;
        true
    }

    /// Appends the dump: for each communicator with records or new drops, in v4.2, a line of totals, then its records.
    /// Can be called again.
    pub fn build(&self, out: &mut Vec<u8>, now_ns: u64) {
        let mut stamp = String::with_capacity(STAMP_DIGITS);
        // A String takes everything.
        let _ = write!(stamp, "{:016}", now_ns / 1000);
        for dump in self.dumps.values().filter(|dump| dump.records != [0; 2] || dump.dropped_now != [0; 2]) {
            if self.version42 {
                let at = framing(out, &dump.communicator, true, &self.metadata);
                out[at..at + STAMP_DIGITS].copy_from_slice(&stamp.as_bytes()[..STAMP_DIGITS]);
                totals(out, dump);
            }
            let start = out.len();
            out.extend_from_slice(&dump.lines);
            for at in &dump.stamps {
                let at = start + at;
                out[at..at + STAMP_DIGITS].copy_from_slice(&stamp.as_bytes()[..STAMP_DIGITS]);
            }
        }
    }

    /// The dump is in a file.
    pub fn written(&mut self) {
        self.next_dump(|dump| dump.dropped_now = [0; 2]);
    }

    /// The dump is lost.
    pub fn lost(&mut self) {
        self.next_dump(|dump| {
            for kind in 0..2 {
                dump.dropped_total[kind] += dump.records[kind];
                dump.dropped_now[kind] += dump.records[kind];
            }
        });
    }

    fn next_dump(&mut self, each: impl Fn(&mut Dump)) {
        let many = self.dumps.len() > 64;
        for dump in self.dumps.values_mut().filter(|dump| dump.records != [0; 2] || dump.dropped_now != [0; 2]) {
            each(dump);
            dump.records = [0; 2];
            dump.lines.clear();
            dump.stamps.clear();
            if many {
                dump.lines = Vec::new();
                dump.stamps = Vec::new();
            }
        }
        self.pending_bytes = 0;
    }
}

/// Appends header and metadata up to the next key; where the time of the dump belongs.
fn framing(out: &mut Vec<u8>, communicator: &Communicator, version42: bool, (host, pid): &(String, u32)) -> usize {
    out.reserve(768);
    put(out, "{\"header\":{\"id\":\"");
    let id = format!("{:#x}", communicator.hash);
    put(out, &id[..id.len().min(16)]);
    put(out, "\"");
    if version42 {
        put(out, ",\"comm_name\":");
        name(out, if communicator.name.is_empty() { "unknown" } else { &communicator.name });
    }
    field(out, ",\"rank\":", communicator.rank);
    field(out, ",\"n_ranks\":", communicator.ranks.unwrap_or(0));
    field(out, ",\"nnodes\":", communicator.nodes.unwrap_or(0));
    put(out, "},\"metadata\":{\"inspector_output_format_version\":\"");
    put(out, if version42 { "v4.2" } else { "v4.0" });
    put(out, concat!("\",\"git_rev\":\"collander-", env!("CARGO_PKG_VERSION"), "\""));
    put(out, ",\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":");
    let stamp = out.len();
    put(out, "0000000000000000,\"hostname\":");
    name(out, host);
    field(out, ",\"pid\":", *pid);
    put(out, "}");
    stamp
}

fn totals(out: &mut Vec<u8>, dump: &Dump) {
    field(out, ",\"dump_stats\":{\"coll_records\":", dump.records[0]);
    field(out, ",\"coll_dropped_total\":", dump.dropped_total[0]);
    field(out, ",\"coll_dropped_since_last_dump\":", dump.dropped_now[0]);
    field(out, ",\"p2p_records\":", dump.records[1]);
    field(out, ",\"p2p_dropped_total\":", dump.dropped_total[1]);
    field(out, ",\"p2p_dropped_since_last_dump\":", dump.dropped_now[1]);
    put(out, "}}\n");
}

fn coll_perf(out: &mut Vec<u8>, op: &Operation, numbers: &Numbers, version42: bool) {
    put(out, ",\"coll_perf\":{\"coll\":");
    name(out, numbers.function);
    if version42 {
        put(out, ",\"coll_algo\":");
        name(out, op.algorithm);
        put(out, ",\"coll_proto\":");
        name(out, op.protocol);
    }
    field(out, ",\"coll_sn\":", op.sequence);
    measures(out, "coll", numbers);
}

fn p2p_perf(out: &mut Vec<u8>, op: &Operation, numbers: &Numbers, number: u64) {
    put(out, ",\"p2p_perf\":{\"p2p\":");
    name(out, numbers.function);
    field(out, ",\"p2p_sn\":", number);
    field(out, ",\"p2p_peer\":", op.partner);
    measures(out, "p2p", numbers);
}

/// What `coll_perf` and `p2p_perf` share, but for the prefix.
fn measures(out: &mut Vec<u8>, prefix: &str, numbers: &Numbers) {
    let key = |out: &mut Vec<u8>, name: &str| {
        put(out, ",\"");
        put(out, prefix);
        put(out, name);
    };
    key(out, "_msg_size_bytes\":");
    field(out, "", numbers.size);
    key(out, "_exec_time_us\":");
    field(out, "", numbers.time_us);
    key(out, "_timing_source\":\"");
    put(out, numbers.source);
    put(out, "\"");
    key(out, "_algobw_gbs\":");
    six_places(out, numbers.algbw);
    key(out, "_busbw_gbs\":");
    six_places(out, numbers.busbw);
}

/// C's `%lf`; NaN is a string there.
fn six_places(out: &mut Vec<u8>, number: f64) {
    if number.is_nan() {
        return put(out, "\"nan\"");
    }
    put(out, &format!("{number:.6}"));
}

/// A text, cut to what Inspector takes.
fn name(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    string(out, &text[..end], true);
}

/// The event traces: first the order of the events, then their times in µs.
fn event_trace(out: &mut Vec<u8>, op: &Operation, prefix: &str) {
    let stop = op.enqueued_ns + op.enqueue_ns;
    // Start and stop of the call, then start, record and stop of each channel; the sort is stable.
    let mut moments = vec![op.enqueued_ns, stop];
    for channel in &op.channel_list {
        moments.extend([channel.cpu_start_ns, channel.cpu_stop_ns, channel.cpu_stop_ns]);
    }
    let mut order: Vec<usize> = (0..moments.len()).collect();
    order.sort_by_key(|at| moments[*at]);
    let mut numbers = vec![0u64; moments.len()];
    for (number, at) in order.into_iter().enumerate() {
        numbers[at] = number as u64 + 1;
    }
    let times: Vec<u64> = moments.iter().map(|ns| ns / 1000).collect();
    for (suffix, values) in [("sn", numbers), ("ts", times)] {
        let key = |out: &mut Vec<u8>, start: &str, name: &str, value: u64| {
            put(out, start);
            put(out, name);
            put(out, suffix);
            field(out, "\":", value);
        };
        put(out, ",\"event_trace_");
        put(out, suffix);
        put(out, "\":{\"");
        key(out, prefix, "_start_", values[0]);
        put(out, ",\"");
        key(out, prefix, "_stop_", values[1]);
        put(out, ",\"kernel_events\":[");
        for (at, channel) in op.channel_list.iter().enumerate() {
            put(out, if at > 0 { "," } else { "" });
            field(out, "{\"channel_id\":", channel.channel);
            key(out, ",\"kernel_", "start_", values[2 + 3 * at]);
            key(out, ",\"kernel_", "stop_", values[4 + 3 * at]);
            key(out, ",\"kernel_", "record_", values[3 + 3 * at]);
            put(out, "}");
        }
        put(out, "]}");
    }
}
