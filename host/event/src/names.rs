//! Names that NCCL gives as text: kept as it spells them, and understood where they are known.

/// Collective or P2P function; the discriminant is the index in plan tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "NCCL's functions")]
pub enum Collective {
    #[default]
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
    /// All, in the order of their index.
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

    /// Name as NCCL 2.30 spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::AllReduce => "AllReduce",
            Self::AllGather => "AllGather",
            Self::ReduceScatter => "ReduceScatter",
            Self::Broadcast => "Broadcast",
            Self::Reduce => "Reduce",
            Self::AllToAll => "AllToAll",
            Self::Gather => "Gather",
            Self::Scatter => "Scatter",
            Self::Send => "Send",
            Self::Recv => "Recv",
            Self::SendRecv => "SendRecv",
            Self::AllGatherV => "AllGatherV",
            Self::PutSignal => "PutSignal",
            Self::Signal => "Signal",
            Self::WaitSignal => "WaitSignal",
        }
    }

    /// Understands any capitalisation, with or without the prefix `nccl`.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let text = text.strip_prefix("nccl").unwrap_or(text);
        Self::ALL.into_iter().skip(1).find(|c| c.name().eq_ignore_ascii_case(text)).unwrap_or_default()
    }

    /// Index as the enum of v1 (ncclFunc_t): 0 Broadcast, 1 Reduce, 2 AllGather, 3 ReduceScatter, 4 AllReduce, 5 SendRecv,
    /// 6 Send, 7 Recv.
    #[must_use]
    pub const fn from_v1(number: u8) -> Self {
        match number {
            0 => Self::Broadcast,
            1 => Self::Reduce,
            2 => Self::AllGather,
            3 => Self::ReduceScatter,
            4 => Self::AllReduce,
            5 => Self::SendRecv,
            6 => Self::Send,
            7 => Self::Recv,
            _ => Self::Unknown,
        }
    }

    /// Whether it is point-to-point.
    #[must_use]
    pub const fn is_p2p(self) -> bool {
        matches!(self, Self::Send | Self::Recv | Self::SendRecv)
    }

    /// Whether it has a root.
    #[must_use]
    pub const fn is_rooted(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// By what `count × datatype size` is multiplied for the bytes that algbw is computed from, given the number of ranks:
    /// that number for AllGather, AllGatherV, ReduceScatter, AllToAll, Gather and Scatter, else 1.
    /// Source: nccl-tests, `PERFORMANCE.md` and the `getCollByteCount` of each test.
    #[must_use]
    pub const fn size_factor(self, ranks: u32) -> u64 {
        match self {
            Self::AllGather
            | Self::AllGatherV
            | Self::ReduceScatter
            | Self::AllToAll
            | Self::Gather
            | Self::Scatter => ranks as u64,
            _ => 1,
        }
    }

    /// busbw / algbw for `n` ranks: AllReduce 2(n−1)/n; AllGather, AllGatherV, ReduceScatter, AllToAll, Gather, Scatter
    /// (n−1)/n; else 1. None for what is unknown. Source: nccl-tests, `PERFORMANCE.md`.
    #[must_use]
    pub fn bus_factor(self, ranks: u32) -> Option<f64> {
        let n = f64::from(ranks);
        match self {
            Self::Unknown | Self::PutSignal | Self::Signal | Self::WaitSignal => None,
            _ if ranks == 0 => None,
            Self::AllReduce => Some(2.0 * (n - 1.0) / n),
            Self::AllGather
            | Self::AllGatherV
            | Self::ReduceScatter
            | Self::AllToAll
            | Self::Gather
            | Self::Scatter => Some((n - 1.0) / n),
            Self::Broadcast | Self::Reduce | Self::Send | Self::Recv | Self::SendRecv => Some(1.0),
        }
    }
}

/// Element type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "NCCL's datatypes")]
pub enum Datatype {
    #[default]
    Unknown,
    Int8,
    Uint8,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float16,
    Float32,
    Float64,
    Bfloat16,
    Float8E4M3,
    Float8E5M2,
}

impl Datatype {
    const TABLE: [(&'static str, Self, u8); 20] = [
        ("int8", Self::Int8, 1),
        ("char", Self::Int8, 1),
        ("uint8", Self::Uint8, 1),
        ("int32", Self::Int32, 4),
        ("int", Self::Int32, 4),
        ("uint32", Self::Uint32, 4),
        ("int64", Self::Int64, 8),
        ("uint64", Self::Uint64, 8),
        ("float16", Self::Float16, 2),
        ("half", Self::Float16, 2),
        ("float32", Self::Float32, 4),
        ("float", Self::Float32, 4),
        ("float64", Self::Float64, 8),
        ("double", Self::Float64, 8),
        ("bfloat16", Self::Bfloat16, 2),
        ("float8e4m3", Self::Float8E4M3, 1),
        ("float8e5m2", Self::Float8E5M2, 1),
        ("fp8e4m3", Self::Float8E4M3, 1),
        ("fp8e5m2", Self::Float8E5M2, 1),
        ("bf16", Self::Bfloat16, 2),
    ];

    /// Understands any capitalisation, with or without the prefix `nccl`. NCCL itself says "Unknown" for ncclUint8.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let text = text.strip_prefix("nccl").unwrap_or(text);
        Self::TABLE.iter().find(|row| row.0.eq_ignore_ascii_case(text)).map_or(Self::Unknown, |row| row.1)
    }

    /// Bytes an element; 0 if unknown.
    #[must_use]
    pub const fn size(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Int8 | Self::Uint8 | Self::Float8E4M3 | Self::Float8E5M2 => 1,
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 => 8,
        }
    }

    /// NCCL's enum value (as in v1) to a datatype.
    #[must_use]
    pub const fn from_v1(number: u8) -> Self {
        match number {
            0 => Self::Int8,
            1 => Self::Uint8,
            2 => Self::Int32,
            3 => Self::Uint32,
            4 => Self::Int64,
            5 => Self::Uint64,
            6 => Self::Float16,
            7 => Self::Float32,
            8 => Self::Float64,
            9 => Self::Bfloat16,
            10 => Self::Float8E4M3,
            11 => Self::Float8E5M2,
            _ => Self::Unknown,
        }
    }

    /// NCCL's name (`ncclFloat32`, …).
    #[must_use]
    pub const fn nccl_name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Int8 => "ncclInt8",
            Self::Uint8 => "ncclUint8",
            Self::Int32 => "ncclInt32",
            Self::Uint32 => "ncclUint32",
            Self::Int64 => "ncclInt64",
            Self::Uint64 => "ncclUint64",
            Self::Float16 => "ncclFloat16",
            Self::Float32 => "ncclFloat32",
            Self::Float64 => "ncclFloat64",
            Self::Bfloat16 => "ncclBfloat16",
            Self::Float8E4M3 => "ncclFloat8e4m3",
            Self::Float8E5M2 => "ncclFloat8e5m2",
        }
    }
}

/// The texts behind name codes: index = code; 0 is "" (NULL). At most 255 codes a process; code 255 stands for all that did
/// not fit. Texts are leaked once each, so that operations can hold them without a count.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    names: Vec<&'static str>,
}

impl NameTable {
    /// The text of a code; "" for 0 and for a code that is not known.
    #[must_use]
    pub fn text(&self, code: u8) -> &'static str {
        self.names.get(code as usize).copied().unwrap_or("")
    }

    /// How many codes are known, 0 included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no code is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Learns a code. Leaks the text once; a code keeps its first text.
    pub fn learn(&mut self, code: u8, text: &str) {
        let code = code as usize;
        if self.names.len() <= code {
            self.names.resize(code + 1, "");
        }
        if self.names[code].is_empty() && !text.is_empty() {
            self.names[code] = Box::leak(text.to_owned().into_boxed_str());
        }
    }

    /// The code of a text, learning it if need be (for tests and simulators; 255 when full).
    pub fn code_of(&mut self, text: &str) -> u8 {
        if self.names.is_empty() {
            self.names.push("");
        }
        if let Some(code) = self.names.iter().position(|t| *t == text) {
            return code as u8;
        }
        let code = self.names.len();
        if code >= 255 {
            return 255;
        }
        self.learn(code as u8, text);
        code as u8
    }
}
