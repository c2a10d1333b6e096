//! Histogram of ticks: exact up to 8192, then 64 steps an octave.

const EXACT: usize = 8192;
const FIRST_OCTAVE: usize = 13;
const STEPS: usize = 64;
const OCTAVES: usize = 64 - FIRST_OCTAVE;

/// Counts by value. Adding never allocates.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u32>,
    total: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Empty.
    pub fn new() -> Self {
        Self { counts: vec![0; EXACT + OCTAVES * STEPS], total: 0, sum: 0, max: 0 }
    }

    /// Adds one value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.total += 1;
        self.sum += value;
        self.max = self.max.max(value);
        self.counts[bucket(value)] += 1;
    }

    /// Number of values.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Largest value.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Mean of all values; 0 if there are none.
    pub fn mean(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 }
    }

    /// Smallest value that the share `q` (0 to 1) of all values does not exceed; 0 if there are none.
    pub fn quantile(&self, q: f64) -> f64 {
        let wanted = ((q * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted {
                return lower_bound(index) as f64;
            }
        }
        self.max as f64
    }

    /// Mean of the smallest 99 %: leaves out what the scheduler took. 0 if there are none.
    pub fn trimmed_mean(&self) -> f64 {
        let limit = (0.99 * self.total as f64) as u64;
        let (mut taken, mut sum) = (0u64, 0.0);
        for (index, &count) in self.counts.iter().enumerate() {
            let take = u64::from(count).min(limit - taken);
            sum += lower_bound(index) as f64 * take as f64;
            taken += take;
            if taken == limit {
                break;
            }
        }
        if taken == 0 { 0.0 } else { sum / taken as f64 }
    }
}

fn bucket(value: u64) -> usize {
    if value < EXACT as u64 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() as usize;
    let step = (value >> (octave - 6)) as usize & (STEPS - 1);
    EXACT + (octave - FIRST_OCTAVE) * STEPS + step
}

fn lower_bound(bucket: usize) -> u64 {
    if bucket < EXACT {
        return bucket as u64;
    }
    let (octave, step) = ((bucket - EXACT) / STEPS + FIRST_OCTAVE, (bucket - EXACT) % STEPS);
    (1u64 << octave) + ((step as u64) << (octave - 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_lower_bound_and_are_ordered() {
        for value in [0, 1, 8191, 8192, 8193, 100_000, 1 << 40, u64::MAX] {
            let index = bucket(value);
            assert!(lower_bound(index) <= value);
            assert_eq!(bucket(lower_bound(index)), index);
            assert!(value - lower_bound(index) <= value / 64);
        }
    }

    #[test]
    fn trimmed_mean_leaves_out_the_top_percent() {
        let mut histogram = Histogram::new();
        for _ in 0..990 {
            histogram.add(100);
        }
        for _ in 0..10 {
            histogram.add(1_000_000);
        }
        assert_eq!(histogram.trimmed_mean(), 100.0);
        assert_eq!(histogram.quantile(0.5), 100.0);
        assert_eq!(histogram.max(), 1_000_000);
        assert_eq!(histogram.mean(), (99_000.0 + 10_000_000.0) / 1000.0);
    }

    #[test]
    fn empty_is_zero() {
        let histogram = Histogram::new();
        assert_eq!((histogram.len(), histogram.mean(), histogram.trimmed_mean()), (0, 0.0, 0.0));
    }
}
