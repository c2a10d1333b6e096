//! Kernel channels and GPU stamps.

use collander_event::{Anomaly, Collective, Detail, EventKind, Flags, Payload, State, Timing};

use super::kit::{KERNEL, Kit, MS, Op, START, USER};

#[test]
fn an_operation_with_all_its_channels() {
    let mut kit = Kit::new();
    let id = kit.enqueue(&Op { channels: 3, ..Op::coll(0) });
    let t = kit.now;
    kit.now += MS;
    kit.channel(id, 0, (t + 1000, t + 500_000));
    kit.channel(id, 1, (t + 2000, t + 600_000));
    kit.channel(id, 2, (t + 500, t + 400_000));
    kit.pass();
    let op = &kit.done[0];
    assert_eq!((op.timing, op.duration_ns, op.longest_channel_ns), (Timing::Gpu, Some(599_500), Some(598_000)));
    assert_eq!((op.gpu_start, op.gpu_stop), (Some(t + 500), Some(t + 600_000)));
    assert_eq!((op.channels, op.channels_seen, op.warps, op.flags.0), (3, 3, 16, 0));
    assert_eq!((op.bytes, op.rank_bytes, op.enqueue_ns), (Some(4000), Some(4000), 1000));
    assert_eq!(op.queued_ns, Some(MS + 2000), "by CPU clocks: start to first kernel event");
    let algbw = 4000.0 / 599_500.0;
    assert_eq!((op.algbw, op.busbw), (Some(algbw), Some(algbw * 1.5)));
    assert_eq!((op.algorithm, op.protocol, op.function), ("RING", "LL", "AllReduce"));
    assert!(kit.oddities().is_empty());
    kit.end();
}

#[test]
fn fewer_channels_than_announced_close_after_the_settle_time() {
    let mut kit = Kit::new();
    let id = kit.enqueue(&Op { channels: 4, ..Op::coll(0) });
    let t = kit.now;
    kit.channel(id, 0, (t, t + 1000));
    kit.passes(40);
    assert!(kit.done.is_empty(), "200 ms are less than the settle time");
    kit.passes(20);
    let op = &kit.done[0];
    assert_eq!((op.timing, op.flags.0, op.channels_seen), (Timing::GpuSomeChannels, Flags::CHANNELS_MISSING, 1));
    assert_eq!(kit.odd(Anomaly::ChannelsMissing), 1);
    kit.end();
}

#[test]
fn zero_channels_stand_for_256() {
    let mut kit = Kit::new();
    let id = kit.enqueue(&Op { channels: 0, ..Op::coll(0) });
    let t = kit.now;
    (0..255).for_each(|channel| kit.channel(id, channel, (t, t + 1000)));
    kit.pass();
    assert!(kit.done.is_empty());
    kit.channel(id, 255, (t, t + 1000));
    kit.pass();
    assert_eq!((kit.done[0].channels, kit.done[0].channels_seen, kit.done[0].timing), (256, 256, Timing::Gpu));
    assert!(kit.oddities().is_empty());
}

#[test]
fn a_transfer_to_oneself_has_no_kernels() {
    let mut kit = Kit::new();
    kit.enqueue(&Op { channels: 2, ..Op::p2p("Send", 1) });
    kit.settle();
    let op = &kit.done[0];
    assert_eq!((op.timing, op.flags.0, op.algbw), (Timing::EnqueueOnly, Flags::SELF_TRANSFER, None));
    assert_eq!((op.duration_ns, op.collective), (Some(1000), Collective::Send));
    assert!(kit.oddities().is_empty(), "{:?}", kit.oddities());
    // If kernels come all the same, they count.
    let id = kit.enqueue(&Op { sequence: 1, ..Op::p2p("Recv", 1) });
    let t = kit.now;
    kit.channel(id, 0, (t, t + 700));
    kit.settle();
    assert_eq!((kit.done[1].timing, kit.done[1].duration_ns), (Timing::Gpu, Some(700)));
}

#[test]
fn kernels_whose_ring_is_read_before_the_operations() {
    let mut kit = Kit::new();
    kit.held = Some(Vec::new());
    let first = kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    let second = kit.enqueue(&Op { channels: 1, ..Op::coll(1) });
    let t = kit.now;
    kit.channel(first, 0, (t, t + 10));
    kit.channel(second, 0, (t, t + 20));
    kit.channel(first, 1, (t, t + 30));
    kit.release(KERNEL);
    kit.pass();
    let mut durations: Vec<_> = kit.done.iter().map(|op| (op.sequence, op.duration_ns, op.timing)).collect();
    durations.sort_unstable();
    assert_eq!(durations, [(0, Some(30), Timing::Gpu), (1, Some(20), Timing::Gpu)]);
    assert!(kit.oddities().is_empty());
    kit.end();
}

#[test]
fn a_parent_one_pass_late_is_waited_for_and_one_that_never_comes_is_counted() {
    let mut kit = Kit::new();
    kit.held = Some(Vec::new());
    let id = kit.enqueue(&Op::coll(0));
    let late = kit.held.take().unwrap();
    let t = kit.now;
    kit.channel(id, 0, (t, t + 10));
    let nobody = kit.id(USER, EventKind::Coll);
    kit.channel(nobody, 0, (t, t + 10));
    kit.pass();
    late.iter().for_each(|(ring, record)| kit.asm.push(*ring, record));
    kit.pass();
    assert_eq!(kit.done.len(), 1);
    assert_eq!(kit.odd(Anomaly::OrphanChild), 0);
    kit.passes(2);
    assert_eq!(
        (kit.odd(Anomaly::OrphanChild), kit.odd(Anomaly::UnknownHandle)),
        (1, 1),
        "its start, and its stop state"
    );
    kit.end();
}

#[test]
fn thousands_are_enqueued_before_the_first_kernel_event() {
    let mut kit = Kit::new();
    let ids: Vec<_> = (0..20_000).map(|n| kit.enqueue(&Op { channels: 2, ..Op::coll(n) })).collect();
    kit.passes(3);
    assert_eq!((kit.asm.open(), kit.done.len()), (20_000, 0));
    for id in ids {
        let t = kit.now;
        kit.channel(id, 0, (t, t + 10));
        kit.channel(id, 1, (t, t + 10));
    }
    kit.pass();
    assert_eq!(kit.done.len(), 20_000);
    assert!(kit.done.iter().all(|op| op.timing == Timing::Gpu));
    assert!(kit.oddities().is_empty());
    kit.end();
}

#[test]
fn stamps_that_are_zero_or_reversed_are_not_used() {
    let mut kit = Kit::new();
    let id = kit.enqueue(&Op { channels: 4, ..Op::coll(0) });
    let t = kit.now;
    kit.channel(id, 0, (t, 0));
    kit.channel(id, 1, (0, t));
    kit.channel(id, 2, (t + 10, t + 5));
    kit.channel(id, 3, (t, t + 100));
    kit.pass();
    assert_eq!((kit.done[0].timing, kit.done[0].duration_ns), (Timing::GpuSomeChannels, Some(100)));
    assert_eq!(kit.oddities(), [(Anomaly::GpuTimerMissing, 2), (Anomaly::GpuTimerReversed, 1)]);
    let id = kit.enqueue(&Op::coll(1));
    kit.channel(id, 0, (0, 0));
    kit.pass();
    assert_eq!((kit.done[1].timing, kit.done[1].duration_ns), (Timing::KernelCpu, Some(1000)));
}

#[test]
fn stamps_of_another_operation_are_not_used() {
    // Far too early, and before what its channel did last; or the very stamps of an operation of another group.
    for again in [false, true] {
        let mut kit = Kit::new();
        let mut old = (0, 0);
        for n in 0..500 {
            let group = kit.id(USER, EventKind::GroupApi);
            let id = kit.enqueue(&Op { group, ..Op::coll(n) });
            let stamps = (kit.now, kit.now + MS);
            kit.now += MS;
            kit.channel(id, 0, stamps);
            if n == 100 {
                old = if again { stamps } else { (stamps.0 + 5, stamps.1 + 5) };
            }
        }
        let group = kit.id(USER, EventKind::GroupApi);
        let id = kit.enqueue(&Op { group, channels: 2, ..Op::coll(500) });
        let t = kit.now;
        kit.now += MS;
        kit.channel(id, 0, old);
        kit.channel(id, 1, (t, t + MS));
        kit.pass();
        let op = kit.done.last().unwrap();
        assert_eq!((op.timing, op.duration_ns), (Timing::GpuSomeChannels, Some(MS)));
        assert!(op.flags.has(Flags::TIMER_MISMATCH));
        assert_eq!(kit.oddities(), [(Anomaly::GpuTimerMismatch, 1)]);
        kit.end();
    }
}

#[test]
fn a_stop_before_its_start() {
    // Two threads: the state's ring is read first, and its clock reads less.
    let mut kit = Kit::new();
    let id = kit.enqueue(&Op::coll(0));
    kit.held = Some(Vec::new());
    kit.now += MS;
    let kernel = kit.kernel(id, 0, START);
    kit.now -= MS / 2;
    kit.state(3, kernel, State::KERNEL_CH_STOP, START + 500);
    kit.release(3);
    kit.pass();
    assert_eq!((kit.done[0].timing, kit.done[0].duration_ns), (Timing::Gpu, Some(500)));
    assert_eq!(kit.oddities(), [(Anomaly::KernelStopBeforeStart, 1)]);
}

#[test]
fn records_after_the_stop() {
    let mut kit = Kit::new();
    let id = kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    let t = kit.now;
    let kernel = kit.kernel(id, 0, t);
    kit.state(KERNEL, kernel, State::KERNEL_CH_STOP, t + 10);
    kit.stop(3, kernel);
    assert!(kit.oddities().is_empty(), "the stop that belongs to the state, from another thread");
    kit.stop(KERNEL, kernel);
    kit.state(KERNEL, kernel, State::KERNEL_CH_STOP, t + 99);
    kit.stop(USER, id);
    kit.channel(id, 1, (t, t + 10));
    kit.channel(id, 1, (t, t + 10));
    kit.stop(USER, id);
    kit.pass();
    assert_eq!((kit.done.len(), kit.done[0].duration_ns), (1, Some(10)));
    assert_eq!(kit.oddities(), [(Anomaly::DoubleStop, 3), (Anomaly::StateAfterStop, 1), (Anomaly::LateChild, 1)]);
    kit.end();
}

#[test]
fn one_channel_twice_and_one_too_many() {
    let mut kit = Kit::new();
    let id = kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    let t = kit.now;
    kit.channel(id, 0, (t, t + 10));
    kit.channel(id, 0, (t, t + 10));
    kit.pass();
    assert!(kit.done.is_empty(), "channel 1 is still to come");
    kit.channel(id, 1, (t, t + 10));
    kit.pass();
    assert_eq!((kit.done[0].channels_seen, kit.done[0].timing), (2, Timing::Gpu));
    assert_eq!(kit.oddities(), [(Anomaly::ChannelsExtra, 1)]);
}

#[test]
fn version_3_has_the_stop_only() {
    let mut kit = Kit::api(3);
    let id = kit.enqueue(&Op { channels: 2, ..Op::coll(0) });
    for channel in 0..2 {
        let kernel = kit.kernel(id, channel, 0);
        kit.now += MS;
        kit.stop(KERNEL, kernel);
    }
    kit.pass();
    let op = &kit.done[0];
    assert_eq!(
        (op.timing, op.duration_ns, op.longest_channel_ns),
        (Timing::KernelCpu, Some(2 * MS + 3000), Some(MS + 1000))
    );
    assert_eq!((op.bytes, op.algbw.is_some(), op.busbw), (Some(4000), true, None), "its ranks are not known");
    assert!(kit.oddities().is_empty(), "{:?}", kit.oddities());
    // Its P2P events do not say how many channels.
    let id = kit.enqueue(&Op { channels: 0, ..Op::p2p("Send", 2) });
    let kernel = kit.kernel(id, 0, 0);
    kit.stop(KERNEL, kernel);
    kit.settle();
    assert_eq!((kit.done[1].timing, kit.done[1].flags.0), (Timing::KernelCpu, 0));
    kit.end();
}

#[test]
fn versions_without_kernel_events_end_by_their_proxies() {
    for api in [1, 2] {
        let mut kit = Kit::api(api);
        kit.enqueue(&Op { channels: 8, ..Op::coll(0) });
        kit.pass();
        assert_eq!((kit.done[0].timing, kit.done[0].flags.0, kit.done[0].algbw), (Timing::EnqueueOnly, 0, None));
        kit.detail = Detail::CHANNELS.union(Detail::PROXY_OPERATIONS);
        let id = kit.enqueue(&Op { channels: 8, ..Op::coll(1) });
        let payload = Payload::ProxyOp { peer: 2, send: true, steps: 1, chunk_bytes: 1 << 19, pid: 1 };
        let proxy = kit.child(EventKind::ProxyOp, id, 0, 0, payload);
        kit.now += MS;
        kit.stop(KERNEL, proxy);
        kit.settle();
        assert_eq!((kit.done[1].timing, kit.done[1].duration_ns), (Timing::ProxyCpu, Some(MS + 1000)));
        assert!(kit.oddities().is_empty(), "{:?}", kit.oddities());
    }
}

#[test]
fn a_timer_of_10_ns_is_detected_and_converted() {
    let mut kit = Kit::new();
    let ticks = |now: u64| (now - START + 77 * MS) / 10;
    for n in 0..100 {
        let id = kit.enqueue(&Op::coll(n));
        let t = kit.now;
        kit.now += MS;
        kit.channel(id, 0, (ticks(t), ticks(t + MS)));
        kit.pass();
    }
    assert_eq!(kit.done.len(), 100, "those before it was known waited");
    assert!(kit.done.iter().all(|op| op.duration_ns == Some(MS) && op.flags.has(Flags::TIMER_TICKS_10NS)));
    assert_eq!(kit.done[0].gpu_stop.unwrap() - kit.done[0].gpu_start.unwrap(), MS / 10, "as NCCL gave them");
    assert!(kit.oddities().is_empty());
}

#[test]
fn whole_channels_are_kept_where_they_are_asked_for() {
    let mut settings = crate::rules::tests::config(Vec::new());
    settings.capture.detail = Detail::CHANNEL_LIST.union(Detail::PHASES);
    let mut kit = Kit::with(settings, super::kit::communicator(0));
    kit.detail = Detail::CHANNELS.union(Detail::PHASES);
    let id = kit.enqueue(&Op::coll(0));
    let t = kit.now;
    let kernel = kit.kernel(id, 5, t);
    let name = kit.asm.names().code_of("reduce");
    let phase = Payload::KernelPhase { timer: t + 1, phase: 3, name };
    let phase = kit.child(EventKind::KernelPhase, kernel, 5, 0, phase);
    kit.state(KERNEL, phase, State::KERNEL_PHASE_STOP, t + 9);
    kit.stop(KERNEL, phase);
    kit.state(KERNEL, kernel, State::KERNEL_CH_STOP, t + 10);
    kit.passes(3);
    let channel = &kit.done[0].channel_list[0];
    assert_eq!((channel.channel, channel.gpu_start, channel.gpu_stop), (5, t, t + 10));
    assert!(channel.cpu_stop_ns > channel.cpu_start_ns);
    assert_eq!((channel.phases.len(), channel.phases[0].name, channel.phases[0].stop), (1, "reduce", t + 9));
    assert!(kit.oddities().is_empty(), "{:?}", kit.oddities());
    kit.end();
}
