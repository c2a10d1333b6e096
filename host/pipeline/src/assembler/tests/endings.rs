//! Operations that never end, and what ends them.

use std::sync::Arc;

use collander_event::{Anomaly, EventKind, Flags, RecordFlags, Timing};

use super::kit::{KERNEL, Kit, MS, Op, USER, communicator};

#[test]
fn an_aborted_communicator_closes_its_operations() {
    let mut kit = Kit::new();
    kit.asm.communicator_opened(Arc::new(communicator(1)));
    let started = kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    let t = kit.now;
    kit.channel(started, 0, (t, t + 10));
    kit.kernel(started, 1, t);
    kit.enqueue(&Op::coll(1));
    kit.enqueue(&Op { communicator: 1, ..Op::coll(0) });
    kit.passes(100);
    assert!(kit.done.is_empty());
    kit.asm.communicator_closed(0);
    kit.pass();
    let flags: Vec<_> = kit.done.iter().map(|op| (op.flags.0, op.timing)).collect();
    let both = Flags::ABORTED | Flags::CHANNELS_MISSING;
    assert_eq!(flags, [(both, Timing::GpuSomeChannels), (both, Timing::EnqueueOnly)]);
    assert_eq!((kit.odd(Anomaly::ClosedByFinalize), kit.asm.open()), (2, 1), "the other communicator's is open");
    assert!(kit.done.iter().all(|op| op.algbw.is_none() || op.timing.measures()));
    kit.end();
}

#[test]
fn what_only_settles_is_not_aborted_by_finalize() {
    let mut kit = Kit::new();
    kit.enqueue(&Op::p2p("Send", 1));
    let some = kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    kit.channel(some, 0, (5, 10));
    kit.api_only("Broadcast", RecordFlags::API_ONLY);
    kit.asm.communicator_closed(0);
    kit.pass();
    assert_eq!(kit.done.len(), 3);
    assert!(kit.done.iter().all(|op| !op.flags.has(Flags::ABORTED)));
    assert_eq!(kit.odd(Anomaly::ClosedByFinalize), 0);
    kit.end();
}

#[test]
fn a_hanging_operation_stays_open_until_the_timeout() {
    let mut settings = crate::rules::tests::config(Vec::new());
    settings.drain.operation_timeout = std::time::Duration::from_secs(2);
    let mut kit = Kit::with(settings, communicator(0));
    kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    kit.passes(300);
    let open = kit.asm.open_operations(10);
    assert_eq!((open.len(), open[0].channels_started, open[0].operation.sequence), (1, 0, 0));
    kit.passes(200);
    assert_eq!(kit.done[0].flags.0, Flags::TIMED_OUT | Flags::CHANNELS_MISSING);
    assert_eq!((kit.odd(Anomaly::ClosedByTimeout), kit.done[0].timing), (1, Timing::EnqueueOnly));
    kit.end();
}

#[test]
fn one_without_kernels_closes_when_later_ones_are_over() {
    let mut kit = Kit::new();
    kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    kit.settle();
    assert!(kit.done.is_empty(), "it may be hanging");
    kit.whole(1, MS);
    kit.settle();
    assert_eq!((kit.done[1].sequence, kit.done[1].flags.0), (0, Flags::CHANNELS_MISSING));
    assert_eq!(kit.done[1].timing, Timing::EnqueueOnly);
    kit.end();
}

#[test]
fn another_communicators_progress_says_nothing() {
    let mut kit = Kit::new();
    kit.asm.communicator_opened(Arc::new(communicator(1)));
    kit.enqueue(&Op { communicator: 1, ..Op::coll(0) });
    kit.whole(0, MS);
    kit.settle();
    assert_eq!((kit.done.len(), kit.asm.open()), (1, 1));
    kit.end();
}

#[test]
fn the_same_hash_twice_in_a_process_is_two_communicators() {
    let mut kit = Kit::new();
    let mut twin = communicator(1);
    twin.hash = communicator(0).hash;
    twin.rank = 2;
    kit.asm.communicator_opened(Arc::new(twin));
    kit.whole(0, MS);
    let id = kit.enqueue(&Op { communicator: 1, ..Op::coll(0) });
    kit.quick(id);
    kit.pass();
    let ranks: Vec<_> = kit.done.iter().map(|op| (op.communicator.hash, op.communicator.rank, op.sequence)).collect();
    assert_eq!(ranks, [(0xabc, 1, 0), (0xabc, 2, 0)]);
    assert!(kit.oddities().is_empty(), "no gap, no standing still: {:?}", kit.oddities());
}

#[test]
fn at_the_end_everything_is_closed() {
    let mut kit = Kit::new();
    let id = kit.start(&Op { channels: 2, ..Op::coll(0) });
    kit.kernel(id, 0, 5);
    let done = kit.end();
    assert_eq!(done[0].flags.0, Flags::NEVER_STOPPED | Flags::CHANNELS_MISSING);
    assert_eq!((done[0].timing, done[0].duration_ns), (Timing::Unobservable, None));
}

#[test]
fn an_api_call_that_never_became_an_operation() {
    let mut kit = Kit::new();
    kit.api_only("Broadcast", RecordFlags::API_ONLY);
    assert_eq!(kit.asm.snapshot(kit.now).seen.api, 1);
    kit.passes(3);
    let op = &kit.done[0];
    assert_eq!((op.kind.name(), op.function, op.partner, op.count), ("api", "Broadcast", 2, 100));
    assert_eq!(
        (op.bytes, op.algbw, op.timing, op.user_datatype),
        (Some(400), None, Timing::Unobservable, "ncclFloat32")
    );
    assert_eq!(kit.oddities(), [(Anomaly::Unobservable, 1)]);
    kit.end();
}

#[test]
fn an_api_call_with_its_times() {
    let mut kit = Kit::new();
    let id = kit.api_only("Broadcast", 0);
    kit.stop(USER, id);
    let mut header = collander_event::StartHeader { id, ..Default::default() };
    (header.ticks, header.ordinal) = (kit.tick(), kit.ordinal(USER));
    header.flags = RecordFlags(RecordFlags::API_ONLY);
    let function = kit.asm.names().code_of("Broadcast");
    let payload = collander_event::Payload::Api { stream: 7, count: 100, function, datatype: 0, root: 0, user_tag: 5 };
    kit.push(USER, collander_event::Record::start(header, payload.words()));
    kit.passes(3);
    assert_eq!((kit.done[0].timing, kit.done[0].duration_ns), (Timing::EnqueueOnly, Some(1000)));
    assert_eq!(kit.done[0].user_tag, 5);
    kit.end();
}

#[test]
fn an_operation_that_comes_after_its_api_call_was_written_takes_its_place() {
    let mut kit = Kit::new();
    let api = kit.api_only("AllReduce", RecordFlags::API_ONLY);
    kit.pass();
    let id = kit.enqueue(&Op { parent: api, ring: 3, ..Op::coll(0) });
    let t = kit.now;
    kit.channel(id, 0, (t, t + 10));
    kit.passes(3);
    let seen = kit.asm.snapshot(kit.now).seen;
    assert_eq!((kit.done.len(), seen.api, seen.coll), (1, 0, 1));
    assert_eq!(kit.oddities(), [(Anomaly::ApiJoinedLate, 1)]);
    kit.end();
}

#[test]
fn operations_lost_in_a_ring_are_counted_exactly() {
    let mut kit = Kit::new();
    kit.whole(0, MS);
    for _ in 0..7 {
        kit.ordinal(USER);
    }
    kit.asm.overtaken(USER, 40);
    kit.whole(8, MS);
    kit.asm.ring_ended(USER, 12);
    kit.asm.ring_ended(USER, 12);
    kit.pass();
    let snapshot = kit.asm.snapshot(kit.now);
    assert_eq!((snapshot.seen.unknown, snapshot.ring_overrun, kit.done.len()), (10, 10, 2));
    assert_eq!((kit.odd(Anomaly::RecordsOvertaken), kit.odd(Anomaly::SequenceGap)), (40, 1));
    kit.end();
}

#[test]
fn ordinals_wrap() {
    let mut kit = Kit::new();
    kit.asm.ring_ended(USER, 100_000_000);
    kit.asm.ring_ended(USER, 200_000_000);
    kit.asm.ring_ended(USER, (1 << 28) - 1);
    kit.asm.ring_ended(USER, 1);
    assert_eq!(kit.asm.snapshot(0).ring_overrun, (1 << 28) + 1);
}

#[test]
fn operations_whose_stops_were_lost_close_when_later_ones_are_over() {
    let mut kit = Kit::new();
    let id = kit.start(&Op { channels: 2, ..Op::coll(0) });
    kit.kernel(id, 0, 5);
    kit.asm.overtaken(KERNEL, 3);
    kit.whole(1, MS);
    kit.settle();
    assert_eq!((kit.done.len(), kit.done[1].flags.0), (2, Flags::NEVER_STOPPED | Flags::CHANNELS_MISSING));
    kit.end();
}

#[test]
fn what_lost_its_records_is_not_called_aborted() {
    let mut kit = Kit::new();
    kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    kit.asm.overtaken(KERNEL, 3);
    kit.enqueue(&Op { channels: 2, ..Op::coll(1) });
    kit.asm.communicator_closed(0);
    kit.pass();
    let flags: Vec<_> = kit.done.iter().map(|op| op.flags.0).collect();
    assert_eq!(flags, [Flags::CHANNELS_MISSING, Flags::CHANNELS_MISSING | Flags::ABORTED]);
    kit.end();
}

#[test]
fn stops_of_unknown_events() {
    let mut kit = Kit::new();
    let id = kit.id(USER, EventKind::Coll);
    kit.stop(USER, id);
    kit.passes(4);
    assert_eq!(kit.oddities(), [(Anomaly::UnknownHandle, 1)]);
}
