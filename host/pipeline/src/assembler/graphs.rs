//! API calls that were captured into CUDA graphs: operations with such a parent are replays.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Ticket;

/// Captured calls kept; beyond it the oldest are forgotten, counted.
const BOUND: usize = 65_536;
/// API calls kept with their times (detail `api`).
const TIMED: usize = 65_536;

#[derive(Clone, Copy, Debug)]
pub(super) struct CapturedApi {
    pub datatype: u8,
    pub user_tag: u64,
    /// The replay that came last.
    pub latest: Option<Ticket>,
}

/// Captured calls by local id; and the times of API calls whose events are recorded.
#[derive(Debug, Default)]
pub(super) struct Captured {
    calls: FxHashMap<u64, CapturedApi>,
    order: VecDeque<u64>,
    timed: FxHashMap<u64, (u64, u64)>,
    timed_order: VecDeque<u64>,
}

impl Captured {
    /// Remembers a captured call; whether another one was forgotten for it.
    pub(super) fn add(&mut self, id: u64, datatype: u8, user_tag: u64) -> bool {
        if self.calls.insert(id, CapturedApi { datatype, user_tag, latest: None }).is_some() {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() <= BOUND {
            return false;
        }
        self.order.pop_front().is_some_and(|oldest| self.calls.remove(&oldest).is_some())
    }

    #[inline]
    pub(super) fn find(&mut self, id: u64) -> Option<&mut CapturedApi> {
        if id == 0 || self.calls.is_empty() { None } else { self.calls.get_mut(&id) }
    }

    /// Remembers when an API call started.
    pub(super) fn time_start(&mut self, id: u64, ns: u64) {
        if self.timed.insert(id, (ns, 0)).is_none() {
            self.timed_order.push_back(id);
            if self.timed_order.len() > TIMED
                && let Some(oldest) = self.timed_order.pop_front()
            {
                self.timed.remove(&oldest);
            }
        }
    }

    /// And when it stopped.
    pub(super) fn time_stop(&mut self, id: u64, ns: u64) {
        if let Some(times) = self.timed.get_mut(&id) {
            times.1 = ns;
        }
    }

    /// Start and stop of an API call; a stop of 0 did not come.
    pub(super) fn times(&self, id: u64) -> Option<(u64, u64)> {
        if self.timed.is_empty() { None } else { self.timed.get(&id).copied() }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }
}
