//! The clock by which guests are stopped: one thread, one tick a millisecond, asleep while no guest runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use wasmtime::Engine;

/// Length of a tick.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// Ticks without a guest after which it sleeps: a busy filter does not pay a wake-up for each call.
const LINGER: u32 = 50;

#[derive(Debug, Default)]
struct Shared {
    /// Guests that run.
    running: AtomicU32,
    /// Calls began since the last look.
    busy: AtomicBool,
    asleep: AtomicBool,
    stop: AtomicBool,
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
        let handle = std::thread::Builder::new().name("collander-epoch".into()).stack_size(64 << 10).spawn(move || {
            let mut idle = 0;
            while !ours.stop.load(Ordering::Acquire) {
                if ours.running.load(Ordering::SeqCst) > 0 || ours.busy.swap(false, Ordering::Relaxed) {
                    idle = 0;
                } else {
                    idle += 1;
                }
                if idle > LINGER {
                    ours.asleep.store(true, Ordering::SeqCst);
                    // Pairs with `begin`: either we see its count, or it sees that we sleep and wakes us.
                    if ours.running.load(Ordering::SeqCst) == 0 && !ours.stop.load(Ordering::Acquire) {
                        std::thread::park();
                    }
                    ours.asleep.store(false, Ordering::SeqCst);
                    idle = 0;
                    continue;
                }
                std::thread::sleep(TICK);
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
            }
        })?;
        Ok(Self { shared, thread: handle.thread().clone(), handle: Some(handle) })
    }

    /// A guest begins to run; it has ended when the guard is dropped.
    #[inline]
    pub(crate) fn begin(&self) -> Running<'_> {
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

    /// Ticks after which a call of so long has run out: it gets at least its time, and at most one tick more.
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
