//! From files to the table and the accounting: in parallel over the files, in bounded memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use collander_event::Collective;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::account::{Account, Session, Totals};
use super::files::{Found, Input, Kind};
use super::filter::Filter;
use super::inspector::{self, Step};
use super::lines::{Lines, open};
use super::record::{self, Header, Line, Op, Stats};
use super::table::{CommunicatorInfo, Sample, Table};

/// What is wrong with a file of which we read what could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Which.
    pub path: PathBuf,
    /// In words.
    pub what: String,
}

/// A process that wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Process {
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Reading {
    /// The table.
    pub table: Table,
    /// The accounting by session and sink.
    pub account: Account,
    /// Operations by kind, `inferred_group` among them.
    pub operations: BTreeMap<String, u64>,
    /// Losses that Inspector's files report.
    pub inspector_dropped: u64,
    /// Operations in Inspector's files.
    pub inspector_operations: u64,
    /// Files with damage.
    pub damaged: Vec<Damaged>,
    /// Lines that are none of ours.
    pub bad_lines: u64,
}

impl Reading {
    fn merge(&mut self, other: Self) {
        self.table.merge(other.table);
        self.account.merge(other.account);
        for (kind, count) in other.operations {
            *self.operations.entry(kind).or_default() += count;
        }
        self.inspector_dropped += other.inspector_dropped;
        self.inspector_operations += other.inspector_operations;
        self.damaged.extend(other.damaged);
        self.bad_lines += other.bad_lines;
    }
}

/// Which processes and sinks there are, and whose operations count.
#[derive(Debug, Default)]
pub struct Plan {
    /// All processes, in the order of their first file.
    pub processes: Vec<Process>,
    numbers: FxHashMap<Process, u32>,
    chosen: FxHashMap<Session, String>,
    /// Processes with operations in our own format: Inspector's files of theirs would count them twice.
    own: FxHashSet<Process>,
}

impl Plan {
    /// Decides.
    pub fn new(found: &Found) -> Self {
        let mut plan = Self::default();
        for input in &found.inputs {
            let process = match &input.kind {
                Kind::Collander(header) => Process { host: header.host.clone(), pid: header.pid },
                Kind::Inspector(host, pid) => Process { host: host.clone(), pid: *pid },
            };
            let next = plan.processes.len() as u32;
            plan.numbers.entry(process.clone()).or_insert_with(|| {
                plan.processes.push(process.clone());
                next
            });
            if let Kind::Collander(header) = &input.kind
                && !only_stats(&input.path)
            {
                plan.chosen.entry(Session::of(header)).or_insert_with(|| header.sink.clone());
                plan.own.insert(process);
            }
        }
        for input in &found.inputs {
            if let Kind::Collander(header) = &input.kind {
                plan.chosen.entry(Session::of(header)).or_insert_with(|| header.sink.clone());
            }
        }
        plan
    }

    /// The sink by which a session is counted.
    pub fn sink_of(&self, session: &Session) -> Option<String> {
        self.chosen.get(session).cloned()
    }

    /// The totals by the chosen sinks.
    pub fn totals(&self, account: &Account) -> Totals {
        account.totals(|session| self.sink_of(session))
    }

    fn number(&self, host: &str, pid: u32) -> u32 {
        self.numbers.get(&Process { host: host.to_owned(), pid }).copied().unwrap_or(u32::MAX)
    }
}

/// Whether a file lies beside Inspector's and holds no operations.
fn only_stats(path: &Path) -> bool {
    path.to_string_lossy().contains(".stats.jsonl")
}

/// Reads all files.
pub fn read(found: &Found, plan: &Plan, filter: &Filter) -> Reading {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(found.inputs.len()).clamp(1, 16);
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Reading::default()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut reading = Reading::default();
                while let Some(input) = found.inputs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    read_file(input, plan, filter, &mut reading);
                }
                all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).merge(reading);
            });
        }
    });
    let mut reading = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    reading.damaged.sort_by(|a, b| a.path.cmp(&b.path));
    reading
}

fn read_file(input: &Input, plan: &Plan, filter: &Filter, into: &mut Reading) {
    let lines = match File::open(&input.path).and_then(open) {
        Ok(reader) => Lines::new(reader),
        Err(error) => {
            into.damaged.push(Damaged { path: input.path.clone(), what: error.to_string() });
            return;
        }
    };
    let problems = match &input.kind {
        Kind::Collander(header) => read_ours(lines, header, plan, filter, into),
        Kind::Inspector(host, pid) => {
            if plan.own.contains(&Process { host: host.clone(), pid: *pid }) {
                return;
            }
            read_inspector(lines, plan.number(host, *pid), filter, into)
        }
    };
    for what in problems {
        into.damaged.push(Damaged { path: input.path.clone(), what });
    }
}

/// A communicator of the file that is being read.
struct Known {
    key: u64,
    rank: i32,
    passes: bool,
}

fn read_ours(mut lines: Lines, header: &Header, plan: &Plan, filter: &Filter, into: &mut Reading) -> Vec<String> {
    let session = Session::of(header);
    let counts = plan.chosen.get(&session) == Some(&header.sink);
    let process = plan.number(&header.host, header.pid);
    let mut communicators = FxHashMap::<u64, Known>::default();
    let (mut stats, mut behind, mut bad) = (None::<Box<Stats>>, 0, 0);
    let mut problems = Vec::new();
    let mut kinds = [0u64; 5];
    while let Some(line) = lines.next() {
        let line = match line {
            Ok(line) => line,
            Err(damage) => {
                problems.push(format!("{damage}; what is before it is counted"));
                break;
            }
        };
        match record::parse(line) {
            Ok(Line::Op(op)) => {
                let inferred = op.kind == "inferred_group";
                behind += u64::from(!inferred);
                if counts {
                    take(&op, &communicators, process, filter, &mut kinds, into);
                }
            }
            Ok(Line::Communicator(communicator)) => {
                let info = CommunicatorInfo {
                    hash: communicator.hash.map(|hash| hash.into_owned()),
                    name: communicator.name.into_owned(),
                    label: communicator.label.into_owned(),
                    ranks: communicator.ranks,
                    nodes: communicator.nodes,
                };
                let key = info
                    .hash
                    .as_deref()
                    .and_then(|hash| u64::from_str_radix(hash.trim_start_matches("0x"), 16).ok())
                    .unwrap_or_else(|| stand_in(&session, communicator.comm));
                let passes = filter.communicator(&info);
                communicators.insert(communicator.comm, Known { key, rank: communicator.rank.unwrap_or(-1), passes });
                if counts && passes {
                    into.table.learn(key, info);
                }
            }
            Ok(Line::Stats(record)) => {
                behind = 0;
                stats = Some(record);
            }
            Ok(Line::Other) => {}
            Err(_) => bad += 1,
        }
    }
    // A bad last line without an end is a torn one, no damage within.
    if bad > 0 && lines.is_torn() {
        bad -= 1;
        problems.push("its last line is torn; what is before it is counted".into());
    }
    if bad > 0 {
        into.bad_lines += bad;
        problems.push(format!("{bad} of its lines cannot be understood and are left out"));
    }
    for (kind, count) in KINDS.iter().zip(kinds).filter(|(_, count)| *count > 0) {
        *into.operations.entry((*kind).to_owned()).or_default() += count;
    }
    into.account.add(session, &header.sink, stats.map(|stats| *stats), behind);
    problems
}

const KINDS: [&str; 5] = ["coll", "p2p", "copy_engine", "api", "inferred_group"];

fn take(
    op: &Op<'_>,
    communicators: &FxHashMap<u64, Known>,
    process: u32,
    filter: &Filter,
    kinds: &mut [u64; 5],
    into: &mut Reading,
) {
    let collective = Collective::from_text(op.collective);
    let measured = !matches!(op.timing, "enqueue_only" | "unobservable");
    let duration = op.duration_ns.filter(|_| measured);
    let known = communicators.get(&op.comm);
    let rank = known.map_or(-1, |known| known.rank);
    let bytes = op.bytes.or(op.rank_bytes);
    if !known.is_none_or(|known| known.passes) || !filter.operation(collective, rank, bytes, op.duration_ns) {
        return;
    }
    if let Some(kind) = KINDS.iter().position(|kind| *kind == op.kind) {
        kinds[kind] += 1;
    }
    into.table.add(&Sample {
        communicator: known.map_or(u64::MAX, |known| known.key),
        collective,
        bytes,
        process,
        rank,
        duration_ns: duration.map(|ns| ns as f64),
        algbw: op.algbw_gbs,
        busbw: op.busbw_gbs,
    });
}

/// A number for a communicator whose hash is unknown: the same for all files of a session.
fn stand_in(session: &Session, comm: u64) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    (session, comm).hash(&mut hasher);
    hasher.finish()
}

fn read_inspector(mut lines: Lines, process: u32, filter: &Filter, into: &mut Reading) -> Vec<String> {
    let mut reader = inspector::Reader::default();
    let (mut problems, mut bad, mut example) = (Vec::new(), 0, String::new());
    while let Some(line) = lines.next() {
        let step = match line {
            Ok(line) => reader.read(line),
            Err(damage) => {
                problems.push(format!("{damage}; what is before it is counted"));
                break;
            }
        };
        match step {
            Ok(Step::Operation(perf)) => {
                let header = reader.header();
                let info = CommunicatorInfo {
                    hash: Some(format!("{:#x}", header.hash())),
                    name: if header.comm_name == "unknown" { String::new() } else { header.comm_name.clone() },
                    label: String::new(),
                    ranks: Some(header.n_ranks),
                    nodes: Some(header.nnodes),
                };
                let duration_ns = perf.time_us * 1e3;
                let (collective, bytes) = (perf.collective, Some(perf.bytes));
                if !filter.communicator(&info)
                    || !filter.operation(collective, header.rank, bytes, Some(duration_ns as u64))
                {
                    continue;
                }
                into.inspector_operations += 1;
                *into.operations.entry(if perf.p2p { "p2p" } else { "coll" }.to_owned()).or_default() += 1;
                into.table.add(&Sample {
                    communicator: header.hash(),
                    collective,
                    bytes,
                    process,
                    rank: header.rank,
                    duration_ns: Some(duration_ns),
                    algbw: perf.algbw,
                    busbw: perf.busbw,
                });
                into.table.learn(header.hash(), info);
            }
            Ok(Step::Nothing) => {}
            Err(why) => {
                bad += 1;
                example = why;
            }
        }
    }
    if bad > 0 && lines.is_torn() {
        bad -= 1;
        problems.push("its last line is torn; what is before it is counted".into());
    }
    if bad > 0 {
        into.bad_lines += bad;
        problems.push(format!("{bad} of its lines are left out: {example}"));
    }
    if reader.missing() > 0 {
        problems.push(format!("truncated: its last dump lacks {} lines", reader.missing()));
    }
    into.inspector_dropped += reader.dropped();
    problems
}
