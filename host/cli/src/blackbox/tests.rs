//! A black box of this very process, saved and read again.

use collander_event::{
    Calibration, Communicator, Detail, EventId, EventKind, Payload, Record, RecordFlags, StartHeader, State,
};
use collander_ring::{Image, Region};

use super::*;
use crate::output::Paint;

const NONCE: u16 = 77;

/// One AllReduce that ended, one of whose two channels the second never came to an end, and one that has only started.
fn fill() {
    let region = Region::create(1 << 20, NONCE).unwrap();
    region.calibrate(Calibration { ticks: 0, unix_ns: 1_000_000_000_000, ns_per_tick: 1.0 });
    let communicator = Communicator {
        ordinal: 0,
        hash: 0xabcd_ef01_2345_6789,
        name: "DP Group 0".into(),
        rank: 3,
        ranks: Some(8),
        nodes: Some(1),
        api: 5,
        opened_ns: 1_000_000_000_000,
        ..Communicator::default()
    };
    region.write_communicator(&communicator, true);
    let (function, datatype) = (region.intern(b"AllReduce"), region.intern(b"ncclFloat32"));
    let (algorithm, protocol) = (region.intern(b"RING"), region.intern(b"SIMPLE"));
    let mut ring = region.acquire(1 << 16).unwrap();
    for (n, channels_ended) in [2_u64, 1, 0].into_iter().enumerate() {
        let start = n as u64 * 1_000_000;
        let id = |counter, kind| EventId::new(NONCE, ring.ring(), counter, Detail::CHANNELS, kind);
        let operation = id(n as u64 * 10 + 1, EventKind::Coll);
        let header = StartHeader { ticks: start, id: operation, channels: 2, warps: 16, ..StartHeader::default() };
        let payload = Payload::Coll {
            sequence: n as u64,
            count: 1 << 20,
            function,
            datatype,
            algorithm,
            protocol,
            root: -1,
            group: EventId(0),
            api_datatype: 0,
        };
        let kernels: Vec<EventId> = (0..2).map(|c| id(n as u64 * 10 + 2 + c, EventKind::KernelCh)).collect();
        let ordinal = ring.next_ordinal();
        ring.push(&Record::start(StartHeader { ordinal, ..header }, payload.words()));
        ring.push(&Record::stop(start + 1_000, operation));
        if n == 2 {
            continue;
        }
        for (channel, kernel) in kernels.iter().enumerate() {
            let timer = Payload::KernelCh { timer: 5_000_000 + start };
            let header = StartHeader {
                ticks: start + 10_000,
                id: *kernel,
                parent: operation,
                channels: channel as u8,
                ..StartHeader::default()
            };
            ring.push(&Record::start(header, timer.words()));
            if (channel as u64) < channels_ended {
                let stop = 5_000_000 + start + 200_000;
                let ticks = start + 210_000;
                ring.push(&Record::state(ticks, *kernel, State::KERNEL_CH_STOP, stop, RecordFlags(0)));
                ring.push(&Record::stop(ticks, *kernel));
            }
        }
    }
}

#[test]
fn the_last_records_become_operations_and_what_is_open_stays_open() {
    fill();
    let image = Image::open_pid(std::process::id()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("image.bin");
    image.save(&file).unwrap();
    for image in [image, Image::from_file(&file).unwrap()] {
        let dump = Dump::of(&image, None).unwrap();
        let states: Vec<(u64, bool, u64)> = dump.operations.iter().map(|o| (o.seq, o.open, o.age_ns)).collect();
        assert_eq!(states, [(0, false, 2_001_000), (1, true, 1_001_000), (2, true, 1_000)]);
        assert_eq!((dump.operations[0].duration_ns, dump.operations[0].timing), (Some(200_000), "gpu"));
        assert_eq!((dump.operations[1].channels_started, dump.operations[1].channels_ended), (Some(2), Some(1)));
        let ui = Ui { json: false, paint: Paint::PLAIN, width: None, progress: false };
        let text = text(&dump, &ui);
        assert!(text.contains("DP Group 0 abcdef"), "{text}");
        assert!(text.contains("1 of 2 of 2 channels ended"), "{text}");
        assert!(text.contains("3 operations, 2 of them open"), "{text}");
    }
    let last = Dump::of(&Image::from_file(&file).unwrap(), Some(1)).unwrap();
    assert_eq!((last.operations.len(), last.left_out, last.operations[0].seq), (1, 2, 2));
}
