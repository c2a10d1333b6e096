//! A mergeable distribution with a bounded relative error.
//!
//! Values fall into buckets whose bounds grow by a constant factor, so that every value in a bucket differs from the bucket's
//! representative by at most [`Sketch::ERROR`] (0.5 %, half of what is promised). Two sketches are merged by adding their
//! counts, exactly: the order of merging makes no difference. Values from 2⁻⁴⁰ to 2⁶⁴ are told apart; smaller ones
//! count as the least, larger ones as the greatest bucket; negative values have buckets of their own.

/// Buckets a doubling: `GAMMA = 2^(1/70)`, so that (γ−1)/(γ+1) < 0.5 %.
const PER_OCTAVE: f64 = 70.0;
const LEAST_EXPONENT: i32 = -40;
const GREATEST_EXPONENT: i32 = 64;
const LEAST: i32 = LEAST_EXPONENT * 70;
const GREATEST: i32 = GREATEST_EXPONENT * 70;

/// Counts of consecutive buckets.
#[derive(Clone, Debug, Default, PartialEq)]
struct Buckets {
    first: i32,
    counts: Vec<u64>,
}

impl Buckets {
    fn add(&mut self, index: i32, count: u64) {
        if self.counts.is_empty() {
            self.first = index;
        }
        if index < self.first {
            let missing = (self.first - index) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = index;
        }
        let at = (index - self.first) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += count;
    }

    fn holds(&self, index: i32) -> bool {
        index >= self.first && ((index - self.first) as usize) < self.counts.len()
    }

    fn merge(&mut self, other: &Self) {
        for (index, count) in other.iter() {
            self.add(index, count);
        }
    }

    /// Non-empty buckets in ascending order.
    fn iter(&self) -> impl DoubleEndedIterator<Item = (i32, u64)> + '_ {
        let first = self.first;
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(move |(at, count)| (first + at as i32, *count))
    }
}

/// A distribution of numbers. At most about 100 KiB, when it holds numbers of all magnitudes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    positive: Buckets,
    negative: Buckets,
    zero: u64,
    count: u64,
    sum: f64,
    least: f64,
    greatest: f64,
}

impl Default for Sketch {
    fn default() -> Self {
        Self {
            positive: Buckets::default(),
            negative: Buckets::default(),
            zero: 0,
            count: 0,
            sum: 0.0,
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
        }
    }
}

fn index_of(magnitude: f64) -> i32 {
    ((magnitude.log2() * PER_OCTAVE).ceil() as i32).clamp(LEAST, GREATEST)
}

/// The value that stands for a bucket: in the middle, relatively.
fn representative(index: i32) -> f64 {
    let upper = (f64::from(index) / PER_OCTAVE).exp2();
    let gamma = (1.0 / PER_OCTAVE).exp2();
    upper * 2.0 / (gamma + 1.0)
}

impl Sketch {
    /// Greatest relative error of a quantile.
    pub const ERROR: f64 = 0.005;

    /// Whether counting this value would take more memory.
    pub(crate) fn would_grow(&self, value: f64) -> bool {
        let side = if value > 0.0 { &self.positive } else { &self.negative };
        value != 0.0 && !side.holds(index_of(value.abs()))
    }

    /// Bytes of its buckets.
    pub(crate) fn bytes(&self) -> usize {
        (self.positive.counts.len() + self.negative.counts.len()) * size_of::<u64>()
    }

    /// Counts a value. What is not finite is ignored.
    pub fn observe(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if value == 0.0 {
            self.zero += 1;
        } else if value > 0.0 {
            self.positive.add(index_of(value), 1);
        } else {
            self.negative.add(index_of(-value), 1);
        }
        self.count += 1;
        self.sum += value;
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.positive.merge(&other.positive);
        self.negative.merge(&other.negative);
        self.zero += other.zero;
        self.count += other.count;
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }

    /// How many values it has counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> f64 {
        self.sum
    }

    /// The least, exactly; None if there is none.
    #[must_use]
    pub fn least(&self) -> Option<f64> {
        (self.count > 0).then_some(self.least)
    }

    /// The greatest, exactly; None if there is none.
    #[must_use]
    pub fn greatest(&self) -> Option<f64> {
        (self.count > 0).then_some(self.greatest)
    }

    /// The value at a quantile from 0 to 1 (the one of rank ⌈q·count⌉, at least the first), off by at most [`Self::ERROR`]; None if
    /// there is no value.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (index, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return Some(index.clamp(self.least, self.greatest));
            }
        }
        Some(self.greatest)
    }

    /// Representatives of the non-empty buckets, ascending, with their counts: what a sink writes to keep it mergeable.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let negative = self.negative.iter().rev().map(|(index, count)| (-representative(index), count));
        let zero = (self.zero > 0).then_some((0.0, self.zero));
        let positive = self.positive.iter().map(|(index, count)| (representative(index), count));
        negative.chain(zero).chain(positive)
    }

    /// Forgets all values, keeps the memory.
    pub fn clear(&mut self) {
        self.positive.counts.fill(0);
        self.negative.counts.fill(0);
        let (positive, negative) = (std::mem::take(&mut self.positive), std::mem::take(&mut self.negative));
        *self = Self { positive, negative, ..Self::default() };
    }
}

#[cfg(test)]
mod tests;
