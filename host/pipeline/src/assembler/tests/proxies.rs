//! Proxy operations and steps; other processes (PXN).

use collander_event::{Anomaly, Detail, EventId, EventKind, Flags, Payload, RecordFlags, State, Timing, Waits};

use super::kit::{KERNEL, Kit, MS, Op, USER};

const SEND: Payload = Payload::ProxyOp { peer: 3, send: true, steps: 2, chunk_bytes: 4096, pid: 77 };
const RECEIVE: Payload = Payload::ProxyOp { peer: 2, send: false, steps: 1, chunk_bytes: 4096, pid: 77 };

fn kit(lists: Detail) -> Kit {
    let mut settings = crate::rules::tests::config(Vec::new());
    settings.capture.detail = Detail::CHANNELS.union(Detail::PROXY_STEPS).union(lists);
    let mut kit = Kit::with(settings, super::kit::communicator(0));
    kit.detail = Detail(Detail::CHANNELS.0 | Detail::PROXY_OPERATIONS.0 | Detail::PROXY_STEPS.0);
    kit
}

/// States with the time that passes before each, then the stop.
fn step(kit: &mut Kit, proxy: EventId, states: &[(State, u64, u64)], before_stop: u64) {
    let id = kit.child(EventKind::ProxyStep, proxy, 0, 0, Payload::ProxyStep { step: 0 });
    for (state, wait, bytes) in states {
        kit.now += wait - 1000;
        kit.state(KERNEL, id, *state, *bytes);
    }
    kit.now += before_stop - 1000;
    kit.stop(KERNEL, id);
}

#[test]
fn steps_become_sums() {
    for lists in [Detail(0), Detail::STEP_LIST] {
        let mut kit = kit(lists);
        let id = kit.enqueue(&Op::coll(0));
        let send = kit.child(EventKind::ProxyOp, id, 4, 0, SEND);
        kit.state(KERNEL, send, State::PROXY_OP_IN_PROGRESS, 0);
        for _ in 0..2 {
            let states = [
                (State::STEP_SEND_GPU_WAIT, 1000, 999),
                (State::STEP_SEND_PEER_WAIT, 10_000, 999),
                (State::STEP_SEND_WAIT, 20_000, 4096),
            ];
            step(&mut kit, send, &states, 40_000);
        }
        let receive = kit.child(EventKind::ProxyOp, id, 5, 0, RECEIVE);
        let states = [
            (State::STEP_RECV_WAIT, 1000, 999),
            (State::STEP_RECV_FLUSH_WAIT, 70_000, 8192),
            (State::STEP_RECV_GPU_WAIT, 3000, 8192),
        ];
        step(&mut kit, receive, &states, 5000);
        let t = kit.now;
        kit.channel(id, 0, (t, t + 10));
        kit.stop(KERNEL, send);
        kit.stop(KERNEL, receive);
        kit.passes(3);
        let op = &kit.done[0];
        let waits = Waits { gpu: 25_000, peer: 40_000, wire: 150_000, flush: 3000 };
        assert_eq!((op.waits, op.sent_bytes, op.received_bytes), (Some(waits), 8192, 8192));
        assert_eq!((op.proxy_operations, op.proxy_steps, op.timing), (2, 3, Timing::Gpu));
        if lists == Detail(0) {
            assert!(op.proxies.is_empty());
        } else {
            let proxy = &op.proxies[0];
            assert_eq!((proxy.channel, proxy.peer, proxy.send, proxy.steps, proxy.steps_done), (4, 3, true, 2, 2));
            assert_eq!((proxy.bytes, proxy.step_list.len(), proxy.step_list[1].bytes), (8192, 2, 4096));
            assert!(proxy.in_progress_ns > 0 && proxy.stop_ns > proxy.start_ns);
            assert_eq!(op.proxies[1].waits, Waits { gpu: 5000, peer: 0, wire: 70_000, flush: 3000 });
        }
        assert!(kit.oddities().is_empty(), "{:?}", kit.oddities());
        kit.end();
    }
}

#[test]
fn before_version_4_there_is_no_peer_wait() {
    let mut kit = kit(Detail(0));
    let id = kit.enqueue(&Op::coll(0));
    let send = kit.child(EventKind::ProxyOp, id, 0, 0, SEND);
    step(&mut kit, send, &[(State::STEP_SEND_GPU_WAIT, 1000, 0), (State::STEP_SEND_WAIT, 9000, 10)], 2000);
    kit.stop(KERNEL, send);
    let open = kit.asm.open_operations(9);
    assert_eq!(open[0].operation.waits, Some(Waits { gpu: 9000, peer: 0, wire: 2000, flush: 0 }));
    assert!(open[0].last_proxy_ns.is_some());
}

#[test]
fn proxies_may_stop_after_the_last_kernel_and_start_after_its_stop() {
    let mut kit = kit(Detail(0));
    let id = kit.enqueue(&Op::coll(0));
    let send = kit.child(EventKind::ProxyOp, id, 0, 0, SEND);
    let t = kit.now;
    kit.channel(id, 0, (t, t + 10));
    kit.passes(20);
    assert!(kit.done.is_empty(), "its proxy operation is not over");
    kit.stop(KERNEL, send);
    kit.pass();
    let straggler = kit.child(EventKind::ProxyOp, id, 1, 0, SEND);
    kit.passes(10);
    assert!(kit.done.is_empty(), "a straggler came within two passes");
    step(&mut kit, straggler, &[(State::STEP_SEND_WAIT, 1000, 10)], 2000);
    kit.stop(KERNEL, straggler);
    kit.passes(3);
    assert_eq!((kit.done[0].proxy_operations, kit.done[0].sent_bytes), (2, 10));
    kit.end();
}

#[test]
fn what_never_stops_is_counted() {
    let mut kit = kit(Detail::PROXY_LIST);
    let id = kit.enqueue(&Op::coll(0));
    let send = kit.child(EventKind::ProxyOp, id, 0, 0, SEND);
    kit.child(EventKind::ProxyStep, send, 0, 0, Payload::ProxyStep { step: 0 });
    kit.asm.communicator_closed(0);
    kit.pass();
    assert!(kit.done[0].flags.has(Flags::ABORTED));
    assert_eq!((kit.done[0].proxies[0].stop_ns, kit.done[0].proxies[0].steps_done), (0, 0));
    assert_eq!((kit.odd(Anomaly::ProxyNeverStopped), kit.odd(Anomaly::StepNeverStopped)), (1, 1));
    assert_eq!(kit.odd(Anomaly::ClosedByFinalize), 1);
    kit.end();
}

#[test]
fn proxies_of_another_process_are_detached() {
    let mut kit = kit(Detail(0));
    let id = kit.enqueue(&Op::coll(0));
    // Its parent is a handle of the other process.
    let foreign = kit.child(EventKind::ProxyOp, EventId(0), 0, RecordFlags::FOREIGN_PARENT, SEND);
    step(&mut kit, foreign, &[(State::STEP_SEND_WAIT, 1000, 10)], 2000);
    kit.stop(KERNEL, foreign);
    // A step whose parent is foreign.
    let step =
        kit.child(EventKind::ProxyStep, EventId(0), 0, RecordFlags::FOREIGN_PARENT, Payload::ProxyStep { step: 0 });
    kit.stop(KERNEL, step);
    // Ours, posted by another process.
    let posted = kit.child(EventKind::ProxyOp, id, 0, RecordFlags::NULL_OR_FOREIGN, SEND);
    kit.stop(KERNEL, posted);
    let t = kit.now;
    kit.channel(id, 0, (t, t + 10));
    kit.passes(5);
    assert_eq!((kit.done.len(), kit.done[0].proxy_operations), (1, 1));
    assert!(kit.done[0].flags.has(Flags::OTHER_PROCESS));
    assert_eq!(kit.oddities(), [(Anomaly::ForeignParent, 1), (Anomaly::ForeignProxy, 2)]);
    kit.end();
}

#[test]
fn an_operation_with_a_foreign_parent() {
    let mut kit = Kit::new();
    let id = kit.enqueue(&Op { flags: RecordFlags::FOREIGN_PARENT, ..Op::coll(0) });
    let t = kit.now;
    kit.channel(id, 0, (t, t + 10));
    kit.pass();
    assert!(kit.done[0].flags.has(Flags::OTHER_PROCESS));
    assert_eq!(kit.oddities(), [(Anomaly::ForeignParent, 1)]);
}

#[test]
fn states_that_do_not_belong() {
    let mut kit = kit(Detail(0));
    let id = kit.enqueue(&Op::coll(0));
    let send = kit.child(EventKind::ProxyOp, id, 0, 0, SEND);
    let kernel = kit.kernel(id, 0, 1);
    kit.state(KERNEL, send, State(62), 0);
    kit.state(KERNEL, kernel, State::STEP_SEND_WAIT, 0);
    kit.state(USER, id, State::KERNEL_CH_STOP, 0);
    assert_eq!(kit.oddities(), [(Anomaly::UnexpectedState, 3)]);
    kit.now += MS;
    kit.end();
}
