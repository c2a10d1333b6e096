//! What can go wrong with a filter: before it runs, and when it runs.

use std::time::Duration;

/// Why a filter cannot be loaded. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Nothing can be loaded: the runtime did not start.
    #[error("the WASM runtime does not start: {0}")]
    Engine(String),
    /// It is not in the cache and there is no compiler, or the compiler failed.
    #[error("it is not compiled yet, and the compiler is of no use: {0}")]
    Compiler(String),
    /// The compiler refused it.
    #[error("{0}")]
    Refused(String),
    /// It was made for another version of the interface.
    #[error(
        "it was built for version {wanted} of collander:filter; this collander supports {supported}: build it with an SDK of that version"
    )]
    Version {
        /// What it wants.
        wanted: String,
        /// What there is.
        supported: String,
    },
    /// It exports too little.
    #[error(
        "it does not export {missing}; a filter of version {supported} exports lifecycle, head, and tail or tail-packed"
    )]
    MissingExport {
        /// What is missing.
        missing: String,
        /// Version of the interface.
        supported: &'static str,
    },
    /// It wants what the host does not have.
    #[error(
        "it imports {import}, which no filter is given: only collander:filter/host@{supported} is there (no files, network, environment)"
    )]
    UnknownImport {
        /// What it wants.
        import: String,
        /// Version of the interface.
        supported: &'static str,
    },
    /// Its imports or exports have the right names and the wrong types.
    #[error("its interface is not the one of collander:filter@{supported}: {detail}")]
    WrongInterface {
        /// In wasmtime's words.
        detail: String,
        /// Version of the interface.
        supported: &'static str,
    },
    /// It failed before it could do anything.
    #[error("{during}: {failure}")]
    Failed {
        /// Which call.
        during: &'static str,
        /// How.
        failure: Failure,
    },
    /// What it says of itself is not valid.
    #[error("its description is not valid: {0}")]
    Description(String),
    /// The operator's configuration does not fit.
    #[error("its configuration is not valid: {0}")]
    Config(String),
    /// The filter refused its configuration.
    #[error("it refuses its configuration: {0}")]
    ConfigRefused(String),
}

/// Kind of a failure, for counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "see `Failure`, and `name`")]
pub enum FailureKind {
    Time,
    Memory,
    Table,
    Stack,
    Trap,
    BadVerdict,
    Host,
    Refused,
}

impl FailureKind {
    /// All, in order.
    pub const ALL: [Self; 8] =
        [Self::Time, Self::Memory, Self::Table, Self::Stack, Self::Trap, Self::BadVerdict, Self::Host, Self::Refused];

    /// Name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Table => "table",
            Self::Stack => "stack",
            Self::Trap => "trap",
            Self::BadVerdict => "bad_verdict",
            Self::Host => "host",
            Self::Refused => "refused",
        }
    }
}

/// How a call of a filter failed. The instance is gone.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// It ran for too long.
    #[error("it ran longer than {limit:?} and was stopped{trace}")]
    Time {
        /// Its limit.
        limit: Duration,
        /// Where it was; "" or lines that begin with a line break.
        trace: String,
    },
    /// It wanted too much memory.
    #[error("{detail}{trace}")]
    Memory {
        /// How much, and the limit.
        detail: String,
        /// As above.
        trace: String,
    },
    /// It wanted too large a table.
    #[error("{detail}{trace}")]
    Table {
        /// How much, and the limit.
        detail: String,
        /// As above.
        trace: String,
    },
    /// It recursed too deeply.
    #[error("its stack overflowed{trace}")]
    Stack {
        /// As above.
        trace: String,
    },
    /// It trapped.
    #[error("{detail}{trace}")]
    Trap {
        /// In wasmtime's words, and the guest's last log line if it was an error (the message of a panic).
        detail: String,
        /// As above.
        trace: String,
    },
    /// Its answer makes no sense.
    #[error("its answer is not valid: {0}")]
    BadVerdict(String),
    /// A host call failed on our side.
    #[error("an internal error in a host call: {0}")]
    Host(String),
    /// A new instance refused its configuration.
    #[error("a new instance refuses the configuration: {0}")]
    Refused(String),
}

impl Failure {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::Time { .. } => FailureKind::Time,
            Self::Memory { .. } => FailureKind::Memory,
            Self::Table { .. } => FailureKind::Table,
            Self::Stack { .. } => FailureKind::Stack,
            Self::Trap { .. } => FailureKind::Trap,
            Self::BadVerdict(_) => FailureKind::BadVerdict,
            Self::Host(_) => FailureKind::Host,
            Self::Refused(_) => FailureKind::Refused,
        }
    }
}

/// A host function that failed on our side, as an error of wasmtime.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HostPanic(pub(crate) String);
