//! The user's thread: API events, launch, tasks. A CUDA host-callback thread issues the tasks of replayed graphs.

use std::collections::HashMap;
use std::sync::Arc;

use collander_event::EventKind;
use collander_recording::{CeColl, Coll, CollApi, EventDescriptor, Name, P2p, P2pApi, StateArgument};

use super::rank::{Launch, Rank, Task, Transfer};
use super::timeline::Planned;
use super::{OperationSpec, Pattern};
use crate::caller::Caller;
use crate::expected;
use crate::library::{Handle, Parents};
use crate::report::{ExpectedOperation, OperationCounts, OperationKind};

const SEND_BUFFER: u64 = 0x7f00_0000_0000;
const RECEIVE_BUFFER: u64 = 0x7f40_0000_0000;
const STREAM: u64 = 0x5500_0000_1000;
const WARPS: u8 = 17;

/// What a captured operation keeps for its replays.
#[derive(Clone, Debug)]
struct Captured {
    mask: u32,
    api: Vec<Handle>,
    sequence: u64,
}

/// One part of an operation: the collective, or one send or receive.
#[derive(Clone, Debug)]
struct Part {
    /// Send or receive, and the peer's rank in the communicator.
    peer: Option<(bool, u32)>,
    api: EventDescriptor,
    task: EventDescriptor,
}

/// The user's thread of a rank.
pub(super) struct Issuer<'a> {
    rank: &'a Rank<'a>,
    pub(super) caller: Caller,
    names: HashMap<String, Arc<str>>,
    sequences: HashMap<(usize, String), u64>,
    ce_sequence: u32,
    captured: HashMap<(usize, u32), Captured>,
    pub(super) operations: OperationCounts,
    pub(super) expected: Vec<ExpectedOperation>,
    list: bool,
    next_place: usize,
}

impl<'a> Issuer<'a> {
    pub(super) fn new(rank: &'a Rank<'a>, caller: Caller, list: bool) -> Self {
        Self {
            rank,
            caller,
            names: HashMap::new(),
            sequences: HashMap::new(),
            ce_sequence: 0,
            captured: HashMap::new(),
            operations: OperationCounts::default(),
            expected: Vec::new(),
            list,
            next_place: 0,
        }
    }

    /// Issues one operation; returns what its other threads have to do.
    pub(super) fn issue(&mut self, planned: &Planned, group: usize) -> Option<Launch> {
        let rank = self.rank;
        let spec = &rank.scenario.operation[planned.spec];
        let mask = self.rank.library.mask();
        let captures = spec.graph && planned.first;
        let sequence = self.sequence(group, spec, !spec.graph);
        let parts = self.parts(planned.spec, group, sequence, captures);
        let kernels = !(spec.api_only && self.rank.api() >= 6);
        let api_group = self.start(group, mask, &group_api(captures), Parents::default());
        self.state(api_group, 23);
        let mut api = Vec::with_capacity(parts.len());
        for part in &parts {
            let handle = self.start(group, mask, &part.api, Parents::of(api_group.unwrap_or_default()));
            self.stop(group, handle);
            api.push(handle);
        }
        self.state(api_group, 24);
        let mut launch = None;
        if captures {
            let api = api.iter().map(|handle| handle.unwrap_or_default()).collect();
            self.captured.insert((planned.spec, planned.repetition), Captured { mask, api, sequence });
        } else if kernels {
            if !self.rank.by_copy_engine(planned.spec) {
                let kernel = EventDescriptor::KernelLaunch { stream: STREAM };
                let handle = self.start(group, mask, &kernel, Parents::of(api_group.unwrap_or_default()));
                self.stop(group, handle);
            }
            let handles: Vec<Handle> = api.iter().map(|handle| handle.unwrap_or_default()).collect();
            launch = Some(self.tasks(planned, group, mask, &parts, &handles, &api, false));
        } else {
            for (part, handle) in parts.iter().zip(&api) {
                self.api_only(group, part, *handle);
            }
        }
        self.stop(group, api_group);
        launch
    }

    /// The tasks of a replayed graph: their API parents are long gone, their sequence numbers stand still.
    pub(super) fn replay(&mut self, planned: &Planned, group: usize) -> Option<Launch> {
        let captured = self.captured.get(&(planned.spec, planned.repetition))?.clone();
        let parts = self.parts(planned.spec, group, captured.sequence, true);
        // Without kernel events, graphs within a node call nobody: there is nothing in them that could. v1 and v2 have no
        // such events; what NCCL did then is not known, and the simulator calls.
        let local = self.rank.members[group].instance.nodes == 1 && self.rank.api() >= 3;
        if local && !self.rank.calls(EventKind::KernelCh, captured.mask) {
            return None;
        }
        Some(self.tasks(planned, group, captured.mask, &parts, &captured.api, &[], true))
    }

    #[allow(clippy::too_many_arguments, reason = "the tasks of a launch need all of these")]
    fn tasks(
        &mut self,
        planned: &Planned,
        group: usize,
        mask: u32,
        parts: &[Part],
        api: &[Handle],
        api_called: &[Option<Handle>],
        replay: bool,
    ) -> Launch {
        let copy_engine = self.rank.by_copy_engine(planned.spec);
        let plan =
            if copy_engine { None } else { self.start(group, mask, &EventDescriptor::Group, Parents::default()) };
        let mut tasks = Vec::with_capacity(parts.len());
        for (place, part) in parts.iter().enumerate() {
            let parents = Parents { parent: api[place], group: plan.unwrap_or_default() };
            let handle = self.start(group, mask, &part.task, parents);
            let operation = match handle {
                Some(_) => Some(self.operation(group, part, false, replay)),
                None => {
                    self.api_only(group, part, api_called.get(place).copied().flatten());
                    None
                }
            };
            tasks.push(self.task(planned.spec, group, part, operation, handle.unwrap_or_default()));
        }
        if !copy_engine {
            for task in &tasks {
                self.stop(group, Some(task.handle));
            }
            self.stop(group, plan);
        }
        let (spec, start_ns, end_ns) = (planned.spec, planned.start_ns, planned.end_ns);
        Launch { spec, group, mask, start_ns, end_ns, tasks }
    }

    fn task(&self, spec: usize, group: usize, part: &Part, place: Option<usize>, handle: Handle) -> Task {
        let member = &self.rank.members[group];
        let spec = &self.rank.scenario.operation[spec];
        let (ranks, mine) = (member.ranks(), member.rank);
        let job_rank = |rank: u32| member.instance.members[rank as usize];
        let remote = |peer: u32| self.rank.is_remote(job_rank(mine), job_rank(peer));
        let bytes = spec.message_bytes(ranks);
        let mut transfers = Vec::new();
        let mut kernel_channels = spec.kernel_channels.unwrap_or(spec.channels);
        match part.peer {
            Some((_, peer)) if peer == mine => kernel_channels = 0,
            Some((send, peer)) => transfers.extend(remote(peer).then_some(Transfer { peer, send, bytes })),
            None => {
                let (next, previous) = ((mine + 1) % ranks, (mine + ranks - 1) % ranks);
                let factor = collander_event::Collective::from_text(&spec.function).bus_factor(ranks).unwrap_or(1.0);
                let bytes = (bytes as f64 * factor) as u64;
                for (peer, send) in [(previous, false), (next, true)] {
                    transfers.extend(remote(peer).then_some(Transfer { peer, send, bytes }));
                }
            }
        }
        Task { place, handle, kernel_channels, transfers }
    }

    /// The descriptors of an operation's parts.
    fn parts(&mut self, number: usize, group: usize, sequence: u64, captured: bool) -> Vec<Part> {
        let rank = self.rank;
        let spec = &rank.scenario.operation[number];
        let member = &rank.members[group];
        let (ranks, mine) = (member.ranks(), member.rank);
        let count = spec.elements(ranks);
        // NCCL has no name for this one.
        let datatype = if spec.datatype == "ncclUint8" { "Unknown" } else { &spec.datatype };
        let datatype = self.name(datatype);
        let user_tag = spec.user_tag;
        if spec.is_p2p() {
            let peers: Vec<(bool, u32)> = match spec.pattern {
                Pattern::Ring => vec![(true, (mine + 1) % ranks), (false, (mine + ranks - 1) % ranks)],
                Pattern::AllToAll => (0..ranks).flat_map(|peer| [(true, peer), (false, peer)]).collect(),
            };
            let part = |(send, peer): (bool, u32)| {
                let function = self.name(if send { "Send" } else { "Recv" });
                Part {
                    peer: Some((send, peer)),
                    api: EventDescriptor::P2pApi(P2pApi {
                        function: function.clone(),
                        count,
                        datatype: datatype.clone(),
                        stream: STREAM,
                        graph_captured: captured,
                        user_tag,
                    }),
                    task: EventDescriptor::P2p(P2p {
                        function,
                        buffer: if send { SEND_BUFFER } else { RECEIVE_BUFFER },
                        datatype: datatype.clone(),
                        count,
                        peer: peer as i32,
                        channels: spec.channels,
                        user_tag,
                    }),
                }
            };
            return peers.into_iter().map(part).collect();
        }
        let function = self.name(&spec.function);
        let root = (spec.root % ranks) as i32;
        let api = EventDescriptor::CollApi(CollApi {
            function: function.clone(),
            count,
            datatype: datatype.clone(),
            root,
            stream: STREAM,
            graph_captured: captured,
            user_tag,
        });
        let task = if self.rank.by_copy_engine(number) {
            self.ce_sequence += 1;
            EventDescriptor::CeColl(CeColl {
                sequence,
                function,
                send_buffer: SEND_BUFFER,
                receive_buffer: RECEIVE_BUFFER,
                count,
                root,
                datatype,
                sync_strategy: self.name("MC"),
                intra_batch_sync: false,
                batch_size: ranks,
                batches: 1,
                ce_sequence: self.ce_sequence - 1,
                stream: STREAM,
                user_tag,
            })
        } else {
            // NCCL turns these into bytes.
            let as_bytes = matches!(spec.function.as_str(), "AllGather" | "Broadcast");
            EventDescriptor::Coll(Coll {
                sequence,
                function,
                send_buffer: SEND_BUFFER,
                receive_buffer: RECEIVE_BUFFER,
                count: if as_bytes { count * spec.element_bytes() } else { count },
                root,
                datatype: if as_bytes { self.name("ncclInt8") } else { datatype },
                channels: spec.channels,
                warps: WARPS,
                algorithm: self.name(&spec.algorithm),
                protocol: self.name(&spec.protocol),
                kernel_variant: if spec.symmetric { self.name("AllReduce_AGxLL_R") } else { None },
                symmetric: spec.symmetric,
                user_tag,
            })
        };
        vec![Part { peer: None, api, task }]
    }

    fn name(&mut self, text: &str) -> Name {
        if !self.names.contains_key(text) {
            self.names.insert(text.to_owned(), text.into());
        }
        self.names.get(text).cloned()
    }

    /// NCCL's count per communicator and function.
    fn sequence(&mut self, group: usize, spec: &OperationSpec, advance: bool) -> u64 {
        let next = self.sequences.entry((group, spec.function.clone())).or_default();
        *next += u64::from(advance);
        *next - u64::from(advance)
    }

    fn start(&mut self, group: usize, mask: u32, descriptor: &EventDescriptor, parents: Parents) -> Option<Handle> {
        self.rank.start(&mut self.caller, group, mask, descriptor, parents)
    }

    fn stop(&mut self, group: usize, handle: Option<Handle>) {
        self.rank.stop(&mut self.caller, group, handle.unwrap_or_default());
    }

    fn state(&mut self, handle: Option<Handle>, state: u8) {
        self.caller.state(self.rank.library, handle.unwrap_or_default(), state, StateArgument::Null);
    }

    /// An API call that was made and has no operation.
    fn api_only(&mut self, group: usize, part: &Part, handle: Option<Handle>) {
        if handle.is_some() {
            self.operation(group, part, true, false);
        }
    }

    /// Counts an operation and returns its place in the list.
    fn operation(&mut self, group: usize, part: &Part, api_only: bool, graph_replay: bool) -> usize {
        let member = &self.rank.members[group];
        let descriptor = if api_only { &part.api } else { &part.task };
        let kind = match descriptor.kind() {
            EventKind::Coll => OperationKind::Coll,
            EventKind::P2p => OperationKind::P2p,
            EventKind::CeColl => OperationKind::CopyEngine,
            _ => OperationKind::ApiOnly,
        };
        self.operations.count(kind);
        if self.list {
            let communicator = &member.context.communicator;
            let operation = expected::operation(kind, descriptor, communicator, member.ordinal, self.rank.api());
            self.expected.push(ExpectedOperation { graph_replay, ..operation });
        }
        self.next_place += 1;
        self.next_place - 1
    }
}

const fn group_api(graph_captured: bool) -> EventDescriptor {
    EventDescriptor::GroupApi { graph_captured, depth: 1 }
}
