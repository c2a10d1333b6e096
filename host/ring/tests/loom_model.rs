//! The ring's protocol under every interleaving that loom finds. `RUSTFLAGS="--cfg loom" cargo test -p collander-ring --release --test loom_model`
#![cfg(loom)]

use collander_event::Record;
use collander_ring::{Cursor, Slot, copy_valid, publish};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;

fn record(n: u64) -> Record {
    let mut record = Record::default();
    record.0[0] = n + 1;
    record.0[1] = (n + 1) * 100;
    record
}

/// A ring of two slots, `records` published, a reader that reads `reads` times meanwhile: what it gets is never torn,
/// in order, and with what it lost adds up.
fn model(records: u64, reads: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let ring = Arc::new((
            Cursor { claim: AtomicU64::new(0), head: AtomicU64::new(0) },
            [Slot([AtomicU64::new(0), AtomicU64::new(0)]), Slot([AtomicU64::new(0), AtomicU64::new(0)])],
        ));
        let writer = {
            let ring = ring.clone();
            loom::thread::spawn(move || {
                for n in 0..records {
                    publish(&ring.0, &ring.1, n, &record(n));
                }
            })
        };
        let (mut next, mut lost, mut got) = (0, 0, Vec::new());
        for _ in 0..reads {
            let copied = copy_valid(&ring.0, &ring.1, next, 8, &mut got);
            next = copied.next;
            lost += copied.lost;
        }
        writer.join().unwrap();
        let copied = copy_valid(&ring.0, &ring.1, next, 8, &mut got);
        lost += copied.lost;
        assert_eq!(got.len() as u64 + lost, records);
        let mut last = 0;
        for record in &got {
            assert_eq!(record.0[1], record.0[0] * 100, "torn");
            assert!(record.0[0] > last, "order");
            last = record.0[0];
        }
    });
}

#[test]
fn never_torn_when_not_full() {
    model(2, 2);
}

#[test]
fn never_torn_when_overtaken() {
    model(4, 1);
}
