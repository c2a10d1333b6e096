//! Memory bounds.

use std::sync::Arc;

use collander_event::{Anomaly, EventKind};

use super::kit::{Kit, MS, Op, USER, communicator};

#[test]
fn too_many_open_push_out_the_oldest() {
    let mut settings = crate::rules::tests::config(Vec::new());
    settings.drain.max_open = 1024;
    let mut kit = Kit::with(settings, communicator(0));
    let ids: Vec<_> = (0..5000).map(|n| kit.enqueue(&Op::coll(n))).collect();
    assert!(kit.asm.open() <= 1024);
    let evicted = kit.odd(Anomaly::EvictedOpen);
    assert_eq!(evicted + kit.asm.open() as u64, 5000);
    assert_eq!(kit.asm.open_operations(1)[0].operation.sequence, evicted, "the oldest went");
    // Their kernels come all the same.
    ids.iter().for_each(|id| kit.quick(*id));
    kit.passes(5);
    assert_eq!(kit.done.len() as u64, 5000 - evicted);
    let late = kit.odd(Anomaly::LateChild) + kit.odd(Anomaly::OrphanChild);
    assert_eq!(late, evicted, "closed, or closed so long ago that it is not known any more");
    assert_eq!(kit.asm.snapshot(0).evicted, evicted);
    kit.end();
}

#[test]
fn orphans_are_bounded() {
    let mut settings = crate::rules::tests::config(Vec::new());
    settings.drain.max_orphans = 1024;
    let mut kit = Kit::with(settings, communicator(0));
    for _ in 0..5000 {
        let parent = kit.id(USER, EventKind::Coll);
        kit.quick(parent);
    }
    assert_eq!(kit.asm.waiting.len(), 1024);
    assert_eq!(kit.odd(Anomaly::EvictedOrphan), 10_000 - 1024);
    kit.passes(4);
    let counted = kit.odd(Anomaly::OrphanChild) + kit.odd(Anomaly::UnknownHandle) + kit.odd(Anomaly::EvictedOrphan);
    assert_eq!(counted, 10_000);
    assert!(kit.asm.waiting.is_empty());
}

#[test]
fn slots_are_used_again() {
    let mut kit = Kit::new();
    for round in 0..200 {
        (0..50).for_each(|n| _ = kit.whole(round * 50 + n, MS / 100));
        kit.pass();
    }
    assert_eq!(kit.done.len(), 10_000);
    assert!(kit.asm.ops.items.len() <= 2 && kit.asm.children.items.len() <= 2);
    assert_eq!(kit.asm.table.overflowed(), 0);
    assert!(kit.asm.watched.is_empty() && kit.asm.closing.is_empty());
}

#[test]
fn ten_thousand_communicators_opened_and_closed() {
    let mut kit = Kit::new();
    for ordinal in 1..=10_000 {
        kit.asm.communicator_opened(Arc::new(communicator(ordinal)));
        let id = kit.enqueue(&Op { communicator: ordinal, ..Op::coll(0) });
        if ordinal % 2 == 0 {
            kit.quick(id);
        }
        kit.asm.communicator_closed(ordinal);
    }
    kit.pass();
    assert_eq!((kit.done.len(), kit.odd(Anomaly::ClosedByFinalize)), (10_000, 5000));
    assert!(kit.asm.communicators.indexes().count() <= 2);
    kit.end();
}

#[test]
fn open_operations_are_the_oldest_in_order() {
    let mut kit = Kit::new();
    (0..100).for_each(|n| _ = kit.enqueue(&Op::coll(n)));
    let open: Vec<_> = kit.asm.open_operations(5).iter().map(|open| open.operation.sequence).collect();
    assert_eq!(open, [0, 1, 2, 3, 4]);
    assert_eq!((kit.asm.open_operations(0).len(), kit.asm.open_operations(1000).len()), (0, 100));
    kit.end();
}
