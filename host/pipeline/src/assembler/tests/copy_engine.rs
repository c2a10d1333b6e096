//! Copy-engine collectives (v6 and later): CPU times, or none.

use collander_event::{Anomaly, Detail, EventKind, Payload, Record, State, Timing};

use super::kit::{KERNEL, Kit, MS, Op, USER};

fn start(kit: &mut Kit) -> collander_event::EventId {
    let id = kit.start(&Op { kind: EventKind::CeColl, function: "AllGather", ..Op::coll(0) });
    let strategy = kit.asm.names().code_of("MULTICAST");
    let words = Payload::extension_words(0, 0, strategy, 4, 2, 1, 3);
    let ticks = kit.tick();
    kit.push(USER, Record::extension(ticks, id, words));
    id
}

#[test]
fn timed_by_its_own_states() {
    let mut kit = Kit::new();
    let id = start(&mut kit);
    kit.state(USER, id, State(25), 0);
    kit.stop(USER, id);
    kit.passes(100);
    assert!(kit.done.is_empty());
    kit.state(KERNEL, id, State(26), 0);
    kit.pass();
    let op = &kit.done[0];
    assert_eq!(
        (op.kind.name(), op.timing, op.sync_strategy, op.channels),
        ("copy_engine", Timing::KernelCpu, "MULTICAST", 0)
    );
    assert!(op.duration_ns > Some(500 * MS) && op.algbw.is_some());
    assert!(kit.oddities().is_empty());
    assert_eq!(kit.asm.snapshot(0).seen.copy_engine, 1);
    kit.end();
}

#[test]
fn timed_by_its_syncs_and_batches() {
    let mut kit = Kit::new();
    kit.detail = Detail::PHASES;
    let id = start(&mut kit);
    kit.stop(USER, id);
    let sync = kit.child(EventKind::CeSync, id, 0, 0, Payload::CeSync { complete: false, ranks: 4 });
    kit.stop(KERNEL, sync);
    let batch = Payload::CeBatch { operations: 4, bytes: 100, intra_sync: false };
    let batch = kit.child(EventKind::CeBatch, id, 0, 0, batch);
    kit.state(KERNEL, batch, State(29), 0);
    kit.now += MS;
    kit.state(KERNEL, batch, State(30), 0);
    kit.stop(KERNEL, batch);
    kit.settle();
    assert_eq!((kit.done[0].timing, kit.done[0].duration_ns), (Timing::KernelCpu, Some(MS + 5000)));
    assert!(kit.oddities().is_empty(), "{:?}", kit.oddities());
    kit.end();
}

#[test]
fn without_either_it_is_unobservable_and_no_stall() {
    let mut kit = Kit::new();
    let id = start(&mut kit);
    kit.stop(USER, id);
    kit.settle();
    assert_eq!((kit.done[0].timing, kit.done[0].duration_ns, kit.done[0].busbw), (Timing::Unobservable, None, None));
    assert_eq!(kit.oddities(), [(Anomaly::Unobservable, 1)]);
    kit.end();
}
