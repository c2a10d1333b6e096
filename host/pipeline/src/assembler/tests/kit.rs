//! Makes records as the hot side would, with a clock that counts Unix nanoseconds.

use std::sync::Arc;

use collander_config::{Config, SamplingRule};
use collander_event::{
    Anomaly, Communicator, Detail, EventId, EventKind, Operation, Payload, Record, RecordFlags, StartHeader, State,
};

use crate::assembler::Assembler;
use crate::rules::tests::config;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const START: u64 = 1_700_000_000_000_000_000;
/// Ring of the user's thread, and of the thread that sees kernels and proxies.
pub(crate) const USER: u8 = 1;
pub(crate) const KERNEL: u8 = 2;

pub(crate) struct Kit {
    pub asm: Assembler,
    pub now: u64,
    pub done: Vec<Operation>,
    pub detail: Detail,
    counters: [u64; 256],
    ordinals: [u32; 256],
    /// Records are kept back here instead of being pushed, if set.
    pub held: Option<Vec<(u8, Record)>>,
}

/// A Coll, P2p or CeColl to start.
#[derive(Clone)]
pub(crate) struct Op {
    pub kind: EventKind,
    pub ring: u8,
    pub communicator: u32,
    pub parent: EventId,
    pub group: EventId,
    pub depth: u8,
    pub flags: u8,
    pub channels: u8,
    pub sequence: u64,
    pub count: u64,
    pub function: &'static str,
    pub datatype: &'static str,
    pub api_datatype: &'static str,
    pub peer: i32,
}

impl Op {
    pub(crate) fn coll(sequence: u64) -> Self {
        Self {
            kind: EventKind::Coll,
            ring: USER,
            communicator: 0,
            parent: EventId(0),
            group: EventId(0),
            depth: 0,
            flags: 0,
            channels: 1,
            sequence,
            count: 1000,
            function: "AllReduce",
            datatype: "ncclFloat32",
            api_datatype: "",
            peer: -1,
        }
    }

    pub(crate) fn p2p(function: &'static str, peer: i32) -> Self {
        Self { kind: EventKind::P2p, function, peer, ..Self::coll(0) }
    }
}

pub(crate) fn communicator(ordinal: u32) -> Communicator {
    Communicator {
        ordinal,
        hash: 0xabc + u64::from(ordinal),
        name: "test".into(),
        rank: 1,
        ranks: Some(4),
        nodes: Some(1),
        api: 7,
        opened_ns: START,
        ..Communicator::default()
    }
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::with(config(Vec::new()), communicator(0))
    }

    pub(crate) fn with_rules(rules: Vec<SamplingRule>) -> Self {
        Self::with(config(rules), communicator(0))
    }

    /// An interface of that version.
    pub(crate) fn api(api: u8) -> Self {
        let ranks = (api >= 4).then_some(4);
        Self::with(config(Vec::new()), Communicator { api, ranks, nodes: ranks, ..communicator(0) })
    }

    pub(crate) fn with(config: Config, communicator: Communicator) -> Self {
        let mut asm = Assembler::new(&config);
        asm.communicator_opened(Arc::new(communicator));
        let mut kit = Self {
            asm,
            now: START,
            done: Vec::new(),
            detail: Detail::CHANNELS,
            counters: [0; 256],
            ordinals: [0; 256],
            held: None,
        };
        kit.pass();
        kit
    }

    pub(crate) fn id(&mut self, ring: u8, kind: EventKind) -> EventId {
        self.counters[usize::from(ring)] += 1;
        EventId::new(0, ring, self.counters[usize::from(ring)], self.detail, kind)
    }

    pub(crate) fn ordinal(&mut self, ring: u8) -> u32 {
        self.ordinals[usize::from(ring)] += 1;
        self.ordinals[usize::from(ring)]
    }

    pub(crate) fn push(&mut self, ring: u8, record: Record) {
        match &mut self.held {
            Some(held) => held.push((ring, record)),
            None => self.asm.push(ring, &record),
        }
    }

    /// Pushes what was kept back: the records of `first` before all others, each ring in its order.
    pub(crate) fn release(&mut self, first: u8) {
        let held = self.held.take().unwrap_or_default();
        for chosen in [true, false] {
            for (ring, record) in held.iter().filter(|(ring, _)| (*ring == first) == chosen) {
                self.asm.push(*ring, record);
            }
        }
    }

    /// 1 µs later.
    pub(crate) fn tick(&mut self) -> u64 {
        self.now += 1000;
        self.now
    }

    pub(crate) fn start(&mut self, op: &Op) -> EventId {
        let id = self.id(op.ring, op.kind);
        let code = |kit: &mut Self, text| kit.asm.names().code_of(text);
        let (function, datatype) = (code(self, op.function), code(self, op.datatype));
        let (algorithm, protocol, api_datatype) = (code(self, "RING"), code(self, "LL"), code(self, op.api_datatype));
        let payload = if op.kind == EventKind::P2p {
            Payload::P2p {
                sequence: op.sequence,
                count: op.count,
                function,
                datatype,
                peer: op.peer,
                group: op.group,
                group_depth: op.depth,
            }
        } else {
            Payload::Coll {
                sequence: op.sequence,
                count: op.count,
                function,
                datatype,
                algorithm,
                protocol,
                root: op.peer,
                group: op.group,
                api_datatype,
            }
        };
        let header = StartHeader {
            ticks: self.tick(),
            id,
            parent: op.parent,
            ordinal: self.ordinal(op.ring),
            flags: RecordFlags(op.flags),
            channels: op.channels,
            warps: 16,
            communicator: op.communicator,
        };
        self.push(op.ring, Record::start(header, payload.words()));
        id
    }

    /// Start and stop of an operation.
    pub(crate) fn enqueue(&mut self, op: &Op) -> EventId {
        let id = self.start(op);
        self.stop(op.ring, id);
        id
    }

    pub(crate) fn stop(&mut self, ring: u8, id: EventId) {
        let record = Record::stop(self.tick(), id);
        self.push(ring, record);
    }

    pub(crate) fn state(&mut self, ring: u8, id: EventId, state: State, argument: u64) {
        let record = Record::state(self.tick(), id, state, argument, RecordFlags(0));
        self.push(ring, record);
    }

    /// Any child.
    pub(crate) fn child(
        &mut self,
        kind: EventKind,
        parent: EventId,
        channel: u8,
        flags: u8,
        payload: Payload,
    ) -> EventId {
        let id = self.id(KERNEL, kind);
        let header = StartHeader {
            ticks: self.tick(),
            id,
            parent,
            flags: RecordFlags(flags),
            channels: channel,
            ..StartHeader::default()
        };
        self.push(KERNEL, Record::start(header, payload.words()));
        id
    }

    pub(crate) fn kernel(&mut self, parent: EventId, channel: u8, timer: u64) -> EventId {
        self.child(EventKind::KernelCh, parent, channel, 0, Payload::KernelCh { timer })
    }

    /// Start and stop state of one channel, with these GPU stamps.
    pub(crate) fn channel(&mut self, parent: EventId, channel: u8, gpu: (u64, u64)) {
        let id = self.kernel(parent, channel, gpu.0);
        self.state(KERNEL, id, State::KERNEL_CH_STOP, gpu.1);
    }

    /// Channel 0, for a nanosecond.
    pub(crate) fn quick(&mut self, parent: EventId) {
        let t = self.now;
        self.channel(parent, 0, (t, t + 1));
    }

    /// An operation of one channel whose GPU took `ns`, and which is over.
    pub(crate) fn whole(&mut self, sequence: u64, ns: u64) -> EventId {
        let id = self.enqueue(&Op::coll(sequence));
        let gpu = self.now;
        self.now += ns;
        self.channel(id, 0, (gpu, gpu + ns));
        id
    }

    /// An API call that is written as an operation of its own.
    pub(crate) fn api_only(&mut self, function: &'static str, flags: u8) -> EventId {
        let id = self.id(USER, EventKind::CollApi);
        let (function, datatype) = (self.asm.names().code_of(function), self.asm.names().code_of("ncclFloat32"));
        let ordinal = if flags & RecordFlags::API_ONLY == 0 { 0 } else { self.ordinal(USER) };
        let header =
            StartHeader { ticks: self.tick(), id, ordinal, flags: RecordFlags(flags), ..StartHeader::default() };
        let payload = Payload::Api { stream: 7, count: 100, function, datatype, root: 2, user_tag: 0 };
        self.push(USER, Record::start(header, payload.words()));
        id
    }

    /// One drain period.
    pub(crate) fn pass(&mut self) {
        self.now += 5 * MS;
        self.asm.end_of_pass(self.now, false);
        self.asm.take_finished(&mut self.done);
    }

    pub(crate) fn passes(&mut self, count: usize) {
        (0..count).for_each(|_| self.pass());
    }

    /// So long that what settles has settled.
    pub(crate) fn settle(&mut self) {
        self.passes(60);
    }

    /// Ends everything; checks the account.
    pub(crate) fn end(&mut self) -> &[Operation] {
        self.now += MS;
        self.asm.end_of_pass(self.now, true);
        self.asm.take_finished(&mut self.done);
        assert_eq!(self.asm.open(), 0, "nothing is open at the end");
        self.balance();
        assert!(self.asm.inferred.is_unused() && self.asm.children.used() == 0 && self.asm.waiting.is_empty());
        &self.done
    }

    /// seen = finished + left out + overrun + evicted + open.
    pub(crate) fn balance(&self) {
        let snapshot = self.asm.snapshot(self.now);
        assert_eq!(
            snapshot.seen.total(),
            self.asm.finished()
                + snapshot.sampled_filter
                + snapshot.ring_overrun
                + snapshot.evicted
                + self.asm.open() as u64
        );
    }

    pub(crate) fn odd(&self, anomaly: Anomaly) -> u64 {
        self.asm.anomalies().get(anomaly)
    }

    pub(crate) fn oddities(&self) -> Vec<(Anomaly, u64)> {
        self.asm.anomalies().nonzero().collect()
    }
}
