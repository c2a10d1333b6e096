//! The writing end of a ring.

use std::sync::atomic::Ordering;

use collander_event::Record;

use crate::layout::{RingControl, RingCounters, RingState};
use crate::protocol::{self, Slot};

/// The writing end of one ring; exactly one exists for a ring while it is active. It may move to another thread, but the
/// type is not `Clone`, and every call takes `&mut self`: one producer at a time.
#[derive(Debug)]
pub struct Producer {
    control: &'static RingControl,
    slots: &'static [Slot],
    /// Own copy of head: one load less in the chain.
    position: u64,
    next_id: u64,
    ring: u8,
}

impl Producer {
    pub(crate) fn new(control: &'static RingControl, slots: &'static [Slot], ring: u8) -> Self {
        Self { control, slots, position: control.cursor.head.load(Ordering::Relaxed), next_id: control.next_id.load(Ordering::Relaxed), ring }
    }

    /// Publishes a record. Wait-free: about a dozen stores. Producer thread.
    #[inline(always)]
    pub fn push(&mut self, record: &Record) {
        self.push_short::<8>(record);
    }

    /// Publishes the first `WORDS` words of a record; the others keep what the slot had. For records whose reader looks at
    /// no more. Producer thread.
    #[inline(always)]
    pub fn push_short<const WORDS: usize>(&mut self, record: &Record) {
        let position = self.position;
        self.position = position + 1;
        protocol::publish_words::<WORDS>(&self.control.cursor, self.slots, position, record);
    }

    /// Number of the next record. Producer thread.
    #[inline(always)]
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The next event counter of this ring, from 1; never 0, never given twice. Producer thread.
    #[inline(always)]
    pub fn next_counter(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Counts an operation start and gives its ordinal modulo 2^28. Producer thread.
    #[inline(always)]
    pub fn next_ordinal(&mut self) -> u32 {
        let kept = self.control.counters.kept.load(Ordering::Relaxed).wrapping_add(1);
        self.control.counters.kept.store(kept, Ordering::Relaxed);
        (kept & 0x0fff_ffff) as u32
    }

    /// The ring's counters.
    #[inline(always)]
    #[must_use]
    pub fn counters(&self) -> &'static RingCounters {
        &self.control.counters
    }

    /// The ring's number.
    #[inline(always)]
    #[must_use]
    pub const fn ring(&self) -> u8 {
        self.ring
    }

    /// Gives the ring back: it is read to the end and then goes to another thread. The producer's thread, when it ends.
    pub fn retire(self) {
        self.control.next_id.store(self.next_id, Ordering::Relaxed);
        // Pairs with the Acquire load in `Region::recycle`.
        self.control.state.store(RingState::Retired as u32, Ordering::Release);
    }
}
