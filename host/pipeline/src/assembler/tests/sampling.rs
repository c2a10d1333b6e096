//! Rules that see the exact size, and the rate control.

use collander_config::{Keep, SamplingRule, Selector};
use collander_event::{Detail, RecordFlags, keeps};

use super::kit::{Kit, MS, Op};

fn rule(bytes: std::ops::Range<u64>, keep: Keep) -> SamplingRule {
    SamplingRule {
        name: "r".into(),
        selector: Selector::default(),
        collectives: Vec::new(),
        min_bytes: bytes.start,
        max_bytes: bytes.end,
        keep,
        detail: None,
        sinks: 5,
    }
}

fn run(kit: &mut Kit, op: &Op) {
    let id = kit.enqueue(op);
    let t = kit.now;
    kit.channel(id, 0, (t, t + 1000));
}

#[test]
fn a_class_that_a_rule_covers_in_part_is_decided_exactly() {
    let mut kit = Kit::with_rules(vec![rule(3000..5000, Keep::None)]);
    for (sequence, count) in [(0, 700), (1, 1000), (2, 1249), (3, 1250)] {
        run(&mut kit, &Op { count, ..Op::coll(sequence) });
    }
    kit.pass();
    assert_eq!(kit.done.iter().map(|op| op.count).collect::<Vec<_>>(), [700, 1250]);
    assert_eq!(kit.asm.snapshot(0).sampled_filter, 2);
    assert!(kit.oddities().is_empty(), "children of what is left out are not odd");
    kit.end();
}

#[test]
fn one_in_n_keeps_what_the_hot_side_would_keep() {
    let mut kit = Kit::with_rules(vec![rule(3000..5000, Keep::OneIn(2))]);
    (0..1000).for_each(|n| run(&mut kit, &Op::coll(n)));
    kit.pass();
    let kept: Vec<_> = kit.done.iter().map(|op| op.sequence).collect();
    let expected: Vec<_> = (0..1000).filter(|n| keeps(2, 0xabc ^ (1 << 56), *n)).collect();
    assert_eq!(kept, expected);
    assert!(kit.done.iter().all(|op| op.sinks == 5));
    // Sender and receiver agree: rank 1 sends to 2, and rank 2 receives from 1.
    let mut receiver = Kit::with(
        crate::rules::tests::config(vec![rule(3000..5000, Keep::OneIn(2))]),
        collander_event::Communicator { rank: 2, ..super::kit::communicator(0) },
    );
    kit.done.clear();
    for n in 0..200 {
        run(&mut kit, &Op { sequence: n, ..Op::p2p("Send", 2) });
        run(&mut receiver, &Op { sequence: n, ..Op::p2p("Recv", 1) });
    }
    kit.pass();
    receiver.pass();
    let sequences = |kit: &Kit| kit.done.iter().map(|op| op.sequence).collect::<Vec<_>>();
    assert!(sequences(&kit) == sequences(&receiver) && kit.done.len() < 100);
    kit.end();
}

#[test]
fn api_calls_are_decided_by_the_rules() {
    let mut kit = Kit::with_rules(vec![rule(0..u64::MAX, Keep::OneIn(1))]);
    (0..100).for_each(|_| _ = kit.api_only("Broadcast", RecordFlags::API_ONLY));
    kit.passes(3);
    let snapshot = kit.asm.snapshot(0);
    assert_eq!((snapshot.seen.api, snapshot.sampled_filter + kit.done.len() as u64), (100, 100));
    assert!((20..80).contains(&kit.done.len()));
    kit.end();
}

#[test]
fn the_lists_of_the_rule_are_kept() {
    let mut list = rule(0..u64::MAX, Keep::All);
    list.detail = Some(Detail::CHANNEL_LIST);
    let mut kit = Kit::with_rules(vec![list]);
    run(&mut kit, &Op::coll(0));
    kit.pass();
    assert_eq!(kit.done[0].channel_list.len(), 1);
}

#[test]
fn too_many_a_second_change_the_plan() {
    let mut kit = Kit::with_rules(vec![rule(0..u64::MAX, Keep::PerSecond(100))]);
    kit.asm.adjust_rates(kit.now);
    let start = kit.now;
    (0..1000).for_each(|n| run(&mut kit, &Op::coll(n)));
    kit.now = start + 1000 * MS;
    kit.asm.adjust_rates(kit.now);
    let changes = kit.asm.take_plan_changes();
    assert_eq!(changes.len(), collander_event::PLAN_WORDS);
    assert!(changes.iter().all(|change| change.communicator == 0));
    kit.asm.communicator_opened(std::sync::Arc::new(super::kit::communicator(1)));
    let changes = kit.asm.take_plan_changes();
    assert!(
        changes.iter().all(|change| change.communicator == 1) && !changes.is_empty(),
        "a new one gets the rates of now"
    );
}
