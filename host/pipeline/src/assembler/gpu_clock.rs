//! GPU stamps against CPU stamps: the unit of the GPU timer, its offset, and stamps that belong to another operation.
//!
//! The CPU reads a stamp after the GPU wrote it. So `CPU time − GPU time` of good stamps is never less than the true offset
//! of the two clocks, and its running minimum is an upper bound of it: GPU time plus that minimum is never too early.

use collander_config::GpuTimer;

/// Calibration, rounding, delays of threads.
const SLACK_NS: i64 = 20_000_000;
/// A kernel may be launched so long before NCCL's start event: the thread is descheduled in between. (23 ms in recordings
/// made on an overloaded machine.)
const EARLY_NS: i64 = 250_000_000;
/// Pairs of stamps that are remembered in the process; a power of two.
const REMEMBERED: usize = 8192;
/// Operations whose stamps must have been seen before any is judged.
const ENOUGH: u32 = 32;
/// Length of a window of the running minimum: what is older than two is forgotten, to follow drift.
const WINDOW_NS: u64 = 10_000_000_000;
/// Drift allowed since the last sample: 100 ppm.
const DRIFT: u64 = 10_000;
/// Operations in a row that would lower the offset by more than the slack before it is believed.
const STREAK: u8 = 4;
/// Operations in a row that may be rejected.
const REJECTIONS: u8 = 8;
/// GPU time this near to Unix time counts nanoseconds: a day, in ns.
const NEAR_UNIX_NS: u64 = 86_400_000_000_000;
/// Span between two samples that tell whether both clocks run at one rate.
const PACE_SPAN_NS: i64 = 50_000_000;
/// Least CPU time between the two samples that tell the unit.
const UNIT_SPAN_NS: u64 = 50_000_000;

/// Unit of the GPU timer, one for the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimerUnit {
    ns_per_tick: Option<u64>,
}

impl TimerUnit {
    pub(super) const fn new(setting: GpuTimer) -> Self {
        Self {
            ns_per_tick: match setting {
                GpuTimer::Auto => None,
                GpuTimer::Nanoseconds => Some(1),
                GpuTimer::TenNanoseconds => Some(10),
            },
        }
    }

    /// ns a tick, once it is known.
    #[inline]
    pub(super) const fn known(self) -> Option<u64> {
        self.ns_per_tick
    }

    /// Looks at a stamp and the moment at which the CPU saw it. `reference`: an earlier such pair of the same GPU.
    #[cold]
    pub(super) fn learn(&mut self, gpu: u64, cpu_ns: u64, reference: &mut Option<(u64, u64)>) {
        if gpu.abs_diff(cpu_ns) < NEAR_UNIX_NS {
            self.ns_per_tick = Some(1);
            return;
        }
        let Some((old_gpu, old_cpu)) = *reference else {
            *reference = Some((gpu, cpu_ns));
            return;
        };
        let (cpu_span, gpu_span) = (cpu_ns.saturating_sub(old_cpu), gpu.saturating_sub(old_gpu));
        if cpu_span < UNIT_SPAN_NS {
            return;
        }
        match cpu_span as f64 / gpu_span.max(1) as f64 {
            0.5..2.0 => self.ns_per_tick = Some(1),
            5.0..20.0 => self.ns_per_tick = Some(10),
            _ => *reference = Some((gpu, cpu_ns)),
        }
    }
}

/// Pairs of stamps that came lately, by a hash of communicator, channel and stamps, each with the group of its operation.
#[derive(Debug)]
pub(super) struct Remembered(Box<[(u64, u64); REMEMBERED]>);

impl Remembered {
    pub(super) fn new() -> Self {
        Self(Box::new([(0, 0); REMEMBERED]))
    }

    /// Whether an operation of another launch had the very same stamps: NCCL's slot was read again. Within one launch
    /// sends and receives can share a channel, and its stamps.
    #[inline]
    pub(super) fn is_handed_over(&mut self, communicator: u32, pair: Pair) -> bool {
        // A coarse timer can give two short kernels the same moment.
        if pair.group == 0 || pair.gpu_start == pair.gpu_stop {
            return false;
        }
        let place = u64::from(communicator) << 8 | u64::from(pair.channel);
        let key = (pair.gpu_start ^ place.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ pair.gpu_stop.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let Some(place) = self.0.get_mut((key >> 44) as usize & (REMEMBERED - 1)) else { return false };
        if place.0 == key {
            return place.1 != pair.group;
        }
        *place = (key, pair.group);
        false
    }
}

/// The offset of one GPU's clock, as one communicator sees it.
#[derive(Clone, Debug)]
pub(super) struct GpuClock {
    /// For `TimerUnit::learn`.
    pub reference: Option<(u64, u64)>,
    samples: u32,
    last_operation: u64,
    /// Running minimum of CPU − GPU: of this window, and of the one before.
    minimum: i64,
    older_minimum: i64,
    window_start_ns: u64,
    last_ns: u64,
    /// How much more than the minimum a sample usually is: smoothed.
    jitter: i64,
    streak: u8,
    streak_minimum: i64,
    /// Both clocks were seen to run at one rate: only then can one judge the other. (A recording that is replayed as fast as
    /// it goes has GPU stamps of another pace: nothing of it is rejected.)
    paced: bool,
    /// CPU and GPU stamp from which the pace is measured; 0: none.
    anchor: (u64, u64),
    /// Operations in a row whose stamps did not fit.
    rejected: u8,
    last_rejected: u64,
    /// Latest start that was accepted, by channel.
    last_starts: Vec<u64>,
}

/// What an operation's CPU clocks say, and the GPU stamps of one channel; all ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub operation: u64,
    /// Group that it was launched in; 0: not known.
    pub group: u64,
    pub channel: u8,
    pub enqueued: u64,
    pub cpu_stop: u64,
    pub gpu_start: u64,
    pub gpu_stop: u64,
}

impl GpuClock {
    pub(super) const fn new() -> Self {
        Self {
            reference: None,
            samples: 0,
            last_operation: 0,
            minimum: i64::MAX,
            older_minimum: i64::MAX,
            window_start_ns: 0,
            last_ns: 0,
            jitter: 0,
            streak: 0,
            streak_minimum: i64::MAX,
            paced: false,
            anchor: (0, 0),
            rejected: 0,
            last_rejected: 0,
            last_starts: Vec::new(),
        }
    }

    /// Measures the pace of the two clocks, every 50 ms of either.
    #[inline]
    fn pace(&mut self, pair: Pair) {
        if self.anchor.0 == 0 {
            self.anchor = (pair.cpu_stop, pair.gpu_stop);
            return;
        }
        let cpu = pair.cpu_stop.wrapping_sub(self.anchor.0) as i64;
        let gpu = pair.gpu_stop.wrapping_sub(self.anchor.1) as i64;
        let span = cpu.max(gpu);
        if span < PACE_SPAN_NS {
            return;
        }
        self.anchor = (pair.cpu_stop, pair.gpu_stop);
        // Stamps that were read late count against it, but only for the next span.
        self.paced = cpu.abs_diff(gpu) <= span.unsigned_abs() / 4 + SLACK_NS.unsigned_abs() / 2;
        if !self.paced {
            (self.minimum, self.older_minimum, self.samples) = (i64::MAX, i64::MAX, 0);
        }
    }

    /// Whether the stamps can be this operation's; learns from those that can.
    #[inline]
    pub(super) fn accepts(&mut self, pair: Pair) -> bool {
        if self.paced && !self.fits(pair) {
            self.rejected += u8::from(pair.operation != self.last_rejected);
            self.last_rejected = pair.operation;
            if self.rejected < REJECTIONS {
                return false;
            }
            // So many operations cannot all have another's stamps: it is the pace that is wrong.
            self.paced = false;
            self.anchor = (0, 0);
        }
        self.rejected = 0;
        self.pace(pair);
        self.learn(pair, pair.cpu_stop.wrapping_sub(pair.gpu_stop) as i64);
        true
    }

    /// Whether the stamps fit what is known of the clocks.
    #[inline]
    fn fits(&mut self, pair: Pair) -> bool {
        let offset = pair.cpu_stop.wrapping_sub(pair.gpu_stop) as i64;
        if self.samples >= ENOUGH {
            let minimum = self.minimum.min(self.older_minimum);
            let drift = (pair.cpu_stop.saturating_sub(self.last_ns) / DRIFT) as i64;
            let start = (pair.gpu_start as i64).wrapping_add(minimum);
            // NCCL reports an operation after it launched its kernel, and the thread can be descheduled in between: an early
            // start alone proves nothing. Kernels of a communicator run one after the other: stamps of an older operation
            // start before what this channel did last.
            if pair.gpu_start < self.last_start(pair.channel)
                && (pair.enqueued as i64).wrapping_sub(start) > EARLY_NS + drift
            {
                return false;
            }
            let slack = SLACK_NS + drift + self.jitter.saturating_mul(4);
            if offset < minimum.saturating_sub(slack) && !self.believe(pair.operation, offset) {
                return false;
            }
        }
        true
    }

    /// Whether several operations in a row agree that the offset is lower: then it is, and is learnt anew.
    #[cold]
    fn believe(&mut self, operation: u64, offset: i64) -> bool {
        if operation == self.last_operation {
            return false;
        }
        self.last_operation = operation;
        if self.streak > 0 && offset.saturating_sub(self.streak_minimum).saturating_abs() > SLACK_NS {
            self.streak = 0;
            self.streak_minimum = i64::MAX;
        }
        self.streak += 1;
        self.streak_minimum = self.streak_minimum.min(offset);
        if self.streak < STREAK {
            return false;
        }
        *self = Self {
            reference: self.reference,
            anchor: self.anchor,
            paced: self.paced,
            last_starts: std::mem::take(&mut self.last_starts),
            ..Self::new()
        };
        true
    }

    fn last_start(&self, channel: u8) -> u64 {
        self.last_starts.get(usize::from(channel)).copied().unwrap_or(0)
    }

    #[inline]
    fn learn(&mut self, pair: Pair, offset: i64) {
        let channel = usize::from(pair.channel);
        if self.last_starts.len() <= channel {
            self.last_starts.resize(channel + 1, 0);
        }
        self.last_starts[channel] = self.last_starts[channel].max(pair.gpu_start);
        if pair.cpu_stop.saturating_sub(self.window_start_ns) > WINDOW_NS {
            self.older_minimum = self.minimum;
            self.minimum = i64::MAX;
            self.window_start_ns = pair.cpu_stop;
        }
        self.minimum = self.minimum.min(offset);
        let above = offset.saturating_sub(self.minimum.min(self.older_minimum)).clamp(0, 1_000_000_000);
        self.jitter += (above - self.jitter) / 16;
        self.last_ns = self.last_ns.max(pair.cpu_stop);
        self.streak = 0;
        self.streak_minimum = i64::MAX;
        if pair.operation != self.last_operation {
            self.last_operation = pair.operation;
            self.samples = self.samples.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Stamps of operation `i`, one a ms, 500 µs long, seen `delay` later; the GPU's clock is `skew` ahead.
    fn pair(i: u64, delay: u64, skew: i64) -> Pair {
        let enqueued = 1_700_000_000_000_000_000 + i * MS;
        let start = (enqueued + 100_000).wrapping_add_signed(skew);
        Pair {
            operation: i,
            group: 0,
            channel: 0,
            enqueued,
            cpu_stop: enqueued + 600_000 + delay,
            gpu_start: start,
            gpu_stop: start + 500_000,
        }
    }

    #[test]
    fn good_stamps_are_never_rejected() {
        for (skew, drift_ppm) in [(0, 0), (-3_000_000_000, 50), (7_000_000_000_000, -50)] {
            let mut clock = GpuClock::new();
            let mut x = 88172645463325252_u64;
            for i in 0..100_000_u64 {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                // Mostly seen at once, sometimes 80 ms late, and a whole second late after each second.
                let delay = if i.is_multiple_of(1000) {
                    1000 * MS
                } else if x.is_multiple_of(50) {
                    80 * MS
                } else {
                    x % 30_000
                };
                assert!(clock.accepts(pair(i, delay, skew + (i * MS) as i64 / 1_000_000 * drift_ppm)), "{i}");
            }
        }
    }

    #[test]
    fn the_first_ones_seen_late_do_no_harm_for_long() {
        let mut clock = GpuClock::new();
        (0..40).for_each(|i| assert!(clock.accepts(pair(i, 300 * MS, 0))));
        let rejected = (40..1000).filter(|i| !clock.accepts(pair(*i, 1000, 0))).count();
        assert!(rejected < usize::from(STREAK), "{rejected}");
    }

    #[test]
    fn stamps_of_another_operation_are_rejected() {
        let mut clock = GpuClock::new();
        (0..400).for_each(|i| assert!(clock.accepts(pair(i, 1000, 5_000_000_000))));
        let good = pair(400, 1000, 5_000_000_000);
        let other = pair(64, 1000, 5_000_000_000);
        let later = pair(900, 1000, 5_000_000_000);
        assert!(
            !clock.accepts(Pair { gpu_start: other.gpu_start, gpu_stop: other.gpu_stop, ..good }),
            "both of an older one"
        );
        assert!(!clock.accepts(Pair { gpu_start: other.gpu_start, ..good }), "the start of an older one");
        assert!(!clock.accepts(Pair { gpu_start: later.gpu_start, gpu_stop: later.gpu_stop, ..good }), "of the future");
        assert!(clock.accepts(good));
    }

    #[test]
    fn the_same_stamps_again_are_of_another_launch() {
        let mut remembered = Remembered::new();
        let first = Pair { group: 5, ..pair(0, 1000, 0) };
        let of = |group, operation| Pair { group, operation, ..first };
        assert!(!remembered.is_handed_over(0, first));
        assert!(!remembered.is_handed_over(0, of(5, 1)), "sends and receives of one launch may share them");
        assert!(remembered.is_handed_over(0, of(6, 2)));
        assert!(!remembered.is_handed_over(0, Pair { channel: 1, ..of(6, 2) }));
        assert!(!remembered.is_handed_over(1, of(6, 2)), "another communicator's");
        assert!(!remembered.is_handed_over(0, of(0, 3)), "its group is not known");
    }

    #[test]
    fn nothing_is_judged_by_the_offset_before_it_is_known() {
        let mut clock = GpuClock::new();
        clock.accepts(pair(0, 1000, 0));
        let (good, other) = (pair(500, 1000, 0), pair(3, 1000, 0));
        assert!(clock.accepts(Pair { gpu_start: other.gpu_start, gpu_stop: other.gpu_stop, ..good }));
    }

    #[test]
    fn units() {
        let mut reference = None;
        let mut unit = TimerUnit::new(GpuTimer::Auto);
        unit.learn(1_700_000_000_000_000_000, 1_700_000_000_100_000_000, &mut reference);
        assert_eq!(unit.known(), Some(1), "near Unix time");
        for (tick_ns, expected) in [(1, Some(1)), (10, Some(10)), (1000, None)] {
            let (mut unit, mut reference) = (TimerUnit::new(GpuTimer::Auto), None);
            for i in 0..100 {
                let cpu = 1_700_000_000_000_000_000 + i * MS;
                unit.learn(5000 + i * MS / tick_ns, cpu + i % 3 * 100_000, &mut reference);
                assert!(i >= 49 || unit.known().is_none());
            }
            assert_eq!(unit.known(), expected);
        }
        assert_eq!(TimerUnit::new(GpuTimer::TenNanoseconds).known(), Some(10));
    }
}
