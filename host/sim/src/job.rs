//! What to run, one process's share at a time.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::SimError;
use crate::faults::Faults;
use crate::report::Report;
use crate::scenario::Scenario;
use crate::{replay, scenario};

/// How to run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The profiler library.
    pub library: PathBuf,
    /// Interface version, 1 to 7. None: a recording's own; for scenarios the highest that the library has.
    pub api: Option<u8>,
    /// Calls that NCCL should not make, and sometimes does.
    pub faults: Option<Faults>,
    /// Whether the report lists every operation (about 200 bytes of memory each).
    pub expected: bool,
    /// Overrides a scenario's pacing: wall seconds a simulated second; 0: as fast as possible. Recordings are played as fast
    /// as possible if it is None or 0, else at their recorded times multiplied by it.
    pub realtime: Option<f64>,
}

impl Options {
    /// Plain: the library's or recording's own version, no faults, no list of operations, default pacing.
    #[must_use]
    pub const fn new(library: PathBuf) -> Self {
        Self { library, api: None, faults: None, expected: false, realtime: None }
    }
}

/// What one process does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What.
    pub work: Work,
    /// How.
    pub options: Options,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// The calls of one recorded process.
    Recording {
        /// Its file.
        file: PathBuf,
    },
    /// Some ranks of a scenario, each on threads of its own.
    Scenario {
        /// The whole scenario.
        scenario: Box<Scenario>,
        /// Ranks of this process.
        ranks: Vec<u32>,
        /// Unix time in ns at which the simulated time is 0; the same for all ranks.
        base_unix_ns: u64,
    },
}

/// How far a job is, in units that suit it: calls of a recording, steps of a
/// scenario (times ranks of the process).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Done.
    pub done: u64,
    /// Of so many.
    pub total: u64,
}

/// A job for each file: recordings of several processes of one program play side by side.
#[must_use]
pub fn recording_jobs(files: &[PathBuf], options: &Options) -> Vec<Job> {
    let job = |file: &PathBuf| Job { work: Work::Recording { file: file.clone() }, options: options.clone() };
    files.iter().map(job).collect()
}

/// A job for each process of the scenario: one a rank if `processes` is true, else one in all. Sets the time at which the
/// simulation begins to shortly from now: run the jobs at once, and side by side.
#[must_use]
pub fn scenario_jobs(scenario: &Scenario, options: &Options) -> Vec<Job> {
    let ranks: Vec<u32> = (0..scenario.ranks).collect();
    let shares: Vec<Vec<u32>> =
        if scenario.processes { ranks.into_iter().map(|rank| vec![rank]).collect() } else { vec![ranks] };
    // Time for all processes to start: about 20 ms each on a small machine.
    let head_start_ns = 100_000_000 + 20_000_000 * shares.len() as u64;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let job = |ranks| Job {
        work: Work::Scenario { scenario: Box::new(scenario.clone()), ranks, base_unix_ns: now + head_start_ns },
        options: options.clone(),
    };
    shares.into_iter().map(job).collect()
}

/// Runs a job in this process and returns when the library is closed again. `progress` is called now and then, from
/// threads of the simulation.
///
/// # Errors
/// The library cannot be loaded or its init fails; the recording cannot be read or contradicts itself; the scenario
/// cannot run.
pub fn run(job: &Job, progress: &(dyn Fn(Progress) + Sync)) -> Result<Report, SimError> {
    match &job.work {
        Work::Recording { file } => replay::run(file, &job.options, progress),
        Work::Scenario { scenario, ranks, base_unix_ns } => {
            scenario::run(scenario, ranks, *base_unix_ns, &job.options, progress)
        }
    }
}
