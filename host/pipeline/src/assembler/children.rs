//! Events below an operation: kernel channels, proxy operations and steps, phases, the copy engine's parts.

use collander_event::{
    Anomaly, Channel, Detail, EventKind, Flags, Payload, Phase, ProxyOperation, ProxyStep, Record, RecordFlags, State,
};

use super::Assembler;
use super::gpu_clock::Pair;
use super::open::{Child, ChildData, NONE, StepTimes, add_waits, mark};
use super::table::{Entry, Role};

/// Channels, proxy operations and steps kept whole with one operation; what is beyond is only summed up.
const LIST_BOUND: usize = 65_536;

impl Assembler {
    /// The operation that a child belongs to. None: it has none here, is counted or waits, and may be registered as detached.
    #[inline]
    fn parent_operation(&mut self, record: &Record) -> Option<u32> {
        let parent = record.header().parent.0;
        let entry = self.table.find(parent);
        if entry.role == Role::Operation {
            return Some(entry.slot);
        }
        self.no_parent(record, entry);
        None
    }

    /// A child without an open parent of the right kind.
    #[cold]
    fn no_parent(&mut self, record: &Record, entry: Entry) {
        let header = record.header();
        if header.flags.has(RecordFlags::FOREIGN_PARENT) {
            self.count(if header.id.kind() == EventKind::ProxyOp {
                Anomaly::ForeignProxy
            } else {
                Anomaly::ForeignParent
            });
            self.detach(header.id.0);
        } else if header.parent.0 == 0 {
            self.count(Anomaly::OrphanChild);
            self.detach(header.id.0);
        } else {
            match entry.role {
                Role::Vacant => self.wait(header.parent.0, record),
                Role::ClosedOperation | Role::EndedKernel | Role::Stopped => {
                    self.count(Anomaly::LateChild);
                    self.detach(header.id.0);
                }
                Role::Child if matches!(self.children[entry.slot].data, ChildData::Detached) => {
                    self.detach(header.id.0);
                }
                Role::Operation | Role::Child => self.count(Anomaly::OrphanChild),
            }
        }
    }

    /// Registers a child that belongs to nothing, so that its own stop and states are not odd. Bounded.
    fn detach(&mut self, id: u64) {
        if self.detached < self.config.drain.max_orphans && self.table.find(id).role == Role::Vacant {
            self.detached += 1;
            self.add_child(NONE, id, ChildData::Detached);
        }
    }

    #[inline]
    fn add_child(&mut self, operation: u32, id: u64, data: ChildData) {
        let next = if operation == NONE { NONE } else { self.ops[operation].first_child };
        let slot = self.children.add(Child { id, operation, next, previous: NONE, data });
        if operation != NONE {
            if next != NONE {
                self.children[next].previous = slot;
            }
            let op = &mut self.ops[operation];
            op.first_child = slot;
            op.children += 1;
        }
        self.table.insert(Entry { id, slot, role: Role::Child, ..Entry::default() });
        self.wake(id);
    }

    /// Takes a child out; its id gets `role`. Returns it.
    #[inline]
    pub(super) fn remove_child(&mut self, slot: u32, role: Role) -> Child {
        let child = self.children[slot];
        let mut entry = Entry { id: child.id, role, slot: child.operation, ..Entry::default() };
        if child.operation == NONE {
            self.detached = self.detached.saturating_sub(1);
        } else {
            if child.next != NONE {
                self.children[child.next].previous = child.previous;
            }
            if child.previous != NONE {
                self.children[child.previous].next = child.next;
            }
            let op = &mut self.ops[child.operation];
            if op.first_child == slot {
                op.first_child = child.next;
            }
            op.children -= 1;
            entry.generation = op.generation as u16;
            entry.mark = match child.data {
                ChildData::Kernel { channel, .. } => channel,
                ChildData::Proxy { send, .. } => u8::from(send),
                _ => 0,
            };
        }
        self.children[slot].id = 0;
        self.children.release(slot);
        self.table.update(entry);
        child
    }

    #[inline]
    fn known(&self, id: u64) -> bool {
        self.table.find(id).role != Role::Vacant
    }

    pub(super) fn kernel_start(&mut self, record: &Record) {
        let header = record.header();
        let Some(slot) = self.parent_operation(record) else { return };
        let Payload::KernelCh { timer } = record.payload() else { return };
        if self.known(header.id.0) {
            self.count(Anomaly::UnknownHandle);
            return;
        }
        let ns = self.calibration.unix_ns(header.ticks);
        let now = self.now_ns;
        let op = &mut self.ops[slot];
        let (word, bit) = (usize::from(header.channels >> 6), 1 << (header.channels & 63));
        let again = op.channels_seen[word] & bit != 0;
        op.channels_seen[word] |= bit;
        op.started = op.started.saturating_add(1);
        op.distinct += u16::from(!again);
        if again || (op.announced != 0 && op.distinct > op.announced) {
            self.account.anomalies.count(Anomaly::ChannelsExtra);
        }
        op.last = op.last.max(ns);
        op.touched = now;
        op.cpu_first = op.cpu_first.min(ns);
        let mut list = NONE;
        if op.detail & Detail::CHANNEL_LIST.0 != 0 {
            let channels = &mut op.more().channels;
            if channels.len() < LIST_BOUND {
                list = channels.len() as u32;
                channels.push(Channel {
                    channel: header.channels,
                    gpu_start: timer,
                    cpu_start_ns: ns,
                    ..Channel::default()
                });
            }
        }
        let data = ChildData::Kernel { channel: header.channels, gpu_start: timer, cpu_start: ns, list };
        self.add_child(slot, header.id.0, data);
    }

    /// A kernel channel ends: by its state, with a GPU stamp, or by its stop alone.
    #[inline]
    fn kernel_end(&mut self, child: u32, ns: u64, gpu_stop: Option<u64>, role: Role) {
        let Child { operation, data, .. } = self.remove_child(child, role);
        let ChildData::Kernel { channel, gpu_start, cpu_start, list, .. } = data else { return };
        let now = self.now_ns;
        let op = &mut self.ops[operation];
        op.ended = op.ended.saturating_add(1);
        op.last = op.last.max(ns);
        op.touched = now;
        op.cpu_last = op.cpu_last.max(ns);
        if ns < cpu_start {
            self.account.anomalies.count(Anomaly::KernelStopBeforeStart);
        }
        op.cpu_longest = op.cpu_longest.max(ns.saturating_sub(cpu_start));
        if list != NONE
            && let Some(channel) = op.more.as_mut().and_then(|more| more.channels.get_mut(list as usize))
        {
            channel.cpu_stop_ns = ns;
            channel.gpu_stop = gpu_stop.unwrap_or(0);
        }
        self.judge_stamps(operation, channel, (gpu_start, gpu_stop.unwrap_or(0)), ns);
        self.check(operation);
    }

    /// Uses a channel's GPU stamps if they can be this operation's.
    #[inline]
    fn judge_stamps(&mut self, slot: u32, channel: u8, (gpu_start, gpu_stop): (u64, u64), cpu_stop: u64) {
        let op = &mut self.ops[slot];
        let state = &mut self.communicators[op.communicator];
        if (1..4).contains(&state.info.api) {
            return;
        }
        let anomalies = &mut self.account.anomalies;
        if gpu_start == 0 || gpu_stop == 0 {
            anomalies.count(Anomaly::GpuTimerMissing);
            op.marks |= mark::STAMPS_LACKING;
            return;
        }
        if gpu_stop < gpu_start {
            anomalies.count(Anomaly::GpuTimerReversed);
            op.marks |= mark::STAMPS_LACKING;
            return;
        }
        if self.unit.known().is_none() {
            self.unit.learn(gpu_stop, cpu_stop, &mut state.clock.reference);
        }
        if let Some(unit) = self.unit.known() {
            let pair = Pair {
                operation: op.id,
                group: op.group,
                channel,
                enqueued: op.enqueued,
                cpu_stop,
                gpu_start: gpu_start.wrapping_mul(unit),
                gpu_stop: gpu_stop.wrapping_mul(unit),
            };
            if self.remembered.is_handed_over(op.communicator, pair) || !state.clock.accepts(pair) {
                anomalies.count(Anomaly::GpuTimerMismatch);
                op.marks |= mark::STAMPS_LACKING;
                op.flags |= Flags::TIMER_MISMATCH;
                return;
            }
        }
        op.usable = op.usable.saturating_add(1);
        op.gpu_first = op.gpu_first.min(gpu_start);
        op.gpu_last = op.gpu_last.max(gpu_stop);
        op.gpu_longest = op.gpu_longest.max(gpu_stop - gpu_start);
    }

    pub(super) fn proxy_start(&mut self, record: &Record) {
        let header = record.header();
        let Some(slot) = self.parent_operation(record) else { return };
        let Payload::ProxyOp { peer, send, steps, chunk_bytes, pid } = record.payload() else { return };
        if self.known(header.id.0) {
            self.count(Anomaly::UnknownHandle);
            return;
        }
        let foreign = header.flags.has(RecordFlags::NULL_OR_FOREIGN);
        let ns = self.calibration.unix_ns(header.ticks);
        let now = self.now_ns;
        let op = &mut self.ops[slot];
        if foreign {
            self.account.anomalies.count(Anomaly::ForeignProxy);
            op.flags |= Flags::OTHER_PROCESS;
        }
        op.proxies = op.proxies.saturating_add(1);
        op.proxies_open += 1;
        op.proxy_first = op.proxy_first.min(ns);
        op.last = op.last.max(ns);
        op.touched = now;
        let mut list = NONE;
        if op.detail & Detail::PROXY_LIST.0 != 0 {
            let proxies = &mut op.more().proxies;
            if proxies.len() < LIST_BOUND {
                list = proxies.len() as u32;
                proxies.push(ProxyOperation {
                    channel: header.channels,
                    peer,
                    send,
                    steps: steps.max(0) as u32,
                    chunk_bytes: chunk_bytes.max(0) as u32,
                    foreign_pid: if foreign { pid } else { 0 },
                    start_ns: ns,
                    ..ProxyOperation::default()
                });
            }
        }
        self.add_child(slot, header.id.0, ChildData::Proxy { send, list });
    }

    pub(super) fn step_start(&mut self, record: &Record) {
        let header = record.header();
        let Payload::ProxyStep { step } = record.payload() else { return };
        let entry = self.table.find(header.parent.0);
        let (slot, send, list) = match entry.role {
            Role::Child => {
                let parent = self.children[entry.slot];
                match parent.data {
                    ChildData::Proxy { send, list } => (parent.operation, send, list),
                    _ => return self.no_parent(record, entry),
                }
            }
            // Its proxy operation was stopped already: its time still counts.
            Role::Stopped if header.parent.kind() == EventKind::ProxyOp && self.is_current(entry) => {
                (entry.slot, entry.mark != 0, NONE)
            }
            _ => return self.no_parent(record, entry),
        };
        if self.known(header.id.0) {
            self.count(Anomaly::UnknownHandle);
            return;
        }
        let start = self.calibration.unix_ns(header.ticks);
        let now = self.now_ns;
        let op = &mut self.ops[slot];
        op.steps = op.steps.saturating_add(1);
        op.last = op.last.max(start);
        op.touched = now;
        let mut at = NONE;
        if op.detail & Detail::STEP_LIST.0 != 0
            && let Some(proxy) = op.more.as_mut().and_then(|more| more.proxies.get_mut(list as usize))
            && proxy.step_list.len() < LIST_BOUND
        {
            at = proxy.step_list.len() as u32;
            proxy.step_list.push(ProxyStep { step, start_ns: start, ..ProxyStep::default() });
        }
        let times = StepTimes { send, ..StepTimes::default() };
        self.add_child(slot, header.id.0, ChildData::Step { list, step: at, times });
    }

    /// Whether the operation that an entry of a stopped child names is still the same and open.
    fn is_current(&self, entry: Entry) -> bool {
        self.ops.items.get(entry.slot as usize).is_some_and(|op| op.id != 0 && op.generation as u16 == entry.generation)
    }

    pub(super) fn phase_start(&mut self, record: &Record) {
        let header = record.header();
        let Payload::KernelPhase { timer, phase, name } = record.payload() else { return };
        let entry = self.table.find(header.parent.0);
        let (slot, channel) = match entry.role {
            Role::Child => {
                let parent = self.children[entry.slot];
                match parent.data {
                    ChildData::Kernel { channel, .. } => (parent.operation, channel),
                    _ => return self.no_parent(record, entry),
                }
            }
            Role::EndedKernel | Role::Stopped
                if header.parent.kind() == EventKind::KernelCh && self.is_current(entry) =>
            {
                (entry.slot, entry.mark)
            }
            _ => return self.no_parent(record, entry),
        };
        if self.known(header.id.0) {
            self.count(Anomaly::UnknownHandle);
            return;
        }
        let name = self.names.text(name);
        let now = self.now_ns;
        let op = &mut self.ops[slot];
        op.touched = now;
        let (mut list, mut at) = (NONE, NONE);
        if let Some(channels) = op.more.as_mut().map(|more| &mut more.channels)
            && let Some(index) = channels.iter().rposition(|c| c.channel == channel)
            && channels[index].phases.len() < LIST_BOUND
        {
            (list, at) = (index as u32, channels[index].phases.len() as u32);
            channels[index].phases.push(Phase { phase, name, start: timer, stop: 0 });
        }
        self.add_child(slot, header.id.0, ChildData::Phase { list, phase: at });
    }

    pub(super) fn copy_engine_start(&mut self, record: &Record) {
        let header = record.header();
        let Some(slot) = self.parent_operation(record) else { return };
        if self.known(header.id.0) {
            self.count(Anomaly::UnknownHandle);
            return;
        }
        let start = self.calibration.unix_ns(header.ticks);
        let now = self.now_ns;
        let op = &mut self.ops[slot];
        if !op.has(mark::CE_STARTED) {
            op.ce_first = op.ce_first.min(start);
        }
        op.last = op.last.max(start);
        op.touched = now;
        self.add_child(slot, header.id.0, ChildData::CopyEngine { start });
    }

    /// A state, of a child or of a copy-engine operation.
    pub(super) fn child_state(&mut self, record: &Record) {
        let id = record.id();
        if matches!(
            id.kind(),
            EventKind::Group
                | EventKind::GroupApi
                | EventKind::KernelLaunch
                | EventKind::ProxyCtrl
                | EventKind::CollApi
                | EventKind::P2pApi
                | EventKind::NetPlugin
        ) {
            return;
        }
        let entry = self.table.find(id.0);
        match entry.role {
            Role::Child => self.state_of(entry.slot, record),
            Role::Operation => self.operation_state(entry.slot, record),
            Role::Vacant => self.wait(id.0, record),
            Role::EndedKernel | Role::Stopped | Role::ClosedOperation => self.count(Anomaly::StateAfterStop),
        }
    }

    #[inline]
    fn state_of(&mut self, child: u32, record: &Record) {
        let ns = self.calibration.unix_ns(record.ticks());
        let state = record.state_number();
        let argument = record.argument();
        let null = record.flags().has(RecordFlags::NULL_OR_FOREIGN);
        let operation = self.children[child].operation;
        match &mut self.children[child].data {
            ChildData::Kernel { .. } if state == State::KERNEL_CH_STOP => {
                let timer = if null { None } else { Some(argument) };
                self.kernel_end(child, ns, timer, Role::EndedKernel);
                return;
            }
            ChildData::Step { times, .. } => match state {
                State::STEP_SEND_GPU_WAIT => times.gpu = ns,
                State::STEP_SEND_PEER_WAIT => times.peer = ns,
                State::STEP_SEND_WAIT => (times.wire, times.bytes) = (ns, if null { 0 } else { argument }),
                State::STEP_RECV_WAIT => times.wire = ns,
                State::STEP_RECV_FLUSH_WAIT => (times.flush, times.bytes) = (ns, if null { 0 } else { argument }),
                State::STEP_RECV_GPU_WAIT => {
                    times.gpu = ns;
                    if !null {
                        times.bytes = argument;
                    }
                }
                _ => return self.count(Anomaly::UnexpectedState),
            },
            ChildData::Proxy { list, .. } => {
                let list = *list;
                if state == State::PROXY_OP_IN_PROGRESS {
                    if let Some(proxy) = self.proxy(operation, list) {
                        proxy.in_progress_ns = ns;
                    }
                } else if state.0 > State::PROXY_OP_RECV_DONE.0 {
                    return self.count(Anomaly::UnexpectedState);
                }
            }
            ChildData::Phase { list, phase } if state == State::KERNEL_PHASE_STOP => {
                let (list, phase) = (*list as usize, *phase as usize);
                if let Some(found) = self.ops[operation]
                    .more
                    .as_mut()
                    .and_then(|more| more.channels.get_mut(list))
                    .and_then(|channel| channel.phases.get_mut(phase))
                {
                    found.stop = argument;
                }
            }
            ChildData::CopyEngine { start } if (State::CE_FIRST.0..=State::CE_LAST.0).contains(&state.0) => {
                // 27 and 29 begin, 28 and 30 complete.
                if state.0 % 2 == 1 {
                    *start = ns;
                } else {
                    self.copy_engine_last(operation, ns);
                }
            }
            ChildData::Detached => return,
            _ => return self.count(Anomaly::UnexpectedState),
        }
        let now = self.now_ns;
        let op = &mut self.ops[operation];
        op.last = op.last.max(ns);
        op.touched = now;
        if matches!(self.children[child].data, ChildData::Proxy { .. } | ChildData::Step { .. }) {
            op.proxy_last = op.proxy_last.max(ns);
        }
    }

    fn copy_engine_last(&mut self, operation: u32, ns: u64) {
        let op = &mut self.ops[operation];
        if !op.has(mark::CE_ENDED) {
            op.ce_last = op.ce_last.max(ns);
        }
    }

    fn operation_state(&mut self, slot: u32, record: &Record) {
        let ns = self.calibration.unix_ns(record.ticks());
        let now = self.now_ns;
        let op = &mut self.ops[slot];
        let first = State::CE_FIRST.0;
        if record.id().kind() != EventKind::CeColl || !(first..=first + 1).contains(&record.state_number().0) {
            self.account.anomalies.count(Anomaly::UnexpectedState);
            return;
        }
        op.last = op.last.max(ns);
        op.touched = now;
        if record.state_number().0 == first {
            op.marks |= mark::CE_STARTED;
            op.ce_first = ns;
        } else {
            op.marks |= mark::CE_ENDED;
            op.ce_last = ns;
        }
        self.check(slot);
    }

    fn proxy(&mut self, operation: u32, list: u32) -> Option<&mut ProxyOperation> {
        if list == NONE {
            return None;
        }
        self.ops[operation].more.as_mut()?.proxies.get_mut(list as usize)
    }

    /// The stop of a child.
    pub(super) fn child_stop(&mut self, slot: u32, record: &Record) {
        let ns = self.calibration.unix_ns(record.ticks());
        let data = self.children[slot].data;
        if matches!(data, ChildData::Kernel { .. }) {
            // Before v4, or its state is missing: there is no GPU stamp.
            return self.kernel_end(slot, ns, None, Role::Stopped);
        }
        let Child { operation, .. } = self.remove_child(slot, Role::Stopped);
        if operation == NONE {
            return;
        }
        let now = self.now_ns;
        let op = &mut self.ops[operation];
        op.last = op.last.max(ns);
        op.touched = now;
        match data {
            ChildData::Proxy { list, .. } => {
                op.proxies_open = op.proxies_open.saturating_sub(1);
                op.proxy_last = op.proxy_last.max(ns);
                if let Some(proxy) = self.proxy(operation, list) {
                    proxy.stop_ns = ns;
                }
            }
            ChildData::Step { list, step, times } => self.end_step(operation, list, step, times, ns),
            ChildData::CopyEngine { .. } => self.copy_engine_last(operation, ns),
            ChildData::Phase { .. } | ChildData::Kernel { .. } | ChildData::Detached => {}
        }
        self.check(operation);
    }

    fn end_step(&mut self, operation: u32, list: u32, step: u32, times: StepTimes, stop: u64) {
        let waits = times.waits(stop);
        let op = &mut self.ops[operation];
        op.proxy_last = op.proxy_last.max(stop);
        add_waits(&mut op.waits, waits);
        let sum = if times.send { &mut op.sent } else { &mut op.received };
        *sum = sum.saturating_add(times.bytes);
        let Some(proxy) = self.proxy(operation, list) else { return };
        proxy.steps_done = proxy.steps_done.saturating_add(1);
        proxy.bytes = proxy.bytes.saturating_add(times.bytes);
        add_waits(&mut proxy.waits, waits);
        if let Some(whole) = proxy.step_list.get_mut(step as usize) {
            whole.gpu_wait_ns = times.gpu;
            whole.peer_wait_ns = times.peer;
            whole.wait_ns = times.wire;
            whole.flush_wait_ns = times.flush;
            whole.stop_ns = stop;
            whole.bytes = times.bytes;
        }
    }
}
