//! What is compared with what: three ways to run collander, each beside the floors of the same run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::floors::Floors;
use crate::report::Report;

/// A way to run collander.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// No configuration at all: collectives with their kernel channels, all kept.
    Default,
    /// Groups, API events, proxy operations and steps too.
    Everything,
    /// A rule keeps nothing.
    SampledOut,
}

impl Scenario {
    /// All.
    pub const ALL: [Self; 3] = [Self::Default, Self::Everything, Self::SampledOut];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Everything => "everything",
            Self::SampledOut => "sampled out",
        }
    }

    /// Variables that configure collander so.
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Default => &[],
            Self::Everything => &[("COLLANDER_CAPTURE_DETAIL", "channels,proxy_steps,api")],
            Self::SampledOut => &[("COLLANDER_SAMPLE", "[{ keep = \"none\" }]")],
        }
    }

    /// Arguments of `collander-bench run`; with the network there are twenty times as many calls a collective.
    fn arguments(self, collectives: u64) -> Vec<String> {
        match self {
            Self::Everything => vec!["-b".into(), "-n".into(), (collectives / 5).max(1).to_string()],
            Self::Default | Self::SampledOut => vec!["-n".into(), collectives.to_string()],
        }
    }
}

/// Whose callbacks are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The floor of the driver.
    Null,
    /// The floor of a library that records everything.
    Ring,
    /// The same without records for parents, kernel stops merged.
    Lean,
    /// Ours.
    Collander,
}

impl Who {
    /// All, in the order in which a round runs them.
    pub const ALL: [Self; 4] = [Self::Null, Self::Ring, Self::Lean, Self::Collander];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Ring => "ringfloor",
            Self::Lean => "ringfloor-lean",
            Self::Collander => "collander",
        }
    }
}

/// What a floor asks for where nobody has said (Coll, P2p, KernelCh): lets a floor stand in for the library.
const PROBE_MASK: u64 = 0x46;

/// Starts measuring processes: one a measurement, so that none inherits another's memory.
#[derive(Debug)]
pub struct Runner {
    floors: Floors,
    library: PathBuf,
    /// Where collander writes: emptied before each run.
    output: PathBuf,
}

impl Runner {
    /// For a library; `scratch` is a folder of ours.
    ///
    /// # Errors
    /// The floors cannot be built.
    pub fn new(library: &Path, scratch: &Path) -> Result<Self> {
        let library = library.canonicalize().with_context(|| format!("cannot find {}", library.display()))?;
        Ok(Self { floors: crate::floors::build(scratch)?, library, output: scratch.join("output") })
    }

    /// The library that is compared.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// A command that runs `wrapper… collander-bench run LIBRARY …`, configured for the scenario; `mask`: what floors
    /// ask for.
    ///
    /// # Errors
    /// The output folder cannot be emptied.
    pub fn command(
        &self,
        wrapper: &[&str],
        who: Who,
        scenario: Scenario,
        mask: u64,
        arguments: &[String],
    ) -> Result<Command> {
        if self.output.exists() {
            std::fs::remove_dir_all(&self.output).with_context(|| format!("cannot empty {}", self.output.display()))?;
        }
        let ourselves = std::env::current_exe().context("cannot find this program")?;
        let mut command = match wrapper {
            [] => Command::new(&ourselves),
            [program, rest @ ..] => {
                let mut command = Command::new(program);
                command.args(rest).arg(&ourselves);
                command
            }
        };
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COLLANDER_") || name.to_string_lossy().starts_with("NCCL_") {
                command.env_remove(name);
            }
        }
        command.arg("run").arg(match who {
            Who::Null => &self.floors.null,
            Who::Ring => &self.floors.ring,
            Who::Lean => &self.floors.lean,
            Who::Collander => &self.library,
        });
        command.arg("--json").args(arguments).envs(scenario.variables().iter().copied());
        command.env("FLOOR_MASK", format!("{mask:#x}")).env("COLLANDER_SINK_DIRECTORY", &self.output);
        Ok(command)
    }

    /// One measurement.
    ///
    /// # Errors
    /// The process fails.
    pub fn measure(&self, who: Who, scenario: Scenario, mask: u64, collectives: u64) -> Result<Report> {
        run(&mut self.command(&[], who, scenario, mask, &scenario.arguments(collectives))?)
    }

    /// The mask that collander asks for in a scenario: floors get the same calls.
    ///
    /// # Errors
    /// The process fails, or collander is off.
    pub fn mask(&self, scenario: Scenario) -> Result<u64> {
        let report = self.measure(Who::Collander, scenario, PROBE_MASK, 100)?;
        ensure!(report.mask != 0, "{} is off (mask 0): does its configuration hold?", self.library.display());
        Ok(report.mask)
    }
}

/// Runs a measuring process and reads its report, the last line that it prints.
///
/// # Errors
/// It fails, or prints something else.
pub fn run(command: &mut Command) -> Result<Report> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("{command:?} printed no report: {line}"))
}
