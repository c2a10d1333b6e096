//! Captured graphs and their replays.

use collander_event::{Anomaly, EventId, Flags, RecordFlags, Timing};

use super::kit::{Kit, Op};

fn replay(kit: &mut Kit, api: EventId) -> EventId {
    kit.enqueue(&Op { parent: api, ring: 3, flags: RecordFlags::NO_API, ..Op::coll(41) })
}

#[test]
fn replays_are_counted_by_us() {
    let mut kit = Kit::new();
    let api = kit.api_only("AllReduce", RecordFlags::GRAPH_CAPTURED);
    kit.passes(3);
    assert!(kit.done.is_empty() && kit.asm.snapshot(0).seen.total() == 0, "a captured call is no operation");
    for _ in 0..3 {
        let id = replay(&mut kit, api);
        let t = kit.now;
        kit.channel(id, 0, (t, t + 10));
        kit.pass();
    }
    let found: Vec<_> = kit.done.iter().map(|op| (op.sequence, op.flags.0, op.user_datatype)).collect();
    let flags = Flags::GRAPH | Flags::REPLAY;
    assert_eq!(found, [0, 1, 2].map(|n| (n, flags, "ncclFloat32")));
    assert_eq!(kit.oddities(), [(Anomaly::SequenceStandsStill, 2)], "NCCL's number stands still");
    kit.end();
}

#[test]
fn a_captured_call_that_is_read_after_its_replay() {
    let mut kit = Kit::new();
    kit.held = Some(Vec::new());
    let api = kit.api_only("AllReduce", RecordFlags::GRAPH_CAPTURED);
    let id = replay(&mut kit, api);
    kit.release(3);
    kit.quick(id);
    kit.pass();
    assert_eq!((kit.done[0].flags.0, kit.done[0].sequence), (Flags::GRAPH | Flags::REPLAY, 0));
    kit.end();
}

#[test]
fn a_replay_without_kernels_is_over_when_the_next_has_begun() {
    let mut kit = Kit::new();
    let api = kit.api_only("AllReduce", RecordFlags::GRAPH_CAPTURED);
    replay(&mut kit, api);
    kit.settle();
    assert!(kit.done.is_empty());
    let second = replay(&mut kit, api);
    kit.pass();
    assert!(kit.done.is_empty(), "its kernels may stand in a ring that was not read");
    kit.settle();
    assert!(kit.done[0].flags.has(Flags::SUPERSEDED));
    assert_eq!((kit.done[0].timing, kit.odd(Anomaly::ClosedByReplay)), (Timing::EnqueueOnly, 1));
    kit.quick(second);
    kit.pass();
    assert!(!kit.done[1].flags.has(Flags::SUPERSEDED));
    kit.end();
}

#[test]
fn replays_in_a_row_whose_kernels_come_late_are_all_measured() {
    let mut kit = Kit::new();
    let api = kit.api_only("AllReduce", RecordFlags::GRAPH_CAPTURED);
    let ids: Vec<_> = (0..100).map(|_| replay(&mut kit, api)).collect();
    kit.passes(2);
    for id in ids {
        let t = kit.now;
        kit.channel(id, 0, (t, t + 10));
    }
    kit.settle();
    assert_eq!(kit.done.iter().filter(|op| op.timing == Timing::Gpu).count(), 100);
    assert_eq!(kit.odd(Anomaly::ClosedByReplay), 0);
    kit.end();
}

#[test]
fn captured_calls_are_bounded() {
    let mut kit = Kit::new();
    (0..70_000).for_each(|_| _ = kit.api_only("AllReduce", RecordFlags::GRAPH_CAPTURED));
    assert_eq!(kit.asm.captured.len(), 65_536);
    assert_eq!(kit.odd(Anomaly::CapturedForgotten), 70_000 - 65_536);
}
