//! From clock ticks to Unix time.

/// One calibration of the tick counter against CLOCK_REALTIME. Valid near `ticks`; re-made every second by the drain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Ticks at the moment of calibration.
    pub ticks: u64,
    /// Unix time of that moment, ns.
    pub unix_ns: u64,
    /// Nanoseconds a tick; 1.0 where the clock counts nanoseconds itself.
    pub ns_per_tick: f64,
}

impl Calibration {
    /// A clock whose ticks are Unix nanoseconds.
    pub const UNIX_NANOSECONDS: Self = Self { ticks: 0, unix_ns: 0, ns_per_tick: 1.0 };

    /// Unix time in ns of a tick count.
    #[must_use]
    pub fn unix_ns(&self, ticks: u64) -> u64 {
        let delta = ticks.wrapping_sub(self.ticks) as i64;
        if self.ns_per_tick == 1.0 {
            return self.unix_ns.wrapping_add_signed(delta);
        }
        self.unix_ns.wrapping_add_signed((delta as f64 * self.ns_per_tick) as i64)
    }

    /// Length in ns of a span of ticks; 0 if it is negative.
    #[must_use]
    pub fn span_ns(&self, from: u64, to: u64) -> u64 {
        if to <= from { 0 } else { ((to - from) as f64 * self.ns_per_tick) as u64 }
    }
}
