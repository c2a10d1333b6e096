//! `collander doctor`: would it work here?

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use collander_config::{Environment, SinkKind};
use serde::Serialize;

use crate::doctor::library::load_in_child;
use crate::doctor::loader::{self, Loaded};
use crate::doctor::surroundings::Surroundings;
use crate::doctor::{self, Check, Verdict, choice, library, sinks, system};
use crate::exit::Exit;
use crate::library_path;
use crate::output::{Ui, printable, stdout};
use crate::show::text::wrap;

/// Checks whether NCCL would load the plugin here and whether the plugin could write.
///
/// Run it where the job runs: in the same container, with the same user and environment. Ends with code 3 if a check
/// fails.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// The plugin library [default: the one beside this program, in ../lib, or COLLANDER_LIBRARY]
    #[arg(long, value_name = "SO")]
    library: Option<PathBuf>,
    /// Configuration to check [default: COLLANDER_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Loads a library and says what came of it, for `doctor`.
#[derive(ClapArgs, Debug)]
pub struct LoadArgs {
    name: String,
}

#[derive(Serialize)]
struct Output<'a> {
    verdict: Verdict,
    checks: &'a [Check],
}

/// Runs it.
pub fn run(args: &Args, ui: &Ui) -> Result<Exit> {
    let checks = checks(args);
    let worst = checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok);
    if ui.json {
        ui.write_json(&Output { verdict: worst, checks: &checks })?;
    } else {
        let mut out = stdout();
        for check in &checks {
            write_check(&mut out, check, ui)?;
        }
        let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
        writeln!(
            out,
            "{} ok, {} to look at, {} failed",
            count(Verdict::Ok),
            count(Verdict::Warn),
            count(Verdict::Fail)
        )?;
        out.flush()?;
    }
    Ok(if worst == Verdict::Fail { Exit::Problems } else { Exit::Ok })
}

fn checks(args: &Args) -> Vec<Check> {
    let surroundings = Surroundings::of_process();
    let load = |name: &str| {
        load_in_child(name).unwrap_or_else(|error| Loaded { error: Some(format!("{error:#}")), ..Loaded::default() })
    };
    let mut checks = Vec::new();
    let library = library_path::find(args.library.as_deref());
    match &library {
        Ok(path) => checks.extend(library::check(path, &load)),
        Err(error) => checks.push(Check::fail("library", format!("{error:#}"), "build it, or give it with --library")),
    }
    checks.extend(choice::check(&surroundings, library.ok().as_deref(), &load));
    checks.extend(choice::other_variables(&surroundings));
    let mut variables: Vec<(std::ffi::OsString, std::ffi::OsString)> = std::env::vars_os().collect();
    if let Some(config) = &args.config {
        variables.push(("COLLANDER_CONFIG".into(), config.into()));
    }
    let environment: Environment = variables.into_iter().collect();
    let (of_configuration, config) = sinks::configuration(&environment);
    checks.extend(of_configuration);
    if let Some(config) = &config {
        checks.extend(sinks::check(config));
    }
    let ring_bytes = config.as_ref().map_or(64 << 20, |config| config.ring.total_bytes);
    let largest = config.as_ref().and_then(|config| {
        config
            .sinks
            .iter()
            .map(|sink| match &sink.kind {
                SinkKind::Jsonl(jsonl) => jsonl.rotate_bytes,
            })
            .max()
    });
    checks.extend(system::check(ring_bytes, largest.unwrap_or(32 << 20)));
    checks.push(doctor::graphs());
    checks
}

fn write_check(out: &mut impl Write, check: &Check, ui: &Ui) -> Result<()> {
    let mark = match check.verdict {
        Verdict::Ok => ui.paint.green("ok  "),
        Verdict::Warn => ui.paint.yellow("warn"),
        Verdict::Fail => ui.paint.red("FAIL"),
    };
    let width = ui.width.unwrap_or(100).max(40) - 6;
    let lines = wrap(&format!("{}: {}", check.id, printable(&check.what)), width);
    for (n, line) in lines.iter().enumerate() {
        writeln!(out, "{}{line}", if n == 0 { format!("{mark}  ") } else { "      ".into() })?;
    }
    if !check.fix.is_empty() {
        for (n, line) in wrap(&printable(&check.fix), width - 2).iter().enumerate() {
            writeln!(out, "      {}{line}", if n == 0 { "→ " } else { "  " })?;
        }
    }
    Ok(())
}

/// Runs the hidden `doctor-load`.
pub fn run_load(args: &LoadArgs) -> Result<Exit> {
    let mut out = stdout();
    // A line of its own: the library's initialisers may have printed.
    writeln!(out, "\n{}", serde_json::to_string(&loader::load(&args.name))?)?;
    out.flush()?;
    Ok(Exit::Ok)
}
