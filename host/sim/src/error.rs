//! What can go wrong.

use std::path::PathBuf;

use collander_recording::RecordingError;

/// A simulation could not run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The dynamic linker refused the library.
    #[error("cannot load {}: {reason}", path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// The dynamic linker's words.
        reason: String,
    },
    /// It is no profiler plugin.
    #[error("{} exports no ncclProfiler_v1 to ncclProfiler_v7: it is not an NCCL profiler plugin", path.display())]
    NoSymbol {
        /// The library.
        path: PathBuf,
    },
    /// It lacks the version that was asked for.
    #[error("{} does not export ncclProfiler_v{api}; it exports {}", path.display(), versions(present))]
    NoVersion {
        /// The library.
        path: PathBuf,
        /// Version that was asked for.
        api: u8,
        /// Versions that it has.
        present: Vec<u8>,
    },
    /// A version that does not exist.
    #[error("interface version {0} does not exist; expected 1 to 7")]
    UnknownVersion(u8),
    /// A function pointer in the exported struct is NULL.
    #[error("{}: member `{member}` of ncclProfiler_v{api} is NULL", path.display())]
    NullFunction {
        /// The library.
        path: PathBuf,
        /// Version.
        api: u8,
        /// Member.
        member: &'static str,
    },
    /// `init` failed, which takes down real NCCL's reference count: a plugin must not.
    #[error("init of {} returned {result}; a profiler plugin must return 0", path.display())]
    Init {
        /// The library.
        path: PathBuf,
        /// `ncclResult_t`.
        result: i32,
    },
    /// A recording could not be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A recording contradicts itself.
    #[error("{}: call {call}: {problem}", path.display())]
    Inconsistent {
        /// The recording.
        path: PathBuf,
        /// Number of the call, from 1; it is on the line after that number if no line is blank.
        call: usize,
        /// What is wrong.
        problem: String,
    },
    /// A scenario's file could not be read.
    #[error("cannot read the scenario {}: {source}", path.display())]
    ScenarioFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A scenario is not what the format says.
    #[error("scenario {name}: {problem}")]
    Scenario {
        /// File, or name of the scenario.
        name: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A thread of the simulation ended by a panic: a defect of the simulator, or of a plugin that unwinds.
    #[error("a thread of the simulation panicked")]
    Panicked,
    /// A thread could not be made.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

fn versions(present: &[u8]) -> String {
    let names: Vec<_> = present.iter().map(|version| format!("v{version}")).collect();
    names.join(", ")
}
