//! When an operation is over.

use collander_event::{Anomaly, Detail, Flags, OpKind};

use super::open::{NONE, Open, Stage, mark};
use super::table::Role;
use super::{Assembler, Ticket};

/// Passes that a closed operation waits for stragglers, where its class has some.
const STRAGGLER_PASSES: u64 = 2;

/// What an operation still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All came.
    Over,
    /// It may be over: if nothing comes for the settle time, it is.
    Settling,
    /// Something must still come, or the timeout.
    Waiting,
}

impl Assembler {
    fn settle_ns(&self) -> u64 {
        self.config.drain.settle.as_nanos() as u64
    }

    fn verdict(&self, op: &Open) -> Verdict {
        let state = &self.communicators[op.communicator];
        let overtaken_by = op.enqueued < state.finished_until;
        if (op.enqueued <= self.lossy_until && overtaken_by) || op.has(mark::SUPERSEDED) {
            // Its records may be lost, and later operations are over.
            return match self.verdict_of_events(op, state.info.api, true) {
                Verdict::Over => Verdict::Over,
                _ => Verdict::Settling,
            };
        }
        self.verdict_of_events(op, state.info.api, overtaken_by)
    }

    fn verdict_of_events(&self, op: &Open, api: u8, overtaken_by: bool) -> Verdict {
        if op.kind == OpKind::Api {
            return Verdict::Over;
        }
        if op.stopped == 0 || op.started != op.ended || op.proxies_open > 0 {
            return Verdict::Waiting;
        }
        if op.kind == OpKind::CopyEngine {
            return if op.has(mark::CE_ENDED) {
                Verdict::Over
            } else if op.has(mark::CE_STARTED) || op.children > 0 {
                Verdict::Waiting
            } else {
                Verdict::Settling
            };
        }
        if op.started > 0 {
            let all = op.announced != 0 && op.distinct >= op.announced;
            return if all { Verdict::Over } else { Verdict::Settling };
        }
        if op.detail & Detail::CHANNELS.0 == 0 || (1..3).contains(&api) {
            // No kernel events can come: the proxies', if any, tell its end.
            let proxies = Detail::PROXY_OPERATIONS.0 | Detail::PROXY_STEPS.0;
            return if op.detail & proxies == 0 { Verdict::Over } else { Verdict::Settling };
        }
        if op.flags & (Flags::SELF_TRANSFER | Flags::SYMMETRIC) != 0 || overtaken_by {
            return Verdict::Settling;
        }
        Verdict::Waiting
    }

    /// Looks at an operation after something happened to it.
    #[inline]
    pub(super) fn check(&mut self, slot: u32) {
        let op = &self.ops[slot];
        if op.stage != Stage::Open || op.stopped == 0 {
            return;
        }
        match self.verdict(op) {
            Verdict::Over => self.conclude(slot),
            Verdict::Settling => self.watch(slot),
            Verdict::Waiting => {}
        }
    }

    /// Puts an operation on the list of those to look at after the settle time.
    pub(super) fn watch(&mut self, slot: u32) {
        let due = self.now_ns.saturating_add(self.settle_ns());
        let op = &mut self.ops[slot];
        if op.stage == Stage::Open && !op.has(mark::WATCHED) {
            op.marks |= mark::WATCHED;
            self.watched.push_back(((slot, op.generation), due));
        }
    }

    /// It is over: writes it, or lets it wait for what has to come first.
    pub(super) fn conclude(&mut self, slot: u32) {
        let op = &mut self.ops[slot];
        if op.has(mark::GROUP_OPEN) {
            op.stage = Stage::Held;
            return;
        }
        let stragglers = Detail::PROXY_OPERATIONS.0 | Detail::PROXY_STEPS.0 | Detail::PHASES.0;
        let waits = (op.detail & stragglers != 0 || op.kind == OpKind::Api) && !op.has(mark::WAITED);
        if waits || (op.usable > 0 && self.unit.known().is_none()) {
            op.stage = Stage::Closing;
            self.closing.push_back(((slot, op.generation), self.pass + STRAGGLER_PASSES));
            return;
        }
        self.emit(slot);
    }

    /// Operations whose settle time has passed.
    pub(super) fn look_at_watched(&mut self) {
        let settle = self.settle_ns();
        for _ in 0..self.watched.len() {
            let Some((ticket, due)) = self.watched.front().copied() else { return };
            if due > self.now_ns {
                return;
            }
            self.watched.pop_front();
            if !self.is_open(ticket) {
                continue;
            }
            let slot = ticket.0;
            let due = self.ops[slot].touched.saturating_add(settle);
            if due > self.now_ns {
                self.watched.push_back((ticket, due));
                continue;
            }
            self.ops[slot].marks &= !mark::WATCHED;
            if self.ops[slot].stage == Stage::Open && self.verdict(&self.ops[slot]) != Verdict::Waiting {
                if self.ops[slot].has(mark::SUPERSEDED) {
                    self.ops[slot].flags |= Flags::SUPERSEDED;
                    self.count(Anomaly::ClosedByReplay);
                }
                self.conclude(slot);
            }
        }
    }

    /// Operations that were over and have waited for stragglers.
    pub(super) fn finish_closing(&mut self, last: bool) {
        for _ in 0..self.closing.len() {
            let Some((ticket, pass)) = self.closing.front().copied() else { return };
            if pass > self.pass && !last {
                return;
            }
            self.closing.pop_front();
            if !self.is_open(ticket) || self.ops[ticket.0].stage != Stage::Closing {
                continue;
            }
            let slot = ticket.0;
            let op = &mut self.ops[slot];
            op.marks |= mark::WAITED;
            if op.usable > 0 && self.unit.known().is_none() && !last {
                let settled = op.touched.saturating_add(self.config.drain.settle.as_nanos() as u64);
                if settled > self.now_ns {
                    self.closing.push_back((ticket, self.pass + 1));
                    continue;
                }
            } else if op.proxies_open > 0 || op.started != op.ended {
                // A straggler came: it is open again.
                op.stage = Stage::Open;
                self.check(slot);
                continue;
            }
            self.emit(slot);
        }
    }

    /// Looks for operations without kernel events although later ones of their communicator are over.
    pub(super) fn walk_communicators(&mut self) {
        for index in self.communicators.indexes() {
            let state = &mut self.communicators[index];
            if state.first == NONE || state.walked_until == state.finished_until {
                continue;
            }
            state.walked_until = state.finished_until;
            let (mut slot, until) = (state.first, state.finished_until);
            while slot != NONE {
                let op = &self.ops[slot];
                if op.enqueued >= until {
                    break;
                }
                let next = op.newer;
                if op.stage == Stage::Open && ((op.stopped != 0 && op.started == 0) || op.enqueued <= self.lossy_until)
                {
                    self.watch(slot);
                }
                slot = next;
            }
        }
    }

    /// The time at which the first pass ends is when everything before it was touched.
    pub(super) fn touch_all(&mut self, now_ns: u64) {
        for op in self.ops.items.iter_mut().filter(|op| op.id != 0) {
            op.touched = op.touched.max(now_ns);
        }
        for (_, due) in &mut self.watched {
            *due = due.saturating_add(now_ns);
        }
    }

    /// Closes operations to which nothing happened for too long. Looks at all of them, a few times within the timeout.
    pub(super) fn check_timeouts(&mut self) {
        let timeout = self.config.drain.operation_timeout.as_nanos() as u64;
        if timeout == 0 || self.now_ns < self.next_timeout_ns {
            return;
        }
        self.next_timeout_ns = self.now_ns.saturating_add((timeout / 8).min(1_000_000_000));
        for slot in 0..self.ops.items.len() as u32 {
            let op = &self.ops[slot];
            if op.id != 0 && op.stage == Stage::Open && op.touched.saturating_add(timeout) <= self.now_ns {
                self.count(Anomaly::ClosedByTimeout);
                self.force(slot, Flags::TIMED_OUT);
            }
        }
    }

    /// Closes an operation of a communicator that was finalised.
    pub(super) fn close_finalised(&mut self, slot: u32) {
        let op = &self.ops[slot];
        // Where records were lost it may have ended: that is not for us to say.
        let lossy = op.enqueued <= self.lossy_until;
        if op.stage == Stage::Open && !lossy && self.verdict(op) == Verdict::Waiting {
            self.count(Anomaly::ClosedByFinalize);
            self.force(slot, Flags::ABORTED);
        } else {
            self.force(slot, 0);
        }
    }

    /// Nothing will follow: closes everything.
    pub(super) fn close_all(&mut self) {
        for slot in 0..self.ops.items.len() as u32 {
            if self.ops[slot].id != 0 {
                self.force(slot, 0);
            }
        }
        for slot in 0..self.children.items.len() as u32 {
            if self.children[slot].id != 0 {
                self.remove_child(slot, Role::Stopped);
            }
        }
        self.watched.clear();
        self.closing.clear();
    }

    /// Writes an operation now, whatever it lacks.
    pub(super) fn force(&mut self, slot: u32, flags: u32) {
        let ticket: Ticket = (slot, self.ops[slot].generation);
        self.ops[slot].flags |= flags;
        if self.ops[slot].has(mark::GROUP_OPEN) {
            self.decide_group_of(slot);
        }
        if self.is_open(ticket) {
            self.emit(slot);
        }
    }

    /// Pushes out the oldest operations, one in 64 of those allowed.
    #[cold]
    pub(super) fn evict_oldest(&mut self) {
        let mut slots: Vec<(u64, u32)> =
            (0u32..).zip(&self.ops.items).filter(|(_, op)| op.id != 0).map(|(slot, op)| (op.enqueued, slot)).collect();
        let count = (slots.len() / 64).max(1).min(slots.len());
        if count < slots.len() {
            slots.select_nth_unstable(count);
        }
        for (_, slot) in slots.into_iter().take(count) {
            if self.ops[slot].has(mark::GROUP_OPEN) {
                self.decide_group_of(slot);
            }
            if self.ops[slot].id != 0 {
                self.count(Anomaly::EvictedOpen);
                self.account.evicted += 1;
                self.ops[slot].flags |= Flags::EVICTED;
                let inferred = self.ops[slot].inferred;
                self.remove(slot, Role::ClosedOperation);
                if inferred != NONE {
                    self.member_gone(inferred);
                }
            }
        }
    }
}
