//! AllToAll, Gather and Scatter inferred from their sends and receives.

use collander_event::{Collective, EventKind, Flags, OpKind, Timing};

use super::kit::{Kit, MS, Op, USER};

/// Enqueues a group of transfers (function, peer, count); all but those to oneself get kernels of 1000 ns.
fn group(kit: &mut Kit, depth: u8, transfers: &[(&'static str, i32, u64)]) {
    let group = kit.id(USER, EventKind::GroupApi);
    let start = |kit: &mut Kit, (function, peer, count): (&'static str, i32, u64)| {
        kit.start(&Op { group, depth, count, ..Op::p2p(function, peer) })
    };
    let ids: Vec<_> = transfers.iter().map(|transfer| (transfer.1, start(kit, *transfer))).collect();
    for (_, id) in &ids {
        kit.stop(USER, *id);
    }
    let t = kit.now;
    for (n, (peer, id)) in (0..).zip(ids) {
        if peer != 1 {
            kit.channel(id, 0, (t + n * 100, t + n * 100 + 1000));
        }
    }
}

fn all_to_all(count: u64) -> Vec<(&'static str, i32, u64)> {
    (0..4).flat_map(|peer| [("Send", peer, count), ("Recv", peer, count)]).collect()
}

fn inferred(kit: &mut Kit) -> Vec<collander_event::Operation> {
    kit.settle();
    kit.end();
    kit.done.iter().filter(|op| op.kind == OpKind::InferredGroup).cloned().collect()
}

#[test]
fn all_to_all_at_depth_one() {
    let mut kit = Kit::new();
    group(&mut kit, 1, &all_to_all(256));
    let found = inferred(&mut kit);
    let op = &found[0];
    assert_eq!((found.len(), op.collective, op.members, op.timing), (1, Collective::AllToAll, 8, Timing::Gpu));
    assert_eq!((op.count, op.rank_bytes, op.bytes, op.partner), (256, Some(1024), Some(4096), -1));
    assert_eq!(op.duration_ns, Some(1700), "first kernel's start to last kernel's stop");
    assert_eq!(op.busbw, Some(4096.0 / 1700.0 * 0.75));
    assert_eq!((op.flags.0, op.function), (Flags::INFERRED, "AllToAll"));
    let members: Vec<_> = kit.done.iter().filter(|op| op.kind == OpKind::P2p).collect();
    assert_eq!(members.len(), 8);
    assert!(members.iter().all(|op| op.flags.has(Flags::IN_INFERRED_GROUP) && op.group == found[0].id));
    let snapshot = kit.asm.snapshot(0);
    assert_eq!((snapshot.inferred_groups, snapshot.seen.total()), (1, 8), "it is not counted as seen");
}

#[test]
fn many_in_a_row_and_members_split_over_launches() {
    let mut kit = Kit::new();
    (0..50).for_each(|_| group(&mut kit, 1, &all_to_all(64)));
    // The first members are over before the last have started.
    let id = kit.id(USER, EventKind::GroupApi);
    for (function, peer, count) in all_to_all(8) {
        let member = kit.enqueue(&Op { group: id, depth: 1, count, ..Op::p2p(function, peer) });
        let t = kit.now;
        kit.channel(member, 0, (t, t + MS / 2));
    }
    assert_eq!(inferred(&mut kit).len(), 51);
}

#[test]
fn gather_and_scatter_at_their_root() {
    let mut kit = Kit::new();
    let receives = |with: &[i32]| with.iter().map(|peer| ("Recv", *peer, 9)).collect::<Vec<_>>();
    group(&mut kit, 1, &[receives(&[0, 1, 2, 3]), vec![("Send", 1, 9)]].concat());
    group(&mut kit, 1, &[("Send", 0, 9), ("Send", 1, 9), ("Recv", 1, 9), ("Send", 2, 9), ("Send", 3, 9)]);
    let found: Vec<_> = inferred(&mut kit).iter().map(|op| (op.collective, op.partner, op.members)).collect();
    assert_eq!(found, [(Collective::Gather, 1, 5), (Collective::Scatter, 1, 5)]);
}

#[test]
fn what_is_ambiguous_or_no_pattern_is_not_inferred() {
    let mut kit = Kit::new();
    // A single send may be a gather's or the program's own; a user's group (depth 2); unequal counts; a peer missing; twice.
    group(&mut kit, 1, &[("Send", 0, 9)]);
    group(&mut kit, 2, &all_to_all(256));
    let mut uneven = all_to_all(256);
    uneven[3].2 = 255;
    group(&mut kit, 1, &uneven);
    group(&mut kit, 1, &all_to_all(256)[..7]);
    group(&mut kit, 1, &[all_to_all(256)[..7].to_vec(), vec![("Send", 0, 256)]].concat());
    group(&mut kit, 1, &[("Send", 2, 9), ("Recv", 0, 9)]);
    assert!(inferred(&mut kit).is_empty());
    assert_eq!(kit.done.len(), 1 + 8 + 8 + 7 + 8 + 2);
    assert!(kit.done.iter().all(|op| !op.flags.has(Flags::IN_INFERRED_GROUP)));
}

#[test]
fn before_version_5_the_group_event_is_the_group() {
    let mut kit = Kit::api(4);
    let parent = kit.id(USER, EventKind::Group);
    for (function, peer, count) in all_to_all(8) {
        let member = kit.enqueue(&Op { parent, count, ..Op::p2p(function, peer) });
        kit.quick(member);
    }
    // A program's own gather copies the root's part itself.
    let parent = kit.id(USER, EventKind::Group);
    for peer in [0, 2, 3] {
        let member = kit.enqueue(&Op { parent, ..Op::p2p("Recv", peer) });
        kit.quick(member);
    }
    let mut found: Vec<_> = inferred(&mut kit).iter().map(|op| op.collective).collect();
    found.sort_unstable();
    assert_eq!(found, [Collective::AllToAll, Collective::Gather]);
}

#[test]
fn a_group_that_hangs_is_decided_and_stays_open() {
    let mut kit = Kit::new();
    let id = kit.id(USER, EventKind::GroupApi);
    for (function, peer, count) in all_to_all(8) {
        kit.enqueue(&Op { group: id, depth: 1, count, ..Op::p2p(function, peer) });
    }
    kit.passes(10);
    assert!(kit.done.is_empty() && kit.asm.open() == 8);
    kit.asm.communicator_closed(0);
    kit.pass();
    let group = kit.done.iter().find(|op| op.kind == OpKind::InferredGroup).unwrap();
    assert!(group.flags.has(Flags::ABORTED) && group.timing == Timing::EnqueueOnly && group.algbw.is_none());
    kit.end();
}
