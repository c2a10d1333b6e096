//! The one table of keys: what may be written, where, and what it means. The reader, the environment and the reference in
//! `docs/reference/config.md` are all made from it.

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// true or false.
    Bool,
    /// A span of time, both bounds in ns, inclusive; `zero`: 0 is allowed too and means "never".
    Duration {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
        /// Whether 0 is allowed too.
        zero: bool,
    },
    /// A size, bounds inclusive.
    Bytes {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
        /// Whether it must be a power of two.
        power_of_two: bool,
    },
    /// A whole number, bounds inclusive.
    Integer {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// Text that is not empty.
    Text,
    /// One text or a list of texts.
    Texts,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Words from this list; a list, possibly empty.
    Choices(&'static [&'static str]),
    /// Whole numbers from, to, both inclusive: `8`, `[2, 8]`, `"2..8"`, `"2.."`, `"..8"`.
    Range,
    /// Sizes from, inclusive, to, exclusive: `"1MiB.."`, `"..64KiB"`, `"1KiB..1MiB"`, `[1024, 2048]`.
    Sizes,
    /// `"all"`, `"none"`, `"1/16"` or `"100/s"`.
    Keep,
    /// A table of texts.
    TextTable,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its section: "" (top), "capture", …; "label", "sample" and "sink" are arrays of tables.
    pub section: &'static str,
    /// Its name in the section.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// What holds without it, in words.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
}

/// Prefix of all variables.
pub const PREFIX: &str = "COLLANDER_";
/// Sections that are arrays of tables.
pub const ARRAYS: [&str; 3] = ["label", "sample", "sink"];
/// Other variables that begin so and are no keys.
pub const OTHER_VARIABLES: [(&str, &str); 2] = [
    ("COLLANDER_CONFIG", "Path of the configuration file. Without it no file is read."),
    ("COLLANDER_LIBRARY", "Read by the command-line program only: path of the plugin library."),
];
/// Variables that begin so are never looked at.
pub const TEST_PREFIX: &str = "COLLANDER_TEST_";

/// Words for details.
pub const DETAILS: &[&str] =
    &["channels", "proxy_ops", "proxy_steps", "phases", "channel_list", "proxy_list", "step_list", "api"];
const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

macro_rules! keys {
    ($($section:literal { $($name:literal: $kind:expr, $default:literal, $doc:literal;)+ })+) => {
        /// All keys, in the order of the reference.
        pub const KEYS: &[Key] = &[
            $($(Key { section: $section, name: $name, kind: $kind, default: $default, doc: $doc },)+)+
        ];
    };
}

const U32: Kind = Kind::Integer { min: 0, max: u32::MAX as u64 };

keys! {
    "" {
        "enabled": Kind::Bool, "true", "false: the plugin stays off and costs nothing.";
    }
    "capture" {
        "collectives": Kind::Bool, "true", "Record collectives.";
        "p2p": Kind::Bool, "true", "Record sends and receives.";
        "detail": Kind::Choices(DETAILS), "[\"channels\"]",
            "What to record beside an operation, where no sampling rule says otherwise. `channels`: kernel channels, the source of GPU times. `proxy_ops`, `proxy_steps`: where the proxy's time went, as sums. `phases`: kernel phases, copy-engine syncs and batches. `channel_list`, `proxy_list`, `step_list`: keep each one whole with the operation. `api`: group and API calls. What an entry needs comes with it.";
        "gpu_timer": Kind::Choice(&["auto", "nanoseconds", "ten_nanoseconds"]), "auto",
            "Unit of the GPU timer: NVIDIA's counts nanoseconds, RCCL's 10 ns; `auto` compares it with CPU clocks.";
        "assume_ranks": U32, "0",
            "Number of ranks of a communicator where the interface does not tell it (NCCL 2.23 to 2.25), for bus bandwidths; 0: not known.";
    }
    "ring" {
        "total_bytes": Kind::Bytes { min: MIB, max: 4 * GIB, power_of_two: false }, "64MiB",
            "Memory for the rings of a process. Threads beyond it are counted as unobserved.";
        "large_bytes": Kind::Bytes { min: 64 * KIB, max: GIB, power_of_two: true }, "16MiB",
            "Ring of a thread that sees kernel or proxy events; at most `total_bytes`.";
        "small_bytes": Kind::Bytes { min: 64 * KIB, max: GIB, power_of_two: true }, "1MiB",
            "Ring of any other thread; at most `total_bytes`.";
    }
    "drain" {
        "period": Kind::Duration { min: 100_000, max: 10 * S, zero: false }, "5ms", "How often the rings are read.";
        "operation_timeout": Kind::Duration { min: 100 * MS, max: 7 * 24 * 3600 * S, zero: true }, "10min",
            "An operation to which nothing happens for so long is closed with the flag `timed_out`; 0: never.";
        "settle": Kind::Duration { min: MS, max: 60 * S, zero: false }, "250ms",
            "How long an operation that misses channels waits for them once all that it started have stopped.";
        "max_open": Kind::Integer { min: 1024, max: 1 << 28 }, "262144",
            "Most operations open at once; beyond it the oldest are pushed out and counted.";
        "max_orphans": Kind::Integer { min: 1024, max: 1 << 28 }, "65536",
            "Most events that wait for their parent; beyond it the oldest are pushed out and counted.";
    }
    "label" {
        "label": Kind::Text, "required", "The label to give: `tp`, `pp`, `dp`, `ep`, ….";
        "communicator": Kind::Texts, "all", "Globs (`*`, `?`, `[a-z]`) on the communicator's name.";
        "id": Kind::Texts, "all", "Globs on its hash, `0x` and 16 hex digits.";
        "ranks": Kind::Range, "all", "Its number of ranks.";
        "nodes": Kind::Range, "all", "Its number of nodes.";
        "rank": Kind::Range, "all", "This process's rank in it.";
        "ordinal": Kind::Range, "all", "Order of its creation in this process, from 0.";
    }
    "sample" {
        "name": Kind::Text, "rule N", "Name for messages.";
        "communicator": Kind::Texts, "all", "Globs (`*`, `?`, `[a-z]`) on the communicator's name.";
        "id": Kind::Texts, "all", "Globs on its hash, `0x` and 16 hex digits.";
        "label": Kind::Texts, "all", "Globs on its label.";
        "ranks": Kind::Range, "all", "Its number of ranks.";
        "nodes": Kind::Range, "all", "Its number of nodes.";
        "rank": Kind::Range, "all", "This process's rank in it.";
        "ordinal": Kind::Range, "all", "Order of its creation in this process, from 0.";
        "collectives": Kind::Texts, "all",
            "Functions, in any capitalisation: AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, Send, Recv, …. `collective` is read too.";
        "size": Kind::Sizes, "all", "Bytes, as algbw counts them.";
        "keep": Kind::Keep, "all", "How many: `all`, `none`, `1/16` as `one_in`, `100/s` as `per_second`. At most one of the three keys.";
        "one_in": Kind::Integer { min: 1, max: 1 << 40 }, "-",
            "Keep one in so many, a power of two: the same ones on every rank, and what a greater number keeps, a smaller one keeps too.";
        "per_second": Kind::Integer { min: 1, max: u32::MAX as u64 }, "-",
            "Keep at most so many a second over all that the rule matches in this process.";
        "detail": Kind::Choices(DETAILS), "`capture.detail`", "What to record beside these operations; as `capture.detail`.";
        "sinks": Kind::Texts, "all", "Names of the sinks that they go to.";
    }
    "sink" {
        "name": Kind::Text, "the type", "Its name; unique.";
        "type": Kind::Choice(&["jsonl"]), "jsonl", "What it is.";
        "directory": Kind::Text, "collander-{job}",
            "Folder, made if missing, with its parents. `{job}`, `{host}`, `{pid}` are replaced.";
        "format": Kind::Choice(&["collander", "inspector-4.0", "inspector-4.2"]), "collander",
            "Whose lines: ours (docs/output-fields.md) or NVIDIA Inspector's (docs/inspector-compatibility.md).";
        "compression": Kind::Choice(&["zstd", "gzip", "plain"]), "zstd; Inspector's formats: plain", "Compression of the files.";
        "level": Kind::Integer { min: 1, max: 19 }, "zstd 3, gzip 6", "Its level: zstd 1 to 19, gzip 1 to 9.";
        "flush": Kind::Duration { min: 10 * MS, max: 3600 * S, zero: false }, "1s",
            "How often what was recorded is written, with a stats record. A killed process loses what was not.";
        "rotate_bytes": Kind::Bytes { min: 16 * KIB, max: 1 << 40, power_of_two: false }, "32MiB, at most max_bytes / 4",
            "A file is closed and the next begun at this size; at most `max_bytes`.";
        "max_bytes": Kind::Bytes { min: 64 * KIB, max: 1 << 50, power_of_two: false }, "256MiB",
            "At most so much on disk for each process and sink: the oldest file is deleted, and counted.";
        "queue_operations": Kind::Integer { min: 16, max: 1 << 28 }, "65536",
            "Operations that may wait for it; beyond it they are dropped, and counted.";
        "require_kernel_timing": Kind::Bool, "true",
            "Inspector's formats: leave out operations without GPU kernel times, as Inspector does.";
        "min_size_bytes": Kind::Bytes { min: 0, max: 1 << 62, power_of_two: false }, "8192",
            "Inspector's formats: leave out smaller operations.";
        "verbose": Kind::Bool, "false",
            "Inspector's formats: add the event traces. Asks for the detail `channel_list` if `capture.detail` is not set.";
    }
    "job" {
        "id": Kind::Text, "from the scheduler",
            "Job id. Without it: Slurm, PBS, LSF, Flux, Cobalt, AWS Batch, Kubernetes (Job, JobSet, PyTorchJob, Volcano), SageMaker, Ray, torchrun, else `unknown-jobid`.";
        "host": Kind::Text, "the system's", "Host name in files and their names.";
        "labels": Kind::TextTable, "none", "Further labels in every file's header.";
    }
}

impl Key {
    /// Where it stands: `ring.total_bytes`, `sink.format`.
    #[must_use]
    pub fn path(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }

    /// Its environment variable; None for keys of `[[label]]` and `[[sample]]`, whose arrays are variables as a whole.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        match self.section {
            "label" | "sample" => None,
            _ => Some(format!("{PREFIX}{}", self.path().replace('.', "_").to_uppercase())),
        }
    }
}

/// The key of that name; `collective` is read as `collectives`.
#[must_use]
pub fn find(section: &str, name: &str) -> Option<&'static Key> {
    let name = if section == "sample" && name == "collective" { "collectives" } else { name };
    KEYS.iter().find(|key| key.section == section && key.name == name)
}

/// The one of `names` that needs the fewest changes to become `wrong`; None if more than a third of it would change (two letters always may).
#[must_use]
pub fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (distance, name) = names.map(|name| (distance(wrong, name), name)).min()?;
    let length = wrong.chars().count();
    (distance <= (length / 3).max(2) && distance < length).then_some(name)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
