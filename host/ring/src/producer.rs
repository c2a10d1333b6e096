//! The writing end of a ring.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use collander_event::Record;

use crate::layout::{RingControl, RingCounters, RingState};
use crate::protocol::{self, Slot};

/// Event counters have 34 bits.
const COUNTER_SHIFT: u32 = 30;
/// Nonce and ring of an id.
const MARK_BITS: u32 = 22;

/// The writing end of one ring; exactly one exists for a ring while it is active. It may move to another thread, but the
/// type is not `Clone`, and every call takes `&mut self`: one producer at a time.
#[derive(Debug)]
pub struct Producer {
    control: &'static RingControl,
    slots: &'static [Slot],
    /// `slots.len() - 1`.
    mask: u64,
    /// The next event counter in the top 34 bits, where its wrap costs no instruction; below it, `mark`.
    counter: u64,
    ring: u8,
}

impl Producer {
    pub(crate) fn new(control: &'static RingControl, slots: &'static [Slot], ring: u8) -> Self {
        Self {
            control,
            slots,
            mask: (slots.len() as u64).wrapping_sub(1),
            counter: control.next_id.load(Ordering::Relaxed).wrapping_add(1) << COUNTER_SHIFT,
            ring,
        }
    }

    /// Claims the next slot, to be filled word by word; without `Draft::publish` nothing happened. Producer thread.
    #[inline(always)]
    pub fn draft(&mut self) -> Draft<'_> {
        // Copied once: the compiler cannot know that stores to the control do not change where it is.
        self.draft_in(self.control)
    }

    /// Counts an operation start, as [`next_ordinal`](Self::next_ordinal), and claims the slot of its record. Producer thread.
    #[inline(always)]
    pub fn draft_operation(&mut self) -> (Draft<'_>, u32) {
        let control = self.control;
        let ordinal = count_operation(control);
        (self.draft_in(control), ordinal)
    }

    #[inline(always)]
    fn draft_in(&mut self, control: &'static RingControl) -> Draft<'_> {
        let position = control.cursor.head.load(Ordering::Relaxed);
        let slot = protocol::claim(&control.cursor, self.slots, position & self.mask, position + 1);
        Draft { control, slot, next: position + 1, producer: PhantomData }
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
        let draft = self.draft();
        protocol::fill::<WORDS>(draft.slot, record);
        draft.publish();
    }

    /// Number of the next record. Producer thread.
    #[inline(always)]
    #[must_use]
    pub fn position(&self) -> u64 {
        // Nobody else writes it.
        self.control.cursor.head.load(Ordering::Relaxed)
    }

    /// Sets what ids from now on have beside their counter: the top 22 bits, nonce and ring. Producer thread.
    pub fn mark_ids(&mut self, mark: u64) {
        self.counter = (self.counter >> COUNTER_SHIFT << COUNTER_SHIFT) | (mark >> (64 - MARK_BITS));
    }

    /// The next id of this ring, without kind and detail: the mark, and the event counter in bits 8 to 42, from 1, given
    /// once in 2^34 events. `use_it` gets it before the next one is made: that is one addition in memory. Producer thread.
    #[inline(always)]
    pub fn next_id(&mut self, use_it: impl FnOnce(u64)) {
        use_it(self.counter.rotate_left(64 - MARK_BITS));
        self.counter = self.counter.wrapping_add(1 << COUNTER_SHIFT);
    }

    /// What [`next_id`](Self::next_id) gives next. Producer thread.
    #[inline(always)]
    #[must_use]
    pub const fn peek_id(&self) -> u64 {
        self.counter.rotate_left(64 - MARK_BITS)
    }

    /// The next event counter of this ring as a number, which is thereby given. Producer thread.
    pub fn next_counter(&mut self) -> u64 {
        let counter = self.counter >> COUNTER_SHIFT;
        self.next_id(|_| ());
        counter
    }

    /// The event counter that is given next. Producer thread.
    #[must_use]
    pub const fn peek_counter(&self) -> u64 {
        self.counter >> COUNTER_SHIFT
    }

    /// Leaves out event counters below `counter`, which went to events whose ids were made without the ring. Producer
    /// thread.
    pub fn skip_counters(&mut self, counter: u64) {
        if counter > self.peek_counter() {
            self.counter = (counter << COUNTER_SHIFT) | (self.counter & ((1 << COUNTER_SHIFT) - 1));
        }
    }

    /// Counts an operation start and gives its ordinal modulo 2^28. Producer thread.
    #[inline(always)]
    pub fn next_ordinal(&mut self) -> u32 {
        count_operation(self.control)
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
        self.control.next_id.store(self.peek_counter().wrapping_sub(1), Ordering::Relaxed);
        // Pairs with the Acquire load in `Region::recycle`.
        self.control.state.store(RingState::Retired as u32, Ordering::Release);
    }
}

#[inline(always)]
fn count_operation(control: &RingControl) -> u32 {
    let kept = control.counters.kept.load(Ordering::Relaxed).wrapping_add(1);
    control.counters.kept.store(kept, Ordering::Relaxed);
    (kept & 0x0fff_ffff) as u32
}

/// A claimed slot. The words that are not set keep what the slot had: for records whose reader looks at no more.
#[must_use]
#[derive(Debug)]
pub struct Draft<'a> {
    control: &'static RingControl,
    slot: &'static Slot,
    next: u64,
    producer: PhantomData<&'a mut Producer>,
}

impl Draft<'_> {
    /// Stores word `N` of the record, 0 to 7. Producer thread.
    #[inline(always)]
    pub fn set<const N: usize>(&self, word: u64) {
        if let Some(place) = self.slot.0.get(N) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Makes the record readable. Producer thread.
    #[inline(always)]
    pub fn publish(self) {
        protocol::complete(&self.control.cursor, self.next);
    }
}
