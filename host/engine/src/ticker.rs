//! The clock by which guests are stopped: one thread that looks once a millisecond, asleep while no guest runs.
//!
//! It counts milliseconds of CPU time of the thread that runs the guest, not of the wall: on a crowded machine a guest that waits for a
//! CPU is not a runaway. (If guests run on several threads at once, it counts milliseconds of the wall.)

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use wasmtime::Engine;

use crate::thread_clock::{cpu_time, own_thread};

/// Length of a tick.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// Looks without a guest after which it sleeps: a busy filter does not pay a wake-up for each call.
const LINGER: u32 = 50;

#[derive(Debug, Default)]
struct Shared {
    /// Guests that run.
    running: AtomicU32,
    /// The thread that began last.
    thread: AtomicU32,
    /// Calls began since the last look.
    busy: AtomicBool,
    asleep: AtomicBool,
    stop: AtomicBool,
}

impl Shared {
    fn run(&self, engine: &wasmtime::EngineWeak) {
        let mut idle = 0;
        // Thread, its CPU time up to which ticks are counted.
        let mut counted: Option<(u32, Duration)> = None;
        while !self.stop.load(Ordering::Acquire) {
            std::thread::sleep(TICK);
            let running = self.running.load(Ordering::SeqCst);
            if running > 0 || self.busy.swap(false, Ordering::Relaxed) {
                idle = 0;
            } else {
                idle += 1;
            }
            if idle > LINGER {
                self.sleep();
                (idle, counted) = (0, None);
                continue;
            }
            if running == 0 {
                counted = None;
                continue;
            }
            let thread = self.thread.load(Ordering::Relaxed);
            let ticks = match (cpu_time(thread), counted) {
                (Some(now), Some((known, until))) if known == thread && running == 1 => {
                    let ticks = (now.saturating_sub(until).as_nanos() / TICK.as_nanos()) as u32;
                    counted = Some((thread, until + TICK * ticks));
                    ticks
                }
                (now, _) => {
                    counted = now.map(|now| (thread, now));
                    1
                }
            };
            let Some(engine) = engine.upgrade() else { return };
            for _ in 0..ticks {
                engine.increment_epoch();
            }
        }
    }

    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        // Pairs with `begin`: either we see its count, or it sees that we sleep and wakes us.
        if self.running.load(Ordering::SeqCst) == 0 && !self.stop.load(Ordering::Acquire) {
            std::thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

/// Advances the engine's epoch. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
    handle: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread; it inherits the calling thread's blocked signals.
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (engine, ours) = (engine.weak(), shared.clone());
        let handle = std::thread::Builder::new()
            .name("collander-epoch".into())
            .stack_size(64 << 10)
            .spawn(move || ours.run(&engine))?;
        Ok(Self { shared, thread: handle.thread().clone(), handle: Some(handle) })
    }

    /// A guest begins to run; it has ended when the guard is dropped.
    #[inline]
    pub(crate) fn begin(&self) -> Running<'_> {
        self.shared.thread.store(own_thread(), Ordering::Relaxed);
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        self.shared.busy.store(true, Ordering::Relaxed);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(&self.shared.running)
    }

    /// Whether the thread sleeps.
    pub(crate) fn sleeps(&self) -> bool {
        self.shared.asleep.load(Ordering::SeqCst)
    }

    /// Ticks after which a call of so long has run out: it gets about its time, and at most two ticks more.
    pub(crate) fn ticks(time: Duration) -> u64 {
        (time.as_millis() as u64).max(1) + u64::from(time > TICK)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.unpark();
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// A guest runs.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a AtomicU32);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
