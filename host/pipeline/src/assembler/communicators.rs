//! The communicators that operations are open on.

use std::sync::Arc;

use collander_event::Communicator;
use rustc_hash::FxHashMap;

use super::gpu_clock::GpuClock;
use super::open::NONE;

/// Communicators that records name and nobody opened: beyond so many they share one.
const UNANNOUNCED: usize = 1024;

#[derive(Debug)]
pub(super) struct State {
    /// False: the place is free.
    live: bool,
    pub info: Arc<Communicator>,
    pub plan: u32,
    /// Oldest and newest open operation.
    pub first: u32,
    pub last: u32,
    pub clock: GpuClock,
    /// Latest enqueue of an operation that ended by kernel events.
    pub finished_until: u64,
    pub walked_until: u64,
    /// Next sequence number by collective; `u64::MAX`: none seen.
    pub sequences: [u64; 16],
    /// Our own counts, by collective: of replays, and of API calls that are operations.
    pub replays: [u64; 16],
    pub api_calls: [u64; 16],
}

#[derive(Debug, Default)]
pub(super) struct Communicators {
    states: Vec<State>,
    free: Vec<u32>,
    by_ordinal: FxHashMap<u32, u32>,
    unannounced: usize,
    /// The last one asked for.
    recent: Option<(u32, u32)>,
}

impl Communicators {
    /// Index of a communicator by its ordinal.
    #[inline]
    pub(super) fn find(&mut self, ordinal: u32) -> Option<u32> {
        if let Some((known, index)) = self.recent
            && known == ordinal
        {
            return Some(index);
        }
        let index = *self.by_ordinal.get(&ordinal)?;
        self.recent = Some((ordinal, index));
        Some(index)
    }

    /// Index of one that nobody opened: made up, or the shared one. `plan`: makes its plan.
    #[cold]
    pub(super) fn unannounced(&mut self, ordinal: u32, plan: impl FnOnce(&Communicator) -> u32) -> u32 {
        let ordinal = if self.unannounced >= UNANNOUNCED { u32::MAX } else { ordinal };
        if let Some(index) = self.find(ordinal) {
            return index;
        }
        self.unannounced += 1;
        let info = Communicator { ordinal, rank: -1, ..Communicator::default() };
        let plan = plan(&info);
        self.set(Arc::new(info), plan)
    }

    /// Takes what is known of a communicator.
    pub(super) fn set(&mut self, info: Arc<Communicator>, plan: u32) -> u32 {
        let ordinal = info.ordinal;
        if let Some(index) = self.find(ordinal) {
            (self[index].info, self[index].plan) = (info, plan);
            return index;
        }
        let state = State {
            live: true,
            info,
            plan,
            first: NONE,
            last: NONE,
            clock: GpuClock::new(),
            finished_until: 0,
            walked_until: 0,
            sequences: [u64::MAX; 16],
            replays: [0; 16],
            api_calls: [0; 16],
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.states[index as usize] = state;
                index
            }
            None => {
                self.states.push(state);
                (self.states.len() - 1) as u32
            }
        };
        self.by_ordinal.insert(ordinal, index);
        index
    }

    /// Forgets one on which nothing is open.
    pub(super) fn remove(&mut self, index: u32) {
        let state = &mut self.states[index as usize];
        if std::mem::take(&mut state.live) {
            self.by_ordinal.remove(&state.info.ordinal);
            state.info = Arc::default();
            self.recent = None;
            self.free.push(index);
        }
    }

    /// Indexes of all.
    pub(super) fn indexes(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.states.len() as u32
    }

    /// Every communicator's open operations have to be looked at again.
    pub(super) fn walk_again(&mut self) {
        self.states.iter_mut().for_each(|state| state.walked_until = 0);
    }

    /// Ordinals of those with this plan.
    pub(super) fn with_plan(&self, plan: u32) -> impl Iterator<Item = u32> {
        self.states.iter().filter(move |state| state.live && state.plan == plan).map(|state| state.info.ordinal)
    }
}

impl std::ops::Index<u32> for Communicators {
    type Output = State;

    fn index(&self, index: u32) -> &State {
        &self.states[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Communicators {
    fn index_mut(&mut self, index: u32) -> &mut State {
        &mut self.states[index as usize]
    }
}
