//! `collander sim`: stands in for NCCL and drives a profiler library.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use collander_sim::{Faults, Options, Report, Scenario, recording_jobs, scenario_jobs};
use serde::Serialize;

use crate::exit::{Exit, error};
use crate::library_path;
use crate::output::{Ui, message, printable, stdout};
use crate::progress::Bar;
use crate::units;
use crate::workers::{self, Failure, Outcome, Setting};

/// Drives a profiler library as NCCL would: from a scenario, or from recordings of real NCCL.
///
/// Every process of the job runs in a process of its own: each recording is one, and each rank of a scenario with
/// `processes = true`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// What to simulate
    #[arg(long, value_name = "FILE.toml", required_unless_present = "recording", conflicts_with = "recording")]
    scenario: Option<PathBuf>,
    /// Recordings of NCCL's calls, one file a process
    #[arg(long, value_name = "FILE", num_args = 1..)]
    recording: Vec<PathBuf>,
    /// The profiler library [default: the one beside this program, in ../lib, or COLLANDER_LIBRARY]
    #[arg(long, value_name = "SO")]
    library: Option<PathBuf>,
    /// Version of the profiler interface, 1 to 7 [default: the recording's, else the library's highest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=7))]
    api: Option<u8>,
    /// Configuration of the library (sets COLLANDER_CONFIG)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the library writes (sets COLLANDER_SINK_DIRECTORY)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Kill what has not ended by then
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::parse_duration)]
    timeout: Duration,
    /// Wall seconds a simulated or recorded second; 0: as fast as possible
    #[arg(long, value_name = "FACTOR")]
    realtime: Option<f64>,
    /// Inject late, doubled, stale and foreign calls at this rate, 0 to 1
    #[arg(long, value_name = "RATE")]
    faults: Option<f64>,
    /// Seed of the injected calls
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// List every operation in the JSON, as the library was told of it
    #[arg(long)]
    expected: bool,
}

#[derive(Debug, Serialize)]
struct Output<'a> {
    calls: u64,
    operations: Operations,
    ranks: u64,
    processes: u64,
    out: Option<&'a Path>,
    api: u8,
    functions: collander_sim::VtableCalls,
    injected: collander_sim::InjectedCalls,
    failed_calls: u64,
    communicators: u64,
    loads: u64,
    never_stopped: u64,
    seconds: f64,
    library: &'a Path,
    pids: &'a [u32],
    log: &'a [String],
    failures: &'a [Failure],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    expected: &'a [collander_sim::ExpectedOperation],
}

#[derive(Debug, Serialize)]
struct Operations {
    coll: u64,
    p2p: u64,
    copy_engine: u64,
    api: u64,
}

impl From<&Report> for Operations {
    fn from(report: &Report) -> Self {
        let counts = &report.operations;
        Self { coll: counts.coll, p2p: counts.p2p, copy_engine: counts.copy_engine, api: counts.api_only }
    }
}

/// Runs it.
pub fn run(args: &Args, ui: &Ui) -> Result<Exit> {
    let library = library_path::find(args.library.as_deref())?;
    let options = Options {
        library: library.clone(),
        api: args.api,
        faults: args.faults.map(|rate| Faults::all(rate, args.seed)),
        expected: args.expected,
        realtime: args.realtime,
    };
    let setting = setting(args.config.as_deref(), args.out.as_deref(), args.timeout)?;
    let jobs = match &args.scenario {
        Some(path) => {
            let scenario = Scenario::load(path).map_err(|problem| error(Exit::Usage, problem.to_string()))?;
            scenario_jobs(&scenario, &options)
        }
        None => {
            for file in &args.recording {
                std::fs::metadata(file)
                    .map_err(|problem| error(Exit::NothingFound, format!("{}: {problem}", file.display())))?;
            }
            recording_jobs(&args.recording, &options)
        }
    };
    let mut bar = Bar::new("simulating", ui.progress);
    let outcome = workers::run(&jobs, &setting, &mut |share| bar.update(share))?;
    bar.finish();
    report_failures(&outcome);
    if ui.json {
        ui.write_json(&as_json(&outcome, &setting, &library))?;
    } else {
        let mut out = stdout();
        out.write_all(as_text(&outcome, &setting, ui).as_bytes())?;
        out.flush()?;
    }
    Ok(if outcome.failures.is_empty() { Exit::Ok } else { Exit::WorkerFailed })
}

/// Checks and makes absolute what the workers get; makes the folder.
pub fn setting(config: Option<&Path>, out: Option<&Path>, timeout: Duration) -> Result<Setting> {
    let config = match config {
        None => None,
        Some(path) => Some(
            path.canonicalize()
                .map_err(|problem| error(Exit::Usage, format!("--config {}: {problem}", path.display())))?,
        ),
    };
    let out = match out {
        None => None,
        Some(path) => {
            std::fs::create_dir_all(path).with_context(|| format!("--out {}", path.display()))?;
            Some(path.canonicalize()?)
        }
    };
    Ok(Setting { config, out, timeout })
}

/// Says on stderr which workers failed and how.
pub fn report_failures(outcome: &Outcome) {
    for failure in &outcome.failures {
        message(format!("{}: {}", printable(&failure.who), printable(&failure.what)));
    }
}

fn as_json<'a>(outcome: &'a Outcome, setting: &'a Setting, library: &'a Path) -> Output<'a> {
    let report = &outcome.report;
    Output {
        calls: report.calls,
        operations: report.into(),
        ranks: report.ranks,
        processes: report.processes,
        out: setting.out.as_deref(),
        api: report.api,
        functions: report.functions,
        injected: report.injected,
        failed_calls: report.failed_calls,
        communicators: report.communicators,
        loads: report.loads,
        never_stopped: report.never_stopped,
        seconds: report.seconds,
        library,
        pids: &outcome.pids,
        log: &report.log,
        failures: &outcome.failures,
        expected: &report.expected,
    }
}

fn as_text(outcome: &Outcome, setting: &Setting, ui: &Ui) -> String {
    use std::fmt::Write as _;
    let (report, n) = (&outcome.report, units::count);
    let mut text = String::new();
    let o = Operations::from(report);
    let _ = writeln!(
        text,
        "{} calls of interface v{} in {:.2} s: {} ranks in {} processes, {} communicators",
        n(report.calls),
        report.api,
        report.seconds,
        n(report.ranks),
        n(report.processes),
        n(report.communicators)
    );
    let _ = writeln!(
        text,
        "operations: coll {}, p2p {}, copy_engine {}, api {}",
        n(o.coll),
        n(o.p2p),
        n(o.copy_engine),
        n(o.api)
    );
    if report.injected.total() > 0 {
        let _ = writeln!(text, "injected calls: {}", n(report.injected.total()));
    }
    if report.failed_calls > 0 {
        let _ = writeln!(text, "{} {}", ui.paint.red("calls that returned an error:"), n(report.failed_calls));
    }
    if let Some(out) = &setting.out {
        let _ = writeln!(text, "files in {}; `collander show {0}` shows them", out.display());
    }
    text
}
