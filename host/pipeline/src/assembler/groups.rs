//! AllToAll, Gather and Scatter reach a profiler only as the sends and receives of one group.
//!
//! A group's P2P operations start one after the other on one thread. When an operation of another group starts there, or
//! nothing came for two passes, the group is decided: its members are then a known set. What is not the exact pattern of one
//! of the three is no such collective. Until then members that are over are held back.

use std::sync::Arc;

use collander_event::{Collective, Communicator, Flags, OpKind, Operation, Timing};

use super::emit::{group_id, set_bandwidths};
use super::open::{Slab, Stage, add_waits, mark};
use super::{Assembler, Ticket};

/// Greatest number of members of a group that is looked at.
const MEMBERS: usize = 65_536;
/// Passes after which a group without a new member is decided.
const IDLE_PASSES: u64 = 2;
/// Flags of members that say nothing about the group.
const MEMBER_ONLY: u32 = Flags::SELF_TRANSFER | Flags::IN_INFERRED_GROUP | Flags::IN_PLACE;

/// The group whose operations start on a ring now.
#[derive(Debug, Default)]
pub(super) struct RingGroup {
    group: u64,
    /// 0: not known (v1 to v4); 1: an API function of its own.
    depth: u8,
    members: Vec<Ticket>,
    pass: u64,
}

/// An inferred collective of which not all members are over.
#[derive(Debug)]
pub(super) struct Inferred {
    operation: Operation,
    ranks: u32,
    remaining: u32,
    gpu: u32,
    kernels: u32,
    proxies: u32,
    transfers: u32,
    cpu_first: u64,
    cpu_last: u64,
}

/// The pattern of a group's members.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    collective: Collective,
    root: i32,
}

impl Assembler {
    /// An operation starts on a ring: it joins the group that is collected there, or ends it.
    #[inline]
    pub(super) fn join_group(&mut self, ring: u8, slot: u32, depth: u8) {
        let op = &self.ops[slot];
        let joins = op.kind == OpKind::P2p && op.group != 0 && depth <= 1;
        let current = &self.groups[usize::from(ring)];
        if !joins && current.members.is_empty() {
            return;
        }
        let group = op.group;
        if !current.members.is_empty() && (current.group != group || !joins) {
            self.decide_group(ring);
        }
        if !joins {
            return;
        }
        let pass = self.pass;
        let current = &mut self.groups[usize::from(ring)];
        if current.members.len() >= MEMBERS {
            return;
        }
        (current.group, current.depth, current.pass) = (group, depth, pass);
        current.members.push((slot, self.ops[slot].generation));
        self.ops[slot].marks |= mark::GROUP_OPEN;
    }

    pub(super) fn decide_group_of(&mut self, slot: u32) {
        let ring = collander_event::EventId(self.ops[slot].id).ring();
        self.decide_group(ring);
        // Pushed with another ring number than its id's: only wrong records do that.
        if self.ops[slot].id != 0 && self.ops[slot].has(mark::GROUP_OPEN) {
            self.ops[slot].marks &= !mark::GROUP_OPEN;
            if self.ops[slot].stage == Stage::Held {
                self.ops[slot].stage = Stage::Open;
            }
        }
    }

    pub(super) fn decide_idle_groups(&mut self, last: bool) {
        for ring in 0..=255 {
            let group = &self.groups[usize::from(ring)];
            if !group.members.is_empty() && (last || group.pass + IDLE_PASSES <= self.pass) {
                self.decide_group(ring);
            }
        }
    }

    fn decide_group(&mut self, ring: u8) {
        let current = &mut self.groups[usize::from(ring)];
        let (group, depth) = (current.group, current.depth);
        let mut members = std::mem::take(&mut current.members);
        members.retain(|ticket| {
            let op = &self.ops[ticket.0];
            op.id != 0 && op.generation == ticket.1
        });
        if members.len() >= 2 {
            self.infer(&members, group, depth);
        }
        for ticket in &members {
            if self.is_open(*ticket) {
                let op = &mut self.ops[ticket.0];
                op.marks &= !mark::GROUP_OPEN;
                if op.stage == Stage::Held {
                    op.stage = Stage::Open;
                    self.conclude(ticket.0);
                }
            }
        }
        members.clear();
        self.groups[usize::from(ring)].members = members;
    }

    /// Looks for a pattern among the members of each communicator.
    fn infer(&mut self, members: &[Ticket], group: u64, depth: u8) {
        let first = self.ops[members[0].0].communicator;
        if members.iter().all(|ticket| self.ops[ticket.0].communicator == first) {
            self.infer_one(members, group, depth);
            return;
        }
        let mut sorted: Vec<(u32, Ticket)> = members.iter().map(|t| (self.ops[t.0].communicator, *t)).collect();
        sorted.sort_by_key(|(communicator, _)| *communicator);
        for part in sorted.chunk_by(|a, b| a.0 == b.0) {
            let part: Vec<Ticket> = part.iter().map(|(_, ticket)| *ticket).collect();
            self.infer_one(&part, group, depth);
        }
    }

    fn infer_one(&mut self, members: &[Ticket], group: u64, depth: u8) {
        let lead = &self.ops[members[0].0];
        let communicator = self.communicators[lead.communicator].info.clone();
        let ranks = match (communicator.ranks, self.config.capture.assume_ranks) {
            (Some(ranks), _) => ranks,
            (None, assumed) => assumed,
        };
        let Some(pattern) = self.pattern(members, &communicator, ranks, depth) else { return };
        let mut operation = self.describe(lead);
        operation.id = group_id(group);
        operation.kind = OpKind::InferredGroup;
        operation.collective = pattern.collective;
        operation.function = pattern.collective.name();
        operation.partner = pattern.root;
        operation.flags = Flags(Flags::INFERRED);
        operation.members = members.len() as u32;
        operation.sequence = 0;
        operation.channels = 0;
        operation.channels_seen = 0;
        operation.sinks = 0;
        let index = self.inferred.add(Inferred {
            operation: Operation { ended_ns: 0, queued_ns: None, waits: None, gpu_start: None, ..operation },
            ranks,
            remaining: members.len() as u32,
            gpu: 0,
            kernels: 0,
            proxies: 0,
            transfers: 0,
            cpu_first: u64::MAX,
            cpu_last: 0,
        });
        for ticket in members {
            let op = &mut self.ops[ticket.0];
            op.inferred = index;
            op.flags |= Flags::IN_INFERRED_GROUP;
        }
    }

    fn pattern(&self, members: &[Ticket], communicator: &Communicator, ranks: u32, depth: u8) -> Option<Pattern> {
        let n = ranks as usize;
        if n < 2 || members.len() + 1 < n || members.len() > 2 * n {
            return None;
        }
        let lead = &self.ops[members[0].0];
        let (count, datatype) = (lead.count, lead.datatype);
        let mut seen = vec![0u8; n];
        let (mut sends, mut receives) = (0, 0);
        for ticket in members {
            let op = &self.ops[ticket.0];
            let bit = match op.collective {
                Collective::Send => 1,
                Collective::Recv => 2,
                _ => return None,
            };
            let peer = seen.get_mut(usize::try_from(op.partner).ok()?)?;
            if op.count != count || op.datatype != datatype || *peer & bit != 0 {
                return None;
            }
            *peer |= bit;
            if bit == 1 { sends += 1 } else { receives += 1 }
        }
        let rank = communicator.rank;
        let own = seen.get(usize::try_from(rank).ok()?).copied()?;
        let found = |collective, root| Some(Pattern { collective, root });
        match (sends, receives) {
            (s, r) if s == n && r == n => found(Collective::AllToAll, -1),
            (1, r) if r == n && own == 3 => found(Collective::Gather, rank),
            (s, 1) if s == n && own == 3 => found(Collective::Scatter, rank),
            // Before v5 there is no telling a group's depth; a program's own gather leaves out the root.
            (0, r) if depth == 0 && r == n - 1 && own == 0 && n > 2 => found(Collective::Gather, rank),
            (s, 0) if depth == 0 && s == n - 1 && own == 0 && n > 2 => found(Collective::Scatter, rank),
            _ => None,
        }
    }

    /// A member was pushed out.
    pub(super) fn member_gone(&mut self, index: u32) {
        self.inferred[index].operation.flags.set(Flags::EVICTED);
        self.member_less(index);
    }

    /// A member is over. `cpu`: first start and last stop of its kernels.
    pub(super) fn member_done(&mut self, index: u32, member: &Operation, cpu: Option<(u64, u64)>) {
        let inferred = &mut self.inferred[index];
        let group = &mut inferred.operation;
        group.flags.set(member.flags.0 & !MEMBER_ONLY);
        group.enqueued_ns = group.enqueued_ns.min(member.enqueued_ns);
        let enqueued = member.enqueued_ns.saturating_add(member.enqueue_ns).saturating_sub(group.enqueued_ns);
        group.enqueue_ns = group.enqueue_ns.max(enqueued);
        group.ended_ns = group.ended_ns.max(member.ended_ns);
        group.sinks |= member.sinks;
        group.channels = group.channels.saturating_add(member.channels);
        group.channels_seen = group.channels_seen.saturating_add(member.channels_seen);
        group.longest_channel_ns = group.longest_channel_ns.max(member.longest_channel_ns);
        group.sent_bytes = group.sent_bytes.saturating_add(member.sent_bytes);
        group.received_bytes = group.received_bytes.saturating_add(member.received_bytes);
        group.proxy_operations = group.proxy_operations.saturating_add(member.proxy_operations);
        group.proxy_steps = group.proxy_steps.saturating_add(member.proxy_steps);
        if let Some(waits) = member.waits {
            add_waits(group.waits.get_or_insert_default(), waits);
        }
        if let (Some(start), Some(stop)) = (member.gpu_start, member.gpu_stop) {
            group.gpu_start = Some(group.gpu_start.map_or(start, |first| first.min(start)));
            group.gpu_stop = Some(group.gpu_stop.map_or(stop, |last| last.max(stop)));
        }
        if let Some((first, last)) = cpu {
            inferred.cpu_first = inferred.cpu_first.min(first);
            inferred.cpu_last = inferred.cpu_last.max(last);
        }
        inferred.transfers += u32::from(!member.flags.has(Flags::SELF_TRANSFER));
        inferred.gpu += u32::from(member.timing == Timing::Gpu);
        inferred.kernels += u32::from(member.channels_seen > 0);
        inferred.proxies += u32::from(member.timing == Timing::ProxyCpu);
        self.member_less(index);
    }

    fn member_less(&mut self, index: u32) {
        let inferred = &mut self.inferred[index];
        inferred.remaining = inferred.remaining.saturating_sub(1);
        if inferred.remaining > 0 {
            return;
        }
        let unit = self.unit.known().unwrap_or(1);
        let group = &mut inferred.operation;
        let gpu = group.gpu_start.zip(group.gpu_stop);
        (group.timing, group.duration_ns) = match gpu {
            Some((start, stop)) => {
                let all = inferred.gpu >= inferred.transfers;
                let timing = if all { Timing::Gpu } else { Timing::GpuSomeChannels };
                (timing, Some(stop.saturating_sub(start).saturating_mul(unit)))
            }
            None if inferred.kernels > 0 && inferred.cpu_last > 0 => {
                (Timing::KernelCpu, Some(inferred.cpu_last.saturating_sub(inferred.cpu_first)))
            }
            None if inferred.proxies > 0 => (Timing::ProxyCpu, Some(group.ended_ns.saturating_sub(group.enqueued_ns))),
            None => (Timing::EnqueueOnly, Some(group.enqueue_ns)),
        };
        if inferred.cpu_first != u64::MAX {
            group.queued_ns = Some(inferred.cpu_first.saturating_sub(group.enqueued_ns));
        }
        let ranks = inferred.ranks;
        set_bandwidths(group, Some(ranks));
        let mut done = Operation { communicator: Arc::clone(&group.communicator), ..Operation::default() };
        std::mem::swap(&mut done, group);
        self.inferred.release(index);
        // A group of which no member is written is not written either.
        if done.sinks != 0 {
            self.account.inferred_groups += 1;
            self.finished.push(done);
        }
    }
}

impl Slab<Inferred> {
    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        self.used() == 0
    }
}
