//! What the driver is asked, one JSON line each on its standard input, and what it answers, one line each.

use std::path::PathBuf;

use collander_sim::{Job, Report};
use serde::{Deserialize, Serialize};

/// A communicator to open.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Naming {
    /// NCCL's hash.
    pub id: u64,
    /// Name, any bytes but NUL; None: NULL.
    pub name: Option<Vec<u8>>,
    /// Number of ranks.
    pub ranks: i32,
    /// Rank.
    pub rank: i32,
}

impl Naming {
    /// Rank 0 of 8.
    #[must_use]
    pub fn new(id: u64, name: &str) -> Self {
        Self { id, name: Some(name.as_bytes().to_vec()), ranks: 8, rank: 0 }
    }
}

/// Collectives on one communicator, one after another: each is started, stopped, and its kernels run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Collectives {
    /// The communicator's context.
    pub context: u64,
    /// Function.
    pub function: String,
    /// Sequence number of the first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Elements of ncclFloat32.
    pub elements: u64,
    /// Kernel channels.
    pub channels: u8,
    /// False: the kernels start and never stop.
    pub finished: bool,
}

impl Collectives {
    /// AllReduces of 1 MiB on two channels, that end.
    #[must_use]
    pub fn new(context: u64, first: u64, count: u64) -> Self {
        let function = "AllReduce".to_owned();
        Self { context, function, first, count, elements: 1 << 18, channels: 2, finished: true }
    }
}

/// `collander_sim::load::Load`; see there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "described at collander_sim::load::Load")]
pub struct LoadJob {
    pub api: Option<u8>,
    pub threads: u32,
    pub operations: u64,
    pub channels: u8,
    pub communicators: u32,
    pub all_open_at_once: bool,
    pub proxy_thread: bool,
    pub loads: u32,
    pub no_finalize: bool,
}

impl Default for LoadJob {
    fn default() -> Self {
        Self {
            api: None,
            threads: 1,
            operations: 1000,
            channels: 2,
            communicators: 1,
            all_open_at_once: false,
            proxy_thread: true,
            loads: 1,
            no_finalize: false,
        }
    }
}

/// Two threads, as NCCL's user and proxy thread, that only call the library between two `getppid` system calls each.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Quiet {
    /// The communicator's context.
    pub context: u64,
    /// Operations before the first marker.
    pub warm_up: u64,
    /// Operations between the markers.
    pub operations: u64,
}

/// One thing to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Loads the library that the driver's first argument names, in this version of the interface.
    Open(Option<u8>),
    /// Unloads it and loads it again.
    Reopen,
    /// Unloads it.
    Close,
    /// Opens a communicator; answers its `context`.
    Init(Naming),
    /// Opens one by the raw interface, version 7, where the simulator would cut a long name.
    RawInit(Naming),
    /// Closes one, whatever these bits are.
    Finalize(u64),
    /// Runs collectives; answers how many handles were not NULL (`handles`), and how many collectives NCCL would have made
    /// with the mask (`called`).
    Collectives(Collectives),
    /// Starts events of kinds that no version has; answers `handles`.
    UnknownKinds(u64),
    /// Stops and changes the states of handles that no one gave.
    Garbage,
    /// Does it on a thread that ends afterwards.
    OnThread(Box<Self>),
    /// Does them in a forked child, which then exits in order; answers the last reply, and how the child ended in `status`.
    Forked(Vec<Self>),
    /// A part of a scenario, or a recording; answers `report`.
    Job(Box<Job>),
    /// Load; answers `report`.
    Load(LoadJob),
    /// See [`Quiet`]; answers `quiet`.
    Quiet(Quiet),
    /// Files of this process may not grow beyond so many bytes; None: as they like.
    LimitFiles(Option<u64>),
    /// Nothing: what is asked is in every reply.
    Look,
    /// Exits in order, without finalize.
    Exit,
}

/// What was done. Fields that a request does not mention are empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    /// What went wrong.
    pub error: Option<String>,
    /// Context of a new communicator.
    pub context: u64,
    /// Collectives made.
    pub called: u64,
    /// Handles that were not NULL.
    pub handles: u64,
    /// Mask that the library wants now; 0 if none is loaded.
    pub mask: u32,
    /// What it logged since the last reply.
    pub log: Vec<String>,
    /// Report of a job.
    pub report: Option<Report>,
    /// Of a forked child: its wait status.
    pub status: Option<i32>,
    /// Of each quiet thread: its kernel id, and its allocations between the markers if they are counted.
    pub quiet: Vec<(i32, Option<u64>)>,
}

/// A library that counts allocations and can hold up writes exports these; see `places::interposer`.
pub const ALLOCATIONS: &str = "collander_test_allocations";

/// Variable by which the interposer is told of a file: while it exists, writes of collander's I/O thread wait.
pub const HANG_VARIABLE: &str = "COLLANDER_TEST_HANG_WHILE";

/// Files of the driver's own.
pub type Folder = PathBuf;
