//! Plays a recording, faithful to NCCL: its threads, the order of its calls, its rules for masks and NULL handles.

mod expected;
mod plan;
mod turn;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use collander_event::EventKind;
use collander_recording::Recording;

use crate::caller::Caller;
use crate::error::SimError;
use crate::job::{Options, Progress};
use crate::library::{Communicator, Context, Handle, Library, Parents, take_log_messages};
use crate::mask::{Quirks, is_called};
use crate::report::Report;
use plan::{ContextRef, Freeze, Plan, Step, Target};
use turn::Turns;

/// Calls between two reports of progress.
const PROGRESS_CALLS: usize = 2048;

/// What happened to an event; its calls are in sequence.
#[derive(Debug, Default)]
struct Slot {
    /// The plugin's handle.
    handle: AtomicU64,
    /// Mask that its operation was started with.
    mask: AtomicU32,
    /// Calls of the event that have returned or were skipped.
    completed: AtomicU32,
    /// See the constants.
    flags: AtomicU8,
}

impl Slot {
    const CALLED: u8 = 1;
    const KERNEL_STOP_CALLED: u8 = 2;
    const STOPPED: u8 = 4;

    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }
}

struct Replay<'a> {
    plan: &'a Plan,
    options: &'a Options,
    quirks: Quirks,
    library: RwLock<Option<Library>>,
    slots: Vec<Slot>,
    contexts: Vec<OnceLock<Context>>,
    turns: Turns,
    begin: Instant,
    report: Mutex<Report>,
    progress: &'a (dyn Fn(Progress) + Sync),
    nobody: Arc<Communicator>,
}

/// Plays one file in this process.
pub(crate) fn run(file: &Path, options: &Options, progress: &(dyn Fn(Progress) + Sync)) -> Result<Report, SimError> {
    let recording = Recording::read(file)?;
    let (header, total) = (recording.header.clone(), recording.calls.len() as u64);
    let plan = Plan::new(recording)?;
    let api = options.api.unwrap_or(header.api);
    let library = Library::open(&options.library, Some(api))?;
    let replay = Replay {
        quirks: if api == header.api { Quirks::of(&header.nccl) } else { Quirks::default() },
        slots: (0..plan.slots.len()).map(|_| Slot::default()).collect(),
        contexts: (0..plan.communicators.len()).map(|_| OnceLock::new()).collect(),
        turns: Turns::new(plan.owners.clone(), plan.threads.len()),
        library: RwLock::new(Some(library)),
        begin: Instant::now(),
        report: Mutex::new(Report { loads: 1, ..Report::default() }),
        nobody: Arc::default(),
        plan: &plan,
        options,
        progress,
    };
    if let Some(first) = plan.owners.first() {
        let played = catch_unwind(AssertUnwindSafe(|| thread::scope(|scope| replay.spawn(scope, *first as usize))));
        if let Some(error) = replay.turns.take_error() {
            return Err(error);
        }
        played.map_err(|_| SimError::Panicked)?;
    }
    progress(Progress { done: total, total });
    Ok(replay.finish(api))
}

impl<'a> Replay<'a> {
    fn spawn<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, thread: usize) {
        if !self.turns.claim_thread(thread) {
            return;
        }
        let builder = thread::Builder::new().name(format!("replay-{thread}"));
        if let Err(error) = builder.spawn_scoped(scope, move || self.play(scope, thread)) {
            self.turns.fail(SimError::Thread(error));
        }
    }

    /// The life of one recorded thread.
    fn play<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, thread: usize) {
        let _guard = self.turns.enter(thread);
        let mut caller = Caller::new(self.options.faults, thread as u64);
        for call in &self.plan.threads[thread] {
            let call = *call as usize;
            if !self.turns.wait(call) {
                break;
            }
            self.pace(call);
            let step = &self.plan.steps[call];
            if step.is_alone() && !self.turns.wait_for_others(thread) {
                break;
            }
            if let Step::Init { reload: true, .. } = step
                && let Err(error) = self.reload()
            {
                self.turns.fail(error);
                break;
            }
            self.turns.begin(thread, call);
            if let Some(next) = self.turns.pass(call) {
                self.spawn(scope, next);
            }
            if let Err(error) = self.execute(&mut caller, step) {
                self.turns.fail(error);
            }
            self.turns.end(thread);
            if call.is_multiple_of(PROGRESS_CALLS) {
                (self.progress)(Progress { done: call as u64, total: self.plan.steps.len() as u64 });
            }
        }
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        caller.finish(&mut report);
    }

    /// Waits until the call's recorded time, if that is wanted.
    fn pace(&self, call: usize) {
        let factor = self.options.realtime.unwrap_or(0.0);
        if factor > 0.0 {
            let due = Duration::from_nanos((self.plan.times_ns[call] as f64 * factor) as u64);
            thread::sleep(due.saturating_sub(self.begin.elapsed()));
        }
    }

    fn reload(&self) -> Result<(), SimError> {
        let mut library = self.library.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = library.take() {
            let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
            report.failed_calls += open.failures();
            report.loads += 1;
            *library = Some(open.reopen()?);
        }
        Ok(())
    }

    fn execute(&self, caller: &mut Caller, step: &Step) -> Result<(), SimError> {
        let guard = self.library.read().unwrap_or_else(PoisonError::into_inner);
        let Some(library) = guard.as_ref() else { return Ok(()) };
        match step {
            Step::Init { context, .. } => {
                let opened = library.init(&self.plan.communicators[*context])?;
                caller.functions.init += 1;
                let _ = self.contexts[*context].set(opened);
            }
            Step::Finalize { context } => {
                // NCCL does not finalise a communicator whose context is NULL.
                if let Some(context) = self.contexts[*context].get().filter(|context| context.bits != 0) {
                    library.finalize(context);
                    caller.functions.finalize += 1;
                }
            }
            Step::Start(slot) => self.start(caller, library, *slot),
            Step::State { target, order, state, argument } => {
                self.after(*target, *order);
                let called = caller.state(library, self.handle(*target), *state, *argument);
                if let (Target::Slot(slot), true, 22) = (target, called, state) {
                    self.slots[*slot].flags.fetch_or(Slot::KERNEL_STOP_CALLED, Ordering::Relaxed);
                }
                self.complete(*target);
            }
            Step::Stop { target, order, context } => {
                self.after(*target, *order);
                let own = context.and_then(|context| self.contexts[context].get());
                let nobody = Context { bits: 0, communicator: Arc::clone(&self.nobody) };
                caller.stop(library, own.unwrap_or(&nobody), self.handle(*target));
                if let Target::Slot(slot) = target {
                    self.slots[*slot].flags.fetch_or(Slot::STOPPED, Ordering::Relaxed);
                }
                self.complete(*target);
            }
        }
        Ok(())
    }

    fn start(&self, caller: &mut Caller, library: &Library, number: usize) {
        let event = &self.plan.slots[number];
        let slot = &self.slots[number];
        // The communicator's init has returned, and with it the mask is set, before anything uses the communicator.
        let foreign;
        let context = match event.context {
            ContextRef::Own(context) => {
                self.turns.until(|| self.contexts[context].get().is_some());
                self.contexts[context].get()
            }
            ContextRef::Bits(bits) => {
                foreign = Context { bits, communicator: Arc::clone(&self.nobody) };
                Some(&foreign)
            }
        };
        let mask = match event.freeze {
            Freeze::Now => library.mask(),
            Freeze::As(other) => {
                self.turns.until(|| self.slots[other].completed.load(Ordering::Acquire) > 0);
                self.slots[other].mask.load(Ordering::Relaxed)
            }
        };
        slot.mask.store(mask, Ordering::Relaxed);
        let (parent, group) = (self.parent(event.parent), self.parent(event.group));
        let kind = event.descriptor.kind();
        // NCCL 2.27.7 alone sends no steps under a proxy operation whose handle is NULL.
        let cut = self.quirks.nccl_2_27_7 && kind == EventKind::ProxyStep && parent.is_null();
        if let Some(context) = context
            && !cut
            && is_called(kind, mask, library.api(), self.quirks)
        {
            let parents = Parents { parent, group };
            let handle = caller.start(library, context, &event.descriptor, event.rank, parents);
            slot.handle.store(handle.0, Ordering::Relaxed);
            slot.flags.fetch_or(Slot::CALLED, Ordering::Relaxed);
        }
        // Pairs with the Acquire in `after`, `parent` and `start`.
        slot.completed.store(1, Ordering::Release);
    }

    /// The plugin's own handle for a parent, once its start has returned.
    fn parent(&self, target: Target) -> Handle {
        if let Target::Slot(slot) = target {
            self.turns.until(|| self.slots[slot].completed.load(Ordering::Acquire) > 0);
        }
        self.handle(target)
    }

    fn handle(&self, target: Target) -> Handle {
        match target {
            Target::Null => Handle::NULL,
            Target::Slot(slot) => Handle(self.slots[slot].handle.load(Ordering::Relaxed)),
            Target::Foreign(bits) => Handle(bits),
        }
    }

    /// Waits until the event's earlier calls have returned.
    fn after(&self, target: Target, order: u32) {
        if let Target::Slot(slot) = target {
            self.turns.until(|| self.slots[slot].completed.load(Ordering::Acquire) >= order);
        }
    }

    fn complete(&self, target: Target) {
        if let Target::Slot(slot) = target {
            self.slots[slot].completed.fetch_add(1, Ordering::Release);
        }
    }

    fn finish(self, api: u8) -> Report {
        let Self { library, slots, report, begin, plan, options, .. } = self;
        let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.seconds = begin.elapsed().as_secs_f64();
        if let Some(library) = library.into_inner().unwrap_or_else(PoisonError::into_inner) {
            report.failed_calls += library.failures();
        }
        report.api = api;
        report.calls = report.functions.total();
        report.processes = 1;
        report.ranks = plan.ranks();
        report.communicators = plan.communicators.len() as u64;
        report.log = take_log_messages().into_iter().map(|message| message.text).collect();
        let open = |slot: &&Slot| slot.handle.load(Ordering::Relaxed) != 0 && !slot.has(Slot::STOPPED);
        report.never_stopped = slots.iter().filter(open).count() as u64;
        expected::fill(&mut report, plan, &slots, api, options.expected);
        report
    }
}
