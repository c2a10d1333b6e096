//! The protocol of one ring, free of memory management so that loom can check it.
//!
//! ```text
//! producer of record p                      reader of records from p on
//!   claim = p + 1          relaxed            h = head              acquire   (pairs with 5)
//!   fence(release)                            copy words            relaxed
//!   slot[p mod N] = words  relaxed            fence(acquire)                  (pairs with 2)
//!   head = p + 1           release            c = claim             relaxed
//!                                             p is valid iff c <= p + N
//! ```
//! If the reader saw any word of record p + N or later in p's slot, the fences order that producer's claim (at least
//! p + N + 1) before the reader's load of it, so the record is thrown away. Nothing else is needed: the words themselves
//! are relaxed atomics, hence no data race, on x86-64 (plain moves) as on aarch64.

use collander_event::Record;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of a slot. Two under loom: enough to tear, few enough to explore.
const WORDS: usize = if cfg!(loom) { 2 } else { 8 };

/// One record's place.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot(pub [AtomicU64; WORDS]);

/// The two positions that the producer publishes. Both count records from the ring's birth and never wrap (2^64).
#[derive(Debug)]
#[repr(C)]
pub struct Cursor {
    /// Records whose slot the producer may be writing or has written.
    pub claim: AtomicU64,
    /// Records that are complete.
    pub head: AtomicU64,
}

/// Publishes `record` as number `position`. `slots.len()` must be a power of two. Wait-free.
///
/// Must be called by the ring's only producer, with `position` one more than in its last call.
#[inline(always)]
pub fn publish(cursor: &Cursor, slots: &[Slot], position: u64, record: &Record) {
    let index = position & (slots.len() as u64).wrapping_sub(1);
    fill::<8>(claim(cursor, slots, index, position + 1), record);
    complete(cursor, position + 1);
}

/// First step of [`publish`]: claims the slot at `index`, the record's number modulo the slots; `next` is that number plus 1.
#[inline(always)]
pub(crate) fn claim<'a>(cursor: &Cursor, slots: &'a [Slot], index: u64, next: u64) -> &'a Slot {
    // Pairs with the claim load in `copy_valid`, through the two fences.
    cursor.claim.store(next, Ordering::Relaxed);
    fence(Ordering::Release);
    debug_assert!((index as usize) < slots.len());
    // SAFETY: the callers compute `x & (len − 1) < len` for a len > 0; rings have at least one slot.
    let slot = unsafe { slots.get_unchecked(index as usize) };
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    let slot = {
        let mut pointer: *const Slot = slot;
        // One register for the slot, where the compiler would keep two until the last word is stored.
        // SAFETY: no instruction at all; the pointer stays the same.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) pointer, options(pure, readonly, nostack, preserves_flags));
            &*pointer
        }
    };
    slot
}

/// Second step: the first `N` words; the slot's others keep what they had.
#[inline(always)]
pub(crate) fn fill<const N: usize>(slot: &Slot, record: &Record) {
    for (place, word) in slot.0.iter().zip(record.0).take(N) {
        place.store(word, Ordering::Relaxed);
    }
}

/// Third step: the record is there.
#[inline(always)]
pub(crate) fn complete(cursor: &Cursor, next: u64) {
    // Pairs with the Acquire load of head in `copy_valid`.
    cursor.head.store(next, Ordering::Release);
}

/// What a reader got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where to go on.
    pub next: u64,
    /// Records overtaken since the position asked for.
    pub lost: u64,
}

/// Copies up to `limit` records from number `from` on to the end of `out`, oldest first, without those that the producer
/// overtook meanwhile. Any thread, any process; never blocks the producer.
pub fn copy_valid(cursor: &Cursor, slots: &[Slot], from: u64, limit: usize, out: &mut Vec<Record>) -> Copied {
    let capacity = slots.len() as u64;
    // Pairs with the Release store of head in `publish`.
    let head = cursor.head.load(Ordering::Acquire);
    let oldest = head.saturating_sub(capacity);
    let start = from.max(oldest).min(head);
    let end = head.min(start.saturating_add(limit as u64));
    let base = out.len();
    out.reserve((end - start) as usize);
    for position in start..end {
        let slot = &slots[position as usize & (slots.len() - 1)];
        let mut record = Record::default();
        for (word, place) in record.0.iter_mut().zip(&slot.0) {
            *word = place.load(Ordering::Relaxed);
        }
        out.push(record);
    }
    fence(Ordering::Acquire);
    // Pairs with the Relaxed store of claim in `publish`, through the two fences.
    let claim = cursor.claim.load(Ordering::Relaxed);
    let valid_from = claim.saturating_sub(capacity).clamp(start, end);
    let torn = (valid_from - start) as usize;
    out.drain(base..base + torn);
    Copied { next: end, lost: valid_from.saturating_sub(from) }
}
