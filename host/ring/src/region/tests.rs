use collander_event::{Detail, EventId, EventKind, State};

use super::*;
use crate::Image;

fn record(n: u64) -> Record {
    Record([n, n.wrapping_mul(3), n ^ 0xffff, n, n << 1, !n, n + 7, n])
}

#[test]
fn a_reader_that_is_overtaken_knows_how_many_it_lost() {
    let region = Region::create(1 << 20, 1).expect("memory");
    let mut producer = region.acquire(64 << 10).expect("ring");
    let capacity = region.capacity(0);
    assert_eq!(capacity, 1024);
    let mut reader = RingReader::default();
    let mut out = Vec::new();
    for n in 0..capacity + 10 {
        producer.push(&record(n));
    }
    let lost = region.read(0, &mut reader, usize::MAX, &mut out);
    // The slot of the very last claim cannot be told from one being written: exactly the overwritten ones are lost.
    assert_eq!(lost, 10);
    assert_eq!(out.len() as u64, capacity);
    assert!(out.iter().zip(10..).all(|(got, n)| *got == record(n)));
    assert_eq!(region.read(0, &mut reader, usize::MAX, &mut out), 0);
}

#[test]
fn two_threads_never_show_a_torn_record() {
    let region = Region::create(1 << 20, 2).expect("memory");
    let mut producer = region.acquire(64 << 10).expect("ring");
    const RECORDS: u64 = if cfg!(debug_assertions) { 300_000 } else { 5_000_000 };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..RECORDS {
                producer.push(&record(n));
            }
            producer.retire();
        });
        let mut reader = RingReader::default();
        let (mut out, mut lost, mut seen, mut next) = (Vec::new(), 0, 0u64, 0u64);
        while reader.next < RECORDS {
            out.clear();
            lost += region.read(0, &mut reader, 4096, &mut out);
            for got in &out {
                assert_eq!(*got, record(got.0[0]), "torn");
                assert!(got.0[0] >= next, "order");
                next = got.0[0] + 1;
            }
            seen += out.len() as u64;
        }
        assert_eq!(seen + lost, RECORDS);
    });
}

#[test]
fn memory_runs_short_gracefully_and_rings_are_used_again() {
    let bound = 64 << 20;
    let region = Region::create(bound, 3).expect("memory");
    let mut producers = Vec::new();
    let mut sizes = Vec::new();
    while let Some(producer) = region.acquire(16 << 20) {
        sizes.push(region.capacity(producer.ring() as usize) * 64);
        producers.push(producer);
    }
    assert_eq!(sizes[0], 16 << 20);
    assert!(sizes.windows(2).all(|w| w[1] <= w[0]), "{sizes:?}");
    assert_eq!(sizes.len(), RINGS, "one for each thread that may come");
    assert!(sizes.iter().sum::<u64>() <= bound, "{sizes:?}");
    let mut producer = producers.remove(0);
    let first = producer.next_counter();
    producer.push(&record(1));
    let ring = producer.ring() as usize;
    producer.retire();
    let mut reader = RingReader::default();
    region.recycle(ring, &reader);
    assert!(region.acquire(1 << 20).is_none(), "not before it is read");
    let mut out = Vec::new();
    region.read(ring, &mut reader, 10, &mut out);
    region.recycle(ring, &reader);
    let mut again = region.acquire(1 << 20).expect("recycled");
    assert_eq!(again.ring() as usize, ring);
    assert!(again.next_counter() > first, "ids are never given twice");
}

#[test]
fn names_are_kept_as_they_are() {
    let region = Region::create(1 << 20, 4).expect("memory");
    let code = region.intern(b"AllReduce");
    assert_eq!(region.intern(b"AllReduce"), code);
    assert_ne!(region.intern(b"allreduce"), code);
    let odd = region.intern(&[0xff, b'x']);
    let long = region.intern(&[b'y'; 500]);
    let mut table = NameTable::default();
    region.learn_names(&mut table);
    assert_eq!(table.text(code), "AllReduce");
    assert_eq!(table.text(odd), "\u{fffd}x");
    assert_eq!(table.text(long).len(), crate::NAME_BYTES);
    for n in 0..400 {
        let _ = region.intern(format!("name {n}").as_bytes());
    }
    let lost = region.stats().names_lost;
    assert!(lost > 0, "names that did not fit are counted");
    assert_eq!(region.intern(b"one more"), 255);
    assert_eq!(region.stats().names_lost, lost + 1);
    assert_eq!(region.intern(b"AllReduce"), code);
}

#[test]
fn an_image_shows_what_the_process_wrote_and_can_be_saved() {
    let region = Region::create(1 << 20, 0x123).expect("memory");
    let mut producer = region.acquire(64 << 10).expect("ring");
    let id = EventId::new(0x123, producer.ring(), producer.next_counter(), Detail(1), EventKind::Coll);
    producer.push(&Record::stop(42, id));
    producer.push(&Record::state(43, id, State::KERNEL_CH_STOP, 9, Default::default()));
    let communicator = Communicator {
        ordinal: 3,
        hash: 0xabcd,
        name: "données \u{fffd}".into(),
        rank: 5,
        ranks: Some(8),
        api: 7,
        ..Default::default()
    };
    region.write_communicator(&communicator, true);
    region.calibrate(Calibration { ticks: 1, unix_ns: 2, ns_per_tick: 0.5 });
    let image = Image::from_descriptor_of_self(region).expect("image");
    let check = |image: &Image| {
        assert_eq!(image.pid(), std::process::id());
        assert_eq!(image.nonce(), 0x123);
        assert_eq!(image.calibration(), Calibration { ticks: 1, unix_ns: 2, ns_per_tick: 0.5 });
        assert_eq!(image.communicators(), vec![(communicator.clone(), true)]);
        let records = image.records();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].1.len(), 2);
        assert_eq!(records[0].1[0], Record::stop(42, id));
    };
    check(&image);
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("image");
    image.save(&path).expect("save");
    check(&Image::from_file(&path).expect("load"));
    // Cut and damaged files are refused or read as empty, never a crash.
    let bytes = std::fs::read(&path).expect("read");
    for (cut, at, value) in [(100, 0, 0u8), (bytes.len(), 0, 1), (bytes.len(), 8, 99), (bytes.len() - 1, 0, b'C')] {
        let mut damaged = bytes[..cut].to_vec();
        damaged[at] = value;
        std::fs::write(&path, &damaged).expect("write");
        assert!(Image::from_file(&path).is_err(), "cut {cut} at {at}");
    }
    let mut noise = bytes.clone();
    for (n, byte) in noise[4096..DATA_OFFSET].iter_mut().enumerate() {
        *byte = (n as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3];
    }
    std::fs::write(&path, &noise).expect("write");
    let image = Image::from_file(&path).expect("header is whole");
    let _ = (image.records(), image.names(), image.communicators());
}
