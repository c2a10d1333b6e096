//! The way from the user's thread to the proxy thread: a bounded single-producer queue.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::collective::Work;

#[derive(Debug, Default)]
struct Cell {
    coll: AtomicPtr<c_void>,
    mask: AtomicU64,
}

#[repr(align(128))]
#[derive(Debug, Default)]
struct Padded(AtomicU64);

/// Collectives that are issued and not yet finished, at most `depth`.
#[derive(Debug)]
pub struct Queue {
    cells: Vec<Cell>,
    issued: Padded,
    finished: Padded,
}

impl Queue {
    /// Room for `depth` collectives.
    pub fn new(depth: usize) -> Self {
        let cells = (0..depth.next_power_of_two()).map(|_| Cell::default()).collect();
        Self { cells, issued: Padded::default(), finished: Padded::default() }
    }

    /// How many are under way. Producer.
    pub fn outstanding(&self) -> u64 {
        // Acquire pairs with the Release in `finish`: the cell may be written again.
        self.issued.0.load(Ordering::Relaxed) - self.finished.0.load(Ordering::Acquire)
    }

    /// Hands one over; the caller has made sure that there is room. Producer.
    #[inline]
    pub fn issue(&self, work: Work) {
        let cell = self.cell(work.number);
        cell.coll.store(work.coll, Ordering::Relaxed);
        cell.mask.store(work.mask, Ordering::Relaxed);
        // Release pairs with the Acquire in `next`: the cell's content is seen.
        self.issued.0.store(work.number + 1, Ordering::Release);
    }

    /// The oldest that is not finished. Consumer.
    pub fn next(&self) -> Option<Work> {
        let number = self.finished.0.load(Ordering::Relaxed);
        if self.issued.0.load(Ordering::Acquire) == number {
            return None;
        }
        let cell = self.cell(number);
        Some(Work { coll: cell.coll.load(Ordering::Relaxed), mask: cell.mask.load(Ordering::Relaxed), number })
    }

    /// Marks it as finished. Consumer.
    pub fn finish(&self, work: Work) {
        self.finished.0.store(work.number + 1, Ordering::Release);
    }

    fn cell(&self, number: u64) -> &Cell {
        &self.cells[number as usize & (self.cells.len() - 1)]
    }
}
