//! NCCL Inspector's variables, for jobs that are set up for it: they make one sink in its format.

use std::path::PathBuf;
use std::time::Duration;

use crate::env::Environment;
use crate::job;
use crate::validated::{Compression, JsonFormat, Jsonl};

/// What Inspector's variables ask for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inspector {
    /// The sink.
    pub sink: Jsonl,
    /// Whether sends and receives are recorded.
    pub p2p: bool,
    /// What is done otherwise than by Inspector.
    pub notes: Vec<String>,
}

/// Reads the variables, if `NCCL_INSPECTOR_ENABLE` is 1.
pub(crate) fn read(environment: &Environment, defaults: &Jsonl) -> Option<Inspector> {
    if number(environment, "ENABLE", 0, &mut Vec::new()) != 1 {
        return None;
    }
    let mut notes = Vec::new();
    let interval = number(environment, "DUMP_THREAD_INTERVAL_MICROSECONDS", -1, &mut notes);
    let thread = number(environment, "DUMP_THREAD_ENABLE", 1, &mut notes) != 0;
    let flush = match u64::try_from(interval) {
        Ok(us) if thread => Duration::from_micros(us).clamp(Duration::from_millis(10), Duration::from_secs(3600)),
        _ => {
            notes.push("without a dump interval Inspector writes nothing; collander writes every second".to_owned());
            defaults.flush
        }
    };
    for (name, what) in
        [("PROM_DUMP", "Prometheus files"), ("OTEL_EXPORT", "OTLP export"), ("ENABLE_PROXY", "proxy traces")]
    {
        if number(environment, name, 0, &mut notes) != 0 {
            notes.push(format!("NCCL_INSPECTOR_{name}: {what} are not written; JSON lines are"));
        }
    }
    let directory = environment.text("NCCL_INSPECTOR_DUMP_DIR").map_or_else(
        || {
            let id = environment.text("SLURM_JOBID").or_else(|| environment.text("SLURM_JOB_ID"));
            PathBuf::from(format!("nccl-inspector-{}", id.map_or_else(|| job::UNKNOWN.to_owned(), job::sanitise)))
        },
        PathBuf::from,
    );
    let sink = Jsonl {
        directory,
        format: JsonFormat::Inspector42,
        compression: Compression::Plain,
        flush,
        require_kernel_timing: number(environment, "REQUIRE_KERNEL_TIMING", 1, &mut notes) != 0,
        min_size_bytes: u64::try_from(number(environment, "DUMP_MIN_SIZE_BYTES", 8192, &mut notes)).unwrap_or(0),
        verbose: number(environment, "DUMP_VERBOSE", 0, &mut notes) != 0,
        ..defaults.clone()
    };
    let p2p = number(environment, "ENABLE_P2P", 1, &mut notes) != 0;
    Some(Inspector { sink, p2p, notes })
}

/// A number; NCCL's parameters fall back to their default when they are none, and so do these, with a note.
fn number(environment: &Environment, name: &str, default: i64, notes: &mut Vec<String>) -> i64 {
    let variable = format!("NCCL_INSPECTOR_{name}");
    let Some(text) = environment.text(&variable) else { return default };
    text.trim().parse().unwrap_or_else(|_| {
        notes.push(format!("{variable} = {text:?}: expected a whole number; {default} holds"));
        default
    })
}
