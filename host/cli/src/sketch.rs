//! Percentiles of a stream in bounded memory: exact for few values, then a histogram with a bounded relative error.

/// Values kept as they are before the histogram begins.
const EXACT: usize = 64;

/// A mergeable sketch of positive numbers. `BITS` mantissa bits choose the bin: the relative error is at most 2^−(BITS+1).
#[derive(Clone, Debug, Default)]
pub struct Sketch<const BITS: u32> {
    values: Vec<f64>,
    /// Number of the first bin.
    first: i32,
    bins: Vec<u32>,
    count: u64,
    sum: f64,
}

impl<const BITS: u32> Sketch<BITS> {
    /// Takes a value; what is not positive and finite is ignored.
    pub fn add(&mut self, value: f64) {
        if !(value > 0.0 && value.is_finite()) {
            return;
        }
        self.count += 1;
        self.sum += value;
        if self.bins.is_empty() {
            if self.values.len() < EXACT {
                self.values.push(value);
                return;
            }
            self.spill();
        }
        self.put(Self::bin(value), 1);
    }

    /// Takes all of another.
    pub fn merge(&mut self, other: &Self) {
        if other.bins.is_empty() {
            for value in &other.values {
                self.add(*value);
            }
            return;
        }
        self.spill();
        self.count += other.count;
        self.sum += other.sum;
        for (place, count) in other.bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.put(other.first + place as i32, *count);
        }
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// The value below which a share `q` of all lies (nearest rank); None without values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        if self.bins.is_empty() {
            let mut sorted = self.values.clone();
            sorted.sort_by(f64::total_cmp);
            return Some(sorted[rank as usize - 1]);
        }
        let mut seen = 0;
        for (place, count) in self.bins.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return Some(Self::middle(self.first + place as i32));
            }
        }
        None
    }

    fn bin(value: f64) -> i32 {
        (value.to_bits() >> (52 - BITS)) as i32
    }

    fn middle(bin: i32) -> f64 {
        let low = f64::from_bits((bin as u64) << (52 - BITS));
        let high = f64::from_bits((bin as u64 + 1) << (52 - BITS));
        f64::midpoint(low, high)
    }

    fn spill(&mut self) {
        for value in std::mem::take(&mut self.values) {
            self.put(Self::bin(value), 1);
        }
    }

    fn put(&mut self, bin: i32, count: u32) {
        if self.bins.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            let more = (self.first - bin) as usize;
            self.bins.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bin;
        }
        let place = (bin - self.first) as usize;
        if place >= self.bins.len() {
            self.bins.resize(place + 1, 0);
        }
        self.bins[place] = self.bins[place].saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_exact() {
        let mut sketch = Sketch::<7>::default();
        for value in [5.0, 1.0, 3.0, 2.0, 4.0] {
            sketch.add(value);
        }
        assert_eq!(sketch.quantile(0.5), Some(3.0));
        assert_eq!(sketch.quantile(0.99), Some(5.0));
        assert_eq!(Sketch::<7>::default().quantile(0.5), None);
    }

    #[test]
    fn many_values_keep_the_relative_error() {
        let mut sketch = Sketch::<7>::default();
        for value in (1..=100_000).rev() {
            sketch.add(f64::from(value));
        }
        for (q, exact) in [(0.01, 1e3), (0.5, 5e4), (0.99, 9.9e4)] {
            let estimate = sketch.quantile(q).unwrap();
            assert!((estimate / exact - 1.0).abs() < 0.004, "{q}: {estimate}");
        }
        assert_eq!(sketch.count(), 100_000);
    }

    #[test]
    fn merging_is_adding_all() {
        let (mut left, mut right, mut both) = (Sketch::<7>::default(), Sketch::<7>::default(), Sketch::<7>::default());
        for n in 1..=3_000 {
            let value = f64::from(n) * 1.7;
            if n % 3 == 0 {
                left.add(value)
            } else {
                right.add(value)
            }
            both.add(value);
        }
        left.merge(&right);
        assert_eq!(left.count(), both.count());
        for q in [0.1, 0.5, 0.9] {
            assert_eq!(left.quantile(q), both.quantile(q));
        }
        let mut few = Sketch::<7>::default();
        few.add(1e9);
        left.merge(&few);
        assert!(left.quantile(1.0).unwrap() > 9.9e8);
    }

    #[test]
    fn what_cannot_be_is_ignored() {
        let mut sketch = Sketch::<4>::default();
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            sketch.add(value);
        }
        assert_eq!(sketch.count(), 0);
    }
}
