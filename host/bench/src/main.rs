//! What a callback costs: drives a profiler library as NCCL does and times its calls.
//!
//! `collander-bench run` measures one library and prints a table or JSON; `collander-bench suite` compares collander with
//! two floors in the same run and says whether each limit holds. `cargo xtask bench` builds all and runs the suite.

mod category;
mod clock;
mod collective;
mod drive;
mod floors;
mod histogram;
mod instructions;
mod limits;
mod meter;
mod plugin;
mod queue;
mod report;
mod scenario;
mod suite;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};

use crate::collective::Shape;
use crate::drive::Options;
use crate::suite::Effort;

#[derive(Debug, Parser)]
#[command(name = "collander-bench", about = "What a callback of a profiler library costs")]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measures one library.
    Run(RunArgs),
    /// Compares a build of collander with the floors; ends with 1 if a limit is exceeded.
    Suite(SuiteArgs),
}

#[derive(Debug, Args)]
struct SuiteArgs {
    /// The library, as it is shipped.
    library: PathBuf,
    /// Fewer rounds, no long run: about a minute.
    #[arg(long)]
    quick: bool,
    /// One JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The library.
    library: PathBuf,
    /// Collectives that are measured.
    #[arg(short = 'n', long, default_value_t = 20_000)]
    collectives: u64,
    /// Collectives before them.
    #[arg(short, long, default_value_t = 1_000)]
    warmup: u64,
    /// Channels of a collective.
    #[arg(short, long, default_value_t = 8)]
    channels: usize,
    /// Proxy operations and steps too.
    #[arg(short = 'b', long)]
    proxy: bool,
    /// Steps of a proxy operation.
    #[arg(short, long, default_value_t = 16)]
    steps: usize,
    /// Bytes of a collective.
    #[arg(long, default_value_t = 64 << 20)]
    bytes: usize,
    /// Most collectives issued and not finished.
    #[arg(short, long, default_value_t = 8)]
    depth: usize,
    /// Collectives a second; 0: as fast as possible.
    #[arg(short, long, default_value_t = 0.0)]
    rate: f64,
    /// Times a thread's part of a collective as a whole.
    #[arg(short = 'B', long)]
    bulk: bool,
    /// Everything from one thread, for callgrind.
    #[arg(short, long)]
    inline: bool,
    /// Leaves the threads to the scheduler even if there are two processors.
    #[arg(long)]
    no_pin: bool,
    /// Interface version, 4 to 7; default: the highest that the library has.
    #[arg(long)]
    api: Option<u32>,
    /// One line of JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let result = match Command::parse().verb {
        Verb::Run(args) => run(&args),
        Verb::Suite(args) => compare(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("collander-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(args: &SuiteArgs) -> Result<()> {
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let comparison = suite::compare(&args.library, effort, |what| eprintln!("measuring: {what}"))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&comparison)?);
    } else {
        print!("{}", comparison.table());
    }
    let over = comparison.checks.iter().filter(|check| !check.ok).count();
    ensure!(over == 0, "{over} of {} limits exceeded", comparison.checks.len());
    Ok(())
}

fn run(args: &RunArgs) -> Result<()> {
    let options = Options {
        version: args.api,
        collectives: args.collectives,
        warmup: args.warmup,
        depth: args.depth,
        shape: Shape { channels: args.channels, proxy: args.proxy, steps: args.steps, count: args.bytes / 4 },
        bulk: args.bulk,
        inline: args.inline,
        rate: args.rate,
        pin: !args.no_pin,
    };
    let report = drive::run(&args.library, &options)?;
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{}", report.table());
    }
    Ok(())
}
