//! Recordings of NCCL's profiler calls: reader of the format.
//!
//! A recording is JSON Lines, plain or gzip (told apart by their first bytes): a header line, then one line for each call
//! that NCCL made to a profiler plugin in one process, in the order of their entry. [`Reader`] goes through it call by
//! call in bounded memory; [`Recording::read`] takes it whole. [`EventDescriptor`] says in a version-neutral way what
//! `startEvent` is told; the simulator speaks it too.
#![forbid(unsafe_code)]

mod call;
mod descriptor;
mod error;
mod parse;
mod reader;
mod scalar;
#[cfg(test)]
mod tests;

pub use call::{Call, CallKind, HandleRef, Header, Init, Start, StateArgument, StateChange};
pub use descriptor::{CeBatch, CeColl, CeSync, Coll, CollApi, EventDescriptor, Name, P2p, P2pApi, ProxyOp};
pub use error::{Problem, RecordingError};
pub use reader::{Reader, Recording};
