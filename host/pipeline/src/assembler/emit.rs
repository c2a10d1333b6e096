//! An operation that is over, as it is written.

use collander_event::{Anomaly, Collective, Datatype, EventId, Flags, OpKind, OpenOperation, Operation, Timing};

use super::Assembler;
use super::open::{ChildData, NONE, Open, mark};
use super::table::{Entry, Role};

/// Where a duration comes from, and what it is.
struct Measured {
    timing: Timing,
    duration_ns: Option<u64>,
    longest_ns: Option<u64>,
}

impl Assembler {
    /// Takes an operation and its children out of all tables; its id gets `role`.
    pub(super) fn remove(&mut self, slot: u32, role: Role) {
        let mut child = self.ops[slot].first_child;
        while child != NONE {
            let next = self.children[child].next;
            match self.children[child].data {
                ChildData::Proxy { .. } => self.count(Anomaly::ProxyNeverStopped),
                ChildData::Step { .. } => self.count(Anomaly::StepNeverStopped),
                _ => {}
            }
            self.remove_child(child, Role::Stopped);
            child = next;
        }
        let op = &mut self.ops[slot];
        let (older, newer, communicator) = (op.older, op.newer, op.communicator);
        let entry = Entry { id: op.id, role, mark: u8::from(op.stopped != 0), ..Entry::default() };
        op.id = 0;
        op.more = None;
        self.ops.release(slot);
        self.table.update(entry);
        let state = &mut self.communicators[communicator];
        if older == NONE {
            state.first = newer;
        } else {
            self.ops[older].newer = newer;
        }
        if newer == NONE {
            state.last = older;
        } else {
            self.ops[newer].older = older;
        }
    }

    /// Writes an operation and forgets it.
    pub(super) fn emit(&mut self, slot: u32) {
        self.note_late_replay(slot);
        let (flags, lacking) = self.last_flags(&self.ops[slot]);
        if lacking {
            self.count(Anomaly::ChannelsMissing);
        }
        let left_out = self.ops[slot].has(mark::LEFT_OUT);
        let inferred = self.ops[slot].inferred;
        if self.ops[slot].ended > 0 && flags & (Flags::ABORTED | Flags::TIMED_OUT) == 0 {
            let (communicator, enqueued) = (self.ops[slot].communicator, self.ops[slot].enqueued);
            let state = &mut self.communicators[communicator];
            state.finished_until = state.finished_until.max(enqueued);
        }
        if left_out && inferred == NONE {
            self.account.sampled_filter += 1;
            self.remove(slot, Role::ClosedOperation);
            return;
        }
        let mut operation = self.describe(&self.ops[slot]);
        operation.flags = Flags(operation.flags.0 | flags);
        if operation.timing == Timing::Unobservable {
            self.count(Anomaly::Unobservable);
        }
        if operation.rank_bytes.is_none() {
            self.count(Anomaly::UnknownDatatype);
        }
        let op = &mut self.ops[slot];
        if let Some(more) = op.more.take() {
            (operation.channel_list, operation.proxies) = (more.channels, more.proxies);
        }
        let cpu = if op.ended > 0 { Some((op.cpu_first, op.cpu_last)) } else { None };
        self.remove(slot, Role::ClosedOperation);
        if left_out {
            operation.sinks = 0;
        }
        if inferred != NONE {
            self.member_done(inferred, &operation, cpu);
        }
        if left_out {
            self.account.sampled_filter += 1;
        } else {
            self.account.finished += 1;
            self.finished.push(operation);
        }
    }

    /// Flags that only the end tells; whether channels are missing.
    fn last_flags(&self, op: &Open) -> (u32, bool) {
        let mut flags = op.flags;
        if op.stopped == 0 && op.kind != OpKind::Api {
            flags |= Flags::NEVER_STOPPED;
        }
        let api = self.communicators[op.communicator].info.api;
        let expected = op.detail & collander_event::Detail::CHANNELS.0 != 0 && !(1..3).contains(&api);
        let lacking = expected
            && op.has(mark::CHANNELS_EXACT)
            && op.announced != 0
            && (op.distinct < op.announced || op.ended < op.started)
            && !(op.started == 0 && flags & (Flags::SELF_TRANSFER | Flags::SYMMETRIC) != 0);
        if lacking {
            flags |= Flags::CHANNELS_MISSING;
        }
        if op.usable > 0 && self.unit.known() == Some(10) {
            flags |= Flags::TIMER_TICKS_10NS;
        }
        (flags, lacking)
    }

    fn measure(&self, op: &Open) -> Measured {
        let enqueue = op.stopped.saturating_sub(op.enqueued);
        let of = |timing, duration_ns, longest_ns| Measured { timing, duration_ns, longest_ns };
        match op.kind {
            OpKind::CopyEngine if op.ce_first != u64::MAX && op.ce_last != 0 => {
                return of(Timing::KernelCpu, Some(op.ce_last.saturating_sub(op.ce_first)), None);
            }
            OpKind::CopyEngine => return of(Timing::Unobservable, None, None),
            OpKind::Api if op.has(mark::API_TIMED) => return of(Timing::EnqueueOnly, Some(enqueue), None),
            OpKind::Api => return of(Timing::Unobservable, None, None),
            _ => {}
        }
        if op.usable > 0 {
            let unit = self.unit.known().unwrap_or(1);
            let all = op.usable == op.started && op.distinct >= op.announced;
            let timing = if all { Timing::Gpu } else { Timing::GpuSomeChannels };
            let ns = |ticks: u64| Some(ticks.saturating_mul(unit));
            return of(timing, ns(op.gpu_last.saturating_sub(op.gpu_first)), ns(op.gpu_longest));
        }
        if op.ended > 0 {
            let duration = op.cpu_last.saturating_sub(op.cpu_first);
            return of(Timing::KernelCpu, Some(duration), Some(op.cpu_longest));
        }
        if op.proxies > 0 && op.proxy_last != 0 {
            return of(Timing::ProxyCpu, Some(op.proxy_last.saturating_sub(op.proxy_first)), None);
        }
        if op.flags & Flags::SYMMETRIC != 0 || op.stopped == 0 {
            return of(Timing::Unobservable, None, None);
        }
        of(Timing::EnqueueOnly, Some(enqueue), None)
    }

    /// What is known of an operation, open or over; without its lists.
    pub(super) fn describe(&self, op: &Open) -> Operation {
        let state = &self.communicators[op.communicator];
        let (datatype_text, user_datatype) = (self.names.text(op.datatype), self.names.text(op.api_datatype));
        let function = self.names.text(op.function);
        // The text may have become known after the start.
        let collective =
            if op.collective == Collective::Unknown { Collective::from_text(function) } else { op.collective };
        let datatype = self.datatype(op.datatype);
        let size = match datatype.size() {
            0 => self.datatype(op.api_datatype).size(),
            size => size,
        };
        let ranks = match (state.info.ranks, self.config.capture.assume_ranks) {
            (Some(ranks), _) => Some(ranks),
            (None, 0) => None,
            (None, assumed) => Some(assumed),
        };
        let rank_bytes = (size != 0).then(|| op.count.saturating_mul(u64::from(size)));
        let measured = self.measure(op);
        let more = op.more.as_deref();
        let gpu = (op.usable > 0).then_some((op.gpu_first, op.gpu_last));
        let mut operation = Operation {
            id: op.id,
            kind: op.kind,
            communicator: state.info.clone(),
            collective,
            function,
            datatype,
            datatype_text,
            user_datatype,
            algorithm: self.names.text(op.algorithm),
            protocol: self.names.text(op.protocol),
            timing: measured.timing,
            flags: Flags(op.flags),
            sequence: op.sequence,
            count: op.count,
            bytes: None,
            rank_bytes,
            partner: op.partner,
            channels: op.announced,
            channels_seen: op.distinct,
            warps: op.warps,
            enqueued_ns: op.enqueued,
            enqueue_ns: op.stopped.saturating_sub(op.enqueued),
            queued_ns: (op.started > 0).then(|| op.cpu_first.saturating_sub(op.enqueued)),
            duration_ns: measured.duration_ns,
            longest_channel_ns: measured.longest_ns,
            ended_ns: op.last,
            gpu_start: gpu.map(|(start, _)| start),
            gpu_stop: gpu.map(|(_, stop)| stop),
            algbw: None,
            busbw: None,
            waits: (op.steps > 0).then_some(op.waits),
            sent_bytes: op.sent,
            received_bytes: op.received,
            proxy_operations: op.proxies,
            proxy_steps: op.steps,
            user_tag: more.map_or(0, |more| more.user_tag),
            kernel_variant: more.map_or("", |more| self.names.text(more.variant)),
            sync_strategy: more.map_or("", |more| self.names.text(more.strategy)),
            group: op.group,
            members: 0,
            sinks: op.sinks,
            channel_list: Vec::new(),
            proxies: Vec::new(),
        };
        set_bandwidths(&mut operation, ranks);
        operation
    }

    fn datatype(&self, code: u8) -> Datatype {
        match self.meanings[usize::from(code)] {
            Some(meaning) => meaning.datatype,
            None => Datatype::from_text(self.names.text(code)),
        }
    }

    pub(super) fn open_operation(&self, slot: u32) -> OpenOperation {
        let op = &self.ops[slot];
        OpenOperation {
            operation: self.describe(op),
            channels_started: op.started,
            channels_ended: op.ended,
            last_proxy_ns: match op.proxy_last {
                0 => (op.proxy_first != u64::MAX).then_some(op.proxy_first),
                ns => Some(ns),
            },
        }
    }
}

/// Bytes and bandwidths from `rank_bytes`, the duration and the number of ranks.
pub(super) fn set_bandwidths(operation: &mut Operation, ranks: Option<u32>) {
    let factor = match ranks {
        Some(ranks) => Some(operation.collective.size_factor(ranks)),
        // Where the number of ranks makes no difference.
        None if operation.collective.size_factor(2) == 1 => Some(1),
        None => None,
    };
    operation.bytes = operation.rank_bytes.zip(factor).map(|(bytes, factor)| bytes.saturating_mul(factor));
    let measured = operation.duration_ns.filter(|ns| *ns > 0 && operation.timing.measures());
    operation.algbw = operation.bytes.zip(measured).map(|(bytes, ns)| bytes as f64 / ns as f64);
    let bus = ranks.and_then(|ranks| operation.collective.bus_factor(ranks));
    operation.busbw = operation.algbw.zip(bus).map(|(algbw, factor)| algbw * factor);
}

/// Local id of a group as an operation id.
pub(super) const fn group_id(group: u64) -> u64 {
    EventId(group).local()
}
