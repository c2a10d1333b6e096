//! Calls that NCCL should not make, and sometimes does.

use serde::{Deserialize, Serialize};

/// How often which. A rate is the share of event stops after which such a call is injected, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// States of an event after its stop.
    pub late: f64,
    /// A second stop, at once.
    pub doubled: f64,
    /// Stops and states of events that were stopped long ago, of finalised communicators too.
    pub stale: f64,
    /// Stops, states and parents with the bits of another process's handle, or with random bits.
    pub foreign_handles: f64,
    /// Proxy operations with another process's context and parent (PXN), and with random contexts.
    pub foreign_contexts: f64,
    /// Seed of the choice.
    pub seed: u64,
}

impl Faults {
    /// Every kind at the same rate.
    #[must_use]
    pub const fn all(rate: f64, seed: u64) -> Self {
        Self { late: rate, doubled: rate, stale: rate, foreign_handles: rate, foreign_contexts: rate, seed }
    }
}

/// A small generator of numbers that look random (splitmix64): the same for the same seed, everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Of several numbers, all of which matter.
    pub(crate) fn of(parts: &[u64]) -> Self {
        let mut random = Self(0x6a09_e667_f3bc_c908);
        for part in parts {
            random.0 ^= *part;
            random.0 = random.next();
        }
        random
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to 1, exclusive.
    pub(crate) const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) const fn chance(&mut self, rate: f64) -> bool {
        rate > 0.0 && self.unit() < rate
    }
}
