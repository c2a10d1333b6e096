//! Simulated time against the wall.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a sleep costs at least, about.
const SHORTEST_SLEEP_NS: u64 = 60_000;

/// Copied to every thread of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begin: Instant,
    realtime: f64,
    base_unix_ns: u64,
    gpu_timer_ns: u64,
}

impl Clock {
    pub(super) fn new(base_unix_ns: u64, realtime: f64, gpu_timer_ns: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ahead = Duration::from_nanos(base_unix_ns).saturating_sub(now);
        Self { begin: Instant::now() + ahead, realtime, base_unix_ns, gpu_timer_ns }
    }

    /// Sleeps until the wall clock has reached a simulated time, or is so close that a sleep would overshoot it.
    pub(super) fn wait_until_about(&self, ns: u64) {
        self.wait_until(ns.saturating_sub(SHORTEST_SLEEP_NS));
    }

    /// Sleeps until the wall clock has reached a simulated time.
    pub(super) fn wait_until(&self, ns: u64) {
        if self.realtime > 0.0 {
            let due = self.begin + Duration::from_nanos((ns as f64 * self.realtime) as u64);
            let rest = due.saturating_duration_since(Instant::now());
            if !rest.is_zero() {
                thread::sleep(rest);
            }
        }
    }

    /// Sleeps for a simulated span.
    pub(super) fn wait_for_ms(&self, ms: f64) {
        thread::sleep(Duration::from_secs_f64((ms * self.realtime / 1e3).min(3600.0)));
    }

    /// GPU timer at a simulated time.
    pub(super) const fn gpu(&self, ns: u64) -> u64 {
        (self.base_unix_ns + ns) / self.gpu_timer_ns
    }
}
