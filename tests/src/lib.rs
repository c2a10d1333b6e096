//! Kit for tests that cross crates: starts a process that drives the plugin library, and reads what the library wrote.
//!
//! [`Child`] is such a process (`collander-test-driver`, `src/driver`), asked for one [`Request`] after another;
//! [`Output`] is what it left on disk; [`Seen`] and [`compare`] hold operations told and operations written side by side.

mod child;
mod compare;
mod output;
pub mod places;
pub mod protocol;
mod truth;

pub use child::{Child, Setup};
pub use compare::{Seen, compare, of_operation, of_report, of_session};
pub use output::{File, Output, Session};
pub use protocol::{Collectives, LoadJob, Naming, Quiet, Reply, Request};
pub use truth::{ProxyKey, ProxyTruth, proxy_truth};
