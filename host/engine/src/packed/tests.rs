use std::sync::Arc;

use collander_event::{
    Channel, Collective, Communicator, Datatype, Flags, OpKind, Operation, Phase, ProxyOperation, ProxyStep, Timing,
    Waits,
};

use super::Packed;

// The guests' own view, from the same layout.
#[path = "../../../../sdk/rust/src/packed.rs"]
#[allow(unused, unreachable_pub, reason = "the whole file of the SDK, of which a part is used")]
mod sdk;

fn operation() -> Operation {
    Operation {
        id: 77,
        kind: OpKind::InferredGroup,
        communicator: Arc::new(Communicator { ordinal: u32::MAX, ..Communicator::default() }),
        collective: Collective::WaitSignal,
        datatype: Datatype::Float8E5M2,
        algorithm: "RING",
        protocol: "LL128",
        timing: Timing::ProxyCpu,
        flags: Flags(Flags::IN_INFERRED_GROUP | Flags::GRAPH),
        sequence: u64::MAX,
        count: 3,
        bytes: Some(1 << 20),
        rank_bytes: None,
        partner: -1,
        channels: 256,
        channels_seen: 7,
        warps: 255,
        enqueued_ns: 10,
        enqueue_ns: 11,
        queued_ns: None,
        duration_ns: Some(0),
        longest_channel_ns: Some(13),
        ended_ns: 14,
        algbw: Some(1.5),
        waits: Some(Waits { gpu: 1, peer: 2, wire: 3, flush: 4 }),
        sent_bytes: 5,
        received_bytes: 6,
        proxy_operations: 8,
        proxy_steps: u32::MAX,
        user_tag: 9,
        group: 10,
        members: 11,
        sinks: 0x8000_0001,
        channel_list: vec![Channel {
            channel: 3,
            phases: vec![Phase { phase: 2, start: 5, ..Phase::default() }],
            ..Channel::default()
        }],
        proxies: vec![ProxyOperation {
            peer: -7,
            send: true,
            foreign_pid: 4711,
            steps: 2,
            step_list: vec![ProxyStep { step: 1, wait_ns: 99, ..ProxyStep::default() }],
            ..ProxyOperation::default()
        }],
        ..Operation::default()
    }
}

#[test]
fn guests_read_what_the_host_wrote() {
    let mut packed = Packed::default();
    packed.fill(&[Operation::default(), operation()]);
    let all: Vec<_> = sdk::Operation::all(packed.operations()).collect();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].bytes(), all[0].duration(), all[0].busbw(), all[0].wait_gpu()), (None, None, None, None));
    let o = all[1];
    assert_eq!((o.id(), o.communicator(), o.collective()), (77, u32::MAX, sdk::Collective::WaitSignal));
    assert_eq!(
        (o.datatype(), o.algorithm(), o.protocol()),
        (sdk::Datatype::Float8E5m2, sdk::Algorithm::Ring, sdk::Protocol::Ll128)
    );
    assert_eq!((o.kind(), o.timing()), (sdk::Kind::InferredGroup, sdk::Timing::ProxyCpu));
    assert!(o.circumstances().has(sdk::Circumstances::IN_INFERRED_GROUP));
    assert!(!o.circumstances().has(sdk::Circumstances::REPLAY));
    assert_eq!(
        (o.size_class(), o.sequence(), o.count(), o.bytes(), o.rank_bytes()),
        (21, u64::MAX, 3, Some(1 << 20), None)
    );
    assert_eq!((o.partner(), o.channels_used(), o.channels_seen(), o.warps(), o.members()), (-1, 256, 7, 255, 11));
    assert_eq!((o.enqueued(), o.enqueue(), o.queued(), o.duration()), (10, 11, None, Some(0)));
    assert_eq!((o.longest_channel(), o.ended(), o.gpu_start()), (Some(13), 14, None));
    assert_eq!((o.algbw(), o.busbw()), (Some(1.5), None));
    assert_eq!((o.wait_gpu(), o.wait_peer(), o.wait_wire(), o.wait_flush()), (Some(1), Some(2), Some(3), Some(4)));
    assert_eq!((o.sent(), o.received(), o.proxy_operations(), o.proxy_steps()), (5, 6, 8, u32::MAX));
    assert_eq!((o.user_tag(), o.group(), o.sinks()), (9, 10, 0x8000_0001));
    assert_eq!((o.children_first(), o.children_count()), (0, 4));
    let children: Vec<_> = sdk::Child::all(packed.children()).collect();
    let kinds: Vec<_> = children.iter().map(|c| c.child_kind()).collect();
    assert_eq!(kinds, sdk::ChildKind::ALL);
    assert_eq!((children[0].channel(), children[1].phase(), children[1].gpu_start()), (3, 2, 5));
    assert_eq!(
        (children[2].peer(), children[2].send(), children[2].foreign_process(), children[2].steps()),
        (-7, true, 4711, 2)
    );
    assert_eq!((children[3].steps(), children[3].wait_wire(), children[3].peer()), (1, 99, -7));
}
