//! Recordings of real NCCL, made into records as the hot side would, come out as the operations that were recorded.
//!
//! `COLLANDER_TEST_RECORDINGS`: another folder of recordings to read instead of `tests/recordings`.

mod hot_side;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use collander_config::{Capture, Config, Drain, GpuTimer, Job, Ring};
use collander_event::{Anomaly, Detail, Flags, OpKind, Operation, Timing};
use collander_pipeline::Assembler;
use collander_recording::Recording;
use hot_side::{HotSide, Step};

const PERIOD_NS: u64 = 5_000_000;

fn config(detail: Detail) -> Config {
    Config {
        enabled: true,
        capture: Capture { collectives: true, p2p: true, detail, gpu_timer: GpuTimer::Auto, assume_ranks: 0 },
        ring: Ring { total_bytes: 64 << 20, large_bytes: 16 << 20, small_bytes: 1 << 20 },
        drain: Drain {
            period: Duration::from_millis(5),
            operation_timeout: Duration::from_secs(600),
            settle: Duration::from_millis(250),
            max_open: 262_144,
            max_orphans: 65_536,
        },
        labels: Vec::new(),
        sampling: Vec::new(),
        sinks: Vec::new(),
        job: Job::default(),
    }
}

fn recordings() -> Vec<PathBuf> {
    let folder = std::env::var_os("COLLANDER_TEST_RECORDINGS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings"), PathBuf::from);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".jsonl.gz"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{}", folder.display());
    paths
}

/// In which order a pass reads the rings.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// A period's records as they were written.
    Time,
    /// Ring by ring, a period at a time, the later threads (kernels, proxies) first.
    RingsReversed,
    /// Ring by ring, everything up to a finalize in one pass, the later threads first.
    AllAtOnce,
}

fn assemble(hot: &HotSide, detail: Detail, order: Order) -> (Vec<Operation>, Assembler) {
    let mut assembler = Assembler::new(&config(detail));
    for (code, name) in hot.names.iter().enumerate() {
        assembler.names().learn(code as u8, name);
    }
    let mut done = Vec::new();
    let mut batch: Vec<(u8, collander_event::Record)> = Vec::new();
    let mut now = hot.base_ns;
    assembler.end_of_pass(now, false);
    let mut end_pass = |assembler: &mut Assembler, batch: &mut Vec<(u8, collander_event::Record)>, now: u64, last| {
        if order != Order::Time {
            batch.sort_by_key(|(ring, _)| std::cmp::Reverse(*ring));
        }
        batch.drain(..).for_each(|(ring, record)| assembler.push(ring, &record));
        assembler.end_of_pass(now, last);
        assembler.take_finished(&mut done);
    };
    for (ns, step) in &hot.steps {
        if *ns >= now + PERIOD_NS && order != Order::AllAtOnce {
            end_pass(&mut assembler, &mut batch, *ns, false);
            now = *ns;
        }
        match step {
            Step::Record(ring, record) => batch.push((*ring, *record)),
            Step::Open(communicator) => assembler.communicator_opened(Arc::new(communicator.clone())),
            Step::Close(ordinal) => {
                end_pass(&mut assembler, &mut batch, *ns, false);
                assembler.communicator_closed(*ordinal);
            }
        }
    }
    end_pass(&mut assembler, &mut batch, now + 10 * PERIOD_NS, true);
    (done, assembler)
}

/// What must come out, of one operation, in words.
fn described(operation: &Operation) -> String {
    let seconds = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
    let gpu = if operation.timing == Timing::Gpu { operation.duration_ns } else { None };
    format!(
        "{} comm {} {} seq {} count {} {} {} {} partner {} channels {} seen {} gpu {} longest {} proxies {} steps {} bytes {} {}",
        operation.kind.name(),
        operation.communicator.ordinal,
        operation.function,
        if operation.kind == OpKind::Api { 0 } else { operation.sequence },
        operation.count,
        operation.datatype_text,
        operation.algorithm,
        operation.protocol,
        operation.partner,
        operation.channels,
        operation.channels_seen,
        seconds(gpu),
        seconds(gpu.and(operation.longest_channel_ns)),
        operation.proxy_operations,
        operation.proxy_steps,
        operation.sent_bytes,
        operation.received_bytes,
    )
}

fn check(path: &Path, detail: Detail, order: Order) {
    let place = format!("{} {detail:?} {order:?}", path.file_name().unwrap().to_string_lossy());
    let recording = Recording::read(path).unwrap();
    let hot = HotSide::convert(&recording, detail);
    let (done, assembler) = assemble(&hot, detail, order);

    let found: Vec<_> = done.iter().filter(|op| op.kind != OpKind::InferredGroup).collect();
    let mut words: Vec<_> = found.iter().map(|op| described(op)).collect();
    let mut expected: Vec<_> = hot.expected.iter().map(|op| op.described(detail)).collect();
    words.sort_unstable();
    expected.sort_unstable();
    for (word, expected) in words.iter().zip(&expected) {
        assert_eq!(word, expected, "{place}");
    }
    assert_eq!(words.len(), expected.len(), "{place}");

    let snapshot = assembler.snapshot(0);
    assert_eq!((snapshot.open, snapshot.seen.total()), (0, found.len() as u64), "{place}");
    let odd: BTreeMap<_, _> = assembler.anomalies().nonzero().map(|(anomaly, n)| (anomaly.name(), n)).collect();
    let count = |flag| found.iter().filter(|op| op.flags.has(flag)).count() as u64;
    let mut allowed: BTreeMap<&str, u64> = BTreeMap::new();
    let mut allow = |anomaly: Anomaly, n: u64| {
        if n > 0 {
            allowed.insert(anomaly.name(), n);
        }
    };
    allow(Anomaly::ClosedByFinalize, hot.never_ended);
    allow(Anomaly::ChannelsMissing, count(Flags::CHANNELS_MISSING));
    allow(Anomaly::Unobservable, found.iter().filter(|op| op.timing == Timing::Unobservable).count() as u64);
    allow(Anomaly::UnknownDatatype, found.iter().filter(|op| op.rank_bytes.is_none()).count() as u64);
    allow(Anomaly::SequenceGap, hot.sequence_gaps);
    if detail.contains(Detail::PROXY_STEPS) {
        allow(Anomaly::ProxyNeverStopped, hot.proxies_never_stopped);
        allow(Anomaly::StepNeverStopped, hot.steps_never_stopped);
    }
    assert_eq!(odd, allowed, "{place}");
    assert_eq!(count(Flags::ABORTED), hot.never_ended, "{place}");
    assert_eq!(count(Flags::TIMER_MISMATCH) + count(Flags::TIMED_OUT), 0, "{place}");
}

#[test]
fn operations_are_those_recorded() {
    for path in recordings() {
        for order in [Order::Time, Order::RingsReversed, Order::AllAtOnce] {
            check(&path, Detail::CHANNELS, order);
        }
    }
}

#[test]
fn proxies_too() {
    let detail = Detail::STEP_LIST.union(Detail::CHANNEL_LIST).completed();
    for path in recordings() {
        for order in [Order::Time, Order::RingsReversed] {
            check(&path, detail, order);
        }
    }
}
