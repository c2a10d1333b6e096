//! The configuration as the rest of collander sees it: checked, complete, no `Option` that means "default".

use std::path::PathBuf;
use std::time::Duration;

use collander_event::{Collective, Detail};

/// Everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Off: `init` returns NULL contexts and the mask 0.
    pub enabled: bool,
    /// What is asked of NCCL and kept.
    pub capture: Capture,
    /// The rings.
    pub ring: Ring,
    /// The drain and the assembler.
    pub drain: Drain,
    /// Names for communicators; the first rule that matches wins.
    pub labels: Vec<LabelRule>,
    /// Sampling; the first rule that matches wins; what none matches is kept, with `capture.detail`.
    pub sampling: Vec<SamplingRule>,
    /// At most 32. Never empty unless `enabled` is false: the default is one JSON Lines sink named `jsonl`.
    pub sinks: Vec<SinkConfig>,
    /// Identity of the job.
    pub job: Job,
}

/// `[capture]`
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// Coll events; default true.
    pub collectives: bool,
    /// P2p events; default true.
    pub p2p: bool,
    /// Detail of classes that no rule decides; default: channels.
    pub detail: Detail,
    /// Unit of the GPU timer; default: detected.
    pub gpu_timer: GpuTimer,
    /// Number of ranks to assume where the interface does not tell (v1 to v3); 0: unknown. Default 0.
    pub assume_ranks: u32,
}

/// Unit of `pTimer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuTimer {
    /// Detected by comparing with CPU stamps.
    #[default]
    Auto,
    /// NVIDIA's globaltimer.
    Nanoseconds,
    /// RCCL's 100 MHz counter.
    TenNanoseconds,
}

/// `[ring]`
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// All rings of a process together; default 64 MiB, 1 MiB to 4 GiB.
    pub total_bytes: u64,
    /// Ring of a thread that sees kernel or proxy events; a power of two, default 16 MiB.
    pub large_bytes: u64,
    /// Ring of any other thread; a power of two, default 1 MiB.
    pub small_bytes: u64,
}

/// `[drain]`
#[derive(Clone, Debug, PartialEq)]
pub struct Drain {
    /// How often rings are read; default 5 ms, 100 µs to 10 s.
    pub period: Duration,
    /// An operation to which nothing happens for so long is closed, flagged; default 10 minutes; zero: never.
    pub operation_timeout: Duration,
    /// How long a P2P or collective that lost channels waits for them once all it started have stopped; default 250 ms.
    pub settle: Duration,
    /// Most operations open at once in the assembler; default 262 144.
    pub max_open: usize,
    /// Most children that wait for their parent; default 65 536.
    pub max_orphans: usize,
}

/// What a rule applies to. Every list that is empty, and every bound that is None, matches all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector {
    /// Globs (`*`, `?`, `[a-z]`) on the communicator's name.
    pub names: Vec<String>,
    /// Globs on the communicator's hash, written `0x` and 16 lower-case hex digits.
    pub ids: Vec<String>,
    /// Globs on its label.
    pub labels: Vec<String>,
    /// Number of ranks, inclusive.
    pub ranks: Option<(u32, u32)>,
    /// Number of nodes, inclusive.
    pub nodes: Option<(u32, u32)>,
    /// This process's rank in the communicator, inclusive.
    pub rank: Option<(u32, u32)>,
    /// Order of creation in this process, from 0, inclusive.
    pub ordinal: Option<(u32, u32)>,
}

/// `[[label]]`: names the communicators that the selector matches.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelRule {
    /// Which. Its `labels` are empty.
    pub selector: Selector,
    /// The label.
    pub label: String,
}

/// How many to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// All.
    All,
    /// None.
    None,
    /// One in N, a power of two, 2 to 2^40; stored as n of 2^n.
    OneIn(u8),
    /// At most so many a second over all that the rule matches in this process; the drain adjusts a power of two.
    PerSecond(u32),
}

/// `[[sample]]`
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingRule {
    /// For messages; default `rule 1`, `rule 2`, …
    pub name: String,
    /// Which communicators.
    pub selector: Selector,
    /// Which functions; empty: all.
    pub collectives: Vec<Collective>,
    /// Bytes (as algbw counts them), from, inclusive.
    pub min_bytes: u64,
    /// To, exclusive; `u64::MAX`: no bound.
    pub max_bytes: u64,
    /// How many.
    pub keep: Keep,
    /// In which detail; None: `capture.detail`.
    pub detail: Option<Detail>,
    /// To which sinks, a bit each; `u32::MAX`: all.
    pub sinks: u32,
}

/// `[[sink]]`
#[derive(Clone, Debug, PartialEq)]
pub struct SinkConfig {
    /// Unique; default: the kind.
    pub name: String,
    /// What it is.
    pub kind: SinkKind,
    /// Operations that may wait for it; default 65 536.
    pub queue_operations: usize,
}

/// Kinds of sinks.
#[derive(Clone, Debug, PartialEq)]
pub enum SinkKind {
    /// JSON Lines files.
    Jsonl(Jsonl),
}

/// A JSON Lines sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Jsonl {
    /// Folder, made if missing (with its parents); `{job}`, `{host}`, `{pid}` are replaced. Default `collander-{job}`.
    pub directory: PathBuf,
    /// Whose lines.
    pub format: JsonFormat,
    /// Compression; Inspector's formats default to plain, ours to zstd.
    pub compression: Compression,
    /// Level: zstd 1 to 19 (default 3), gzip 1 to 9 (default 6); ignored when plain.
    pub level: i32,
    /// How often what was formatted is written, as a whole frame, with a stats record; default 1 s, 10 ms to 1 h.
    pub flush: Duration,
    /// A file is closed and the next begun at this size; default 32 MiB.
    pub rotate_bytes: u64,
    /// At most so much on disk a process and sink: the oldest file is deleted and counted; default 256 MiB.
    pub max_bytes: u64,
    /// Inspector's formats: leave out operations without GPU kernel times, as Inspector does; default true.
    pub require_kernel_timing: bool,
    /// Inspector's formats: leave out smaller operations; default 8192 as Inspector has it.
    pub min_size_bytes: u64,
    /// Inspector's formats: verbose event traces; default false.
    pub verbose: bool,
}

/// Whose lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonFormat {
    /// Ours, `docs/output-fields.md`.
    #[default]
    Collander,
    /// NVIDIA Inspector's v4.0.
    Inspector40,
    /// NVIDIA Inspector's v4.2.
    Inspector42,
}

/// Compression of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// None.
    Plain,
    /// gzip members, one a flush.
    Gzip,
    /// zstd frames, one a flush.
    #[default]
    Zstd,
}

/// Who we are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Job id: from the configuration, else from Slurm, PBS, LSF, Kubernetes, torchrun, else `unknown-jobid`.
    pub id: String,
    /// Where the id came from: `config`, the variable's name, or `none`.
    pub id_source: String,
    /// Host name.
    pub host: String,
    /// Further labels in every file's header.
    pub labels: Vec<(String, String)>,
}
