//! Names, sizes, sequence numbers, tags.

use std::sync::Arc;

use collander_event::{Anomaly, Collective, Communicator, Datatype, Flags, Payload, Record, RecordFlags, Timing};

use super::kit::{Kit, MS, Op, USER, communicator};

/// The operation, over after 1000 ns.
fn run(kit: &mut Kit, op: &Op) {
    let id = kit.enqueue(op);
    let t = kit.now;
    kit.channel(id, 0, (t, t + 1000));
    kit.pass();
}

#[test]
fn allgather_counts_bytes_as_int8_and_its_api_call_has_the_type() {
    let mut kit = Kit::new();
    let op = Op { function: "AllGather", datatype: "ncclInt8", api_datatype: "ncclBfloat16", ..Op::coll(0) };
    run(&mut kit, &op);
    let op = &kit.done[0];
    assert_eq!((op.collective, op.datatype, op.user_datatype), (Collective::AllGather, Datatype::Int8, "ncclBfloat16"));
    assert_eq!((op.rank_bytes, op.bytes, op.algbw, op.busbw), (Some(1000), Some(4000), Some(4.0), Some(3.0)));
}

#[test]
fn reduce_scatter_counts_what_it_receives() {
    let mut kit = Kit::new();
    run(&mut kit, &Op { function: "ReduceScatter", ..Op::coll(0) });
    assert_eq!((kit.done[0].rank_bytes, kit.done[0].bytes, kit.done[0].busbw), (Some(4000), Some(16_000), Some(12.0)));
}

#[test]
fn an_unknown_datatype_has_no_bytes_unless_the_api_call_knows_it() {
    let mut kit = Kit::new();
    run(&mut kit, &Op { datatype: "Unknown", ..Op::coll(0) });
    run(&mut kit, &Op { datatype: "Unknown", api_datatype: "ncclUint8", ..Op::coll(1) });
    let op = &kit.done[0];
    assert_eq!((op.datatype_text, op.bytes, op.rank_bytes, op.algbw, op.busbw), ("Unknown", None, None, None, None));
    assert_eq!((op.timing, op.duration_ns), (Timing::Gpu, Some(1000)));
    assert_eq!(kit.done[1].bytes, Some(1000));
    assert_eq!(kit.oddities(), [(Anomaly::UnknownDatatype, 1)]);
}

#[test]
fn without_the_number_of_ranks_busbw_is_null_unless_the_configuration_knows() {
    for (assumed, expected) in
        [(0, (None, None, Some(4.0), None)), (8, (Some(32_000), Some(28.0), Some(4.0), Some(7.0)))]
    {
        let mut settings = crate::rules::tests::config(Vec::new());
        settings.capture.assume_ranks = assumed;
        let mut kit = Kit::with(settings, Communicator { api: 4, ranks: None, ..communicator(0) });
        run(&mut kit, &Op { function: "ReduceScatter", ..Op::coll(0) });
        run(&mut kit, &Op::coll(0));
        let (scatter, reduce) = (&kit.done[0], &kit.done[1]);
        assert_eq!((scatter.bytes, scatter.busbw, reduce.algbw, reduce.busbw), expected);
    }
}

#[test]
fn version_1_to_3_learn_their_communicator_late() {
    let mut kit = Kit::with(
        crate::rules::tests::config(Vec::new()),
        Communicator { api: 3, hash: 0, rank: -1, ranks: None, ..communicator(0) },
    );
    let id = kit.enqueue(&Op { channels: 1, ..Op::p2p("Send", 1) });
    kit.asm.communicator_updated(Arc::new(Communicator { api: 3, ranks: None, ..communicator(0) }));
    let kernel = kit.kernel(id, 0, 0);
    kit.stop(super::kit::KERNEL, kernel);
    kit.settle();
    assert_eq!((kit.done[0].communicator.hash, kit.done[0].communicator.rank), (0xabc, 1));
}

#[test]
fn sequence_numbers_that_stand_still_or_jump_are_counted() {
    let mut kit = Kit::new();
    for (function, sequence) in
        [("AllReduce", 0), ("AllGather", 0), ("AllReduce", 1), ("AllReduce", 1), ("AllGather", 5), ("AllGather", 6)]
    {
        run(&mut kit, &Op { function, datatype: "ncclInt8", ..Op::coll(sequence) });
    }
    assert_eq!(kit.done.len(), 6);
    assert_eq!(kit.oddities(), [(Anomaly::SequenceStandsStill, 1), (Anomaly::SequenceGap, 1)]);
}

#[test]
fn tags_and_variants_come_in_extensions() {
    let mut kit = Kit::new();
    let id = kit.start(&Op { flags: RecordFlags::EXTENDED, ..Op::coll(0) });
    let variant = kit.asm.names().code_of("kernel v2");
    let words = Payload::extension_words(0xfeed, variant, 0, 0, 0, 0, 3);
    let ticks = kit.tick();
    kit.push(USER, Record::extension(ticks, id, words));
    kit.stop(USER, id);
    kit.quick(id);
    kit.pass();
    assert_eq!((kit.done[0].user_tag, kit.done[0].kernel_variant), (0xfeed, "kernel v2"));
    assert!(kit.oddities().is_empty());
}

#[test]
fn symmetric_kernels_without_kernel_events_are_unobservable_not_stalled() {
    let mut kit = Kit::new();
    kit.enqueue(&Op { flags: RecordFlags::SYMMETRIC | RecordFlags::IN_PLACE, ..Op::coll(0) });
    kit.settle();
    let op = &kit.done[0];
    assert_eq!((op.timing, op.duration_ns, op.algbw), (Timing::Unobservable, None, None));
    assert_eq!(op.flags.0, Flags::SYMMETRIC | Flags::IN_PLACE);
    assert_eq!(kit.oddities(), [(Anomaly::Unobservable, 1)]);
    // With kernel events (v7's phases) they are like others.
    run(&mut kit, &Op { flags: RecordFlags::SYMMETRIC, ..Op::coll(1) });
    assert_eq!(kit.done[1].timing, Timing::Gpu);
}

#[test]
fn a_group_of_another_communicator_and_one_nobody_opened() {
    let mut kit = Kit::new();
    let group = kit.id(USER, collander_event::EventKind::GroupApi);
    run(&mut kit, &Op { group, communicator: 9, ..Op::coll(0) });
    assert_eq!((kit.done[0].group, kit.done[0].communicator.ordinal, kit.done[0].busbw), (group.local(), 9, None));
    kit.asm.communicator_opened(Arc::new(communicator(9)));
    run(&mut kit, &Op { communicator: 9, ..Op::coll(1) });
    assert_eq!(kit.done[1].communicator.ranks, Some(4));
    kit.now += MS;
    kit.end();
}
