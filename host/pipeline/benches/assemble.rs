//! How many operations of 8 channels (2 + 16 records each, from two rings) does the assembler take a second, on one core?
//! And what would just reading those records cost? `cargo bench -p collander-pipeline`; the first argument is the number of
//! operations in millions, 2 by default. Records are made in advance, a pass of 4096 operations at a time, and timed apart
//! from their making; kernel records follow their operations by a whole pass, as in a job whose GPU is busy.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use collander_config::{Capture, Config, Drain, GpuTimer, Job, Ring};
use collander_event::{Communicator, Detail, EventId, EventKind, Payload, Record, RecordFlags, StartHeader, State};
use collander_pipeline::Assembler;

const PASS: u64 = 4096;
const CHANNELS: u64 = 8;
const NS_PER_OPERATION: u64 = 1000;
const EPOCH: u64 = 1_700_000_000_000_000_000;

fn config() -> Config {
    Config {
        enabled: true,
        capture: Capture {
            collectives: true,
            p2p: true,
            detail: Detail::CHANNELS,
            gpu_timer: GpuTimer::Auto,
            assume_ranks: 0,
        },
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

fn operation_id(n: u64) -> EventId {
    EventId::new(0, 1, 1 + n * 5, Detail::CHANNELS, EventKind::Coll)
}

/// Start and stop of operation `n`, on ring 1.
fn user_records(n: u64, codes: [u8; 4], out: &mut Vec<Record>) {
    let [function, datatype, algorithm, protocol] = codes;
    let ticks = EPOCH + n * NS_PER_OPERATION;
    let header = StartHeader {
        ticks,
        id: operation_id(n),
        parent: EventId::new(0, 1, n * 5, Detail(0), EventKind::CollApi),
        ordinal: ((n + 1) & ((1 << 28) - 1)) as u32,
        channels: CHANNELS as u8,
        warps: 16,
        ..StartHeader::default()
    };
    let payload = Payload::Coll {
        sequence: n,
        count: 1 << 20,
        function,
        datatype,
        algorithm,
        protocol,
        root: -1,
        group: EventId::new(0, 1, 2 + n * 5, Detail(0), EventKind::GroupApi),
        api_datatype: datatype,
    };
    out.push(Record::start(header, payload.words()));
    out.push(Record::stop(ticks + 300, header.id));
}

/// Kernel records of operation `n`, on ring 2.
fn kernel_records(n: u64, out: &mut Vec<Record>) {
    let seen = EPOCH + (n + PASS) * NS_PER_OPERATION;
    for channel in 0..CHANNELS {
        let id = EventId::new(0, 2, n * CHANNELS + channel + 1, Detail::CHANNELS, EventKind::KernelCh);
        let header = StartHeader {
            ticks: seen + channel * 10,
            id,
            parent: operation_id(n),
            channels: channel as u8,
            ..StartHeader::default()
        };
        let timer = seen - 900;
        out.push(Record::start(header, Payload::KernelCh { timer }.words()));
        let stop = Record::state(seen + 500 + channel * 10, id, State::KERNEL_CH_STOP, timer + 700, RecordFlags(0));
        out.push(stop);
    }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

fn main() {
    let millions: u64 = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(2);
    let total = (millions * 1_000_000).next_multiple_of(PASS);
    let mut assembler = Assembler::new(&config());
    let codes = ["AllReduce", "ncclFloat32", "RING", "SIMPLE"].map(|text| assembler.names().code_of(text));
    assembler.communicator_opened(Arc::new(Communicator { api: 7, ranks: Some(8), ..Communicator::default() }));
    let (mut user, mut kernel, mut finished) = (Vec::new(), Vec::new(), Vec::new());
    let (mut assembling, mut reading) = (Duration::ZERO, Duration::ZERO);
    let (mut count, mut early_bytes) = (0u64, 0);
    for pass in 0..=total / PASS {
        user.clear();
        kernel.clear();
        if pass < total / PASS {
            (pass * PASS..(pass + 1) * PASS).for_each(|n| user_records(n, codes, &mut user));
        }
        if pass > 0 {
            ((pass - 1) * PASS..pass * PASS).for_each(|n| kernel_records(n, &mut kernel));
        }
        let start = Instant::now();
        let mut sum = 0u64;
        for record in user.iter().chain(&kernel) {
            sum = record.0.iter().fold(sum, |sum, word| sum.wrapping_mul(31).wrapping_add(*word));
        }
        black_box(sum);
        reading += start.elapsed();
        let start = Instant::now();
        user.iter().for_each(|record| assembler.push(1, record));
        kernel.iter().for_each(|record| assembler.push(2, record));
        assembler.end_of_pass(EPOCH + (pass + 1) * PASS * NS_PER_OPERATION, pass == total / PASS);
        assembler.take_finished(&mut finished);
        assembling += start.elapsed();
        count += finished.len() as u64;
        black_box(&finished);
        finished.clear();
        if pass == (total / PASS) / 10 {
            early_bytes = resident_bytes();
        }
    }
    assert_eq!(count, total, "every operation comes out once");
    assert_eq!(assembler.anomalies().nonzero().count(), 0, "and none is odd");
    let rate = total as f64 / assembling.as_secs_f64();
    println!("operations            {total} of {CHANNELS} channels ({} records each)", 2 + 2 * CHANNELS);
    println!("assembled             {rate:.0} operations/s ({:.0} ns each)", 1e9 / rate);
    println!("reading the records   {:.0} ns an operation", reading.as_nanos() as f64 / total as f64);
    println!("ratio to reading      {:.2}", assembling.as_secs_f64() / reading.as_secs_f64());
    println!(
        "resident              {} KiB after a tenth, {} KiB at the end",
        early_bytes >> 10,
        resident_bytes() >> 10
    );
}
