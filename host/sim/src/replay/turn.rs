//! Whose turn it is: a call may begin once all calls before it have begun, on whatever thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::error::SimError;

const IDLE: usize = usize::MAX;
const SPINS: u32 = 100;

pub(super) struct Turns {
    /// Calls that have begun.
    turn: AtomicUsize,
    /// Thread of each call.
    owners: Vec<u32>,
    claimed: Vec<AtomicBool>,
    threads: Vec<OnceLock<Thread>>,
    /// Call that each thread is in.
    running: Vec<AtomicUsize>,
    failed: AtomicBool,
    error: Mutex<Option<SimError>>,
}

impl Turns {
    pub(super) fn new(owners: Vec<u32>, threads: usize) -> Self {
        Self {
            turn: AtomicUsize::new(0),
            owners,
            claimed: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            threads: (0..threads).map(|_| OnceLock::new()).collect(),
            running: (0..threads).map(|_| AtomicUsize::new(IDLE)).collect(),
            failed: AtomicBool::new(false),
            error: Mutex::new(None),
        }
    }

    /// True once for each thread: it has to be made.
    pub(super) fn claim_thread(&self, thread: usize) -> bool {
        !self.claimed[thread].swap(true, Ordering::SeqCst)
    }

    /// The thread lives; when the guard goes in a panic, all others give up.
    pub(super) fn enter(&self, thread: usize) -> Guard<'_> {
        let _ = self.threads[thread].set(thread::current());
        Guard(self)
    }

    /// Waits for the call's turn. False: the replay failed.
    pub(super) fn wait(&self, call: usize) -> bool {
        let mut spins = 0;
        // SeqCst, here and in `pass`: either we see the turn, or the other thread sees us in `threads` and unparks us.
        while self.turn.load(Ordering::SeqCst) != call {
            if self.failed.load(Ordering::SeqCst) {
                return false;
            }
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                thread::park();
            }
        }
        !self.failed.load(Ordering::SeqCst)
    }

    /// Waits, on its own turn, until no other thread is in a call. False: the replay failed.
    pub(super) fn wait_for_others(&self, me: usize) -> bool {
        let busy = |thread: usize| thread != me && self.running[thread].load(Ordering::Acquire) != IDLE;
        self.until(|| !(0..self.running.len()).any(busy));
        !self.failed.load(Ordering::SeqCst)
    }

    /// Yields until the condition holds or the replay failed.
    pub(super) fn until(&self, mut condition: impl FnMut() -> bool) {
        while !condition() && !self.failed.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }

    pub(super) fn begin(&self, thread: usize, call: usize) {
        self.running[thread].store(call, Ordering::Release);
    }

    pub(super) fn end(&self, thread: usize) {
        self.running[thread].store(IDLE, Ordering::Release);
    }

    /// Gives the turn to the next call. Returns its thread if that does not live yet.
    pub(super) fn pass(&self, call: usize) -> Option<usize> {
        self.turn.store(call + 1, Ordering::SeqCst);
        let next = *self.owners.get(call + 1)? as usize;
        if next == self.owners[call] as usize {
            return None;
        }
        if !self.claimed[next].load(Ordering::SeqCst) {
            return Some(next);
        }
        if let Some(thread) = self.threads[next].get() {
            thread.unpark();
        }
        None
    }

    /// Ends the replay with an error; the first one counts.
    pub(super) fn fail(&self, error: SimError) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.give_up();
    }

    pub(super) fn take_error(&self) -> Option<SimError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn give_up(&self) {
        self.failed.store(true, Ordering::SeqCst);
        for thread in self.threads.iter().filter_map(OnceLock::get) {
            thread.unpark();
        }
    }
}

pub(super) struct Guard<'a>(&'a Turns);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.give_up();
        }
    }
}
