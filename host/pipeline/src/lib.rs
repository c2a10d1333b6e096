//! The drain's work, without threads and I/O: records become operations, operations are counted, sampled and routed.
#![forbid(unsafe_code)]

mod sink_stage;

pub use sink_stage::{Batch, Sink, SinkAccount, Snapshot};
