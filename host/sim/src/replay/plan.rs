//! A recording, resolved: which event each call belongs to, its parents, and whose mask decides about it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use collander_event::EventKind;
use collander_recording::{CallKind, EventDescriptor, HandleRef, Init, Recording, Start, StateArgument};

use crate::error::SimError;
use crate::library::Communicator;

/// An event that a call refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Null,
    /// Index into [`Plan::slots`].
    Slot(usize),
    /// Bits of another process.
    Foreign(u64),
}

/// A context that a start refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextRef {
    /// Index into [`Plan::communicators`].
    Own(usize),
    Bits(u64),
}

/// Which mask decides whether an event is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freeze {
    /// The mask at the moment.
    Now,
    /// The mask that decided about that event: NCCL keeps it with the operation.
    As(usize),
}

/// An event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) context: ContextRef,
    pub(super) parent: Target,
    pub(super) group: Target,
    pub(super) rank: i32,
    pub(super) freeze: Freeze,
    pub(super) descriptor: EventDescriptor,
    /// Argument of its KernelChStop in the recording.
    pub(super) kernel_stop: Option<u64>,
}

/// What a call does. `order`: how many calls of the event come before.
#[derive(Debug)]
pub(super) enum Step {
    Init { context: usize, reload: bool },
    Start(usize),
    State { target: Target, order: u32, state: u8, argument: StateArgument },
    Stop { target: Target, order: u32, context: Option<usize> },
    Finalize { context: usize },
}

impl Step {
    /// Whether no other call may be running: NCCL has joined its threads, or loads the library anew.
    pub(super) const fn is_alone(&self) -> bool {
        matches!(self, Self::Finalize { .. } | Self::Init { reload: true, .. })
    }
}

/// The whole recording.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) times_ns: Vec<u64>,
    /// Thread of each step.
    pub(super) owners: Vec<u32>,
    /// Steps of each thread.
    pub(super) threads: Vec<Vec<u32>>,
    pub(super) slots: Vec<Event>,
    /// One for each init.
    pub(super) communicators: Vec<Arc<Communicator>>,
}

struct Builder {
    plan: Plan,
    path: PathBuf,
    api: u8,
    load: u32,
    handles: HashMap<u64, usize>,
    contexts: HashMap<u64, usize>,
    threads: HashMap<u32, u32>,
    /// Calls of each event so far.
    orders: Vec<u32>,
    /// GroupApi that is open on each thread.
    open_group: HashMap<u32, usize>,
}

impl Plan {
    pub(super) fn new(recording: Recording) -> Result<Self, SimError> {
        let mut builder = Builder {
            plan: Self::default(),
            path: recording.path,
            api: recording.header.api,
            load: 1,
            handles: HashMap::new(),
            contexts: HashMap::new(),
            threads: HashMap::new(),
            orders: Vec::new(),
            open_group: HashMap::new(),
        };
        for (number, call) in recording.calls.into_iter().enumerate() {
            let step = builder.step(call.thread, call.kind).map_err(|problem| SimError::Inconsistent {
                path: builder.path.clone(),
                call: number + 1,
                problem,
            })?;
            let next = builder.threads.len() as u32;
            let thread = *builder.threads.entry(call.thread).or_insert(next);
            let plan = &mut builder.plan;
            if thread == next {
                plan.threads.push(Vec::new());
            }
            plan.threads[thread as usize].push(plan.steps.len() as u32);
            plan.owners.push(thread);
            plan.times_ns.push(call.t_ns);
            plan.steps.push(step);
        }
        Ok(builder.plan)
    }

    /// Ranks that the process plays: of the communicator of which it plays most.
    pub(super) fn ranks(&self) -> u64 {
        let mut ranks: HashMap<u64, HashSet<i32>> = HashMap::new();
        for communicator in &self.communicators {
            ranks.entry(communicator.id).or_default().insert(communicator.rank);
        }
        ranks.values().map(HashSet::len).max().unwrap_or(0) as u64
    }
}

impl Builder {
    fn step(&mut self, thread: u32, kind: CallKind) -> Result<Step, String> {
        Ok(match kind {
            CallKind::Init(init) => self.init(*init)?,
            CallKind::Start(start) => self.start(thread, *start)?,
            CallKind::State(change) => {
                let target = self.target(change.handle)?;
                if let (Target::Slot(slot), 22, StateArgument::Timer(timer)) = (target, change.state, change.argument) {
                    self.plan.slots[slot].kernel_stop.get_or_insert(timer);
                }
                let order = self.order(target);
                Step::State { target, order, state: change.state, argument: change.argument }
            }
            CallKind::Stop { handle, .. } => {
                let target = self.target(handle)?;
                let order = self.order(target);
                let mut context = None;
                if let Target::Slot(slot) = target {
                    if self.open_group.get(&thread) == Some(&slot) {
                        self.open_group.remove(&thread);
                    }
                    if let ContextRef::Own(own) = self.plan.slots[slot].context {
                        context = Some(own);
                    }
                }
                Step::Stop { target, order, context }
            }
            CallKind::Finalize { context } => {
                let HandleRef::Own(number) = context else {
                    return Err("finalize needs `ctx`, the number of a context".to_owned());
                };
                Step::Finalize { context: self.context(number)? }
            }
        })
    }

    fn init(&mut self, init: Init) -> Result<Step, String> {
        let reload = init.load != self.load;
        if init.load < self.load {
            return Err(format!("`load` is {} after {}; it can only grow", init.load, self.load));
        }
        self.load = init.load;
        let context = self.plan.communicators.len();
        self.plan.communicators.push(Arc::new(Communicator {
            id: init.communicator_id,
            name: init.name,
            nodes: init.nodes,
            ranks: init.ranks,
            rank: init.rank,
        }));
        self.contexts.insert(init.context, context);
        Ok(Step::Init { context, reload })
    }

    fn start(&mut self, thread: u32, start: Start) -> Result<Step, String> {
        let context = match start.context {
            HandleRef::Own(number) => ContextRef::Own(self.context(number)?),
            HandleRef::Foreign(bits) => ContextRef::Bits(bits),
            HandleRef::Null => ContextRef::Bits(0),
        };
        let (mut parent, mut group) = (self.target(start.parent)?, self.target(start.group)?);
        let kind = start.descriptor.kind();
        if self.api <= 4 && matches!(kind, EventKind::Coll | EventKind::P2p) {
            (parent, group) = (Target::Null, parent);
        }
        let slot = self.plan.slots.len();
        let freeze = self.freeze(thread, kind, parent, group);
        if kind == EventKind::GroupApi {
            self.open_group.insert(thread, slot);
        }
        if let Some(number) = start.handle
            && self.handles.insert(number, slot).is_some()
        {
            return Err(format!("handle {number} is started twice"));
        }
        let (rank, descriptor) = (start.rank, start.descriptor);
        self.plan.slots.push(Event { context, parent, group, rank, freeze, descriptor, kernel_stop: None });
        self.orders.push(1);
        Ok(Step::Start(slot))
    }

    /// NCCL reads the mask when the user's group begins (v5 and later) or the plan's group does, and keeps it with the
    /// operations and their proxies.
    fn freeze(&self, thread: u32, kind: EventKind, parent: Target, group: Target) -> Freeze {
        let of = |target| if let Target::Slot(slot) = target { Some(slot) } else { None };
        let open = self.open_group.get(&thread).copied();
        let decider = match kind {
            EventKind::GroupApi | EventKind::ProxyCtrl => None,
            EventKind::CollApi | EventKind::P2pApi | EventKind::KernelLaunch => of(parent).or(open),
            EventKind::Group => open,
            EventKind::Coll | EventKind::P2p | EventKind::CeColl => of(group).or(of(parent)).or(open),
            _ => of(parent),
        };
        decider.map_or(Freeze::Now, Freeze::As)
    }

    fn order(&mut self, target: Target) -> u32 {
        let Target::Slot(slot) = target else { return 0 };
        self.orders[slot] += 1;
        self.orders[slot] - 1
    }

    fn target(&self, handle: HandleRef) -> Result<Target, String> {
        Ok(match handle {
            HandleRef::Null => Target::Null,
            HandleRef::Foreign(bits) => Target::Foreign(bits),
            HandleRef::Own(number) => {
                let slot = self.handles.get(&number);
                Target::Slot(*slot.ok_or_else(|| format!("handle {number} was never started"))?)
            }
        })
    }

    fn context(&self, number: u64) -> Result<usize, String> {
        self.contexts.get(&number).copied().ok_or_else(|| format!("context {number} was never made by an init"))
    }
}
