//! The whole comparison: interleaved rounds, medians, ratios, limits.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::instructions;
use crate::limits::{self, Check};
use crate::report::Report;
use crate::scenario::{Runner, Scenario, Who};

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds; each runs every library once.
    pub rounds: usize,
    /// Collectives a measurement.
    pub collectives: u64,
    /// Collectives of the long run that watches memory; 0: none.
    pub long_run: u64,
}

impl Effort {
    /// A minute.
    pub const QUICK: Self = Self { rounds: 3, collectives: 10_000, long_run: 0 };
    /// Some minutes.
    pub const FULL: Self = Self { rounds: 9, collectives: 20_000, long_run: 10_000_000 };
}

/// One library in one scenario: medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    scenario: &'static str,
    library: &'static str,
    /// ns a collective, tmean99, driver included.
    user_ns: f64,
    proxy_ns: f64,
    user_p99_ns: f64,
    proxy_p99_ns: f64,
    calls_per_collective: f64,
    own_threads_ns: f64,
    load_ms: f64,
    init_ms: f64,
    finalize_ms: f64,
}

/// Instructions of one kind of call.
#[derive(Clone, Debug, Serialize)]
pub struct Instructions {
    scenario: &'static str,
    call: &'static str,
    collander: f64,
    ringfloor: Option<f64>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    processors: usize,
    /// Whether the two threads had a processor each.
    pinned: bool,
    rows: Vec<Row>,
    instructions: Vec<Instructions>,
    /// Collectives a second and resident KiB at each tenth of the long run.
    long_run: Option<(f64, Vec<u64>)>,
    /// The limits.
    pub checks: Vec<Check>,
    /// What could not be measured, and why.
    skipped: Vec<String>,
}

/// Compares a library with the floors.
///
/// # Errors
/// A measurement fails.
pub fn compare(library: &Path, effort: Effort, progress: impl Fn(&str)) -> Result<Comparison> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let runner = Runner::new(library, scratch.path())?;
    let mut all = Comparison {
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        pinned: false,
        rows: Vec::new(),
        instructions: Vec::new(),
        long_run: None,
        checks: Vec::new(),
        skipped: Vec::new(),
    };
    let mut masks = Vec::new();
    for scenario in Scenario::ALL {
        progress(scenario.name());
        let mask = runner.mask(scenario)?;
        masks.push((scenario, mask));
        let mut reports: Vec<Vec<Report>> = vec![Vec::new(); Who::ALL.len()];
        for _ in 0..effort.rounds {
            for (who, reports) in Who::ALL.into_iter().zip(&mut reports) {
                reports.push(runner.measure(who, scenario, mask, effort.collectives)?);
            }
        }
        all.pinned = reports.iter().flatten().all(|report| report.pinned);
        let rows: Vec<Row> = Who::ALL.iter().zip(&reports).map(|(who, reports)| row(scenario, *who, reports)).collect();
        all.checks.extend(time_checks(scenario, &rows));
        all.rows.extend(rows);
    }
    progress("instructions");
    match count(&runner, &masks, scratch.path()) {
        Ok(counted) => {
            for (scenario, who, counts) in counted {
                add_instructions(&mut all, scenario, who, &counts);
            }
        }
        Err(error) => all.skipped.push(format!("instructions a call: {error:#}")),
    }
    if effort.long_run > 0 {
        progress("long run");
        let report = runner.measure(Who::Collander, Scenario::Default, 0, effort.long_run)?;
        let settled = report.resident_kib.get(1).copied().unwrap_or(0);
        let most = report.resident_kib.iter().copied().skip(1).max().unwrap_or(0);
        let growth = (most - settled) as f64 / 1024.0;
        all.checks.push(Check::new(
            format!("memory: growth over {} operations", effort.long_run),
            growth,
            limits::GROWTH_MIB,
            "MiB",
        ));
        all.long_run = Some((report.collectives_per_s, report.resident_kib));
    } else {
        all.skipped.push("memory over 10 million operations: without --quick".to_owned());
    }
    let bytes = std::fs::metadata(runner.library())?.len();
    all.checks.push(Check::new("library", bytes as f64 / f64::from(1 << 20), limits::LIBRARY_MIB, "MiB"));
    Ok(all)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn row(scenario: Scenario, who: Who, reports: &[Report]) -> Row {
    let of = |value: fn(&Report) -> f64| median(reports.iter().map(value));
    Row {
        scenario: scenario.name(),
        library: who.name(),
        user_ns: of(|report| report.user_ns.tmean99),
        proxy_ns: of(|report| report.proxy_ns.tmean99),
        user_p99_ns: of(|report| report.user_ns.p99),
        proxy_p99_ns: of(|report| report.proxy_ns.p99),
        calls_per_collective: of(|report| report.calls_per_collective),
        own_threads_ns: of(|report| report.background_cpu_ns_per_collective.max(0.0)),
        load_ms: of(|report| report.load_ms),
        init_ms: of(|report| report.init_ms),
        finalize_ms: of(|report| report.finalize_ms),
    }
}

fn time_checks(scenario: Scenario, rows: &[Row]) -> Vec<Check> {
    let of = |who: Who| &rows[who as usize];
    let (null, ring, ours) = (of(Who::Null), of(Who::Ring), of(Who::Collander));
    let share = |name: &str, ours: f64, ring: f64, limit| Check::new(name, ours / ring, limit, "x ringfloor");
    match scenario {
        Scenario::Default => vec![
            share("default: user's thread", ours.user_ns, ring.user_ns, limits::DEFAULT_USER),
            share("default: proxy thread", ours.proxy_ns, ring.proxy_ns, limits::DEFAULT_PROXY),
            Check::new("load", ours.load_ms, limits::LOAD_MS, "ms"),
            Check::new("init", ours.init_ms, limits::INIT_MS, "ms"),
            Check::new("finalize", ours.finalize_ms, limits::FINALIZE_MS, "ms"),
        ],
        Scenario::Everything => vec![
            share("everything: user's thread", ours.user_ns, ring.user_ns, limits::EVERYTHING),
            share("everything: proxy thread", ours.proxy_ns, ring.proxy_ns, limits::EVERYTHING),
        ],
        Scenario::SampledOut => {
            let above = ours.user_ns - null.user_ns;
            vec![
                Check::new("sampled out: user's thread", above, limits::SAMPLED_OUT_NS, "ns above null"),
                // Nothing but a return: no more than a library that does nothing else.
                Check::new("sampled out: proxy thread", ours.proxy_ns / null.proxy_ns, 1.0, "x null"),
            ]
        }
    }
}

type Counted = (Scenario, Who, Vec<(crate::category::Category, f64)>);

fn count(runner: &Runner, masks: &[(Scenario, u64)], scratch: &Path) -> Result<Vec<Counted>> {
    let mut counted = Vec::new();
    for &(scenario, mask) in masks {
        for who in [Who::Collander, Who::Ring] {
            counted.push((scenario, who, instructions::per_call(runner, who, scenario, mask, scratch)?));
        }
    }
    Ok(counted)
}

fn add_instructions(all: &mut Comparison, scenario: Scenario, who: Who, counts: &[(crate::category::Category, f64)]) {
    for &(category, count) in counts {
        let (scenario_name, call) = (scenario.name(), category.name());
        if who == Who::Collander {
            all.instructions.push(Instructions { scenario: scenario_name, call, collander: count, ringfloor: None });
            if let Some(limit) = limits::instructions(scenario, category) {
                all.checks.push(Check::new(format!("{scenario_name}: {call}"), count, limit, "instructions"));
            }
        } else if let Some(entry) =
            all.instructions.iter_mut().find(|entry| entry.scenario == scenario_name && entry.call == call)
        {
            entry.ringfloor = Some(count);
        }
    }
}

impl Comparison {
    /// As text for people.
    pub fn table(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!(
            "nanoseconds a collective (mean of the fastest 99 %, median of the rounds), driver included; {} processors, {}\n",
            self.processors,
            if self.pinned { "threads pinned" } else { "threads not pinned" }
        );
        let _ = writeln!(
            text,
            "{:12} {:15} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>8} {:>8} {:>9}",
            "", "", "user", "proxy", "user p99", "proxy p99", "calls", "own CPU", "load ms", "init ms", "final. ms"
        );
        for row in &self.rows {
            let _ = writeln!(
                text,
                "{:12} {:15} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>7.0} {:>9.0} {:>8.2} {:>8.2} {:>9.2}",
                row.scenario,
                row.library,
                row.user_ns,
                row.proxy_ns,
                row.user_p99_ns,
                row.proxy_p99_ns,
                row.calls_per_collective,
                row.own_threads_ns,
                row.load_ms,
                row.init_ms,
                row.finalize_ms,
            );
        }
        if !self.instructions.is_empty() {
            let _ = writeln!(text, "\ninstructions a call              collander  ringfloor");
            for entry in &self.instructions {
                let ring = entry.ringfloor.map_or_else(|| "-".to_owned(), |count| format!("{count:.1}"));
                let _ = writeln!(text, "{:12} {:19} {:>9.1} {ring:>10}", entry.scenario, entry.call, entry.collander);
            }
        }
        if let Some((rate, resident)) = &self.long_run {
            let _ =
                writeln!(text, "\nlong run: {rate:.0} collectives a second; resident KiB at each tenth: {resident:?}");
        }
        let _ = writeln!(text, "\nlimits");
        for check in &self.checks {
            let _ = writeln!(text, "{}", check.line());
        }
        for skipped in &self.skipped {
            let _ = writeln!(text, "not measured: {skipped}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_and_odd() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert_eq!(median(std::iter::empty()), 0.0);
    }
}
