//! Starts, stops and extensions of operations.

use collander_event::{
    Anomaly, Collective, Detail, EventId, EventKind, Flags, OpKind, Payload, PlanWord, Rate, Record, RecordFlags,
    StartHeader, keeps, plan_index,
};

use super::open::{NONE, Open, mark};
use super::table::{Entry, Role};
use super::{Assembler, Ticket};
use crate::rules::NO_RULE;

/// What a start record says, whatever the kind.
struct Facts {
    kind: OpKind,
    sequence: u64,
    count: u64,
    function: u8,
    datatype: u8,
    api_datatype: u8,
    algorithm: u8,
    protocol: u8,
    partner: i32,
    group: u64,
    /// 0: not known; 255: no P2P.
    depth: u8,
}

/// The group of an operation; in v1 to v4 its parent is one.
fn group_of(group: EventId, parent: EventId) -> u64 {
    if group.0 == 0 && parent.kind() == EventKind::Group { parent.0 } else { group.0 }
}

impl Assembler {
    pub(super) fn operation_start(&mut self, ring: u8, record: &Record) {
        let header = record.header();
        self.note_ordinal(ring, header.ordinal);
        let facts = match record.payload() {
            Payload::Coll { sequence, count, function, datatype, algorithm, protocol, root, group, api_datatype } => {
                Facts {
                    kind: if header.id.kind() == EventKind::CeColl { OpKind::CopyEngine } else { OpKind::Coll },
                    sequence,
                    count,
                    function,
                    datatype,
                    api_datatype,
                    algorithm,
                    protocol,
                    partner: root,
                    group: group_of(group, header.parent),
                    depth: 255,
                }
            }
            Payload::P2p { sequence, count, function, datatype, peer, group, group_depth } => Facts {
                kind: OpKind::P2p,
                sequence,
                count,
                function,
                datatype,
                api_datatype: 0,
                algorithm: 0,
                protocol: 0,
                partner: peer,
                group: group_of(group, header.parent),
                depth: group_depth,
            },
            _ => return,
        };
        match facts.kind {
            OpKind::Coll => self.account.seen.coll += 1,
            OpKind::P2p => self.account.seen.p2p += 1,
            _ => self.account.seen.copy_engine += 1,
        }
        if matches!(header.parent.kind(), EventKind::CollApi | EventKind::P2pApi) && header.parent.0 != 0 {
            self.join_api(header.parent);
        }
        let slot = self.open_operation_slot(&header, &facts);
        if header.parent.0 != 0 {
            self.note_replay(slot);
        }
        self.join_group(ring, slot, facts.depth);
        self.wake(header.id.0);
    }

    /// An API record: a captured call, an operation of its own, or (detail `api`) the times of a call.
    pub(super) fn api_start(&mut self, ring: u8, record: &Record) {
        let header = record.header();
        let Payload::Api { count, function, datatype, root, user_tag, .. } = record.payload() else { return };
        let ns = self.calibration.unix_ns(header.ticks);
        if header.flags.has(RecordFlags::GRAPH_CAPTURED) {
            if self.captured.add(header.id.0, datatype, user_tag) {
                self.count(Anomaly::CapturedForgotten);
            }
            return;
        }
        if !header.flags.has(RecordFlags::API_ONLY) {
            self.captured.time_start(header.id.0, ns);
            return;
        }
        self.note_ordinal(ring, header.ordinal);
        self.account.seen.api += 1;
        let facts = Facts {
            kind: OpKind::Api,
            sequence: 0,
            count,
            function,
            datatype,
            api_datatype: datatype,
            algorithm: 0,
            protocol: 0,
            partner: root,
            group: header.parent.0,
            depth: 255,
        };
        let slot = self.open_operation_slot(&header, &facts);
        let times = self.captured.times(header.id.0);
        let op = &mut self.ops[slot];
        if user_tag != 0 {
            op.more().user_tag = user_tag;
        }
        if let Some((start, stop)) = times {
            (op.enqueued, op.stopped) = (start, stop);
            if stop != 0 {
                op.marks |= mark::API_TIMED;
            }
        }
        // Two passes, in which a Coll or P2p with it as parent may still come from another ring.
        self.conclude(slot);
        self.wake(header.id.0);
    }

    pub(super) fn api_stop(&mut self, record: &Record) {
        let ns = self.calibration.unix_ns(record.ticks());
        self.captured.time_stop(record.id().0, ns);
    }

    /// An operation came whose API call was taken for an operation of its own: takes that back, if it is not written yet.
    fn join_api(&mut self, parent: EventId) {
        let entry = self.table.find(parent.0);
        match entry.role {
            Role::Operation if self.ops[entry.slot].kind == OpKind::Api => {
                self.count(Anomaly::ApiJoinedLate);
                self.account.seen.api -= 1;
                self.remove(entry.slot, Role::Vacant);
            }
            Role::ClosedOperation => self.count(Anomaly::ApiJoinedLate),
            _ => {}
        }
    }

    /// A slot for an operation that starts, filled in, decided and listed.
    fn open_operation_slot(&mut self, header: &StartHeader, facts: &Facts) -> u32 {
        if self.ops.used() >= self.config.drain.max_open {
            self.evict_oldest();
        }
        let id = header.id.0;
        let before = self.table.find(id);
        if matches!(before.role, Role::Operation) {
            // The same id twice: the earlier one can get no more events.
            self.count(Anomaly::UnknownHandle);
            self.force(before.slot, Flags::SUPERSEDED);
        }
        let communicator = match self.communicators.find(header.communicator) {
            Some(index) => index,
            None => {
                let rules = &mut self.rules;
                self.communicators.unannounced(header.communicator, |info| rules.plan_of(info))
            }
        };
        let function = self.meaning(facts.function).collective;
        let datatype = self.meaning(facts.datatype).datatype;
        let enqueued = self.calibration.unix_ns(header.ticks);
        self.newest_enqueued = self.newest_enqueued.max(enqueued);

        let state = &mut self.communicators[communicator];
        let api = state.info.api;
        let ranks = state.info.ranks.unwrap_or(0).max(1);
        // As the hot side computes it: by the event's own datatype.
        let bytes = facts.count.wrapping_mul(u64::from(datatype.size())).wrapping_mul(function.size_factor(ranks));
        let plan = self.rules.plan(state.plan);
        let index = plan_index(function as u8, bytes);
        let mut word = PlanWord(plan.words[index]);
        let mut rule = plan.rule(index);
        let mut marks = 0;
        let sequence = match facts.kind {
            OpKind::Api => {
                let number = &mut state.api_calls[function as usize];
                *number += 1;
                *number - 1
            }
            _ => facts.sequence,
        };
        if word.0 & PlanWord::EXACT_CHECK != 0 || facts.kind == OpKind::Api {
            (word, rule) = self.rules.exact(plan, function, bytes);
            let key = match facts.kind {
                OpKind::P2p => {
                    let (own, peer) = (state.info.rank as u32, facts.partner as u32);
                    let (from, to) = if function == Collective::Recv { (peer, own) } else { (own, peer) };
                    state.info.hash ^ ((u64::from(from) << 32) | u64::from(to))
                }
                _ => state.info.hash ^ ((function as u64) << 56),
            };
            let keep = match word.rate() {
                Rate::None => false,
                Rate::All => true,
                Rate::OneIn(n) => keeps(n, key, sequence),
            };
            if !keep {
                marks |= mark::LEFT_OUT;
            }
        }
        if facts.kind == OpKind::Coll {
            let next = &mut state.sequences[function as usize];
            let stands = *next != u64::MAX && sequence.wrapping_add(1) == *next;
            let jumps = *next != u64::MAX && sequence > *next && !plan.samples(function);
            if *next == u64::MAX || sequence >= *next {
                *next = sequence.wrapping_add(1).min(u64::MAX - 1);
            }
            if function != Collective::Unknown {
                if stands {
                    self.account.anomalies.count(Anomaly::SequenceStandsStill);
                } else if jumps {
                    self.account.anomalies.count(Anomaly::SequenceGap);
                }
            }
        }
        if rule != NO_RULE && marks & mark::LEFT_OUT == 0 {
            self.rules.count(rule);
        }

        let mut flags = 0;
        for (from, to) in [
            (RecordFlags::IN_PLACE, Flags::IN_PLACE),
            (RecordFlags::SYMMETRIC, Flags::SYMMETRIC),
            (RecordFlags::FOREIGN_PARENT, Flags::OTHER_PROCESS),
        ] {
            if header.flags.has(from) {
                flags |= to;
            }
        }
        if header.flags.has(RecordFlags::FOREIGN_PARENT) {
            self.account.anomalies.count(Anomaly::ForeignParent);
        }
        if facts.kind == OpKind::P2p && state.info.rank >= 0 && state.info.rank == facts.partner {
            flags |= Flags::SELF_TRANSFER;
        }
        if header.flags.has(RecordFlags::NO_API) {
            marks |= mark::NO_API;
        }
        if api == 0 || api >= 4 {
            marks |= mark::CHANNELS_EXACT;
        }
        let announced = match facts.kind {
            OpKind::Api | OpKind::CopyEngine => 0,
            // v1 to v3 do not tell the channels of a P2P.
            OpKind::P2p if (1..4).contains(&api) => 0,
            _ if header.channels == 0 => 256,
            _ => u16::from(header.channels),
        };
        let lists = Detail::CHANNEL_LIST.0 | Detail::PROXY_LIST.0 | Detail::STEP_LIST.0;
        let newest = state.last;
        let slot = self.ops.reuse().unwrap_or_else(|| self.ops.add(Open::default()));
        let op = &mut self.ops[slot];
        *op = Open {
            id,
            generation: op.generation.wrapping_add(1),
            communicator,
            older: newest,
            newer: NONE,
            first_child: NONE,
            parent: header.parent.0,
            group: facts.group,
            sequence,
            count: facts.count,
            // NCCL gives 0 as the root of what has none.
            partner: if facts.kind == OpKind::P2p || function.is_rooted() { facts.partner } else { -1 },
            kind: facts.kind,
            collective: function,
            function: facts.function,
            datatype: facts.datatype,
            api_datatype: facts.api_datatype,
            algorithm: facts.algorithm,
            protocol: facts.protocol,
            warps: header.warps,
            detail: (word.detail().0 & lists) | header.id.detail().0,
            flags,
            sinks: word.sinks(),
            marks,
            announced,
            inferred: NONE,
            enqueued,
            last: enqueued,
            touched: self.now_ns,
            cpu_first: u64::MAX,
            gpu_first: u64::MAX,
            proxy_first: u64::MAX,
            ce_first: u64::MAX,
            ..Open::default()
        };
        let generation = op.generation;
        state.last = slot;
        if newest == NONE {
            state.first = slot;
        } else {
            self.ops[newest].newer = slot;
        }
        self.table.insert(Entry { id, slot, generation: generation as u16, role: Role::Operation, mark: 0 });
        slot
    }

    /// If its API call was captured into a graph, the operation is a replay; the replay before it is superseded.
    fn note_replay(&mut self, slot: u32) {
        let ticket = (slot, self.ops[slot].generation);
        let Some(call) = self.captured.find(self.ops[slot].parent) else { return };
        let (datatype, user_tag) = (call.datatype, call.user_tag);
        let before = call.latest.replace(ticket);
        let op = &mut self.ops[slot];
        op.flags |= Flags::GRAPH | Flags::REPLAY;
        op.marks |= mark::REPLAY;
        if op.api_datatype == 0 {
            op.api_datatype = datatype;
        }
        if user_tag != 0 {
            op.more().user_tag = user_tag;
        }
        let (communicator, collective) = (op.communicator, op.collective);
        if op.kind != OpKind::P2p {
            let number = &mut self.communicators[communicator].replays[collective as usize];
            op.sequence = *number;
            *number += 1;
        }
        // Not closed at once: what ended it may stand in a ring that was not read yet.
        if let Some(before) = before
            && self.is_open(before)
        {
            self.ops[before.0].marks |= mark::SUPERSEDED;
            self.watch(before.0);
        }
    }

    /// The same for one whose API call was read later than itself.
    pub(super) fn note_late_replay(&mut self, slot: u32) {
        if self.ops[slot].has(mark::NO_API) && !self.ops[slot].has(mark::REPLAY) {
            self.note_replay(slot);
        }
    }

    /// Whether a ticket's operation is still open.
    pub(super) fn is_open(&self, ticket: Ticket) -> bool {
        let op = &self.ops[ticket.0];
        op.id != 0 && op.generation == ticket.1
    }

    /// A stop, of an operation or a child.
    pub(super) fn stop(&mut self, record: &Record) {
        let entry = self.table.find(record.id().0);
        match entry.role {
            Role::Operation => self.operation_stop(entry.slot, record),
            Role::Child => self.child_stop(entry.slot, record),
            // Its stop state came on another thread: this is the stop that belongs to it.
            Role::EndedKernel => self.table.update(Entry { role: Role::Stopped, ..entry }),
            Role::Stopped => self.count(Anomaly::DoubleStop),
            Role::ClosedOperation if entry.mark != 0 => self.count(Anomaly::DoubleStop),
            Role::ClosedOperation => self.count(Anomaly::UnknownHandle),
            Role::Vacant => self.wait(record.id().0, record),
        }
    }

    fn operation_stop(&mut self, slot: u32, record: &Record) {
        let ns = self.calibration.unix_ns(record.ticks());
        let now = self.now_ns;
        let op = &mut self.ops[slot];
        if op.stopped != 0 {
            self.account.anomalies.count(Anomaly::DoubleStop);
            return;
        }
        op.stopped = ns.max(1);
        op.last = op.last.max(ns);
        op.touched = now;
        self.check(slot);
    }

    pub(super) fn extension(&mut self, record: &Record) {
        let entry = self.table.find(record.id().0);
        if entry.role != Role::Operation {
            if entry.role == Role::Vacant {
                self.wait(record.id().0, record);
            }
            return;
        }
        let [.., user_tag, names, _, _] = record.0;
        let more = self.ops[entry.slot].more();
        if user_tag != 0 {
            more.user_tag = user_tag;
        }
        (more.variant, more.strategy) = (names as u8, (names >> 8) as u8);
    }
}
