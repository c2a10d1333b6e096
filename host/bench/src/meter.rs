//! What one thread measures.

use crate::category::Category;
use crate::clock::{self, Calibration};
use crate::histogram::Histogram;

const CATEGORIES: usize = Category::ALL.len();

/// Times and counts of one thread's calls.
#[derive(Debug)]
pub struct Meter {
    calibration: Calibration,
    /// Whether what is timed now counts: false while warming up.
    pub recording: bool,
    /// Ticks of each kind of call.
    pub calls: Vec<Histogram>,
    /// Calls made, warm-up included.
    pub issued: [u64; CATEGORIES],
    /// Starts that gave a NULL handle, warm-up included.
    pub null_handles: [u64; CATEGORIES],
    /// Ticks of a whole collective on this thread.
    pub collectives: Histogram,
    /// Ticks of the collective under way.
    sum: u64,
}

impl Meter {
    /// Nothing measured yet.
    pub fn new(calibration: Calibration) -> Self {
        Self {
            calibration,
            recording: false,
            calls: vec![Histogram::new(); CATEGORIES],
            issued: [0; CATEGORIES],
            null_handles: [0; CATEGORIES],
            collectives: Histogram::new(),
            sum: 0,
        }
    }

    /// Makes one call, timed if asked.
    #[inline(always)]
    pub fn call<const TIMED: bool>(&mut self, category: Category, call: impl FnOnce()) {
        if TIMED {
            let before = clock::begin();
            call();
            let elapsed = self.calibration.elapsed(before, clock::end());
            if self.recording {
                self.calls[category as usize].add(elapsed);
                self.sum += elapsed;
            }
        } else {
            call();
        }
        self.issued[category as usize] += 1;
    }

    /// Does this thread's part of one collective: times it as a whole unless each call is timed.
    #[inline(always)]
    pub fn collective<const TIMED: bool>(&mut self, part: impl FnOnce(&mut Self)) {
        self.sum = 0;
        if TIMED {
            part(self);
        } else {
            let before = clock::begin();
            part(self);
            self.sum = self.calibration.elapsed(before, clock::end());
        }
        if self.recording {
            self.collectives.add(self.sum);
        }
    }
}
