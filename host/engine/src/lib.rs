//! Runs filters: WASM components of the interface in `wit/`, which decide what is sampled, how it is aggregated and where it goes.
//!
//! [`FilterHost`] is the runtime, [`Filter`] one filter of one pipeline. A filter always answers: what fails in the guest (a trap, a limit,
//! a bad verdict) makes the batch take the declared fallback and is counted in [`FilterStats`]. No guest runs on a thread of NCCL, and
//! none is compiled here: native code comes from a [`Compiler`] in another library, or from the cache.
#![deny(unsafe_code)]

mod bindings;
mod cache;
mod compiler;
mod convert;
mod error;
mod filter;
mod host;
mod host_imports;
mod instance;
mod layout;
mod limits;
mod metrics;
mod names;
mod packed;
mod prepared;
mod schema;
mod settings;
mod sketch;
mod thread_clock;
mod ticker;
mod types;

pub use compiler::{
    AbiFunction, Answer, COMPILER_ABI, CompileFunction, Compiler, CompilerError, CompilerLibrary, FingerprintFunction,
    FreeFunction,
};
pub use convert::class_of;
pub use error::{Failure, FailureKind, LoadError};
pub use filter::{BATCH, Filter, FilterStats, Health, Observed, Outcome, Setup};
pub use host::{FILTER_BYTES, FilterHost, HostOptions, Loadable, Source};
pub use host_imports::ImportCounts;
pub use layout::{CHILD_WORDS, OPERATION_WORDS};
pub use limits::Limits;
pub use settings::{Settings, WASMTIME_VERSION};
pub use sketch::Sketch;
pub use types::{
    Aggregate, AggregateValue, Alert, Class, Description, Emitted, FilterPlan, INTERFACE_VERSION, LogLevel, Metric,
    PlanRate, Services, Setting, SettingType, Severity, Value, Verdict,
};
