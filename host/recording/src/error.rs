//! What can be wrong with a recording.

use std::path::PathBuf;

/// A recording could not be read; names the file and the line.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file could not be opened.
    #[error("cannot open the recording {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line could not be read: disk, or broken gzip.
    #[error("{}, line {line}: cannot read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not what the format says.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe the variants")]
pub enum Problem {
    #[error("the file is empty; the first line of a recording is its header with the member `recording`")]
    Empty,
    #[error("not a recording's header: {0}")]
    Header(serde_json::Error),
    #[error("format {0} is not known; this program reads format 1")]
    Format(u32),
    #[error("interface version v{0} is not known; expected `api` 1 to 7")]
    Api(u8),
    #[error("not a call: {0}")]
    Json(serde_json::Error),
    #[error("call `{0}` is not known; expected init, start, stop, state or finalize")]
    Call(String),
    #[error("kind of event `{0}` is not known; expected NCCL's name, as Coll or KernelCh")]
    Kind(String),
    #[error("a `{0}` lacks the member `{1}`")]
    Missing(&'static str, &'static str),
    #[error("member `{0}` is `{1}`; expected {2}")]
    Value(&'static str, String, &'static str),
}
