//! The plan word: a head decision as data, one atomic word a class.
//!
//! ```text
//! bits 0..2 rate (0 none, 1 all, 2 one in 2^n) · 2..8 n · 8 undecided · 9 exact check later · 16..32 detail · 32..64 sink set
//! ```

use crate::kind::Detail;

/// Collectives in a plan table (index: `Collective as usize`).
pub const PLAN_COLLECTIVES: usize = 16;
/// Size classes in a plan table: class c holds sizes of 2^(c−1) up to, not including, 2^c; 0 is size 0 or unknown; the
/// last also takes what is larger.
pub const PLAN_SIZE_CLASSES: usize = 64;
/// Words in a plan table.
pub const PLAN_WORDS: usize = PLAN_COLLECTIVES * PLAN_SIZE_CLASSES;

/// Size class of a number of bytes below 2^63; nothing is that large.
#[must_use]
#[inline(always)]
pub const fn size_class(bytes: u64) -> usize {
    // One instruction on CPUs without a count of leading zeros: the highest bit set of an odd number.
    (63 ^ ((bytes << 1) | 1).leading_zeros()) as usize
}

/// Index of a plan word.
#[must_use]
#[inline(always)]
pub const fn plan_index(collective: u8, bytes: u64) -> usize {
    (collective as usize & (PLAN_COLLECTIVES - 1)) * PLAN_SIZE_CLASSES + size_class(bytes)
}

/// How many of a class are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// None.
    None,
    /// All.
    All,
    /// One in 2^n, the same on every rank; n ≤ 40.
    OneIn(u8),
}

/// The word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanWord(pub u64);

impl PlanWord {
    /// Bit that says that no one has decided this class yet: the default holds.
    pub const UNDECIDED: u64 = 1 << 8;
    /// Bit that says that the drain must check the rules again with the exact size.
    pub const EXACT_CHECK: u64 = 1 << 9;

    /// Composes a word.
    #[must_use]
    pub const fn new(rate: Rate, detail: Detail, sinks: u32) -> Self {
        let rate_bits = match rate {
            Rate::None => 0,
            Rate::All => 1,
            Rate::OneIn(n) => 2 | (((n & 63) as u64) << 2),
        };
        Self(rate_bits | ((detail.completed().0 as u64) << 16) | ((sinks as u64) << 32))
    }

    /// The rate.
    #[must_use]
    #[inline(always)]
    pub const fn rate(self) -> Rate {
        match self.0 & 3 {
            0 => Rate::None,
            1 => Rate::All,
            _ => Rate::OneIn(((self.0 >> 2) & 63) as u8),
        }
    }

    /// The detail.
    #[must_use]
    #[inline(always)]
    pub const fn detail(self) -> Detail {
        Detail((self.0 >> 16) as u16)
    }

    /// The sinks, a bit each; all ones: the default.
    #[must_use]
    pub const fn sinks(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Whether one-in-2^n keeps number `k` of a (communicator, function). The same on every rank; kept sets nest: what
/// one in 2^(n+1) keeps, one in 2^n keeps too. For P2P, `key` must be the same at sender and receiver.
#[must_use]
#[inline(always)]
pub const fn keeps(n: u8, key: u64, k: u64) -> bool {
    // splitmix64's finaliser: every output bit depends on every input bit, so the low n bits choose fairly.
    let mut x = key ^ k.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    x & ((1 << (n & 63)) - 1) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_sets_nest_and_have_the_rate() {
        let mut kept = [0u32; 6];
        for k in 0..64_000 {
            for n in 0..6u8 {
                if keeps(n, 0x1234, k) {
                    kept[n as usize] += 1;
                    assert!(n == 0 || keeps(n - 1, 0x1234, k));
                }
            }
        }
        for (n, count) in kept.iter().enumerate() {
            let expected = 64_000.0 / f64::from(1 << n);
            assert!((f64::from(*count) - expected).abs() < 6.0 * expected.sqrt() + 1.0, "{n}: {count}");
        }
    }

    #[test]
    fn size_classes_are_powers_of_two() {
        assert_eq!(
            [0, 1, 2, 3, 4, 1 << 20, (1 << 62) - 1, 1 << 62, u64::MAX].map(size_class),
            [0, 1, 2, 2, 3, 21, 62, 63, 63]
        );
    }
}
