//! NCCL's event kinds and states, as bits and numbers of the interface.

/// Kind of a profiler event; the discriminant is the bit number in NCCL's activation mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are NCCL's")]
pub enum EventKind {
    Group = 0,
    Coll = 1,
    P2p = 2,
    ProxyOp = 3,
    ProxyStep = 4,
    ProxyCtrl = 5,
    KernelCh = 6,
    NetPlugin = 7,
    GroupApi = 8,
    CollApi = 9,
    P2pApi = 10,
    KernelLaunch = 11,
    CeColl = 12,
    CeSync = 13,
    CeBatch = 14,
    KernelPhase = 15,
}

impl EventKind {
    /// All kinds, in the order of their bits.
    pub const ALL: [Self; 16] = [
        Self::Group,
        Self::Coll,
        Self::P2p,
        Self::ProxyOp,
        Self::ProxyStep,
        Self::ProxyCtrl,
        Self::KernelCh,
        Self::NetPlugin,
        Self::GroupApi,
        Self::CollApi,
        Self::P2pApi,
        Self::KernelLaunch,
        Self::CeColl,
        Self::CeSync,
        Self::CeBatch,
        Self::KernelPhase,
    ];

    /// The kind with this bit number; only the low four bits count.
    #[must_use]
    pub const fn from_index(index: u8) -> Self {
        Self::ALL[(index & 15) as usize]
    }

    /// The bit in NCCL's activation mask, which is also the descriptor's `type`.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// NCCL's name without its prefix, as recordings spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        [
            "Group",
            "Coll",
            "P2p",
            "ProxyOp",
            "ProxyStep",
            "ProxyCtrl",
            "KernelCh",
            "NetPlugin",
            "GroupApi",
            "CollApi",
            "P2pApi",
            "KernelLaunch",
            "CeColl",
            "CeSync",
            "CeBatch",
            "KernelPhase",
        ][self as usize]
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Bits that the given interface version (1 to 7) knows.
    #[must_use]
    pub const fn known_mask(api: u8) -> u32 {
        match api {
            1 | 2 => 0x3f,
            3 | 4 => 0xff,
            5 => 0x0fff,
            6 => 0x7fff,
            _ => 0xffff,
        }
    }
}

/// States of `recordEventState`; the value is NCCL's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State(pub u8);

#[allow(missing_docs, reason = "the names are NCCL's")]
impl State {
    pub const PROXY_OP_SEND_POSTED: Self = Self(0);
    pub const PROXY_OP_SEND_REM_FIFO_WAIT: Self = Self(1);
    pub const PROXY_OP_SEND_TRANSMITTED: Self = Self(2);
    pub const PROXY_OP_SEND_DONE: Self = Self(3);
    pub const PROXY_OP_RECV_POSTED: Self = Self(4);
    pub const PROXY_OP_RECV_RECEIVED: Self = Self(5);
    pub const PROXY_OP_RECV_TRANSMITTED: Self = Self(6);
    pub const PROXY_OP_RECV_DONE: Self = Self(7);
    pub const STEP_SEND_GPU_WAIT: Self = Self(8);
    pub const STEP_SEND_WAIT: Self = Self(9);
    pub const STEP_RECV_WAIT: Self = Self(10);
    pub const STEP_RECV_FLUSH_WAIT: Self = Self(11);
    pub const STEP_RECV_GPU_WAIT: Self = Self(12);
    pub const CTRL_IDLE: Self = Self(13);
    pub const CTRL_ACTIVE: Self = Self(14);
    pub const CTRL_SLEEP: Self = Self(15);
    pub const CTRL_WAKEUP: Self = Self(16);
    pub const CTRL_APPEND: Self = Self(17);
    pub const CTRL_APPEND_END: Self = Self(18);
    pub const PROXY_OP_IN_PROGRESS: Self = Self(19);
    pub const STEP_SEND_PEER_WAIT: Self = Self(20);
    pub const NET_PLUGIN_UPDATE: Self = Self(21);
    pub const KERNEL_CH_STOP: Self = Self(22);
    pub const GROUP_START_API_STOP: Self = Self(23);
    pub const GROUP_END_API_START: Self = Self(24);
    /// First of the copy-engine pairs: 25 CeColl start, 26 complete, 27 CeSync start, 28 complete, 29 CeBatch start, 30 complete.
    pub const CE_FIRST: Self = Self(25);
    pub const CE_LAST: Self = Self(30);
    pub const KERNEL_PHASE_STOP: Self = Self(31);
}

/// Which child events are recorded beside an operation. Four bits of it travel in every operation's id, so that a child's
/// callback decides without a look-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Detail(pub u16);

impl Detail {
    /// Kernel channels (KernelCh) as a duration source; on by default. In the id.
    pub const CHANNELS: Self = Self(1);
    /// Proxy operations. In the id.
    pub const PROXY_OPERATIONS: Self = Self(2);
    /// Proxy steps (implies proxy operations). In the id.
    pub const PROXY_STEPS: Self = Self(4);
    /// Kernel phases, copy-engine syncs and batches, network plugin events. In the id.
    pub const PHASES: Self = Self(8);
    /// Keep each channel with the operation, not only what follows from them.
    pub const CHANNEL_LIST: Self = Self(16);
    /// Keep each proxy operation whole with the operation, not only their sums.
    pub const PROXY_LIST: Self = Self(32);
    /// Keep each proxy step whole (implies `PROXY_LIST`).
    pub const STEP_LIST: Self = Self(64);
    /// Group and API events as records.
    pub const API: Self = Self(128);

    /// Both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all bits of `other` are in it.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The part that travels in ids.
    #[must_use]
    pub const fn id_bits(self) -> u64 {
        (self.0 & 15) as u64
    }

    /// With what it implies.
    #[must_use]
    pub const fn completed(self) -> Self {
        let mut bits = self.0;
        if bits & Self::STEP_LIST.0 != 0 {
            bits |= Self::PROXY_STEPS.0 | Self::PROXY_LIST.0;
        }
        if bits & Self::PROXY_LIST.0 != 0 {
            bits |= Self::PROXY_OPERATIONS.0;
        }
        if bits & Self::PROXY_STEPS.0 != 0 {
            bits |= Self::PROXY_OPERATIONS.0;
        }
        if bits & Self::CHANNEL_LIST.0 != 0 {
            bits |= Self::CHANNELS.0;
        }
        Self(bits)
    }

    /// The bits of NCCL's activation mask that this detail needs, beside Coll and P2p.
    #[must_use]
    pub const fn mask(self) -> u32 {
        let detail = self.completed();
        let mut mask = 0;
        if detail.contains(Self::CHANNELS) {
            mask |= EventKind::KernelCh.bit();
        }
        if detail.contains(Self::PROXY_OPERATIONS) {
            mask |= EventKind::ProxyOp.bit();
        }
        if detail.contains(Self::PROXY_STEPS) {
            mask |= EventKind::ProxyStep.bit();
        }
        if detail.contains(Self::PHASES) {
            mask |= EventKind::KernelPhase.bit() | EventKind::CeSync.bit() | EventKind::CeBatch.bit();
        }
        if detail.contains(Self::API) {
            mask |= EventKind::Group.bit()
                | EventKind::GroupApi.bit()
                | EventKind::CollApi.bit()
                | EventKind::P2pApi.bit()
                | EventKind::KernelLaunch.bit();
        }
        mask
    }
}
