//! One thread's calls: counts them, and injects the faults that are asked for.

use collander_event::EventKind;
use collander_recording::{EventDescriptor, ProxyOp, StateArgument};

use crate::faults::{Faults, Random};
use crate::library::{Context, Handle, Library, Parents};
use crate::report::{InjectedCalls, Report, VtableCalls};

/// Handles of stopped events that a thread remembers for stale calls.
const REMEMBERED: usize = 512;

/// One per thread of a simulation; [`Self::finish`] adds its counts to a report.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) functions: VtableCalls,
    injected: InjectedCalls,
    faults: Option<Faults>,
    random: Random,
    stopped: Vec<Handle>,
    /// Events started less events stopped: this thread may stop what another started.
    open: u64,
}

impl Caller {
    /// `thread` makes the faults of each thread its own.
    pub(crate) fn new(faults: Option<Faults>, thread: u64) -> Self {
        Self {
            functions: VtableCalls::default(),
            injected: InjectedCalls::default(),
            random: Random::of(&[faults.map_or(0, |faults| faults.seed), thread]),
            faults,
            stopped: Vec::new(),
            open: 0,
        }
    }

    /// `startEvent`; NULL if the version lacks the kind.
    pub(crate) fn start(
        &mut self,
        library: &Library,
        context: &Context,
        descriptor: &EventDescriptor,
        rank: i32,
        parents: Parents,
    ) -> Handle {
        let handle = library.start(context, descriptor, rank, parents);
        self.functions.start += u64::from(handle.is_some());
        let handle = handle.unwrap_or(Handle::NULL);
        self.open = self.open.wrapping_add(u64::from(!handle.is_null()));
        handle
    }

    /// `recordEventState`, unless the handle is NULL or the version lacks the state. Says whether it was called.
    pub(crate) fn state(&mut self, library: &Library, handle: Handle, state: u8, argument: StateArgument) -> bool {
        let called = !handle.is_null() && library.state(handle, state, argument);
        self.functions.state += u64::from(called);
        called
    }

    /// `stopEvent`, unless the handle is NULL.
    pub(crate) fn stop(&mut self, library: &Library, context: &Context, handle: Handle) {
        if handle.is_null() {
            return;
        }
        library.stop(handle);
        self.functions.stop += 1;
        self.open = self.open.wrapping_sub(1);
        if let Some(faults) = self.faults {
            self.inject(library, context, handle, &faults);
        }
    }

    fn inject(&mut self, library: &Library, context: &Context, handle: Handle, faults: &Faults) {
        if self.random.chance(faults.late) {
            self.any_state(library, handle);
            self.injected.late += 1;
        }
        if self.random.chance(faults.doubled) {
            library.stop(handle);
            self.injected.doubled += 1;
        }
        if self.random.chance(faults.stale) && !self.stopped.is_empty() {
            let old = self.stopped[self.random.next() as usize % self.stopped.len()];
            self.stop_or_state(library, old);
            self.injected.stale += 1;
        }
        if self.random.chance(faults.foreign_handles) {
            let bits = if self.random.chance(0.5) { self.foreign(handle.0) } else { self.random.next() | 1 };
            if self.random.chance(0.3) {
                // A child of an event that is not of this process.
                let child = EventDescriptor::ProxyStep { step: 0 };
                if let Some(child) = library.start(context, &child, 0, Parents::of(Handle(bits))) {
                    library.stop(child);
                }
            } else {
                self.stop_or_state(library, Handle(bits));
            }
            self.injected.foreign_handles += 1;
        }
        if self.random.chance(faults.foreign_contexts) {
            self.foreign_context(library, context, handle);
            self.injected.foreign_contexts += 1;
        }
        if self.stopped.len() < REMEMBERED {
            self.stopped.push(handle);
        } else {
            let place = self.random.next() as usize % REMEMBERED;
            self.stopped[place] = handle;
        }
    }

    /// As with PXN: a proxy operation whose context and parent are another process's.
    fn foreign_context(&mut self, library: &Library, context: &Context, handle: Handle) {
        let bits = if self.random.chance(0.7) { self.foreign(context.bits) } else { self.random.next() };
        let other = Context { bits, communicator: context.communicator.clone() };
        let operation =
            EventDescriptor::ProxyOp(ProxyOp { pid: 1, channel: 1, peer: 1, steps: 1, chunk_bytes: 4096, send: true });
        let parent = Handle(self.foreign(handle.0));
        let Some(operation) = library.start(&other, &operation, 0, Parents::of(parent)) else { return };
        if operation.is_null() {
            return;
        }
        let step = library.start(&other, &EventDescriptor::ProxyStep { step: 0 }, 0, Parents::of(operation));
        if let Some(step) = step.filter(|step| !step.is_null()) {
            library.state(step, 9, StateArgument::Transfer { bytes: 4096, steps: 1 });
            library.stop(step);
        }
        library.stop(operation);
    }

    /// The same bits with others on top, where an address or id says whose it is.
    fn foreign(&mut self, bits: u64) -> u64 {
        bits ^ ((self.random.next() | 1) << 48)
    }

    fn stop_or_state(&mut self, library: &Library, handle: Handle) {
        if self.random.chance(0.5) {
            library.stop(handle);
        } else {
            self.any_state(library, handle);
        }
    }

    fn any_state(&mut self, library: &Library, handle: Handle) {
        let states: &[u8] = if library.api() >= 4 { &[22, 9, 11, 12, 19, 18] } else { &[9, 11, 12, 3, 7, 18] };
        let state = states[self.random.next() as usize % states.len()];
        let argument = match state {
            22 => StateArgument::Timer(self.random.next()),
            18 => StateArgument::Appended(1),
            19 => StateArgument::Null,
            _ => StateArgument::Transfer { bytes: 1 << 20, steps: 1 },
        };
        library.state(handle, state, argument);
    }

    /// Adds what was counted.
    pub(crate) fn finish(&self, report: &mut Report) {
        report.functions.add(&self.functions);
        report.injected.add(&self.injected);
        report.never_stopped = report.never_stopped.wrapping_add(self.open);
    }
}

/// Rank that NCCL writes into the descriptor of an event: 0 on many kinds, whatever the rank.
pub(crate) const fn descriptor_rank(kind: EventKind, rank: i32, api: u8) -> i32 {
    match kind {
        EventKind::Group | EventKind::KernelCh | EventKind::ProxyCtrl => 0,
        EventKind::GroupApi | EventKind::CollApi | EventKind::P2pApi | EventKind::KernelLaunch if api < 7 => 0,
        _ => rank,
    }
}
