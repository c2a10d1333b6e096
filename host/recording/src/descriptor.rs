//! What `startEvent` is told, whatever the version of the interface.

use std::sync::Arc;

use collander_event::EventKind;

/// A text that a descriptor points to; `None` is NULL. Shared, because the same few texts come millions of times.
pub type Name = Option<Arc<str>>;

/// A collective as enqueued. `parent_group` is not here: see [`crate::Start::group`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coll {
    /// Count per communicator and function, from 0.
    pub sequence: u64,
    /// Function.
    pub function: Name,
    /// Address of the send buffer.
    pub send_buffer: u64,
    /// Address of the receive buffer.
    pub receive_buffer: u64,
    /// Elements, as NCCL counts them.
    pub count: u64,
    /// Root rank.
    pub root: i32,
    /// Datatype.
    pub datatype: Name,
    /// Channels; 0 also stands for 256.
    pub channels: u8,
    /// Warps a channel.
    pub warps: u8,
    /// Algorithm.
    pub algorithm: Name,
    /// Protocol.
    pub protocol: Name,
    /// v7: name of the kernel variant.
    pub kernel_variant: Name,
    /// v7: symmetric kernel.
    pub symmetric: bool,
    /// v7: user's tag, 0 if none.
    pub user_tag: u64,
}

/// A send or receive as enqueued.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct P2p {
    /// `Send` or `Recv`.
    pub function: Name,
    /// Address of the buffer.
    pub buffer: u64,
    /// Datatype.
    pub datatype: Name,
    /// Elements.
    pub count: u64,
    /// Peer rank.
    pub peer: i32,
    /// Channels (v4 and later).
    pub channels: u8,
    /// v7: user's tag, 0 if none.
    pub user_tag: u64,
}

/// A network operation of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProxyOp {
    /// Process that owns the parent event.
    pub pid: i32,
    /// Channel.
    pub channel: u8,
    /// Peer rank.
    pub peer: i32,
    /// Steps.
    pub steps: i32,
    /// Bytes of a chunk.
    pub chunk_bytes: i32,
    /// Send, else receive.
    pub send: bool,
}

/// User's call of a collective (v5 and later).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollApi {
    /// Function.
    pub function: Name,
    /// Elements, of the user's datatype.
    pub count: u64,
    /// User's datatype.
    pub datatype: Name,
    /// Root rank.
    pub root: i32,
    /// CUDA stream.
    pub stream: u64,
    /// Captured into a CUDA graph.
    pub graph_captured: bool,
    /// v7: user's tag, 0 if none.
    pub user_tag: u64,
}

/// User's call of a send or receive (v5 and later).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct P2pApi {
    /// `Send` or `Recv`.
    pub function: Name,
    /// Elements, of the user's datatype.
    pub count: u64,
    /// User's datatype.
    pub datatype: Name,
    /// CUDA stream.
    pub stream: u64,
    /// Captured into a CUDA graph.
    pub graph_captured: bool,
    /// v7: user's tag, 0 if none.
    pub user_tag: u64,
}

/// A copy-engine collective (v6 and later).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CeColl {
    /// Count per communicator and function, from 0.
    pub sequence: u64,
    /// Function.
    pub function: Name,
    /// Address of the send buffer.
    pub send_buffer: u64,
    /// Address of the receive buffer.
    pub receive_buffer: u64,
    /// Elements.
    pub count: u64,
    /// Root rank.
    pub root: i32,
    /// Datatype.
    pub datatype: Name,
    /// How ranks synchronise.
    pub sync_strategy: Name,
    /// Synchronises within batches.
    pub intra_batch_sync: bool,
    /// Operations a batch.
    pub batch_size: u32,
    /// Batches.
    pub batches: u32,
    /// Copy engine's own sequence number.
    pub ce_sequence: u32,
    /// CUDA stream.
    pub stream: u64,
    /// v7: user's tag, 0 if none.
    pub user_tag: u64,
}

/// A synchronisation of a copy-engine collective (v6 and later).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CeSync {
    /// The completing one.
    pub complete: bool,
    /// Ranks that take part.
    pub ranks: i32,
}

/// A batch of copies (v6 and later).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CeBatch {
    /// Copies.
    pub operations: i32,
    /// Bytes.
    pub bytes: u64,
    /// Synchronises within the batch.
    pub intra_sync: bool,
}

/// What `startEvent` is told about an event, beside its parents and rank.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are NCCL's kinds of events, the fields are described in their structs")]
pub enum EventDescriptor {
    Group,
    Coll(Coll),
    P2p(P2p),
    ProxyOp(ProxyOp),
    ProxyStep {
        step: i32,
    },
    ProxyCtrl,
    /// `timer`: GPU timer at the start (v4 and later).
    KernelCh {
        channel: u8,
        timer: u64,
    },
    NetPlugin {
        id: i64,
        data: u64,
    },
    GroupApi {
        graph_captured: bool,
        depth: i32,
    },
    CollApi(CollApi),
    P2pApi(P2pApi),
    KernelLaunch {
        stream: u64,
    },
    CeColl(CeColl),
    CeSync(CeSync),
    CeBatch(CeBatch),
    /// `timer`: GPU timer at the start.
    KernelPhase {
        channel: u8,
        phase: u8,
        name: Name,
        timer: u64,
    },
}

impl EventDescriptor {
    /// Kind of the event.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::Group => EventKind::Group,
            Self::Coll(_) => EventKind::Coll,
            Self::P2p(_) => EventKind::P2p,
            Self::ProxyOp(_) => EventKind::ProxyOp,
            Self::ProxyStep { .. } => EventKind::ProxyStep,
            Self::ProxyCtrl => EventKind::ProxyCtrl,
            Self::KernelCh { .. } => EventKind::KernelCh,
            Self::NetPlugin { .. } => EventKind::NetPlugin,
            Self::GroupApi { .. } => EventKind::GroupApi,
            Self::CollApi(_) => EventKind::CollApi,
            Self::P2pApi(_) => EventKind::P2pApi,
            Self::KernelLaunch { .. } => EventKind::KernelLaunch,
            Self::CeColl(_) => EventKind::CeColl,
            Self::CeSync(_) => EventKind::CeSync,
            Self::CeBatch(_) => EventKind::CeBatch,
            Self::KernelPhase { .. } => EventKind::KernelPhase,
        }
    }
}
