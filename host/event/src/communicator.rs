//! What is known of a communicator.

/// One communicator as this process sees it: one rank of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Communicator {
    /// Dense index in this process, from 0, never reused while the process lives. Records carry it.
    pub ordinal: u32,
    /// NCCL's hash (`commId`), the same on all its ranks. 0 until known (v1 to v3 tell it with the first operation).
    pub hash: u64,
    /// As NCCL has it, made valid UTF-8 (invalid bytes become U+FFFD); empty if NULL.
    pub name: String,
    /// From the operator's label rules (tp, pp, dp, ep, …); empty if none matched.
    pub label: String,
    /// This process's rank in it; −1 until known (v1 to v3 tell it with the first operation).
    pub rank: i32,
    /// Number of ranks; None where the interface does not tell (v1 to v3) and the configuration neither.
    pub ranks: Option<u32>,
    /// Number of nodes; None as for `ranks`.
    pub nodes: Option<u32>,
    /// Profiler interface version, 1 to 7.
    pub api: u8,
    /// Unix time of `init`, ns.
    pub opened_ns: u64,
}
