//! Stands in for NCCL: loads a profiler library and calls it in NCCL's order, on NCCL's threads, by NCCL's rules.
//!
//! What to run is a [`Job`]: one recording of one process ([`Work::Recording`]), or some ranks of a scenario
//! ([`Work::Scenario`]). Jobs and [`Report`]s go through JSON, so that a program can run each job in a process of its
//! own: [`recording_jobs`] and [`scenario_jobs`] make the jobs, [`run`] runs one in this process, [`Report::merge`]
//! unites their reports.
//!
//! ```no_run
//! use collander_sim::{Options, Report, Scenario, run, scenario_jobs};
//!
//! let scenario = Scenario::load("examples/scenarios/hang.toml".as_ref())?;
//! let options = Options::new("libcollander_plugin.so".into());
//! let mut report = Report::default();
//! for job in scenario_jobs(&scenario, &options) {
//!     report.merge(run(&job, &|_progress| ())?); // or each in its own process
//! }
//! # Ok::<(), collander_sim::SimError>(())
//! ```
//!
//! [`Library`] alone is the loaded library behind one API for all versions of the interface; [`load::run`] drives it as fast as it can.
//! fast as it can. All `unsafe` code of the crate is in `library`.
#![deny(unsafe_code)]

mod caller;
mod convert;
mod error;
mod expected;
mod faults;
mod job;
#[allow(unsafe_code, reason = "loads a library and calls its C functions; everything else in the crate is safe")]
mod library;
pub mod load;
pub mod mask;
mod replay;
mod report;
pub mod scenario;
mod scratch;

#[cfg(test)]
mod tests;

pub use error::SimError;
pub use faults::Faults;
pub use job::{Job, Options, Progress, Work, recording_jobs, run, scenario_jobs};
pub use library::{Communicator, Context, Handle, Library, LogMessage, Parents, take_log_messages};
pub use report::{
    ExpectedOperation, InjectedCalls, KernelChannel, OperationCounts, OperationKind, Report, VtableCalls,
};
pub use scenario::Scenario;
