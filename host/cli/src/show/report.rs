//! What was read, as JSON and for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum;
use serde::Serialize;

use super::account::Totals;
use super::files::Found;
use super::filter::Filter;
use super::read::{Plan, Reading};
use super::straggler::{self, Slowest, Straggler};
use super::table::{Key, Row, Size, Table};
use super::text::{Column, table, wrap};
use crate::output::{Ui, printable};
use crate::units;

/// Order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By communicator (largest first), collective and size
    #[default]
    Communicator,
    /// Most time first
    Time,
    /// Most operations first
    Count,
    /// Longest median first
    P50,
    /// Longest 99th percentile first
    P99,
    /// Lowest bus bandwidth first
    Busbw,
    /// Largest first
    Size,
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub struct TableRow {
    communicator: CommunicatorName,
    collective: &'static str,
    bytes: Option<u64>,
    /// Exclusive end of the row's sizes, where more than one is joined.
    bytes_below: Option<u64>,
    count: u64,
    measured: u64,
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
    total_ns: f64,
    algbw_gbs: Option<f64>,
    busbw_gbs: Option<f64>,
    ranks_seen: usize,
    slowest: Option<Slowest>,
}

#[derive(Clone, Debug, Serialize)]
struct CommunicatorName {
    hash: Option<String>,
    name: String,
    label: String,
    ranks: Option<u32>,
    nodes: Option<u32>,
}

#[derive(Clone, Debug, Serialize)]
struct SinkTotals {
    name: String,
    seen: u64,
    written: u64,
    dropped: u64,
    deleted: u64,
    sampled_out: u64,
    open: u64,
    balanced: bool,
}

/// Everything that `show --json` says.
#[derive(Debug, Serialize)]
pub struct Report {
    operations: BTreeMap<&'static str, u64>,
    inferred_groups: u64,
    /// Equals written + dropped + sampled out + open if `balanced`.
    pub seen: u64,
    seen_by_kind: BTreeMap<String, u64>,
    written: u64,
    dropped: BTreeMap<String, u64>,
    dropped_total: u64,
    deleted: u64,
    sampled_out: u64,
    sampled_out_by: BTreeMap<String, u64>,
    open: u64,
    /// Whether the equation holds.
    pub balanced: bool,
    unaccounted: u64,
    sessions: u64,
    sessions_ended: u64,
    anomalies: BTreeMap<String, u64>,
    processes: usize,
    files: usize,
    /// Files that could not be read to their end.
    pub damaged: Vec<FileNote>,
    bad_lines: u64,
    skipped: Vec<FileNote>,
    sinks: Vec<SinkTotals>,
    filtered: bool,
    /// The rank that the others wait for.
    pub straggler: Option<Straggler>,
    #[serde(skip)]
    straggler_communicator: String,
    table: Vec<TableRow>,
    rows_left_out: usize,
    beyond_table: u64,
}

/// A file and what is to be said of it.
#[derive(Clone, Debug, Serialize)]
pub struct FileNote {
    path: String,
    what: String,
}

impl Report {
    /// Makes the report; `limit` 0: all rows.
    pub fn new(found: &Found, plan: &Plan, reading: Reading, filter: &Filter, sort: Sort, limit: usize) -> Self {
        let totals = with_inspector(plan.totals(&reading.account), &reading);
        let sinks = reading.account.by_sink();
        let straggler = straggler::straggler(&reading.table)
            .map(|s| Straggler { who: plan.processes.get(s.process as usize).cloned(), ..s });
        let mut rows = table_rows(&reading.table, sort);
        let rows_left_out = if limit > 0 { rows.len().saturating_sub(limit) } else { 0 };
        rows.truncate(rows.len() - rows_left_out);
        let mut operations: BTreeMap<&'static str, u64> = BTreeMap::new();
        for kind in ["coll", "p2p", "copy_engine", "api"] {
            operations.insert(kind, reading.operations.get(kind).copied().unwrap_or(0));
        }
        Self {
            operations,
            inferred_groups: reading.operations.get("inferred_group").copied().unwrap_or(0),
            seen: totals.seen,
            balanced: totals.balanced(),
            seen_by_kind: totals.seen_by_kind,
            written: totals.written,
            dropped: totals.dropped,
            dropped_total: totals.dropped_total,
            deleted: totals.deleted,
            sampled_out: totals.sampled_out,
            sampled_out_by: totals.sampled_out_by,
            open: totals.open,
            unaccounted: totals.unaccounted,
            sessions: totals.sessions,
            sessions_ended: totals.ended,
            anomalies: totals.anomalies,
            processes: plan.processes.len(),
            files: found.inputs.len(),
            damaged: reading
                .damaged
                .iter()
                .map(|d| FileNote { path: d.path.display().to_string(), what: d.what.clone() })
                .collect(),
            bad_lines: reading.bad_lines,
            skipped: found
                .skipped
                .iter()
                .map(|(path, what)| FileNote { path: path.display().to_string(), what: what.clone() })
                .collect(),
            sinks: sinks.into_iter().map(|(name, totals)| sink_totals(name, &totals)).collect(),
            filtered: filter.is_active(),
            straggler_communicator: straggler
                .as_ref()
                .map_or(String::new(), |s| communicator_name(&reading.table, s.communicator).text()),
            straggler,
            table: rows,
            rows_left_out,
            beyond_table: reading.table.beyond,
        }
    }

    /// For people.
    pub fn text(&self, ui: &Ui) -> String {
        let mut text = self.table_text(ui);
        text.push('\n');
        if let Some(line) = self.straggler_text() {
            for line in wrap(&line, ui.width.unwrap_or(120).max(40)) {
                let _ = writeln!(text, "{}", ui.paint.yellow(&line));
            }
        }
        self.account_text(&mut text, ui);
        text
    }

    /// The table alone.
    pub fn table_text(&self, ui: &Ui) -> String {
        let columns = [
            Column::left("comm", 8),
            Column::left("collective", 9),
            Column::right("size"),
            Column::right("count"),
            Column::right("p50"),
            Column::right("p99"),
            Column::right("algbw"),
            Column::right("busbw"),
            Column::left("slowest rank", 10),
        ];
        let rows: Vec<Vec<String>> = self.table.iter().map(TableRow::cells).collect();
        if rows.is_empty() {
            return "no operations\n".into();
        }
        let mut text = table(&columns, &rows, ui.width, ui.paint);
        if self.rows_left_out > 0 {
            let _ = writeln!(text, "… and {} more rows (--limit 0 shows all)", self.rows_left_out);
        }
        if self.beyond_table > 0 {
            let _ =
                writeln!(text, "{} operations are not in the table: too many rows", units::count(self.beyond_table));
        }
        text
    }

    /// Tells the ranks in the job of processes, where one is known by other means.
    pub fn name_ranks(&mut self, rank_of: impl Fn(u32) -> Option<u32>) {
        if let Some(straggler) = &mut self.straggler {
            straggler.job_rank = straggler.who.as_ref().and_then(|who| rank_of(who.pid));
        }
    }

    /// Who is slow and by how much, in words.
    pub fn straggler_text(&self) -> Option<String> {
        let straggler = self.straggler.as_ref()?;
        let (key, slow) = &straggler.worst;
        let process = straggler.who.as_ref().map(|who| format!("process {} on {}", who.pid, printable(&who.host)));
        let ranks = straggler.of_ranks.map_or(String::new(), |ranks| format!(" of {ranks}"));
        let place = format!("rank {}{ranks} in {}", straggler.rank, self.straggler_communicator);
        let (name, more) = match straggler.job_rank {
            Some(rank) => (format!("rank {rank}"), [Some(place), process]),
            None => (place, [process, None]),
        };
        let more: Vec<String> = more.into_iter().flatten().collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
        Some(format!(
            "{name}{more} comes last: in {} of {} the others take {} and it takes {} (means); they waited {} for it, \
             {:.0} % of their time in its collectives",
            key.collective.name(),
            size_text(key.size),
            units::nanoseconds(slow.others_ns),
            units::nanoseconds(slow.own_ns),
            units::nanoseconds(straggler.waited_ns),
            straggler.share * 100.0,
        ))
    }

    fn account_text(&self, text: &mut String, ui: &Ui) {
        let n = units::count;
        let kinds = named(self.operations.iter().map(|(kind, count)| (*kind, *count)));
        let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds };
        let shown = if self.filtered { "operations that pass the filters" } else { "operations" };
        let (files, processes) = (plural(self.files, "file", "files"), plural(self.processes, "process", "processes"));
        let _ = writeln!(text, "{shown}: {kinds}; from {files} of {processes}");
        let equation = format!(
            "seen {} = written {} + dropped {} + sampled out {} + open {}",
            n(self.seen),
            n(self.written),
            n(self.dropped_total),
            n(self.sampled_out),
            n(self.open)
        );
        if self.seen == 0 && self.sessions == 0 {
            let _ = writeln!(text, "no account: no `stats` record in these files");
        }
        let verdict = if self.balanced { ui.paint.green("balances") } else { ui.paint.red("DOES NOT BALANCE") };
        let _ = writeln!(text, "{equation}: {verdict}");
        let dropped = named(self.dropped.iter().map(|(reason, count)| (reason.as_str(), *count)));
        if !dropped.is_empty() {
            let _ = writeln!(text, "{} {dropped}", ui.paint.red("dropped:"));
        }
        if self.deleted > 0 {
            let _ = writeln!(text, "written, and deleted later to stay within the bound on disk: {}", n(self.deleted));
        }
        let sampled = named(self.sampled_out_by.iter().map(|(cause, count)| (cause.as_str(), *count)));
        if !sampled.is_empty() {
            let _ = writeln!(text, "sampled out by: {sampled}");
        }
        if self.sessions_ended < self.sessions {
            let _ = writeln!(
                text,
                "{} of {} did not end in order (killed, or still running): the account is that of their last flush",
                self.sessions - self.sessions_ended,
                plural(self.sessions as usize, "session", "sessions")
            );
        }
        if self.unaccounted > 0 {
            let _ =
                writeln!(text, "written after the last account, so in none of its numbers: {}", n(self.unaccounted));
        }
        let anomalies = named(self.anomalies.iter().map(|(name, count)| (name.as_str(), *count)));
        if !anomalies.is_empty() {
            let _ = writeln!(text, "{} {anomalies}", ui.paint.yellow("anomalies:"));
        }
        if self.sinks.len() > 1 {
            let names: Vec<_> = self.sinks.iter().map(|sink| printable(&sink.name)).collect();
            let _ = writeln!(text, "sinks: {}; each process is counted by its first", names.join(", "));
        }
        notes(text, &ui.paint.yellow("damaged:"), &self.damaged);
        notes(text, &ui.paint.dim("skipped:"), &self.skipped);
    }
}

fn notes(text: &mut String, title: &str, notes: &[FileNote]) {
    const SHOWN: usize = 10;
    for note in notes.iter().take(SHOWN) {
        let _ = writeln!(text, "{title} {}: {}", printable(&note.path), printable(&note.what));
    }
    if notes.len() > SHOWN {
        let _ = writeln!(text, "{title} {} more files", notes.len() - SHOWN);
    }
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", units::count(n as u64), if n == 1 { one } else { many })
}

/// `coll 12, p2p 3`, without zeros.
fn named<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    let parts: Vec<_> =
        counts.filter(|(_, n)| *n > 0).map(|(name, n)| format!("{} {}", printable(name), units::count(n))).collect();
    parts.join(", ")
}

fn sink_totals(name: String, totals: &Totals) -> SinkTotals {
    SinkTotals {
        name,
        seen: totals.seen,
        written: totals.written,
        dropped: totals.dropped_total,
        deleted: totals.deleted,
        sampled_out: totals.sampled_out,
        open: totals.open,
        balanced: totals.balanced(),
    }
}

/// Inspector's own files have no account: what they hold was written, what they say was lost was dropped.
fn with_inspector(mut totals: Totals, reading: &Reading) -> Totals {
    // Where our plugin wrote Inspector's format, its stats file counts these operations already.
    if totals.sessions == 0 && reading.inspector_operations > 0 {
        totals.written += reading.inspector_operations;
        totals.dropped_total += reading.inspector_dropped;
        totals.seen += reading.inspector_operations + reading.inspector_dropped;
        if reading.inspector_dropped > 0 {
            totals.dropped.insert("inspector_ring_full".into(), reading.inspector_dropped);
        }
    }
    totals
}

fn table_rows(table: &Table, sort: Sort) -> Vec<TableRow> {
    let mut rows: Vec<(&Key, &Row, TableRow)> =
        table.rows.iter().map(|(key, row)| (key, row, table_row(table, key, row))).collect();
    rows.sort_by(|a, b| {
        let by_place = || {
            let ranks = |row: &TableRow| std::cmp::Reverse(row.communicator.ranks.unwrap_or(0));
            (ranks(&a.2), a.2.communicator.text(), a.0.communicator, a.0.collective, a.0.size).cmp(&(
                ranks(&b.2),
                b.2.communicator.text(),
                b.0.communicator,
                b.0.collective,
                b.0.size,
            ))
        };
        let descending = |x: Option<f64>, y: Option<f64>| y.unwrap_or(-1.0).total_cmp(&x.unwrap_or(-1.0));
        let order = match sort {
            Sort::Communicator => std::cmp::Ordering::Equal,
            Sort::Time => descending(Some(a.2.total_ns), Some(b.2.total_ns)),
            Sort::Count => b.2.count.cmp(&a.2.count),
            Sort::P50 => descending(a.2.p50_ns, b.2.p50_ns),
            Sort::P99 => descending(a.2.p99_ns, b.2.p99_ns),
            Sort::Busbw => {
                let low = |row: &TableRow| row.busbw_gbs.unwrap_or(f64::INFINITY);
                low(&a.2).total_cmp(&low(&b.2))
            }
            Sort::Size => b.2.bytes.cmp(&a.2.bytes),
        };
        order.then_with(by_place)
    });
    rows.into_iter().map(|(_, _, row)| row).collect()
}

fn communicator_name(table: &Table, communicator: u64) -> CommunicatorName {
    let info = table.communicators.get(&communicator).cloned().unwrap_or_default();
    CommunicatorName { hash: info.hash, name: info.name, label: info.label, ranks: info.ranks, nodes: info.nodes }
}

fn table_row(table: &Table, key: &Key, row: &Row) -> TableRow {
    let algbw_gbs = row.algbw.quantile(0.5);
    let (bytes, bytes_below) = match key.size {
        Size::Unknown => (None, None),
        Size::Exact(bytes) => (Some(bytes), None),
        Size::From(bytes) => (Some(bytes), Some(if bytes == 0 { 1 } else { bytes.saturating_mul(2) })),
    };
    TableRow {
        communicator: communicator_name(table, key.communicator),
        collective: key.collective.name(),
        bytes,
        bytes_below,
        count: row.count,
        measured: row.durations.count(),
        p50_ns: row.durations.quantile(0.5),
        p99_ns: row.durations.quantile(0.99),
        total_ns: row.durations.sum(),
        algbw_gbs,
        busbw_gbs: algbw_gbs.zip(row.bus_factor).map(|(algbw, factor)| algbw * factor),
        ranks_seen: row.members.len(),
        slowest: straggler::slowest(key, row),
    }
}

/// A size as the table shows it.
fn size_text(size: Size) -> String {
    match size {
        Size::Unknown => "?".into(),
        Size::Exact(bytes) => units::bytes(bytes),
        Size::From(bytes) => format!("≥{}", units::bytes(bytes)),
    }
}

impl CommunicatorName {
    /// Label or name, and the first digits of the hash.
    fn text(&self) -> String {
        let hash = self.hash.as_deref().map(|hash| hash.trim_start_matches("0x").chars().take(6).collect::<String>());
        let hash = hash.unwrap_or_else(|| "?".into());
        let given = if self.label.is_empty() { &self.name } else { &self.label };
        if given.is_empty() { hash } else { format!("{} {hash}", printable(given)) }
    }
}

impl TableRow {
    fn cells(&self) -> Vec<String> {
        let dash = || "–".to_owned();
        let size = match (self.bytes, self.bytes_below) {
            (None, _) => Size::Unknown,
            (Some(bytes), None) => Size::Exact(bytes),
            (Some(bytes), Some(_)) => Size::From(bytes),
        };
        vec![
            self.communicator.text(),
            self.collective.to_owned(),
            size_text(size),
            units::count(self.count),
            self.p50_ns.map_or_else(dash, units::nanoseconds),
            self.p99_ns.map_or_else(dash, units::nanoseconds),
            self.algbw_gbs.map_or_else(dash, units::bandwidth),
            self.busbw_gbs.map_or_else(dash, units::bandwidth),
            self.slowest.map_or_else(dash, |slow| format!("{} +{}", slow.rank, units::nanoseconds(slow.by_ns))),
        ]
    }
}
