//! What the assembler makes of records: operations.

use std::sync::Arc;

use crate::communicator::Communicator;
use crate::names::{Collective, Datatype};

/// What kind of thing an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// A Coll event.
    #[default]
    Coll,
    /// A P2p event.
    P2p,
    /// A copy-engine collective.
    CopyEngine,
    /// An API call that never became one of these.
    Api,
    /// An extra record: a collective inferred from P2P members (AllToAll, Gather, Scatter). Not counted as seen.
    InferredGroup,
}

impl OpKind {
    /// Name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coll => "coll",
            Self::P2p => "p2p",
            Self::CopyEngine => "copy_engine",
            Self::Api => "api",
            Self::InferredGroup => "inferred_group",
        }
    }
}

/// Where a duration comes from, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timing {
    /// GPU timers of all channels.
    Gpu,
    /// GPU timers of some channels; the others had none that can be used.
    GpuSomeChannels,
    /// CPU time of kernel events (or of the copy engine's events).
    KernelCpu,
    /// CPU time of proxy operations.
    ProxyCpu,
    /// Only the enqueue is known: the duration is that of the call. Never a bandwidth.
    EnqueueOnly,
    /// It has no end that a profiler sees.
    #[default]
    Unobservable,
}

impl Timing {
    /// Name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::GpuSomeChannels => "gpu_some_channels",
            Self::KernelCpu => "kernel_cpu",
            Self::ProxyCpu => "proxy_cpu",
            Self::EnqueueOnly => "enqueue_only",
            Self::Unobservable => "unobservable",
        }
    }

    /// Whether a bandwidth may be computed from it.
    #[must_use]
    pub const fn measures(self) -> bool {
        (self as u8) < Self::EnqueueOnly as u8
    }
}

/// Circumstances of an operation, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u32);

impl Flags {
    /// All flags with their names in outputs.
    pub const NAMES: [(&'static str, u32); 16] = [
        ("graph", Self::GRAPH),
        ("replay", Self::REPLAY),
        ("inferred", Self::INFERRED),
        ("other_process", Self::OTHER_PROCESS),
        ("aborted", Self::ABORTED),
        ("timed_out", Self::TIMED_OUT),
        ("channels_missing", Self::CHANNELS_MISSING),
        ("timer_mismatch", Self::TIMER_MISMATCH),
        ("in_place", Self::IN_PLACE),
        ("symmetric", Self::SYMMETRIC),
        ("superseded", Self::SUPERSEDED),
        ("evicted", Self::EVICTED),
        ("never_stopped", Self::NEVER_STOPPED),
        ("timer_ticks_10ns", Self::TIMER_TICKS_10NS),
        ("self_transfer", Self::SELF_TRANSFER),
        ("in_inferred_group", Self::IN_INFERRED_GROUP),
    ];
    /// Its API call was captured into a CUDA graph.
    pub const GRAPH: u32 = 1;
    /// A replay of a captured graph: the sequence number is our own count.
    pub const REPLAY: u32 = 1 << 1;
    /// Inferred from its members.
    pub const INFERRED: u32 = 1 << 2;
    /// Parts of it came from another process (PXN).
    pub const OTHER_PROCESS: u32 = 1 << 3;
    /// Its communicator was finalised while it was open.
    pub const ABORTED: u32 = 1 << 4;
    /// Closed because nothing happened for too long.
    pub const TIMED_OUT: u32 = 1 << 5;
    /// Fewer kernel channels came than were announced.
    pub const CHANNELS_MISSING: u32 = 1 << 6;
    /// GPU stamps of at least one channel belong to another operation and were not used.
    pub const TIMER_MISMATCH: u32 = 1 << 7;
    /// Send and receive buffer are the same.
    pub const IN_PLACE: u32 = 1 << 8;
    /// Symmetric kernel.
    pub const SYMMETRIC: u32 = 1 << 9;
    /// Closed because the next replay began.
    pub const SUPERSEDED: u32 = 1 << 10;
    /// Pushed out because too many were open.
    pub const EVICTED: u32 = 1 << 11;
    /// Its own stop never came.
    pub const NEVER_STOPPED: u32 = 1 << 12;
    /// GPU timer counts 10 ns (RCCL's 100 MHz counter); durations are converted.
    pub const TIMER_TICKS_10NS: u32 = 1 << 13;
    /// A send or receive to oneself: there are no kernel events.
    pub const SELF_TRANSFER: u32 = 1 << 14;
    /// A member of an inferred group.
    pub const IN_INFERRED_GROUP: u32 = 1 << 15;

    /// Whether a bit is set.
    #[must_use]
    pub const fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    /// Sets a bit.
    pub fn set(&mut self, bit: u32) {
        self.0 |= bit;
    }
}

/// Where the proxy's time went, summed over proxy steps, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Waiting for the GPU: to produce (send) or to consume (receive).
    pub gpu: u64,
    /// Waiting for the peer's credit (send).
    pub peer: u64,
    /// On the wire: send posted to done, receive posted to arrived.
    pub wire: u64,
    /// Flush of received data.
    pub flush: u64,
}

/// One kernel phase (v7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// NCCL's phase id.
    pub phase: u8,
    /// NCCL's phase name.
    pub name: &'static str,
    /// GPU stamps as NCCL gave them.
    pub start: u64,
    /// End; 0 if it never came.
    pub stop: u64,
}

/// One kernel channel of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// Channel id.
    pub channel: u8,
    /// GPU stamps as NCCL gave them; 0 if none.
    pub gpu_start: u64,
    /// End.
    pub gpu_stop: u64,
    /// Unix ns at which the start was seen on the CPU.
    pub cpu_start_ns: u64,
    /// End; 0 if never.
    pub cpu_stop_ns: u64,
    /// Phases, with the detail that asks for them.
    pub phases: Vec<Phase>,
}

/// One proxy step, whole. Times are Unix ns; 0 where the state never came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after NCCL's states")]
pub struct ProxyStep {
    pub step: i32,
    pub start_ns: u64,
    pub gpu_wait_ns: u64,
    pub peer_wait_ns: u64,
    pub wait_ns: u64,
    pub flush_wait_ns: u64,
    pub stop_ns: u64,
    pub bytes: u64,
}

/// One proxy operation of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyOperation {
    /// Channel id.
    pub channel: u8,
    /// Peer's rank.
    pub peer: i32,
    /// Sends (else receives).
    pub send: bool,
    /// Steps announced.
    pub steps: u32,
    /// Steps that stopped.
    pub steps_done: u32,
    /// Chunk size.
    pub chunk_bytes: u32,
    /// Bytes transferred, from the steps.
    pub bytes: u64,
    /// Process that posted it, if another one (PXN), else 0.
    pub foreign_pid: i32,
    /// Unix ns.
    pub start_ns: u64,
    /// Unix ns; 0 if never.
    pub in_progress_ns: u64,
    /// Unix ns; 0 if never.
    pub stop_ns: u64,
    /// Where its steps' time went.
    pub waits: Waits,
    /// The steps, with the detail that asks for them.
    pub step_list: Vec<ProxyStep>,
}

/// One collective or P2P as issued by one rank. See docs/output-fields.md for each field's meaning and when it is null.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// Local event id: unique in this process.
    pub id: u64,
    /// Kind.
    pub kind: OpKind,
    /// The communicator.
    pub communicator: Arc<Communicator>,
    /// Function, understood.
    pub collective: Collective,
    /// Function as NCCL spelled it.
    pub function: &'static str,
    /// Datatype of the event, understood.
    pub datatype: Datatype,
    /// Datatype as NCCL spelled it (AllGather's says ncclInt8: its count is in bytes).
    pub datatype_text: &'static str,
    /// The caller's datatype, from the API call; "" if not known.
    pub user_datatype: &'static str,
    /// As NCCL spelled it; "" for P2P.
    pub algorithm: &'static str,
    /// As NCCL spelled it; "" for P2P.
    pub protocol: &'static str,
    /// Where `duration_ns` comes from.
    pub timing: Timing,
    /// Circumstances.
    pub flags: Flags,
    /// NCCL's sequence number, per function and communicator; P2P and replays: our own count.
    pub sequence: u64,
    /// Elements as the event said.
    pub count: u64,
    /// Bytes that algbw is computed from; None if the datatype's size, or the number of ranks it needs, is unknown.
    pub bytes: Option<u64>,
    /// `count × datatype size`, per rank, as Inspector has it; None if the datatype's size is unknown.
    pub rank_bytes: Option<u64>,
    /// Root of a rooted collective, peer of a P2P, else −1.
    pub partner: i32,
    /// Channels announced (0 in the event stands for 256).
    pub channels: u16,
    /// Channels seen.
    pub channels_seen: u16,
    /// Warps announced.
    pub warps: u8,
    /// Unix ns at which it was enqueued.
    pub enqueued_ns: u64,
    /// Length of the enqueue (start to stop of the event), ns.
    pub enqueue_ns: u64,
    /// From enqueue to the first kernel event, by CPU clocks, ns.
    pub queued_ns: Option<u64>,
    /// Duration by `timing`: first start to last stop over the channels, ns.
    pub duration_ns: Option<u64>,
    /// The longest single channel, by the same source, ns (what Inspector reports).
    pub longest_channel_ns: Option<u64>,
    /// Unix ns of the last sign of it: its end as seen by the CPU.
    pub ended_ns: u64,
    /// GPU stamp of the first usable start, as NCCL gave it.
    pub gpu_start: Option<u64>,
    /// GPU stamp of the last usable stop.
    pub gpu_stop: Option<u64>,
    /// Gigabytes (1e9) a second.
    pub algbw: Option<f64>,
    /// Gigabytes (1e9) a second.
    pub busbw: Option<f64>,
    /// Where proxy steps spent their time; None if no step was seen.
    pub waits: Option<Waits>,
    /// Bytes that proxies sent.
    pub sent_bytes: u64,
    /// Bytes that proxies received.
    pub received_bytes: u64,
    /// Proxy operations seen.
    pub proxy_operations: u32,
    /// Proxy steps seen.
    pub proxy_steps: u32,
    /// The caller's tag (v7), 0 if none.
    pub user_tag: u64,
    /// Kernel variant (v7), "" if none.
    pub kernel_variant: &'static str,
    /// Copy engine's sync strategy (v6), "" if none.
    pub sync_strategy: &'static str,
    /// Local id of the group it was issued in; 0 if not known.
    pub group: u64,
    /// Members of an inferred group; 0 for others.
    pub members: u32,
    /// Sinks it goes to, a bit each.
    pub sinks: u32,
    /// Channels, with the detail that asks for them.
    pub channel_list: Vec<Channel>,
    /// Proxy operations, with the detail that asks for them.
    pub proxies: Vec<ProxyOperation>,
}

/// An operation that has started and not ended.
#[derive(Clone, Debug)]
pub struct OpenOperation {
    /// What is known of it so far.
    pub operation: Operation,
    /// Channels started.
    pub channels_started: u16,
    /// Channels ended.
    pub channels_ended: u16,
    /// Unix ns of the last proxy event; None if there was none.
    pub last_proxy_ns: Option<u64>,
}
