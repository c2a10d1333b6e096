//! The threads that come after the user's: proxy progress (ProxyOp, ProxyStep, ProxyCtrl), kernel events, copy engine.

use std::sync::mpsc::Receiver;

use collander_event::EventKind;
use collander_recording::{CeBatch, CeSync, EventDescriptor, Name, ProxyOp, StateArgument};

use super::rank::{Children, Launch, Rank, Transfer};
use crate::caller::Caller;
use crate::library::{Handle, Parents};
use crate::report::KernelChannel;

const CHUNK_BYTES: u64 = 512 << 10;
const MOST_STEPS: u64 = 16;
/// Between two channels of a kernel, ns.
const SKEW_NS: u64 = 300;
/// How often NCCL looks, ns.
const POLL_NS: u64 = 30_000;
const PHASES: [&str; 3] = ["initial_sync", "compute", "final_sync"];

/// What a thread takes care of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Duties {
    pub(super) kernels: bool,
    pub(super) proxies: bool,
}

/// One thing to do; ordered by time, then by the order in which it was planned.
#[derive(Clone, Copy, Debug)]
enum Action {
    KernelStart { task: usize, channel: u8 },
    PhaseStart { kernel: usize, phase: u8 },
    PhaseStop { kernel: usize },
    KernelStop { kernel: usize },
    ProxyStart { proxy: usize },
    StepStart { proxy: usize, step: u64 },
    StepState { proxy: usize, state: u8, bytes: u64 },
    StepStop { proxy: usize },
    ProxyStop { proxy: usize },
    CopyStart { task: usize },
    CopyStop { task: usize },
}

#[derive(Clone, Copy, Debug)]
struct Kernel {
    task: usize,
    channel: u8,
    begin_ns: u64,
    handle: Handle,
    phase: Handle,
}

#[derive(Clone, Copy, Debug)]
struct Proxy {
    task: usize,
    channel: u8,
    transfer: Transfer,
    steps: u64,
    handle: Option<Handle>,
    step: Option<Handle>,
    net: Option<Handle>,
}

/// A thread of a rank that follows its launches.
pub(super) struct Follower<'a> {
    rank: &'a Rank<'a>,
    duties: Duties,
    pub(super) caller: Caller,
    pub(super) children: Vec<Children>,
    list: bool,
    pid: i32,
    phases: [Name; 3],
}

impl<'a> Follower<'a> {
    pub(super) fn new(rank: &'a Rank<'a>, duties: Duties, caller: Caller, list: bool) -> Self {
        let phases = PHASES.map(|name| Some(name.into()));
        Self { rank, duties, caller, children: Vec::new(), list, pid: std::process::id() as i32, phases }
    }

    /// Follows until the user's thread has ended.
    pub(super) fn run(&mut self, launches: &Receiver<Launch>) {
        for launch in launches {
            self.follow(&launch);
        }
    }

    fn follow(&mut self, launch: &Launch) {
        // A kernel that waits behind one that never ends does not even start.
        let Some(start) = launch.start_ns else { return };
        let mut places: Vec<Children> = launch
            .tasks
            .iter()
            .map(|task| Children { place: task.place.unwrap_or(usize::MAX), ..Children::default() })
            .collect();
        let mut timed: Vec<(u64, Action)> = Vec::new();
        let mut kernels: Vec<Kernel> = Vec::new();
        let mut proxies: Vec<Proxy> = Vec::new();
        if self.rank.by_copy_engine(launch.spec) {
            if self.duties.kernels {
                copies(launch, start, &mut timed);
            }
        } else {
            if self.duties.kernels {
                self.plan_kernels(launch, start, &mut timed, &mut kernels);
            }
            if self.duties.proxies && !self.rank.scenario.operation[launch.spec].symmetric {
                self.plan_proxies(launch, start, &mut timed, &mut proxies);
            }
        }
        timed.sort_by_key(|(ns, _)| *ns);
        if !proxies.is_empty() {
            self.control(launch, proxies.len());
        }
        // NCCL sees by polling, never before: what is close together is done together, at the time of the last.
        for batch in timed.chunk_by(|(one, _), (other, _)| one / POLL_NS == other / POLL_NS) {
            self.rank.clock.wait_until(batch.last().map_or(0, |(ns, _)| *ns));
            for (ns, action) in batch {
                self.act(launch, *ns, *action, &mut kernels, &mut proxies, &mut places);
            }
        }
        if self.list {
            self.children.extend(places.into_iter().filter(|children| children.place != usize::MAX));
        }
    }

    fn plan_kernels(&self, launch: &Launch, start: u64, timed: &mut Vec<(u64, Action)>, kernels: &mut Vec<Kernel>) {
        let symmetric = self.rank.scenario.operation[launch.spec].symmetric;
        if !self.rank.calls(EventKind::KernelCh, launch.mask) || (symmetric && self.rank.api() < 7) {
            return;
        }
        for (task, channels) in launch.tasks.iter().map(|task| task.kernel_channels).enumerate() {
            for channel in 0..channels {
                let kernel = kernels.len();
                let skew = u64::from(channel) * SKEW_NS % 3_000;
                let begin_ns = start + skew;
                kernels.push(Kernel { task, channel, begin_ns, handle: Handle::NULL, phase: Handle::NULL });
                timed.push((begin_ns, Action::KernelStart { task: kernel, channel }));
                let Some(end) = launch.end_ns else { continue };
                if symmetric {
                    let span = (end - begin_ns.min(end)) / 10;
                    let bounds = [begin_ns, begin_ns + span, begin_ns + 9 * span, end];
                    for phase in 0..3 {
                        timed.push((bounds[usize::from(phase)], Action::PhaseStart { kernel, phase }));
                        timed.push((bounds[usize::from(phase) + 1], Action::PhaseStop { kernel }));
                    }
                }
                timed.push((end.max(begin_ns), Action::KernelStop { kernel }));
            }
        }
    }

    fn plan_proxies(&self, launch: &Launch, start: u64, timed: &mut Vec<(u64, Action)>, proxies: &mut Vec<Proxy>) {
        if !self.rank.calls(EventKind::ProxyOp, launch.mask) {
            return;
        }
        let channels = self.rank.scenario.operation[launch.spec].channels;
        for (task, transfer) in
            launch.tasks.iter().enumerate().flat_map(|(n, task)| task.transfers.iter().map(move |t| (n, t)))
        {
            for channel in 0..channels {
                let bytes = transfer.bytes / u64::from(channels);
                let steps = bytes.div_ceil(CHUNK_BYTES).clamp(1, MOST_STEPS);
                let proxy = proxies.len();
                let transfer = Transfer { bytes, ..*transfer };
                proxies.push(Proxy { task, channel, transfer, steps, handle: None, step: None, net: None });
                timed.push((start, Action::ProxyStart { proxy }));
                // Without an end it waits in its first step for ever.
                let span = launch.end_ns.map(|end| end.saturating_sub(start) / steps);
                for step in 0..if span.is_some() { steps } else { 1 } {
                    let at = |tenths: u64| start + span.unwrap_or(0) * step + span.unwrap_or(0) * tenths / 10;
                    let size = if step + 1 == steps { bytes - bytes / steps * (steps - 1) } else { bytes / steps };
                    timed.push((at(0), Action::StepStart { proxy, step }));
                    let state = |state, bytes| Action::StepState { proxy, state, bytes };
                    timed.push((at(0), state(if transfer.send { 8 } else { 10 }, 0)));
                    if span.is_none() {
                        continue;
                    }
                    if transfer.send {
                        timed.push((at(3), state(20, 0)));
                        timed.push((at(4), state(9, size)));
                    } else {
                        timed.push((at(8), state(11, size)));
                        timed.push((at(9), state(12, size)));
                    }
                    timed.push((at(9), Action::StepStop { proxy }));
                }
                if let Some(end) = launch.end_ns {
                    timed.push((end, Action::ProxyStop { proxy }));
                }
            }
        }
    }

    /// The proxy thread's own event: operations were appended.
    fn control(&mut self, launch: &Launch, appended: usize) {
        let mask = self.rank.library.mask();
        let descriptor = EventDescriptor::ProxyCtrl;
        let handle = self.rank.start(&mut self.caller, launch.group, mask, &descriptor, Parents::default());
        let handle = handle.unwrap_or_default();
        self.state(handle, 17, StateArgument::Appended(0));
        self.state(handle, 18, StateArgument::Appended(appended as i32));
        self.rank.stop(&mut self.caller, launch.group, handle);
    }

    fn state(&mut self, handle: Handle, state: u8, argument: StateArgument) -> bool {
        self.caller.state(self.rank.library, handle, state, argument)
    }

    fn start(&mut self, launch: &Launch, descriptor: &EventDescriptor, parent: Handle) -> Option<Handle> {
        self.rank.start(&mut self.caller, launch.group, launch.mask, descriptor, Parents::of(parent))
    }

    fn stop(&mut self, launch: &Launch, handle: Option<Handle>) {
        self.rank.stop(&mut self.caller, launch.group, handle.unwrap_or_default());
    }

    fn act(
        &mut self,
        launch: &Launch,
        ns: u64,
        action: Action,
        kernels: &mut [Kernel],
        proxies: &mut [Proxy],
        places: &mut [Children],
    ) {
        match action {
            Action::KernelStart { task: kernel, channel } => {
                let kernel = &mut kernels[kernel];
                let timer = self.rank.clock.gpu(kernel.begin_ns);
                let parent = launch.tasks[kernel.task].handle;
                let handle = self.start(launch, &EventDescriptor::KernelCh { channel, timer }, parent);
                kernel.handle = handle.unwrap_or_default();
                if handle.is_some() {
                    let start = if self.rank.api() >= 4 { timer } else { 0 };
                    places[kernel.task].kernel_channels.push(KernelChannel { channel, start, stop: None });
                }
            }
            Action::PhaseStart { kernel, phase } => {
                let kernel = &mut kernels[kernel];
                let (channel, timer) = (kernel.channel, self.rank.clock.gpu(ns));
                let name = self.phases[usize::from(phase)].clone();
                let descriptor = EventDescriptor::KernelPhase { channel, phase, name, timer };
                kernel.phase = self.start(launch, &descriptor, kernel.handle).unwrap_or_default();
            }
            Action::PhaseStop { kernel } => {
                let phase = std::mem::take(&mut kernels[kernel].phase);
                self.state(phase, 31, StateArgument::Timer(self.rank.clock.gpu(ns)));
                self.stop(launch, Some(phase));
            }
            Action::KernelStop { kernel } => {
                let Kernel { task, channel, handle, .. } = kernels[kernel];
                let timer = self.rank.clock.gpu(ns);
                if self.state(handle, 22, StateArgument::Timer(timer)) {
                    let mut channels = places[task].kernel_channels.iter_mut();
                    if let Some(entry) = channels.find(|entry| entry.channel == channel) {
                        entry.stop = Some(timer);
                    }
                }
                self.stop(launch, Some(handle));
            }
            Action::CopyStart { task } => self.copy(launch, launch.tasks[task].handle),
            Action::CopyStop { task } => {
                let handle = launch.tasks[task].handle;
                let sync = EventDescriptor::CeSync(CeSync { complete: true, ranks: self.ranks(launch) });
                let sync = self.start(launch, &sync, handle).unwrap_or_default();
                self.state(sync, 27, StateArgument::Raw(0));
                self.state(sync, 28, StateArgument::Raw(0));
                self.stop(launch, Some(sync));
                self.state(handle, 26, StateArgument::Raw(0));
                self.stop(launch, Some(handle));
            }
            _ => self.act_proxy(launch, action, proxies, places),
        }
    }

    fn ranks(&self, launch: &Launch) -> i32 {
        self.rank.members[launch.group].ranks() as i32
    }

    /// Copies begin: the ranks meet, then a batch is copied.
    fn copy(&mut self, launch: &Launch, handle: Handle) {
        let ranks = self.ranks(launch);
        self.state(handle, 25, StateArgument::Raw(0));
        let meet = EventDescriptor::CeSync(CeSync { complete: false, ranks });
        let bytes = self.rank.scenario.operation[launch.spec].message_bytes(ranks as u32);
        let batch = EventDescriptor::CeBatch(CeBatch { operations: ranks, bytes, intra_sync: false });
        for (descriptor, first_state) in [(meet, 27), (batch, 29)] {
            let child = self.start(launch, &descriptor, handle).unwrap_or_default();
            self.state(child, first_state, StateArgument::Raw(0));
            self.state(child, first_state + 1, StateArgument::Raw(0));
            self.stop(launch, Some(child));
        }
    }

    fn act_proxy(&mut self, launch: &Launch, action: Action, proxies: &mut [Proxy], places: &mut [Children]) {
        match action {
            Action::ProxyStart { proxy } => {
                let proxy = &mut proxies[proxy];
                let Transfer { peer, send, .. } = proxy.transfer;
                let operation = EventDescriptor::ProxyOp(ProxyOp {
                    pid: self.pid,
                    channel: proxy.channel,
                    peer: peer as i32,
                    steps: proxy.steps as i32,
                    chunk_bytes: CHUNK_BYTES as i32,
                    send,
                });
                proxy.handle = self.start(launch, &operation, launch.tasks[proxy.task].handle);
                places[proxy.task].proxy_operations += u32::from(proxy.handle.is_some());
                let handle = proxy.handle.unwrap_or_default();
                let posted = StateArgument::Transfer { bytes: 0, steps: 0 };
                self.state(handle, if send { 0 } else { 4 }, posted);
                self.state(handle, 19, StateArgument::Raw(0));
            }
            Action::StepStart { proxy, step } => {
                let proxy = &mut proxies[proxy];
                let parent = proxy.handle.unwrap_or_default();
                proxy.step = self.start(launch, &EventDescriptor::ProxyStep { step: step as i32 }, parent);
                places[proxy.task].proxy_steps += u32::from(proxy.step.is_some());
                let plugin = EventDescriptor::NetPlugin { id: 1, data: 0 };
                proxy.net = self.start(launch, &plugin, proxy.step.unwrap_or_default());
            }
            Action::StepState { proxy, state, bytes } => {
                let handle = proxies[proxy].step.unwrap_or_default();
                self.state(handle, state, StateArgument::Transfer { bytes, steps: 1 });
            }
            Action::StepStop { proxy } => {
                let net = proxies[proxy].net.unwrap_or_default();
                self.state(net, 21, StateArgument::Data(0));
                self.stop(launch, Some(net));
                self.stop(launch, proxies[proxy].step);
            }
            Action::ProxyStop { proxy } => {
                let Proxy { transfer: Transfer { send, bytes, .. }, steps, handle, .. } = proxies[proxy];
                let done = StateArgument::Transfer { bytes, steps: steps as i32 };
                for state in if send { [2, 3] } else { [6, 7] } {
                    self.state(handle.unwrap_or_default(), state, done);
                }
                self.stop(launch, handle);
            }
            _ => {}
        }
    }
}

fn copies(launch: &Launch, start: u64, timed: &mut Vec<(u64, Action)>) {
    for (task, event) in launch.tasks.iter().enumerate() {
        if event.place.is_some() {
            timed.push((start, Action::CopyStart { task }));
            if let Some(end) = launch.end_ns {
                timed.push((end, Action::CopyStop { task }));
            }
        }
    }
}
