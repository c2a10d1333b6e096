//! Views of the packed records: they read like structures and cost what a load costs.
//!
//! Generated from host/engine/layout/packed.toml by host/engine/tests/packed_layout.rs. Do not edit.
#![forbid(unsafe_code)]

/// `algorithm` of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
pub enum Algorithm {
    Unknown = 0,
    Tree = 1,
    Ring = 2,
    CollnetDirect = 3,
    CollnetChain = 4,
    Nvls = 5,
    NvlsTree = 6,
    Pat = 7,
    Symmetric = 8,
    CopyEngine = 9,
}

impl Algorithm {
    /// All, in order.
    pub const ALL: [Self; 10] = [
        Self::Unknown,
        Self::Tree,
        Self::Ring,
        Self::CollnetDirect,
        Self::CollnetChain,
        Self::Nvls,
        Self::NvlsTree,
        Self::Pat,
        Self::Symmetric,
        Self::CopyEngine,
    ];

    /// From its number; what is not known becomes `Unknown`.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        if (number as usize) < Self::ALL.len() { Self::ALL[number as usize] } else { Self::Unknown }
    }

    /// Its name, as the interface spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Tree => "tree",
            Self::Ring => "ring",
            Self::CollnetDirect => "collnet-direct",
            Self::CollnetChain => "collnet-chain",
            Self::Nvls => "nvls",
            Self::NvlsTree => "nvls-tree",
            Self::Pat => "pat",
            Self::Symmetric => "symmetric",
            Self::CopyEngine => "copy-engine",
        }
    }
}

/// `child_kind` of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
pub enum ChildKind {
    Channel = 0,
    Phase = 1,
    ProxyOperation = 2,
    ProxyStep = 3,
}

impl ChildKind {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Channel, Self::Phase, Self::ProxyOperation, Self::ProxyStep];

    /// From its number; what is not known becomes `ProxyStep`.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        if (number as usize) < Self::ALL.len() { Self::ALL[number as usize] } else { Self::ProxyStep }
    }

    /// Its name, as the interface spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Phase => "phase",
            Self::ProxyOperation => "proxy-operation",
            Self::ProxyStep => "proxy-step",
        }
    }
}

/// `collective` of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
pub enum Collective {
    Unknown = 0,
    AllReduce = 1,
    AllGather = 2,
    ReduceScatter = 3,
    Broadcast = 4,
    Reduce = 5,
    AllToAll = 6,
    Gather = 7,
    Scatter = 8,
    Send = 9,
    Recv = 10,
    SendRecv = 11,
    AllGatherV = 12,
    PutSignal = 13,
    Signal = 14,
    WaitSignal = 15,
}

impl Collective {
    /// All, in order.
    pub const ALL: [Self; 16] = [
        Self::Unknown,
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Broadcast,
        Self::Reduce,
        Self::AllToAll,
        Self::Gather,
        Self::Scatter,
        Self::Send,
        Self::Recv,
        Self::SendRecv,
        Self::AllGatherV,
        Self::PutSignal,
        Self::Signal,
        Self::WaitSignal,
    ];

    /// From its number; what is not known becomes `Unknown`.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        if (number as usize) < Self::ALL.len() { Self::ALL[number as usize] } else { Self::Unknown }
    }

    /// Its name, as the interface spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::AllToAll => "all-to-all",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Send => "send",
            Self::Recv => "recv",
            Self::SendRecv => "send-recv",
            Self::AllGatherV => "all-gather-v",
            Self::PutSignal => "put-signal",
            Self::Signal => "signal",
            Self::WaitSignal => "wait-signal",
        }
    }
}

/// `datatype` of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
pub enum Datatype {
    Unknown = 0,
    Int8 = 1,
    Uint8 = 2,
    Int32 = 3,
    Uint32 = 4,
    Int64 = 5,
    Uint64 = 6,
    Float16 = 7,
    Float32 = 8,
    Float64 = 9,
    Bfloat16 = 10,
    Float8E4m3 = 11,
    Float8E5m2 = 12,
}

impl Datatype {
    /// All, in order.
    pub const ALL: [Self; 13] = [
        Self::Unknown,
        Self::Int8,
        Self::Uint8,
        Self::Int32,
        Self::Uint32,
        Self::Int64,
        Self::Uint64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::Bfloat16,
        Self::Float8E4m3,
        Self::Float8E5m2,
    ];

    /// From its number; what is not known becomes `Unknown`.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        if (number as usize) < Self::ALL.len() { Self::ALL[number as usize] } else { Self::Unknown }
    }

    /// Its name, as the interface spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Int8 => "int8",
            Self::Uint8 => "uint8",
            Self::Int32 => "int32",
            Self::Uint32 => "uint32",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Bfloat16 => "bfloat16",
            Self::Float8E4m3 => "float8-e4m3",
            Self::Float8E5m2 => "float8-e5m2",
        }
    }
}

/// `kind` of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
pub enum Kind {
    Collective = 0,
    PointToPoint = 1,
    CopyEngine = 2,
    Api = 3,
    InferredGroup = 4,
}

impl Kind {
    /// All, in order.
    pub const ALL: [Self; 5] = [Self::Collective, Self::PointToPoint, Self::CopyEngine, Self::Api, Self::InferredGroup];

    /// From its number; what is not known becomes `InferredGroup`.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        if (number as usize) < Self::ALL.len() { Self::ALL[number as usize] } else { Self::InferredGroup }
    }

    /// Its name, as the interface spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collective => "collective",
            Self::PointToPoint => "point-to-point",
            Self::CopyEngine => "copy-engine",
            Self::Api => "api",
            Self::InferredGroup => "inferred-group",
        }
    }
}

/// `protocol` of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
pub enum Protocol {
    Unknown = 0,
    Ll = 1,
    Ll128 = 2,
    Simple = 3,
}

impl Protocol {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Ll, Self::Ll128, Self::Simple];

    /// From its number; what is not known becomes `Unknown`.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        if (number as usize) < Self::ALL.len() { Self::ALL[number as usize] } else { Self::Unknown }
    }

    /// Its name, as the interface spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ll => "ll",
            Self::Ll128 => "ll128",
            Self::Simple => "simple",
        }
    }
}

/// `timing` of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
pub enum Timing {
    Gpu = 0,
    GpuSomeChannels = 1,
    KernelCpu = 2,
    ProxyCpu = 3,
    EnqueueOnly = 4,
    Unobservable = 5,
}

impl Timing {
    /// All, in order.
    pub const ALL: [Self; 6] =
        [Self::Gpu, Self::GpuSomeChannels, Self::KernelCpu, Self::ProxyCpu, Self::EnqueueOnly, Self::Unobservable];

    /// From its number; what is not known becomes `Unobservable`.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        if (number as usize) < Self::ALL.len() { Self::ALL[number as usize] } else { Self::Unobservable }
    }

    /// Its name, as the interface spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::GpuSomeChannels => "gpu-some-channels",
            Self::KernelCpu => "kernel-cpu",
            Self::ProxyCpu => "proxy-cpu",
            Self::EnqueueOnly => "enqueue-only",
            Self::Unobservable => "unobservable",
        }
    }
}

/// `circumstances`: a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Circumstances(pub u32);

#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
impl Circumstances {
    pub const GRAPH: Self = Self(1 << 0);
    pub const REPLAY: Self = Self(1 << 1);
    pub const INFERRED: Self = Self(1 << 2);
    pub const OTHER_PROCESS: Self = Self(1 << 3);
    pub const ABORTED: Self = Self(1 << 4);
    pub const TIMED_OUT: Self = Self(1 << 5);
    pub const CHANNELS_MISSING: Self = Self(1 << 6);
    pub const TIMER_MISMATCH: Self = Self(1 << 7);
    pub const IN_PLACE: Self = Self(1 << 8);
    pub const SYMMETRIC: Self = Self(1 << 9);
    pub const SUPERSEDED: Self = Self(1 << 10);
    pub const EVICTED: Self = Self(1 << 11);
    pub const NEVER_STOPPED: Self = Self(1 << 12);
    pub const TIMER_TICKS_10NS: Self = Self(1 << 13);
    pub const SELF_TRANSFER: Self = Self(1 << 14);
    pub const IN_INFERRED_GROUP: Self = Self(1 << 15);

    /// Whether all bits of `other` are set.
    #[must_use]
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// `present`: a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Present(pub u16);

#[allow(missing_docs, reason = "documented in wit/since-v0.1.0/traffic.wit")]
impl Present {
    pub const BYTES: Self = Self(1 << 0);
    pub const RANK_BYTES: Self = Self(1 << 1);
    pub const QUEUED: Self = Self(1 << 2);
    pub const DURATION: Self = Self(1 << 3);
    pub const LONGEST_CHANNEL: Self = Self(1 << 4);
    pub const GPU_START: Self = Self(1 << 5);
    pub const GPU_STOP: Self = Self(1 << 6);
    pub const ALGBW: Self = Self(1 << 7);
    pub const BUSBW: Self = Self(1 << 8);
    pub const WAITS: Self = Self(1 << 9);

    /// Whether all bits of `other` are set.
    #[must_use]
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Words of a record.
pub const OPERATION_WORDS: usize = 32;

/// One collective or point-to-point operation as issued by one rank.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Operation<'a>(pub &'a [u64; OPERATION_WORDS]);

impl<'a> Operation<'a> {
    /// The records of a batch, in order.
    #[inline]
    pub fn all(mut words: &'a [u64]) -> impl Iterator<Item = Self> + use<'a> {
        std::iter::from_fn(move || {
            let (first, rest) = words.split_first_chunk()?;
            words = rest;
            Some(Self(first))
        })
    }

    /// Unique in this process.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        self.0[0]
    }

    /// Index of the communicator, as `communicator-opened` gave it.
    #[must_use]
    #[inline]
    pub fn communicator(&self) -> u32 {
        self.0[1] as u32
    }

    /// What was called.
    #[must_use]
    #[inline]
    pub fn collective(&self) -> Collective {
        Collective::from_number((self.0[1] >> 32) as u8)
    }

    /// Element type.
    #[must_use]
    #[inline]
    pub fn datatype(&self) -> Datatype {
        Datatype::from_number((self.0[1] >> 40) as u8)
    }

    /// NCCL's choice.
    #[must_use]
    #[inline]
    pub fn algorithm(&self) -> Algorithm {
        Algorithm::from_number((self.0[1] >> 48) as u8)
    }

    /// NCCL's choice.
    #[must_use]
    #[inline]
    pub fn protocol(&self) -> Protocol {
        Protocol::from_number((self.0[1] >> 56) as u8)
    }

    /// What is particular about it.
    #[must_use]
    #[inline]
    pub fn circumstances(&self) -> Circumstances {
        Circumstances(self.0[2] as u32)
    }

    /// Which of the values that can be absent are there.
    #[must_use]
    #[inline]
    pub fn present(&self) -> Present {
        Present((self.0[2] >> 32) as u16)
    }

    /// What sort of thing it is.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_number(((self.0[2] >> 48) & 15) as u8)
    }

    /// Where `duration` comes from.
    #[must_use]
    #[inline]
    pub fn timing(&self) -> Timing {
        Timing::from_number(((self.0[2] >> 52) & 15) as u8)
    }

    /// 0 to 47: 0 is size 0 or unknown, c is 2^(c-1) up to, not including, 2^c bytes; 47 also what is larger.
    #[must_use]
    #[inline]
    pub fn size_class(&self) -> u8 {
        (self.0[2] >> 56) as u8
    }

    /// NCCL's number, per function and communicator; for P2P and replays our count.
    #[must_use]
    #[inline]
    pub fn sequence(&self) -> u64 {
        self.0[3]
    }

    /// As NCCL said. Unit: elements.
    #[must_use]
    #[inline]
    pub fn count(&self) -> u64 {
        self.0[4]
    }

    /// What `algbw` is computed from (the convention of nccl-tests). Unit: bytes. None if it is not known.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> Option<u64> {
        if self.present().has(Present::BYTES) { Some(self.0[5]) } else { None }
    }

    /// `count` × size of an element. Unit: bytes. None if it is not known.
    #[must_use]
    #[inline]
    pub fn rank_bytes(&self) -> Option<u64> {
        if self.present().has(Present::RANK_BYTES) { Some(self.0[6]) } else { None }
    }

    /// Root of a rooted collective, peer of a P2P, else -1.
    #[must_use]
    #[inline]
    pub fn partner(&self) -> i32 {
        self.0[7] as i32
    }

    /// Channels announced; 0 if unknown.
    #[must_use]
    #[inline]
    pub fn channels_used(&self) -> u16 {
        (self.0[7] >> 32) as u16
    }

    /// Channels seen.
    #[must_use]
    #[inline]
    pub fn channels_seen(&self) -> u16 {
        (self.0[7] >> 48) as u16
    }

    /// Warps announced.
    #[must_use]
    #[inline]
    pub fn warps(&self) -> u8 {
        self.0[8] as u8
    }

    /// Members of an inferred group, else 0.
    #[must_use]
    #[inline]
    pub fn members(&self) -> u32 {
        (self.0[8] >> 32) as u32
    }

    /// When it was enqueued. Unit: Unix ns.
    #[must_use]
    #[inline]
    pub fn enqueued(&self) -> u64 {
        self.0[9]
    }

    /// How long the enqueue took. Unit: ns.
    #[must_use]
    #[inline]
    pub fn enqueue(&self) -> u64 {
        self.0[10]
    }

    /// From enqueue to the first kernel, by CPU clocks. Unit: ns. None if it is not known.
    #[must_use]
    #[inline]
    pub fn queued(&self) -> Option<u64> {
        if self.present().has(Present::QUEUED) { Some(self.0[11]) } else { None }
    }

    /// First start to last end over all channels, by `timing`. Unit: ns. None if it is not known.
    #[must_use]
    #[inline]
    pub fn duration(&self) -> Option<u64> {
        if self.present().has(Present::DURATION) { Some(self.0[12]) } else { None }
    }

    /// The longest single channel, by the same source. Unit: ns. None if it is not known.
    #[must_use]
    #[inline]
    pub fn longest_channel(&self) -> Option<u64> {
        if self.present().has(Present::LONGEST_CHANNEL) { Some(self.0[13]) } else { None }
    }

    /// The last sign of it. Unit: Unix ns.
    #[must_use]
    #[inline]
    pub fn ended(&self) -> u64 {
        self.0[14]
    }

    /// GPU stamp of the first usable start. Unit: GPU's. None if it is not known.
    #[must_use]
    #[inline]
    pub fn gpu_start(&self) -> Option<u64> {
        if self.present().has(Present::GPU_START) { Some(self.0[15]) } else { None }
    }

    /// GPU stamp of the last usable stop. Unit: GPU's. None if it is not known.
    #[must_use]
    #[inline]
    pub fn gpu_stop(&self) -> Option<u64> {
        if self.present().has(Present::GPU_STOP) { Some(self.0[16]) } else { None }
    }

    /// Algorithm bandwidth. Unit: GB/s (1e9). None if it is not known.
    #[must_use]
    #[inline]
    pub fn algbw(&self) -> Option<f64> {
        if self.present().has(Present::ALGBW) { Some(f64::from_bits(self.0[17])) } else { None }
    }

    /// Bus bandwidth. Unit: GB/s (1e9). None if it is not known.
    #[must_use]
    #[inline]
    pub fn busbw(&self) -> Option<f64> {
        if self.present().has(Present::BUSBW) { Some(f64::from_bits(self.0[18])) } else { None }
    }

    /// Proxy steps: waiting for the GPU. Unit: ns. None if it is not known.
    #[must_use]
    #[inline]
    pub fn wait_gpu(&self) -> Option<u64> {
        if self.present().has(Present::WAITS) { Some(self.0[19]) } else { None }
    }

    /// Proxy steps: waiting for the peer's credit. Unit: ns. None if it is not known.
    #[must_use]
    #[inline]
    pub fn wait_peer(&self) -> Option<u64> {
        if self.present().has(Present::WAITS) { Some(self.0[20]) } else { None }
    }

    /// Proxy steps: on the wire. Unit: ns. None if it is not known.
    #[must_use]
    #[inline]
    pub fn wait_wire(&self) -> Option<u64> {
        if self.present().has(Present::WAITS) { Some(self.0[21]) } else { None }
    }

    /// Proxy steps: flush of received data. Unit: ns. None if it is not known.
    #[must_use]
    #[inline]
    pub fn wait_flush(&self) -> Option<u64> {
        if self.present().has(Present::WAITS) { Some(self.0[22]) } else { None }
    }

    /// Bytes that its proxies sent; 0 if steps were not observed. Unit: bytes.
    #[must_use]
    #[inline]
    pub fn sent(&self) -> u64 {
        self.0[23]
    }

    /// Bytes that its proxies received; 0 if steps were not observed. Unit: bytes.
    #[must_use]
    #[inline]
    pub fn received(&self) -> u64 {
        self.0[24]
    }

    /// Proxy operations seen.
    #[must_use]
    #[inline]
    pub fn proxy_operations(&self) -> u32 {
        self.0[25] as u32
    }

    /// Proxy steps seen.
    #[must_use]
    #[inline]
    pub fn proxy_steps(&self) -> u32 {
        (self.0[25] >> 32) as u32
    }

    /// The caller's tag (profiler interface v7), 0 if none.
    #[must_use]
    #[inline]
    pub fn user_tag(&self) -> u64 {
        self.0[26]
    }

    /// The group that it was issued in; 0 if not known.
    #[must_use]
    #[inline]
    pub fn group(&self) -> u64 {
        self.0[27]
    }

    /// Index of its first record in `children`.
    #[must_use]
    #[inline]
    pub fn children_first(&self) -> u32 {
        self.0[28] as u32
    }

    /// Records of it in `children`: channels, each followed by its phases, then proxy operations, each followed by its steps.
    #[must_use]
    #[inline]
    pub fn children_count(&self) -> u32 {
        (self.0[28] >> 32) as u32
    }

    /// Sinks that it goes to so far, a bit each.
    #[must_use]
    #[inline]
    pub fn sinks(&self) -> u32 {
        self.0[29] as u32
    }
}

/// Words of a record.
pub const CHILD_WORDS: usize = 12;

/// A channel, phase, proxy operation or proxy step of an operation. Which of the fields hold depends on `child_kind`; a time of 0 is one that never came.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Child<'a>(pub &'a [u64; CHILD_WORDS]);

impl<'a> Child<'a> {
    /// The records of a batch, in order.
    #[inline]
    pub fn all(mut words: &'a [u64]) -> impl Iterator<Item = Self> + use<'a> {
        std::iter::from_fn(move || {
            let (first, rest) = words.split_first_chunk()?;
            words = rest;
            Some(Self(first))
        })
    }

    /// What it is.
    #[must_use]
    #[inline]
    pub fn child_kind(&self) -> ChildKind {
        ChildKind::from_number(self.0[0] as u8)
    }

    /// Channel, phase, proxy operation, step: NCCL's channel.
    #[must_use]
    #[inline]
    pub fn channel(&self) -> u8 {
        (self.0[0] >> 8) as u8
    }

    /// Phase: NCCL's number.
    #[must_use]
    #[inline]
    pub fn phase(&self) -> u8 {
        (self.0[0] >> 16) as u8
    }

    /// Proxy operation: sends, else receives.
    #[must_use]
    #[inline]
    pub fn send(&self) -> bool {
        ((self.0[0] >> 24) & 1) != 0
    }

    /// Proxy operation, step: the peer's rank.
    #[must_use]
    #[inline]
    pub fn peer(&self) -> i32 {
        (self.0[0] >> 32) as i32
    }

    /// Channel, phase: GPU stamp; 0 if none. Unit: GPU's.
    #[must_use]
    #[inline]
    pub fn gpu_start(&self) -> u64 {
        self.0[1]
    }

    /// Channel, phase: GPU stamp; 0 if none. Unit: GPU's.
    #[must_use]
    #[inline]
    pub fn gpu_stop(&self) -> u64 {
        self.0[2]
    }

    /// Channel: seen by the CPU; proxy operation, step: started. Unit: Unix ns.
    #[must_use]
    #[inline]
    pub fn start(&self) -> u64 {
        self.0[3]
    }

    /// As `start`: the end. Unit: Unix ns.
    #[must_use]
    #[inline]
    pub fn stop(&self) -> u64 {
        self.0[4]
    }

    /// Proxy operation, step: moved. Unit: bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.0[5]
    }

    /// Proxy operation: steps announced. Step: its number.
    #[must_use]
    #[inline]
    pub fn steps(&self) -> u32 {
        self.0[6] as u32
    }

    /// Proxy operation: steps that ended.
    #[must_use]
    #[inline]
    pub fn steps_done(&self) -> u32 {
        (self.0[6] >> 32) as u32
    }

    /// Proxy operation: size of a chunk. Unit: bytes.
    #[must_use]
    #[inline]
    pub fn chunk_bytes(&self) -> u32 {
        self.0[7] as u32
    }

    /// Proxy operation: process that posted it, if another one (PXN), else 0.
    #[must_use]
    #[inline]
    pub fn foreign_process(&self) -> i32 {
        (self.0[7] >> 32) as i32
    }

    /// Proxy operation: time its steps waited for the GPU. Step: began to wait for the GPU. Unit: ns; step: Unix ns.
    #[must_use]
    #[inline]
    pub fn wait_gpu(&self) -> u64 {
        self.0[8]
    }

    /// The same, for the peer's credit. Unit: ns; step: Unix ns.
    #[must_use]
    #[inline]
    pub fn wait_peer(&self) -> u64 {
        self.0[9]
    }

    /// The same, on the wire (step: posted). Unit: ns; step: Unix ns.
    #[must_use]
    #[inline]
    pub fn wait_wire(&self) -> u64 {
        self.0[10]
    }

    /// The same, for the flush. Unit: ns; step: Unix ns.
    #[must_use]
    #[inline]
    pub fn wait_flush(&self) -> u64 {
        self.0[11]
    }
}

/// Verdict byte.
pub const VERDICT_DROP: u8 = 0;

/// Verdict byte.
pub const VERDICT_KEEP: u8 = 1;

/// Verdict byte.
pub const VERDICT_ROUTE: u8 = 128;
