//! The checks of `doctor`: each looks at one thing and says what it found and how to mend it.

pub mod choice;
pub mod elf;
pub mod library;
#[allow(unsafe_code, reason = "dlopen: the one thing here that safe Rust cannot do; in a child process only")]
pub mod loader;
pub mod sinks;
pub mod surroundings;
pub mod system;
#[cfg(test)]
mod tests;

use serde::Serialize;

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, but look at it.
    Warn,
    /// It does not work.
    Fail,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name for scripts.
    pub id: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was found.
    pub what: String,
    /// How to mend it; empty if there is nothing to mend.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

impl Check {
    /// As it should be.
    pub fn ok(id: &'static str, what: impl Into<String>) -> Self {
        Self { id, verdict: Verdict::Ok, what: what.into(), fix: String::new() }
    }

    /// Works, but.
    pub fn warn(id: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id, verdict: Verdict::Warn, what: what.into(), fix: fix.into() }
    }

    /// Does not work.
    pub fn fail(id: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id, verdict: Verdict::Fail, what: what.into(), fix: fix.into() }
    }
}

/// What captured CUDA graphs hide: nothing to check, something to know.
pub fn graphs() -> Check {
    Check::ok(
        "cuda_graphs",
        "what captured CUDA graphs hide: NCCL freezes the event mask into each operation when it is captured. Replays of a \
         graph that was captured without kernel events (KernelCh) inside one node call no profiler at all, and detail that \
         is switched on later does not reach graphs that exist. Collander asks for kernel events from the first \
         communicator on, so its replays are seen; their API calls come only once, at the capture, and their sequence \
         numbers are our own count (flag `replay`). Capture graphs after the plugin is loaded, with the detail that you \
         want in them",
    )
}
