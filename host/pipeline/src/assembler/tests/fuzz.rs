//! Random records: no panic, and the account balances.

use std::sync::Arc;

use collander_event::{Detail, EventId, EventKind, LOCAL_MASK, OpKind, Record};

use super::kit::{Kit, communicator};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 20) % bound
    }
}

/// A record whose ids come from a few, so that they meet; every other bit is arbitrary, times roughly in order.
fn record(random: &mut Random, now: u64) -> Record {
    let id = |random: &mut Random| {
        let kind = EventKind::from_index(random.below(16) as u8);
        EventId::new(0, random.below(3) as u8, random.below(300), Detail(random.below(16) as u16), kind).local()
    };
    let ordinal = if random.below(4) == 0 { random.below(1 << 14) << 50 } else { 0 };
    let kind = random.below(4);
    let state = random.below(64);
    let flags = random.next() & random.next() & 0xff;
    Record([
        if random.below(50) == 0 { random.next() } else { now.wrapping_add(random.below(1 << 22)) },
        id(random) | ordinal,
        if kind == 2 { random.next() } else { id(random) },
        kind | state << 2 | flags << 8 | random.below(4) << 16 | random.below(3) << 32,
        if random.below(3) == 0 { random.next() } else { now },
        random.next(),
        (random.below(8) | random.below(8) << 8 | random.below(5) << 32) | (random.next() & 0xffff_0000),
        random.next() & LOCAL_MASK,
    ])
}

fn run(seed: u64, records: u64, small: bool) {
    let mut random = Random(seed);
    let mut settings = crate::rules::tests::config(Vec::new());
    settings.capture.detail = Detail(0xff);
    if small {
        (settings.drain.max_open, settings.drain.max_orphans) = (16, 16);
    }
    let mut kit = Kit::with(settings, communicator(0));
    for text in ["AllReduce", "Send", "Recv", "ncclFloat32", "Unknown", "AllGather", "ncclInt8"] {
        kit.asm.names().code_of(text);
    }
    for n in 0..records {
        kit.now += 1000;
        let record = record(&mut random, kit.now);
        kit.asm.push(random.below(4) as u8, &record);
        match random.below(2000) {
            0 => kit.asm.communicator_closed(random.below(3) as u32),
            1 => kit.asm.communicator_opened(Arc::new(communicator(random.below(3) as u32))),
            2 => kit.asm.overtaken(1, 5),
            3 => kit.asm.ring_ended(1, random.below(1 << 28) as u32),
            4 => _ = kit.asm.open_operations(random.below(20) as usize).len(),
            5..25 => kit.pass(),
            _ => {}
        }
        if n % 512 == 0 {
            kit.balance();
        }
    }
    kit.end();
    assert_eq!(kit.done.iter().filter(|op| op.kind != OpKind::InferredGroup).count() as u64, kit.asm.finished());
}

#[test]
fn random_records_do_no_harm() {
    run(0x1234_5678_9abc_def1, 100_000, false);
}

#[test]
fn random_records_do_no_harm_within_tight_bounds() {
    (1..=5u64).for_each(|seed| run(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), 20_000, true));
}

/// The same records of two rings, in any interleaving that keeps each ring's order, give the same operations.
#[test]
fn interleavings_do_not_matter() {
    use super::kit::Op;
    let mut expected = None;
    for seed in 1..=40u64 {
        let mut random = Random(seed * 7919);
        let mut kit = Kit::new();
        kit.held = Some(Vec::new());
        for n in 0..200 {
            let id = kit.enqueue(&Op { channels: 3, ..Op::coll(n) });
            let t = kit.now;
            (0..3).for_each(|channel| kit.channel(id, channel, (t, t + 100 + n)));
        }
        let held = kit.held.take().unwrap();
        let mut rings = [1u8, 2].map(|ring| held.iter().filter(move |(r, _)| *r == ring).peekable());
        while rings.iter_mut().any(|ring| ring.peek().is_some()) {
            let burst = random.below(100);
            let ring = &mut rings[random.below(2) as usize];
            for _ in 0..burst {
                if let Some((ring, record)) = ring.next() {
                    kit.asm.push(*ring, record);
                }
            }
        }
        kit.pass();
        assert!(kit.oddities().is_empty(), "{:?}", kit.oddities());
        let mut found: Vec<_> =
            kit.end().iter().map(|op| (op.sequence, op.duration_ns, op.flags.0, op.timing, op.ended_ns)).collect();
        found.sort_unstable();
        assert_eq!(found.len(), 200);
        assert_eq!(*expected.get_or_insert_with(|| found.clone()), found);
    }
}
