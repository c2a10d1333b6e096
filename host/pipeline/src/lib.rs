//! The drain's work, without threads and I/O: records become operations, operations are counted, sampled and routed.
//!
//! [`Assembler`] joins the records of all rings, by id only, to operations. [`Rules`] compiles the sampling rules to plan
//! tables, [`label_of`] names communicators. [`HotCounts`] adds what only the hot side can count to a [`Snapshot`]. Nothing
//! here reads a clock: time comes with the calls.
#![forbid(unsafe_code)]

mod account;
mod assembler;
mod labels;
mod rate_control;
mod rules;
mod sink_stage;

pub use account::HotCounts;
pub use assembler::Assembler;
pub use labels::{glob_matches, label_of, selects};
pub use rate_control::RateControl;
pub use rules::{NO_RULE, Plan, PlanChange, Rules};
pub use sink_stage::{Batch, Sink, SinkAccount, Snapshot};
