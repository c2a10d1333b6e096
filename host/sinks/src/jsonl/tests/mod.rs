//! A kit for the tests: operations, a disk that fails on demand, readers.

mod collander;
mod failures;
mod inspector;
mod rotation;
mod speed;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use collander_config::{Compression, Job, JsonFormat, Jsonl};
use collander_event::{Anomaly, Collective, Communicator, Datatype, OpKind, Operation, Tally, Timing};
use collander_pipeline::{Sink, Snapshot};
use serde_json::Value;

use super::JsonlSink;
use super::storage::{Disk, Storage, StoredFile};
use crate::ProcessInfo;

fn config(directory: &Path, compression: Compression) -> Jsonl {
    Jsonl {
        directory: directory.to_owned(),
        format: JsonFormat::Collander,
        compression,
        level: 3,
        flush: Duration::from_millis(10),
        rotate_bytes: 1 << 20,
        max_bytes: 4 << 20,
        require_kernel_timing: true,
        min_size_bytes: 0,
        verbose: false,
    }
}

fn job() -> Job {
    Job {
        id: "7".into(),
        id_source: "config".into(),
        host: "node-a".into(),
        labels: vec![("team".into(), "a\"b".into())],
    }
}

fn process() -> ProcessInfo {
    ProcessInfo {
        pid: 42,
        session: 1,
        start_unix_ns: 1_700_000_000_000_000_000,
        api: Some(5),
        clock: "tsc",
        gpu_uuid: None,
    }
}

fn sink(config: &Jsonl) -> JsonlSink {
    JsonlSink::new("jsonl", config, &job(), &process(), Box::new(Disk))
}

fn communicator(ordinal: u32) -> Arc<Communicator> {
    Arc::new(Communicator {
        ordinal,
        hash: 0x7f8c_496a_e9f6_6101,
        name: format!("DP Group {ordinal}"),
        label: "dp".into(),
        rank: 2,
        ranks: Some(8),
        nodes: Some(1),
        api: 5,
        opened_ns: 1_752_867_229_000_000_000,
    })
}

fn all_reduce(communicator: &Arc<Communicator>, sequence: u64) -> Operation {
    Operation {
        id: 1024 + (sequence << 8),
        kind: OpKind::Coll,
        communicator: Arc::clone(communicator),
        collective: Collective::AllReduce,
        function: "AllReduce",
        datatype: Datatype::Float32,
        datatype_text: "ncclFloat32",
        algorithm: "RING",
        protocol: "LL",
        timing: Timing::Gpu,
        sequence,
        count: 4_294_967_296,
        bytes: Some(17_179_869_184),
        rank_bytes: Some(17_179_869_184),
        partner: -1,
        channels: 1,
        channels_seen: 1,
        warps: 16,
        enqueued_ns: 1_752_867_229_235_059_000 + sequence,
        enqueue_ns: 5_000,
        queued_ns: Some(122_000),
        duration_ns: Some(61_974_000),
        longest_channel_ns: Some(61_974_000),
        ended_ns: 1_752_867_229_297_155_000,
        gpu_start: Some(1_752_867_229_235_181_000),
        gpu_stop: Some(1_752_867_229_297_155_000),
        algbw: Some(277.210_914),
        busbw: Some(485.119_099),
        sinks: u32::MAX,
        ..Operation::default()
    }
}

/// What the drain would say after so many operations for the sink, with some of every other fate.
fn snapshot(operations: u64) -> Snapshot {
    let mut snapshot = Snapshot {
        unix_ns: 1_752_867_230_000_000_000,
        seen: Tally { coll: operations + 22, p2p: 1, copy_engine: 2, api: 3, unknown: 5 },
        sampled_head: 11,
        sampled_filter: 7,
        unrouted: 3,
        ring_overrun: 5,
        evicted: 2,
        queue_full: 1,
        open: 4,
        records: 99,
        inferred_groups: 1,
        communicators: 2,
        ..Snapshot::default()
    };
    snapshot.anomalies.add(Anomaly::DoubleStop, 6);
    snapshot
}

fn accept(sink: &mut JsonlSink, communicator: &Arc<Communicator>, sequences: std::ops::Range<u64>) {
    for sequence in sequences {
        sink.accept(&all_reduce(communicator, sequence));
    }
}

/// The files of a folder, by name.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).map(|list| list.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default();
    files.sort_by_key(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name.len(), name)
    });
    files
}

/// The text of a file as far as it can be read: a torn frame ends it.
fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let mut out = Vec::new();
    let name = path.to_string_lossy().into_owned();
    let mut read = |reader: &mut dyn Read| {
        let mut buffer = [0; 4096];
        while let Ok(n) = reader.read(&mut buffer) {
            if n == 0 {
                break;
            }
            out.extend_from_slice(&buffer[..n]);
        }
    };
    if name.ends_with(".zst") {
        if let Ok(mut decoder) = zstd::stream::read::Decoder::new(bytes.as_slice()) {
            read(&mut decoder);
        }
    } else if name.ends_with(".gz") {
        read(&mut flate2::read::MultiGzDecoder::new(bytes.as_slice()));
    } else {
        out = bytes;
    }
    String::from_utf8(out).unwrap()
}

/// Its whole lines as JSON; an incomplete last line is left out.
fn records(path: &Path) -> Vec<Value> {
    let text = text(path);
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn of_type<'r>(records: &'r [Value], wanted: &str) -> Vec<&'r Value> {
    records.iter().filter(|record| record["type"] == wanted).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Panics unless a stats record adds up.
fn assert_balances(stats: &Value) {
    let sum = number(&stats["written"])
        + number(&stats["dropped"]["total"])
        + number(&stats["sampled_out"]["total"])
        + number(&stats["open"]);
    assert_eq!(number(&stats["seen"]["total"]), sum, "{stats}");
    let parts = |object: &Value| -> u64 {
        object.as_object().unwrap().iter().filter(|(key, _)| *key != "total").map(|(_, value)| number(value)).sum()
    };
    for key in ["seen", "dropped", "sampled_out"] {
        assert_eq!(parts(&stats[key]), number(&stats[key]["total"]), "{key}");
    }
}

/// Errors that a faulty disk returns; 0: none.
#[derive(Debug, Default)]
struct Faults {
    make_directory: AtomicU32,
    create: AtomicU32,
    write: AtomicU32,
    truncate: AtomicU32,
    /// Bytes that are still written before `write` holds.
    budget: AtomicI64,
    /// Most bytes a write call takes; 0: all.
    short: AtomicU32,
    writes: AtomicU32,
}

impl Faults {
    fn set(fault: &AtomicU32, errno: u32) {
        fault.store(errno, Ordering::Relaxed);
    }

    fn check(fault: &AtomicU32) -> io::Result<()> {
        match fault.load(Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno as i32)),
        }
    }
}

struct FaultyDisk(Arc<Faults>);

struct FaultyFile(Arc<Faults>, Box<dyn StoredFile>);

impl Storage for FaultyDisk {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        Faults::check(&self.0.make_directory)?;
        Disk.make_directory(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        Faults::check(&self.0.create)?;
        Ok(Box::new(FaultyFile(Arc::clone(&self.0), Disk.create(path)?)))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn replace(&self, path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
        Disk.replace(path, temporary, bytes)
    }
}

impl StoredFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        let mut most = bytes.len();
        if self.0.write.load(Ordering::Relaxed) != 0 {
            let left = usize::try_from(self.0.budget.load(Ordering::Relaxed)).unwrap_or(0);
            if left == 0 {
                Faults::check(&self.0.write)?;
            }
            most = most.min(left);
            self.0.budget.fetch_sub(most as i64, Ordering::Relaxed);
        }
        let short = self.0.short.load(Ordering::Relaxed) as usize;
        if short > 0 {
            most = most.min(short);
        }
        self.1.write_at(&bytes[..most], offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        Faults::check(&self.0.truncate)?;
        self.1.truncate(length)
    }

    fn is_at(&self, path: &Path) -> bool {
        self.1.is_at(path)
    }
}
