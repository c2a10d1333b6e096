//! What was called.

use serde::{Deserialize, Serialize};

/// What a job called, for tests and users to compare with what the plugin saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Interface version that was driven; 0 after merging reports of different versions.
    pub api: u8,
    /// All calls of the library's functions, without those injected.
    pub calls: u64,
    /// The same, by function.
    pub functions: VtableCalls,
    /// Calls that NCCL should not make.
    pub injected: InjectedCalls,
    /// Calls that returned an error.
    pub failed_calls: u64,
    /// Operations that the library was told of.
    pub operations: OperationCounts,
    /// Ranks that were played.
    pub ranks: u64,
    /// Processes: jobs merged into this report.
    pub processes: u64,
    /// Communicators opened (a rank of one each).
    pub communicators: u64,
    /// Times that the library was loaded.
    pub loads: u64,
    /// Events started and never stopped.
    pub never_stopped: u64,
    /// Every operation, if asked for; in the order of their starts in each process.
    pub expected: Vec<ExpectedOperation>,
    /// Warnings and information that the library logged through NCCL's logger.
    pub log: Vec<String>,
    /// Wall time from the first call to the last, seconds; the longest of the merged.
    pub seconds: f64,
}

/// Calls by function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the functions' names")]
pub struct VtableCalls {
    pub init: u64,
    pub start: u64,
    pub state: u64,
    pub stop: u64,
    pub finalize: u64,
}

impl VtableCalls {
    /// All.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.init + self.start + self.state + self.stop + self.finalize
    }

    pub(crate) const fn add(&mut self, other: &Self) {
        self.init += other.init;
        self.start += other.start;
        self.state += other.state;
        self.stop += other.stop;
        self.finalize += other.finalize;
    }
}

/// Injected calls by fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "described at Faults")]
pub struct InjectedCalls {
    pub late: u64,
    pub doubled: u64,
    pub stale: u64,
    pub foreign_handles: u64,
    pub foreign_contexts: u64,
}

impl InjectedCalls {
    /// All.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.late + self.doubled + self.stale + self.foreign_handles + self.foreign_contexts
    }

    pub(crate) const fn add(&mut self, other: &Self) {
        self.late += other.late;
        self.doubled += other.doubled;
        self.stale += other.stale;
        self.foreign_handles += other.foreign_handles;
        self.foreign_contexts += other.foreign_contexts;
    }
}

/// Operations by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCounts {
    /// Coll events started.
    pub coll: u64,
    /// P2p events started.
    pub p2p: u64,
    /// CeColl events started.
    pub copy_engine: u64,
    /// CollApi and P2pApi events started that are not captured and have no Coll, P2p or CeColl.
    pub api_only: u64,
}

impl OperationCounts {
    /// All.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.coll + self.p2p + self.copy_engine + self.api_only
    }

    pub(crate) const fn count(&mut self, kind: OperationKind) {
        match kind {
            OperationKind::Coll => self.coll += 1,
            OperationKind::P2p => self.p2p += 1,
            OperationKind::CopyEngine => self.copy_engine += 1,
            OperationKind::ApiOnly => self.api_only += 1,
        }
    }
}

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// A Coll event.
    Coll,
    /// A P2p event.
    P2p,
    /// A CeColl event.
    CopyEngine,
    /// An API call that never became one of these.
    ApiOnly,
}

/// An operation as the library was told of it: what a version cannot say is None, 0 or empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedOperation {
    /// What it is.
    pub kind: OperationKind,
    /// communicator id or hash.
    pub communicator: u64,
    /// Its name, lossy where it is not UTF-8.
    pub communicator_name: Option<String>,
    /// The how-manieth `init` of the process made its context, from 0.
    pub context: u32,
    /// Rank in the communicator.
    pub rank: i32,
    /// Ranks of the communicator.
    pub ranks: i32,
    /// Function.
    pub function: String,
    /// NCCL's sequence number; None for P2P and API calls.
    pub sequence: Option<u64>,
    /// Elements, as the event says.
    pub count: u64,
    /// Datatype, as the event says.
    pub datatype: String,
    /// Algorithm.
    pub algorithm: Option<String>,
    /// Protocol.
    pub protocol: Option<String>,
    /// nChannels as the event says (v4 and later; 0 can stand for 256).
    pub channels: Option<u8>,
    /// Root, or peer of P2P.
    pub root_or_peer: i32,
    /// User's tag (v7).
    pub user_tag: u64,
    /// Its start comes from a replayed graph.
    pub graph_replay: bool,
    /// KernelCh events under it, in the order of their starts.
    pub kernel_channels: Vec<KernelChannel>,
    /// ProxyOp events under it.
    pub proxy_operations: u32,
    /// ProxyStep events under these.
    pub proxy_steps: u32,
}

/// A KernelCh event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelChannel {
    /// Channel.
    pub channel: u8,
    /// GPU timer at the start; 0 in v3, which has none.
    pub start: u64,
    /// GPU timer at the stop; None: no KernelChStop was called.
    pub stop: Option<u64>,
}

impl Report {
    /// Adds the report of another process.
    pub fn merge(&mut self, other: Self) {
        self.api = if self.processes == 0 || self.api == other.api { other.api } else { 0 };
        self.calls += other.calls;
        self.functions.add(&other.functions);
        self.injected.add(&other.injected);
        self.failed_calls += other.failed_calls;
        self.operations.coll += other.operations.coll;
        self.operations.p2p += other.operations.p2p;
        self.operations.copy_engine += other.operations.copy_engine;
        self.operations.api_only += other.operations.api_only;
        self.ranks += other.ranks;
        self.processes += other.processes;
        self.communicators += other.communicators;
        self.loads += other.loads;
        // Of the threads of one rank, some stop what others started.
        self.never_stopped = self.never_stopped.wrapping_add(other.never_stopped);
        self.expected.extend(other.expected);
        self.log.extend(other.log);
        self.seconds = self.seconds.max(other.seconds);
    }
}
