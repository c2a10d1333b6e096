//! Overwriting single-producer rings of 64-byte records in sealed shared memory.
//!
//! **Contract.** One thread writes a ring; any number of threads and processes read it. The producer never reads anything
//! that a reader writes, never waits, never fails: a ring that is full overwrites its oldest record. A reader that was
//! overtaken knows it, and how many records it lost. Rings lie in one memfd a process ([`Region`]), sealed against
//! shrinking, growing and later writable mappings, each ring allocated and populated before its first use, so that no
//! access to it can raise SIGBUS. Other processes of the same user find it under `/proc/PID/fd` ([`Image`]).
//!
//! **Why not a crate.** The rings in the registry refuse or block when full, have one reader, and live in one process; this
//! one overwrites, has many, and outlives its process (docs/decisions/0001).
//!
//! With `--cfg loom` only the protocol is built, on loom's atomics.

mod protocol;

pub use protocol::{Copied, Cursor, Slot, copy_valid, publish};

#[cfg(not(loom))]
mod communicators;
#[cfg(not(loom))]
mod image;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod names;
#[cfg(not(loom))]
mod producer;
#[cfg(not(loom))]
mod region;

#[cfg(not(loom))]
pub use image::{Image, ImageError, RingInfo};
#[cfg(not(loom))]
pub use layout::{COMMUNICATORS, FORMAT, MAGIC, MEMFD_NAME, NAME_BYTES, NAMES, RINGS, RingCounters, RingState};
#[cfg(not(loom))]
pub use producer::Producer;
#[cfg(not(loom))]
pub use region::{Region, RegionStats, RingReader};
