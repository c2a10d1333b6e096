//! Where operations go: JSON Lines in our format or in Inspector's.
//!
//! A sink runs on the I/O thread only, may block there, and never fails: what it cannot write it counts, tells once, and
//! it resumes by itself. [`build`] makes one from its configuration.
#![forbid(unsafe_code)]

mod account;
mod jsonl;

use std::sync::Arc;

use collander_config::{Job, SinkConfig, SinkKind};
use collander_pipeline::Sink;

pub use account::SharedAccount;

/// What every file says about the process that writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u32,
    /// Which load of the library in this process, from 1.
    pub session: u32,
    /// Unix time at which the library was loaded, ns.
    pub start_unix_ns: u64,
    /// Profiler interface version of the first communicator, 1 to 7, if one was opened.
    pub api: Option<u8>,
    /// Clock of the CPU stamps: `tsc`, `cntvct`, `clock_gettime`.
    pub clock: &'static str,
    /// UUID of the GPU, if known.
    pub gpu_uuid: Option<String>,
}

/// Makes a sink. Nothing is created on disk before the first flush that has something to say.
#[must_use]
pub fn build(config: &SinkConfig, job: &Job, process: &ProcessInfo) -> Box<dyn Sink> {
    build_with_account(config, job, process).0
}

/// As [`build`], with the sink's counters, which another thread may read while the sink hangs in a write.
#[must_use]
pub fn build_with_account(
    config: &SinkConfig,
    job: &Job,
    process: &ProcessInfo,
) -> (Box<dyn Sink>, Arc<SharedAccount>) {
    match &config.kind {
        SinkKind::Jsonl(jsonl) => {
            let sink = jsonl::JsonlSink::new(&config.name, jsonl, job, process, Box::new(jsonl::Disk));
            let account = sink.shared_account();
            (Box::new(sink), account)
        }
    }
}
