//! "At most so many a second", by adjusting one in 2^n.

/// How long the drain counts before it adjusts, ns.
const WINDOW_NS: u64 = 100_000_000;
/// Greatest n.
const MAX_N: u8 = 40;

/// The controller of one rule. What was kept, times 2^n, is how many there were.
#[derive(Clone, Debug)]
pub struct RateControl {
    limit: Option<u32>,
    n: u8,
    kept: u64,
    since_ns: Option<u64>,
    /// Windows in a row in which a smaller n would have done.
    calm: u8,
}

impl RateControl {
    /// A controller for at most `limit` a second; None: a rule without a limit.
    #[must_use]
    pub const fn new(limit: Option<u32>) -> Self {
        Self { limit, n: 0, kept: 0, since_ns: None, calm: 0 }
    }

    /// One in 2^n are to be kept.
    #[must_use]
    pub const fn n(&self) -> u8 {
        self.n
    }

    /// One more was kept.
    #[inline]
    pub const fn count(&mut self) {
        self.kept += 1;
    }

    /// Looks at the last window; whether `n` changed. n grows at once, as far as needed; it shrinks by one when, twice in a
    /// row, a smaller one would have stayed under 80 % of the limit.
    pub fn adjust(&mut self, now_ns: u64) -> bool {
        let Some(limit) = self.limit else { return false };
        let Some(since) = self.since_ns else {
            self.since_ns = Some(now_ns);
            return false;
        };
        let elapsed = now_ns.saturating_sub(since);
        if elapsed < WINDOW_NS {
            return false;
        }
        let kept_rate = self.kept as f64 * 1e9 / elapsed as f64;
        self.kept = 0;
        self.since_ns = Some(now_ns);
        let limit = f64::from(limit);
        if kept_rate > limit {
            self.calm = 0;
            let more = (kept_rate / limit).log2().ceil().clamp(1.0, 40.0) as u8;
            let n = (self.n + more).min(MAX_N);
            let changed = n != self.n;
            self.n = n;
            return changed;
        }
        if self.n == 0 || kept_rate * 2.0 > limit * 0.8 {
            self.calm = 0;
            return false;
        }
        self.calm += 1;
        if self.calm < 2 {
            return false;
        }
        self.calm = 0;
        self.n -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of `rate` operations a second; the kept rate of each window.
    fn run(control: &mut RateControl, start_ns: u64, windows: u64, rate: u64) -> Vec<u64> {
        (0..windows)
            .map(|window| {
                let kept = (rate / 10) >> control.n();
                (0..kept).for_each(|_| control.count());
                control.adjust(start_ns + (window + 1) * WINDOW_NS);
                kept * 10
            })
            .collect()
    }

    #[test]
    fn holds_the_limit_and_comes_back() {
        let mut control = RateControl::new(Some(1000));
        assert!(!control.adjust(0));
        let kept = run(&mut control, 0, 10, 100_000);
        assert!(kept[1..].iter().all(|rate| *rate <= 1000), "{kept:?}");
        assert!(kept[9] > 500, "the smallest n that does: {kept:?}");
        let kept = run(&mut control, 1_000_000_000, 40, 300);
        assert_eq!((control.n(), kept[39]), (0, 300));
    }

    #[test]
    fn does_not_swing() {
        let mut control = RateControl::new(Some(100));
        control.adjust(0);
        run(&mut control, 0, 10, 1500);
        let n = control.n();
        run(&mut control, 1_000_000_000, 20, 1500);
        assert_eq!(control.n(), n);
        assert!(!RateControl::new(None).adjust(u64::MAX));
    }
}
