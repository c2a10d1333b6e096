//! Layout of the shared region, format 1. Changing it means a new format number.
//!
//! ```text
//! 0         Header (4096 bytes)
//! 4096      name table: NAMES entries of 128 bytes (word 0: length, 0 = not there yet; then the text)
//! …         communicator table: COMMUNICATORS entries of 256 bytes (entry = ordinal modulo COMMUNICATORS)
//! …         ring controls: RINGS entries of 256 bytes
//! …         ring slots, where the controls say
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::protocol::{Cursor, Slot};

/// `COLLANDR`, little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"COLLANDR");
/// Format of the region.
pub const FORMAT: u32 = 1;
/// Name of the memfd, as it shows under `/proc/PID/fd`: `/memfd:collander-rings (deleted)`.
pub const MEMFD_NAME: &str = "collander-rings";
/// Entries of the name table; code 0 is NULL, the last stands for all that did not fit.
pub const NAMES: usize = 256;
/// Longest text kept of a name, bytes.
pub const NAME_BYTES: usize = 120;
/// Entries of the communicator table; older communicators are overwritten.
pub const COMMUNICATORS: usize = 1024;
/// Most rings; the ring number is eight bits of an event id.
pub const RINGS: usize = 256;
/// Longest communicator name kept for the black box, bytes.
pub(crate) const COMMUNICATOR_NAME_BYTES: usize = 176;

/// First page.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header {
    pub magic: AtomicU64,
    pub format: AtomicU32,
    pub pid: AtomicU32,
    pub total_bytes: AtomicU64,
    pub data_offset: AtomicU64,
    /// Data bytes given to rings so far.
    pub allocated: AtomicU64,
    pub nonce: AtomicU32,
    pub names_reserved: AtomicU32,
    /// Ring controls in use so far.
    pub rings_reserved: AtomicU32,
    pub communicators: AtomicU32,
    /// Seqlock of the calibration: odd while it is written.
    pub calibration_sequence: AtomicU64,
    pub calibration_ticks: AtomicU64,
    pub calibration_unix_ns: AtomicU64,
    /// Bits of an f64.
    pub calibration_ns_per_tick: AtomicU64,
    /// Events on threads that got no ring.
    pub events_unobserved: AtomicU64,
    pub communicators_unobserved: AtomicU64,
    /// Names that did not fit the table.
    pub names_lost: AtomicU64,
}

/// One name.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct NameEntry {
    /// Length in bytes; 0: not there yet. Stored last (Release).
    pub len: AtomicU64,
    pub words: [AtomicU64; NAME_BYTES / 8],
}

/// One communicator.
#[derive(Debug)]
#[repr(C, align(256))]
pub(crate) struct CommunicatorEntry {
    /// Seqlock: odd while written, 0 never written.
    pub sequence: AtomicU64,
    pub ordinal: AtomicU32,
    pub rank: AtomicU32,
    pub ranks: AtomicU32,
    pub nodes: AtomicU32,
    pub hash: AtomicU64,
    pub opened_ns: AtomicU64,
    pub api: AtomicU32,
    /// 1 while open.
    pub open: AtomicU32,
    pub name_len: AtomicU64,
    pub name: [AtomicU64; COMMUNICATOR_NAME_BYTES / 8],
}

/// What a ring is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RingState {
    /// Control not in use.
    Empty = 0,
    /// Memory is ready, no thread has it.
    Ready = 1,
    /// A thread writes it.
    Active = 2,
    /// Its thread has gone; to be read to the end, then Ready again.
    Retired = 3,
}

impl RingState {
    pub(crate) const fn from_u32(value: u32) -> Self {
        match value {
            1 => Self::Ready,
            2 => Self::Active,
            3 => Self::Retired,
            _ => Self::Empty,
        }
    }
}

/// Counters that the producer keeps beside its ring; totals over all threads that had it. Written by one thread, read by any.
#[derive(Debug)]
#[repr(C)]
pub struct RingCounters {
    /// Operation starts recorded: the operation ordinal of the last one.
    pub kept: AtomicU64,
    /// Coll left out by the head decision.
    pub sampled_coll: AtomicU64,
    /// P2p left out by the head decision.
    pub sampled_p2p: AtomicU64,
    /// CeColl left out by the head decision.
    pub sampled_ce: AtomicU64,
    /// Stops and states for handles of another process.
    pub foreign_handles: AtomicU64,
    /// Events with a context of another process.
    pub foreign_contexts: AtomicU64,
    /// Events with a context that was finalised.
    pub late_contexts: AtomicU64,
    /// Events of a kind that the interface version lacks.
    pub unknown_kinds: AtomicU64,
}

impl RingCounters {
    /// Adds one, by the only writer.
    #[inline(always)]
    pub fn bump(counter: &AtomicU64) {
        // Single writer: a load and a store, not a read-modify-write; readers see either value.
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// Control of one ring.
#[derive(Debug)]
#[repr(C, align(256))]
pub(crate) struct RingControl {
    /// Written with every record: alone in its line with the counters that operations bump.
    pub cursor: Cursor,
    pub counters: RingCounters,
    pub state: AtomicU32,
    /// Kernel thread id of the producer.
    pub thread: AtomicU32,
    /// Offset of the slots in the region.
    pub offset: AtomicU64,
    /// Slots, a power of two.
    pub capacity: AtomicU64,
    /// The id counter, handed on when the ring passes to another thread.
    pub next_id: AtomicU64,
    /// How many threads have had it.
    pub generation: AtomicU64,
}

pub(crate) const NAMES_OFFSET: usize = 4096;
pub(crate) const COMMUNICATORS_OFFSET: usize = NAMES_OFFSET + NAMES * size_of::<NameEntry>();
pub(crate) const CONTROLS_OFFSET: usize = COMMUNICATORS_OFFSET + COMMUNICATORS * size_of::<CommunicatorEntry>();
/// Where ring slots begin: on a page.
pub(crate) const DATA_OFFSET: usize = (CONTROLS_OFFSET + RINGS * size_of::<RingControl>()).next_multiple_of(4096);

const _: () = {
    assert!(size_of::<Header>() <= 4096);
    assert!(size_of::<NameEntry>() == 128);
    assert!(size_of::<CommunicatorEntry>() == 256);
    assert!(size_of::<RingControl>() == 256);
    assert!(size_of::<Slot>() == 64);
};
