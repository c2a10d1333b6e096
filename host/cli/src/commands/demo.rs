//! `collander demo`: an 8-rank job with a straggler, through the real library.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use collander_sim::{Options, Scenario, scenario_jobs};
use serde::Serialize;

use super::show;
use super::sim::{report_failures, setting};
use crate::exit::{Exit, error};
use crate::library_path;
use crate::output::{Ui, message, stdout};
use crate::progress::Bar;
use crate::show::files;
use crate::show::filter::Filter;
use crate::show::report::{Report, Sort};
use crate::units;
use crate::workers;

/// The job.
const SCENARIO: &str = include_str!("../../../../examples/scenarios/tp-dp-straggler.toml");

/// Shows what collander does: a simulated job of 8 ranks with a straggler, seen through the real library.
///
/// Eight processes call the library as NCCL would. Then their files are shown as `collander show` shows them.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Where the files go [default: a new folder under the temporary folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The plugin library [default: the one beside this program, in ../lib, or COLLANDER_LIBRARY]
    #[arg(long, value_name = "SO")]
    library: Option<PathBuf>,
    /// Kill what has not ended by then
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::parse_duration)]
    timeout: Duration,
}

#[derive(Serialize)]
struct Output<'a> {
    out: &'a std::path::Path,
    ranks: u64,
    processes: u64,
    calls: u64,
    seconds: f64,
    failures: &'a [workers::Failure],
    show: &'a Report,
}

/// Runs it.
pub fn run(args: &Args, ui: &Ui) -> Result<Exit> {
    let library = library_path::find(args.library.as_deref())?;
    let scenario: Scenario = Scenario::parse(SCENARIO, "demo").context("the demo's scenario")?;
    let out = match &args.out {
        Some(path) => path.clone(),
        None => new_folder()?,
    };
    let setting = setting(None, Some(&out), args.timeout)?;
    let out = setting.out.clone().unwrap_or(out);
    let jobs = scenario_jobs(&scenario, &Options::new(library));
    if !ui.json {
        message(format!("{} ranks in {} processes, with the real library", scenario.ranks, jobs.len()));
    }
    let mut bar = Bar::new("running", ui.progress);
    let outcome = workers::run(&jobs, &setting, &mut |share| bar.update(share))?;
    bar.finish();
    report_failures(&outcome);
    let found = files::find(std::slice::from_ref(&out))?;
    if found.inputs.is_empty() {
        return Err(error(Exit::WorkerFailed, format!("the library wrote nothing to {}", out.display())));
    }
    let mut report = show::report(&found, &Filter::default(), Sort::default(), 0);
    // Each worker is one rank, in their order.
    let rank_of = |pid| outcome.pids.iter().position(|other| *other == pid).map(|rank| rank as u32);
    report.name_ranks(|pid| rank_of(pid).filter(|_| scenario.processes));
    if ui.json {
        ui.write_json(&Output {
            out: &out,
            ranks: outcome.report.ranks,
            processes: outcome.report.processes,
            calls: outcome.report.calls,
            seconds: outcome.report.seconds,
            failures: &outcome.failures,
            show: &report,
        })?;
    } else {
        let mut text = report.text(ui);
        text.push_str(&format!(
            "\n{} files in {}\n`collander show {1}` shows them again; --op ID one operation in full, --sort p99 the slowest \
             first, --json all of it for scripts\n",
            found.inputs.len(),
            out.display()
        ));
        let mut to = stdout();
        to.write_all(text.as_bytes())?;
        to.flush()?;
    }
    Ok(if outcome.failures.is_empty() { Exit::Ok } else { Exit::WorkerFailed })
}

fn new_folder() -> Result<PathBuf> {
    let base = std::env::temp_dir();
    for n in 0..1000 {
        let path = base.join(format!("collander-demo-{}-{n}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context(path.display().to_string()),
        }
    }
    bail!("no new folder under {}", base.display())
}
