//! A recording's calls as the records that the plugin would write, and what must become of them, found independently.

use std::collections::HashMap;

use collander_event::{
    Communicator, Detail, EventId, EventKind, NameTable, Payload, Record, RecordFlags, StartHeader, State,
};
use collander_recording::{CallKind, EventDescriptor, HandleRef, Name, Recording, Start, StateArgument};

/// What the drain is told, in order.
pub enum Step {
    /// A record of a ring.
    Record(u8, Record),
    /// `init`.
    Open(Communicator),
    /// `finalize`.
    Close(u32),
}

/// An operation as the recording has it.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    kind: &'static str,
    communicator: u32,
    function: String,
    sequence: u64,
    count: u64,
    datatype: String,
    algorithm: String,
    protocol: String,
    partner: i32,
    channels: u16,
    /// Start and stop stamps by kernel.
    kernels: Vec<(u64, Option<u64>)>,
    proxies: u32,
    proxies_stopped: u32,
    steps: u32,
    sent: u64,
    received: u64,
    /// To oneself: no kernels are expected.
    own: bool,
}

impl Expected {
    /// As `described` has it of an operation.
    pub fn described(&self, detail: Detail) -> String {
        let proxies = detail.contains(Detail::PROXY_OPERATIONS);
        let number = |n: u64| if proxies { n } else { 0 };
        let complete: Option<Vec<(u64, u64)>> =
            self.kernels.iter().map(|(start, stop)| stop.map(|stop| (*start, stop))).collect();
        let gpu =
            complete.filter(|stamps| !stamps.is_empty() && stamps.len() >= usize::from(self.channels)).map(|stamps| {
                let first = stamps.iter().map(|(start, _)| *start).min().unwrap();
                let last = stamps.iter().map(|(_, stop)| *stop).max().unwrap();
                (last - first, stamps.iter().map(|(start, stop)| stop - start).max().unwrap())
            });
        let text = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
        format!(
            "{} comm {} {} seq {} count {} {} {} {} partner {} channels {} seen {} gpu {} longest {} proxies {} steps {} bytes {} {}",
            self.kind,
            self.communicator,
            self.function,
            self.sequence,
            self.count,
            self.datatype,
            self.algorithm,
            self.protocol,
            self.partner,
            self.channels,
            self.kernels.len(),
            text(gpu.map(|gpu| gpu.0)),
            text(gpu.map(|gpu| gpu.1)),
            number(self.proxies.into()),
            number(self.steps.into()),
            number(self.sent),
            number(self.received),
        )
    }

    /// It never ended: a kernel did not start or stop, or (if they are asked for) a proxy did not stop.
    fn never_ended(&self, detail: Detail) -> bool {
        let kernels = self.kernels.iter().any(|(_, stop)| stop.is_none())
            || (self.kernels.is_empty() && !self.own && self.channels > 0);
        kernels || (detail.contains(Detail::PROXY_OPERATIONS) && self.proxies_stopped < self.proxies)
    }
}

#[derive(Default)]
struct Thread {
    group: u64,
    depth: i32,
    /// API calls that wait for their operation: handle and record.
    stash: Vec<(u64, StartHeader, [u64; 4])>,
    stopped_kernel: Option<u64>,
    counter: u64,
    ordinal: u32,
}

/// An event of the recording.
#[derive(Clone, Copy)]
struct Event {
    /// 0: no handle was given, since nobody wants such a child.
    id: EventId,
    /// Index of its operation in `expected`.
    operation: Option<usize>,
    kernel: usize,
    send: bool,
    bytes: u64,
}

#[derive(Default)]
pub struct HotSide {
    pub steps: Vec<(u64, Step)>,
    pub names: Vec<String>,
    pub expected: Vec<Expected>,
    pub base_ns: u64,
    pub never_ended: u64,
    pub sequence_gaps: u64,
    pub proxies_never_stopped: u64,
    pub steps_never_stopped: u64,
    threads: HashMap<u32, Thread>,
    contexts: HashMap<u64, Communicator>,
    events: HashMap<u64, Event>,
    table: NameTable,
    p2p: HashMap<(u32, i32, bool), u64>,
    sequences: HashMap<(u32, String), u64>,
    /// Operations by API call that waits.
    api_only: HashMap<u64, Expected>,
}

/// Unix time of the first call: the latest moment at which no GPU stamp is seen before it was made.
fn base(recording: &Recording) -> u64 {
    recording
        .calls
        .iter()
        .filter_map(|call| match call.kind {
            CallKind::State(change) => match change.argument {
                StateArgument::Timer(timer) if timer != 0 => Some(timer.wrapping_sub(call.t_ns)),
                _ => None,
            },
            _ => None,
        })
        .max()
        .unwrap_or(1_700_000_000_000_000_000)
}

impl HotSide {
    pub fn convert(recording: &Recording, detail: Detail) -> Self {
        let mut hot = Self { base_ns: base(recording), ..Self::default() };
        hot.table.code_of("");
        for call in &recording.calls {
            let ns = hot.base_ns + call.t_ns;
            match &call.kind {
                CallKind::Init(init) => {
                    let communicator = Communicator {
                        ordinal: hot.contexts.len() as u32,
                        hash: init.communicator_id,
                        rank: init.rank,
                        ranks: u32::try_from(init.ranks).ok(),
                        nodes: u32::try_from(init.nodes).ok(),
                        api: recording.header.api,
                        opened_ns: ns,
                        ..Communicator::default()
                    };
                    hot.contexts.insert(init.context, communicator.clone());
                    hot.steps.push((ns, Step::Open(communicator)));
                }
                CallKind::Finalize { context } => {
                    if let HandleRef::Own(context) = context {
                        let ordinal = hot.contexts[context].ordinal;
                        hot.steps.push((ns, Step::Close(ordinal)));
                    }
                }
                CallKind::Start(start) => hot.start(ns, call.thread, start, detail),
                CallKind::State(change) => {
                    let HandleRef::Own(handle) = change.handle else { continue };
                    let (argument, null) = match change.argument {
                        StateArgument::Null => (0, RecordFlags::NULL_OR_FOREIGN),
                        StateArgument::Transfer { bytes, .. } => (bytes, 0),
                        StateArgument::Appended(n) => (n as u64, 0),
                        StateArgument::Timer(value) | StateArgument::Data(value) | StateArgument::Raw(value) => {
                            (value, 0)
                        }
                    };
                    hot.state(ns, call.thread, handle, State(change.state), argument, null);
                }
                CallKind::Stop { handle: HandleRef::Own(handle), .. } => hot.stop(ns, call.thread, *handle),
                CallKind::Stop { .. } => {}
            }
        }
        hot.finish(detail);
        hot
    }

    fn finish(&mut self, detail: Detail) {
        self.names = (0..self.table.len()).map(|code| self.table.text(code as u8).to_owned()).collect();
        for operation in &self.expected {
            self.never_ended += u64::from(operation.never_ended(detail));
            self.proxies_never_stopped += u64::from(operation.proxies - operation.proxies_stopped);
        }
        self.steps_never_stopped =
            self.events.values().filter(|event| event.id.kind() == EventKind::ProxyStep && event.id.0 != 0).count()
                as u64;
    }

    fn name(&mut self, name: &Name) -> u8 {
        self.table.code_of(name.as_deref().unwrap_or(""))
    }

    fn push(&mut self, ns: u64, thread: u32, record: Record) {
        self.steps.push((ns, Step::Record(thread as u8, record)));
    }

    fn start(&mut self, ns: u64, thread_number: u32, start: &Start, detail: Detail) {
        let Some(handle) = start.handle else { return };
        let kind = start.descriptor.kind();
        let HandleRef::Own(context) = start.context else { return };
        let communicator = self.contexts[&context].clone();
        let parent = match start.parent {
            HandleRef::Own(parent) => self.events.get(&parent).copied(),
            _ => None,
        };
        let parent_handle = if let HandleRef::Own(handle) = start.parent { handle } else { 0 };
        let wanted = match kind {
            EventKind::KernelCh => Detail::CHANNELS,
            EventKind::ProxyOp => Detail::PROXY_OPERATIONS,
            EventKind::ProxyStep => Detail::PROXY_STEPS,
            _ => Detail(0),
        };
        let recorded = detail.contains(wanted);
        let thread = self.threads.entry(thread_number).or_default();
        thread.counter += 1;
        let operation = matches!(kind, EventKind::Coll | EventKind::P2p);
        if operation {
            thread.ordinal += 1;
            thread.stash.retain(|(waiting, ..)| *waiting != parent_handle);
        }
        let id_detail = match (kind, parent) {
            (EventKind::Coll | EventKind::P2p, _) => detail,
            (_, Some(parent)) => parent.id.detail(),
            _ => Detail(0),
        };
        let id = EventId::new(0, thread_number as u8, thread.counter, id_detail, kind);
        let mut header = StartHeader {
            ticks: ns,
            id,
            parent: parent.map_or(EventId(0), |parent| parent.id),
            ordinal: if operation { thread.ordinal } else { 0 },
            communicator: communicator.ordinal,
            ..StartHeader::default()
        };
        let (group, depth) = (thread.group, thread.depth);
        let mut event = Event {
            id: if recorded { id } else { EventId(0) },
            operation: parent.and_then(|parent| parent.operation),
            kernel: 0,
            send: false,
            bytes: 0,
        };
        let group = match start.group {
            _ if group != 0 => group,
            HandleRef::Own(group) => self.events.get(&group).map_or(0, |group| group.id.0),
            _ => parent.filter(|parent| parent.id.kind() == EventKind::Group).map_or(0, |parent| parent.id.0),
        };
        let payload = match &start.descriptor {
            EventDescriptor::GroupApi { depth, .. } => {
                let thread = self.threads.entry(thread_number).or_default();
                (thread.group, thread.depth) = (id.0, *depth);
                None
            }
            EventDescriptor::CollApi(api) => {
                let (function, datatype) = (self.name(&api.function), self.name(&api.datatype));
                let payload = Payload::Api {
                    stream: api.stream,
                    count: api.count,
                    function,
                    datatype,
                    root: api.root,
                    user_tag: api.user_tag,
                };
                self.stash(thread_number, handle, header, payload);
                None
            }
            EventDescriptor::P2pApi(api) => {
                let (function, datatype) = (self.name(&api.function), self.name(&api.datatype));
                let payload =
                    Payload::Api { stream: api.stream, count: api.count, function, datatype, root: 0, user_tag: 0 };
                self.stash(thread_number, handle, header, payload);
                None
            }
            EventDescriptor::Coll(coll) => {
                (header.channels, header.warps) = (coll.channels, coll.warps);
                let function = coll.function.as_deref().unwrap_or("").to_owned();
                let next = self.sequences.entry((communicator.ordinal, function.clone())).or_insert(coll.sequence);
                self.sequence_gaps += u64::from(coll.sequence > *next);
                *next = coll.sequence + 1;
                event.operation = Some(self.expected.len());
                let text = |name: &Name| name.as_deref().unwrap_or("").to_owned();
                let partner = root_of(&function, coll.root);
                self.expected.push(Expected {
                    kind: "coll",
                    communicator: communicator.ordinal,
                    function,
                    sequence: coll.sequence,
                    count: coll.count,
                    datatype: text(&coll.datatype),
                    algorithm: text(&coll.algorithm),
                    protocol: text(&coll.protocol),
                    partner,
                    channels: if coll.channels == 0 { 256 } else { coll.channels.into() },
                    ..Expected::default()
                });
                Some(Payload::Coll {
                    sequence: coll.sequence,
                    count: coll.count,
                    function: self.name(&coll.function),
                    datatype: self.name(&coll.datatype),
                    algorithm: self.name(&coll.algorithm),
                    protocol: self.name(&coll.protocol),
                    root: coll.root,
                    group: EventId(group),
                    api_datatype: 0,
                })
            }
            EventDescriptor::P2p(p2p) => {
                header.channels = p2p.channels;
                let receives = p2p.function.as_deref() == Some("Recv");
                let number = self.p2p.entry((communicator.ordinal, p2p.peer, receives)).or_default();
                let sequence = *number;
                *number += 1;
                event.operation = Some(self.expected.len());
                self.expected.push(Expected {
                    kind: "p2p",
                    communicator: communicator.ordinal,
                    function: p2p.function.as_deref().unwrap_or("").to_owned(),
                    sequence,
                    count: p2p.count,
                    datatype: p2p.datatype.as_deref().unwrap_or("").to_owned(),
                    partner: p2p.peer,
                    channels: p2p.channels.into(),
                    own: p2p.peer == communicator.rank,
                    ..Expected::default()
                });
                Some(Payload::P2p {
                    sequence,
                    count: p2p.count,
                    function: self.name(&p2p.function),
                    datatype: self.name(&p2p.datatype),
                    peer: p2p.peer,
                    group: EventId(group),
                    group_depth: depth as u8,
                })
            }
            EventDescriptor::KernelCh { channel, timer } => {
                header.channels = *channel;
                if let Some(operation) = event.operation {
                    event.kernel = self.expected[operation].kernels.len();
                    self.expected[operation].kernels.push((*timer, None));
                }
                Some(Payload::KernelCh { timer: *timer })
            }
            EventDescriptor::ProxyOp(proxy) => {
                header.channels = proxy.channel;
                event.send = proxy.send;
                if let Some(operation) = event.operation {
                    self.expected[operation].proxies += 1;
                }
                Some(Payload::ProxyOp {
                    peer: proxy.peer,
                    send: proxy.send,
                    steps: proxy.steps,
                    chunk_bytes: proxy.chunk_bytes,
                    pid: proxy.pid,
                })
            }
            EventDescriptor::ProxyStep { step } => {
                event.send = parent.is_some_and(|parent| parent.send);
                if let Some(operation) = event.operation {
                    self.expected[operation].steps += 1;
                }
                Some(Payload::ProxyStep { step: *step })
            }
            _ => None,
        };
        self.events.insert(handle, event);
        if let Some(payload) = payload
            && recorded
        {
            self.push(ns, thread_number, Record::start(header, payload.words()));
        }
    }

    /// An API call waits for its operation until its group ends.
    fn stash(&mut self, thread: u32, handle: u64, header: StartHeader, payload: Payload) {
        let Payload::Api { count, function, datatype, root, .. } = payload else { return };
        self.api_only.insert(
            handle,
            Expected {
                kind: "api",
                communicator: header.communicator,
                function: self.table.text(function).to_owned(),
                count,
                datatype: self.table.text(datatype).to_owned(),
                partner: root_of(self.table.text(function), root),
                ..Expected::default()
            },
        );
        self.threads.entry(thread).or_default().stash.push((handle, header, payload.words()));
    }

    fn state(&mut self, ns: u64, thread: u32, handle: u64, state: State, argument: u64, flags: u8) {
        let Some(event) = self.events.get_mut(&handle) else { return };
        let kind = event.id.kind();
        match (state, event.operation) {
            (State::KERNEL_CH_STOP, Some(operation)) => {
                self.expected[operation].kernels[event.kernel].1 = Some(argument);
                self.threads.entry(thread).or_default().stopped_kernel = Some(handle);
            }
            (State::STEP_SEND_WAIT | State::STEP_RECV_FLUSH_WAIT | State::STEP_RECV_GPU_WAIT, _) => {
                event.bytes = argument
            }
            _ => {}
        }
        if event.id.0 != 0 && matches!(kind, EventKind::KernelCh | EventKind::ProxyOp | EventKind::ProxyStep) {
            let record = Record::state(ns, event.id, state, argument, RecordFlags(flags));
            self.push(ns, thread, record);
        }
    }

    fn stop(&mut self, ns: u64, thread_number: u32, handle: u64) {
        let Some(event) = self.events.get(&handle).copied() else { return };
        let kind = event.id.kind();
        let thread = self.threads.entry(thread_number).or_default();
        match kind {
            EventKind::GroupApi if thread.group == event.id.0 => {
                (thread.group, thread.depth) = (0, 0);
                for (handle, mut header, words) in std::mem::take(&mut thread.stash) {
                    thread.ordinal += 1;
                    (header.ticks, header.ordinal) = (ns, thread.ordinal);
                    header.flags = RecordFlags(RecordFlags::API_ONLY);
                    self.expected.extend(self.api_only.remove(&handle));
                    self.steps.push((ns, Step::Record(thread_number as u8, Record::start(header, words))));
                }
            }
            EventKind::ProxyOp => {
                if let Some(operation) = event.operation {
                    self.expected[operation].proxies_stopped += 1;
                }
            }
            EventKind::ProxyStep => {
                if let Some(operation) = event.operation {
                    let operation = &mut self.expected[operation];
                    *(if event.send { &mut operation.sent } else { &mut operation.received }) += event.bytes;
                }
                // What is left at the end never stopped.
                self.events.remove(&handle);
            }
            _ => {}
        }
        let thread = self.threads.entry(thread_number).or_default();
        if kind == EventKind::KernelCh && thread.stopped_kernel == Some(handle) {
            thread.stopped_kernel = None;
            return;
        }
        let recorded = matches!(
            kind,
            EventKind::Coll | EventKind::P2p | EventKind::KernelCh | EventKind::ProxyOp | EventKind::ProxyStep
        );
        if recorded && event.id.0 != 0 {
            self.push(ns, thread_number, Record::stop(ns, event.id));
        }
    }
}

/// The root of what has one; NCCL gives 0 for all others.
fn root_of(function: &str, root: i32) -> i32 {
    if collander_event::Collective::from_text(function).is_rooted() { root } else { -1 }
}
