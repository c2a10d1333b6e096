//! The calls of a recording.

use crate::descriptor::EventDescriptor;

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Version of the format; 1.
    pub format: u32,
    /// NCCL's version.
    pub nccl: String,
    /// N of the `ncclProfiler_vN` that was called, 1 to 7.
    pub api: u8,
    /// Process.
    pub pid: i32,
    /// What ran.
    pub program: String,
    /// How it was made.
    pub note: String,
}

/// A handle or context as the recording names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HandleRef {
    /// NULL.
    #[default]
    Null,
    /// The n-th of this process, as `h` or `ctx` of an earlier line.
    Own(u64),
    /// These bits, of another process.
    Foreign(u64),
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Nanoseconds since the first call.
    pub t_ns: u64,
    /// Thread, from 0.
    pub thread: u32,
    /// In this call the plugin stored that mask through NCCL's live pointer.
    pub mask_set: Option<u32>,
    /// Which.
    pub kind: CallKind,
}

/// Which call, with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum CallKind {
    /// `init`
    Init(Box<Init>),
    /// `startEvent`
    Start(Box<Start>),
    /// `recordEventState`
    State(StateChange),
    /// `stopEvent`
    Stop {
        /// The event.
        handle: HandleRef,
        /// It had been stopped before.
        late: bool,
    },
    /// `finalize`
    Finalize {
        /// The communicator's context.
        context: HandleRef,
    },
}

/// Arguments of `init`, and what the recorder answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// Number of the context that the recorder returned.
    pub context: u64,
    /// commId, or commHash in v4; 0 where the interface does not tell.
    pub communicator_id: u64,
    /// Name, any bytes without NUL; None: NULL.
    pub name: Option<Vec<u8>>,
    /// Nodes.
    pub nodes: i32,
    /// Ranks.
    pub ranks: i32,
    /// Rank.
    pub rank: i32,
    /// Mask that the recorder asked for.
    pub mask: u32,
    /// The how-manieth load of the plugin in this process, from 1.
    pub load: u32,
}

/// Arguments of `startEvent`, and the handle that the recorder returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Context it was called with.
    pub context: HandleRef,
    /// Number of the handle that the recorder returned; None: NULL.
    pub handle: Option<u64>,
    /// `parentObj`.
    pub parent: HandleRef,
    /// `parentGroup`, of Coll and P2p in v5 and later.
    pub group: HandleRef,
    /// `rank`: often wrong.
    pub rank: i32,
    /// Kind and members.
    pub descriptor: EventDescriptor,
}

/// Arguments of `recordEventState`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateChange {
    /// The event.
    pub handle: HandleRef,
    /// NCCL's number.
    pub state: u8,
    /// Its argument.
    pub argument: StateArgument,
    /// The event had been stopped before.
    pub late: bool,
}

/// Argument of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateArgument {
    /// The pointer is NULL.
    Null,
    /// Bytes of a proxy step or operation, and (v1 to v3) steps.
    Transfer {
        /// transSize.
        bytes: u64,
        /// steps.
        steps: i32,
    },
    /// Proxy operations appended.
    Appended(i32),
    /// GPU timer at the stop.
    Timer(u64),
    /// Pointer to a network plugin's data.
    Data(u64),
    /// First 8 bytes of an argument that means nothing.
    Raw(u64),
}
