//! `collander show`: from files to a table, or one operation in full.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::exit::{Exit, error};
use crate::output::{Ui, stdout};
use crate::show::filter::Filter;
use crate::show::operation::{self, Wanted};
use crate::show::report::{Report, Sort};
use crate::show::{files, read};

/// Shows what was written: a table, the accounting, or one operation in full.
///
/// Reads collander's JSON Lines (plain, gzip, zstd; torn ends are tolerated, counted and said) and NVIDIA Inspector's
/// files, v4.0 to v4.4. The numbers of the accounting are sums over the last `stats` record of every process.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Files, or folders that are searched for *.jsonl, *.jsonl.zst, *.jsonl.gz, *.log and *.log.gz
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    filter: Filter,
    /// Show one operation in full, with channels and proxies if they were kept
    #[arg(long, value_name = "ID|PID:ID")]
    op: Option<Wanted>,
    /// Order of the rows
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// At most so many rows; 0: all [default: 100, with --json all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Fail (exit code 6) if the accounting does not balance or a file is damaged
    #[arg(long)]
    check: bool,
}

/// Runs it.
pub fn run(args: &Args, ui: &Ui) -> Result<Exit> {
    let found = files::find(&args.paths).map_err(|problem| error(Exit::NothingFound, problem.to_string()))?;
    if found.inputs.is_empty() {
        let why: Vec<String> =
            found.skipped.iter().take(3).map(|(path, why)| format!("\n  {}: {why}", path.display())).collect();
        return Err(error(
            Exit::NothingFound,
            format!("no file of collander or Inspector with a first line under these paths{}", why.concat()),
        ));
    }
    if let Some(wanted) = args.op {
        return show_operation(&found, wanted, ui);
    }
    let report = report(&found, &args.filter, args.sort, args.limit.unwrap_or(if ui.json { 0 } else { 100 }));
    if ui.json {
        ui.write_json(&report)?;
    } else {
        let mut out = stdout();
        out.write_all(report.text(ui).as_bytes())?;
        out.flush()?;
    }
    let whole = report.balanced && report.damaged.is_empty();
    Ok(if args.check && !whole { Exit::Unbalanced } else { Exit::Ok })
}

/// Reads everything that was found.
pub fn report(found: &files::Found, filter: &Filter, sort: Sort, limit: usize) -> Report {
    let plan = read::Plan::new(found);
    let reading = read::read(found, &plan, filter);
    Report::new(found, &plan, reading, filter, sort, limit)
}

fn show_operation(found: &files::Found, wanted: Wanted, ui: &Ui) -> Result<Exit> {
    let matches = operation::search(found, wanted);
    if matches.is_empty() {
        return Err(error(Exit::NothingFound, "no such operation in these files"));
    }
    if ui.json {
        ui.write_json(&matches)?;
        return Ok(Exit::Ok);
    }
    let mut out = stdout();
    for (n, found) in matches.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        out.write_all(operation::text(found, ui).as_bytes())?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}
