//! Scenarios: a training job in a TOML file. See [`Scenario`] for the keys.

mod check;
mod clock;
mod emit;
mod proxy;
mod rank;
mod run;
mod timeline;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::SimError;
pub(crate) use run::run;

/// A training job, as its TOML file says it. Keys that are not known are errors. Times have their unit in their name; GB is
/// 10^9 bytes; ranks, steps and operations count from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// For messages; default: the file's name.
    #[serde(default)]
    pub name: String,
    /// Ranks of the job, 1 to 4096.
    pub ranks: u32,
    /// Ranks on each node; default: all on one.
    #[serde(default)]
    pub ranks_per_node: Option<u32>,
    /// Each rank a process of its own (`true`, the default), or a set of threads of one process.
    #[serde(default = "yes")]
    pub processes: bool,
    /// Training steps.
    pub steps: u64,
    /// Seed of noise and identifiers; default 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Wall seconds a simulated second; default 1; 0: as fast as possible, when CPU times mean nothing.
    #[serde(default = "one_f64")]
    pub realtime: f64,
    /// Nanoseconds a tick of the GPU timer: 1 (NVIDIA, the default) or 10 (RCCL).
    #[serde(default = "one")]
    pub gpu_timer_ns: u64,
    /// A thread of its own for kernel events, beside the proxy thread's, as NCCL 2.32 has it; default false.
    #[serde(default)]
    pub kernel_thread: bool,
    /// Computation of a step before its first operation, microseconds; default 0.
    #[serde(default)]
    pub compute_us: f64,
    /// Speeds and noise.
    #[serde(default)]
    pub speed: Speed,
    /// Communicators; at least one.
    pub communicator: Vec<CommunicatorGroup>,
    /// Operations of a step, in order; at least one.
    pub operation: Vec<OperationSpec>,
    /// Ranks that are late.
    #[serde(default)]
    pub straggler: Vec<Straggler>,
    /// Ranks that never come.
    #[serde(default)]
    pub hang: Option<Hang>,
    /// Links that become slow for a while.
    #[serde(default)]
    pub slow_link: Vec<SlowLink>,
    /// The job is aborted: communicators are finalised with operations open.
    #[serde(default)]
    pub abort: Option<Abort>,
}

/// `[speed]`: a collective takes `latency_us + bytes × busbw factor / bandwidth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Speed {
    /// Bus bandwidth within a node, GB/s; default 300.
    pub intra_node_gb_s: f64,
    /// Bus bandwidth between nodes, GB/s; default 45.
    pub inter_node_gb_s: f64,
    /// Fixed time of an operation, microseconds; default 12.
    pub latency_us: f64,
    /// Noise of computation and transfer, a share of each, 0 to 1; default 0.02.
    pub noise: f64,
}

impl Default for Speed {
    fn default() -> Self {
        Self { intra_node_gb_s: 300.0, inter_node_gb_s: 45.0, latency_us: 12.0, noise: 0.02 }
    }
}

/// `[[communicator]]`: the ranks are cut into groups of `size` ranks that are `stride` apart, a communicator each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommunicatorGroup {
    /// What operations call it, and (unless `unnamed`) the name that NCCL is given.
    pub name: String,
    /// Ranks of each; default: all.
    #[serde(default)]
    pub size: Option<u32>,
    /// Distance of its ranks; default 1.
    #[serde(default = "one_u32")]
    pub stride: u32,
    /// NCCL is given NULL; default false.
    #[serde(default)]
    pub unnamed: bool,
}

/// `[[operation]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationSpec {
    /// Name of a communicator group.
    pub communicator: String,
    /// AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, or SendRecv (see `pattern`).
    pub function: String,
    /// As NCCL names it; default ncclFloat32.
    #[serde(default = "float32")]
    pub datatype: String,
    /// Elements that the user's call says (AllGather: sent; ReduceScatter: received; SendRecv: per peer).
    #[serde(default)]
    pub count: Option<u64>,
    /// Or the message's bytes as bandwidths count them (AllGather, ReduceScatter: of all ranks together).
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Algorithm; default RING.
    #[serde(default = "ring")]
    pub algorithm: String,
    /// Protocol; default SIMPLE.
    #[serde(default = "simple")]
    pub protocol: String,
    /// Channels, 1 to 64; default 8.
    #[serde(default = "eight")]
    pub channels: u8,
    /// Kernel channels that report; default: all that are announced.
    #[serde(default)]
    pub kernel_channels: Option<u8>,
    /// Root of Broadcast and Reduce; default 0.
    #[serde(default)]
    pub root: u32,
    /// SendRecv: with whom; default ring.
    #[serde(default)]
    pub pattern: Pattern,
    /// Times in a step; default 1.
    #[serde(default = "one_u32")]
    pub repeat: u32,
    /// Only in every k-th step; default 1.
    #[serde(default = "one")]
    pub every: u64,
    /// Computation before it, microseconds; default 0.
    #[serde(default)]
    pub compute_us: f64,
    /// In a CUDA graph that is captured in the first step and replayed in each later one; default false.
    #[serde(default)]
    pub graph: bool,
    /// By the copy engine (v6 and later; before, by kernels); default false.
    #[serde(default)]
    pub copy_engine: bool,
    /// The user's call is all there is, as with Broadcast since 2.30 (v6 and later; before, by kernels); default false.
    #[serde(default)]
    pub api_only: bool,
    /// Symmetric kernel with phases (v7; before, no kernel events come); default false.
    #[serde(default)]
    pub symmetric: bool,
    /// User's tag (v7); default 0.
    #[serde(default)]
    pub user_tag: u64,
}

/// Peers of SendRecv operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Send to the next rank, receive from the one before.
    #[default]
    Ring,
    /// Send to and receive from every rank, oneself included.
    AllToAll,
}

/// `[[straggler]]`: a rank that computes longer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Straggler {
    /// Which.
    pub rank: u32,
    /// How much longer, before the first operation of the step, milliseconds.
    pub extra_ms: f64,
    /// In every k-th step; default 1.
    #[serde(default = "one")]
    pub every: u64,
}

/// `[hang]`: a rank never enters an operation; the others' kernels of it never end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hang {
    /// Which rank.
    pub rank: u32,
    /// In which step.
    pub step: u64,
    /// Which `[[operation]]` of the step.
    #[serde(default)]
    pub operation: usize,
    /// How long the others wait before all is finalised, milliseconds; default 500.
    #[serde(default = "five_hundred")]
    pub wait_ms: f64,
}

/// `[[slow_link]]`: a communicator's bandwidth is divided for some steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowLink {
    /// Ranks of which one is in the communicators that slow down; empty: all.
    #[serde(default)]
    pub ranks: Vec<u32>,
    /// Name of the communicator group; None: all.
    #[serde(default)]
    pub communicator: Option<String>,
    /// Bandwidth is divided by this.
    pub factor: f64,
    /// From this step,
    pub from_step: u64,
    /// to before this step.
    pub to_step: u64,
}

/// `[abort]`: in that step every operation is enqueued and none ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abort {
    /// In which step.
    pub step: u64,
}

const fn yes() -> bool {
    true
}
const fn one() -> u64 {
    1
}
const fn one_u32() -> u32 {
    1
}
const fn one_f64() -> f64 {
    1.0
}
const fn eight() -> u8 {
    8
}
const fn five_hundred() -> f64 {
    500.0
}
fn float32() -> String {
    "ncclFloat32".to_owned()
}
fn ring() -> String {
    "RING".to_owned()
}
fn simple() -> String {
    "SIMPLE".to_owned()
}

impl Scenario {
    /// Reads and checks a scenario's file.
    ///
    /// # Errors
    /// It cannot be read, is not TOML, has unknown keys, or makes no sense; the message names key, value and expectation.
    pub fn load(path: &Path) -> Result<Self, SimError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| SimError::ScenarioFile { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads and checks a scenario's text; `name` is for messages.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str, name: &str) -> Result<Self, SimError> {
        let wrong = |problem| SimError::Scenario { name: name.to_owned(), problem };
        let mut scenario: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if scenario.name.is_empty() {
            scenario.name =
                Path::new(name).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        }
        scenario.check().map_err(wrong)?;
        Ok(scenario)
    }

    /// Nodes of the job.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.ranks.div_ceil(self.node_size())
    }

    /// Ranks a node.
    pub(crate) fn node_size(&self) -> u32 {
        self.ranks_per_node.unwrap_or(self.ranks).max(1)
    }
}
