//! Event ids and context ids: numbers that NCCL carries around as `void *`, never pointers.
//!
//! ```text
//! event id   63        50 49    42 41                8 7      4 3    0
//!            | nonce 14  | ring 8 | counter 34        | detail  | kind |
//! context id 63        50 49                  20 19             1  0
//!            | nonce 14  | generation 30       | slot 19         | 1  |
//! ```
//! The nonce names the process: a handle of another process (PXN) differs there. The counter is the ring's own and never
//! restarts while the process lives, also when a ring passes to another thread. The low 50 bits are the *local* id.

use crate::kind::{Detail, EventKind};

/// Number of bits of a local id.
pub const LOCAL_BITS: u32 = 50;
/// Mask of a local id.
pub const LOCAL_MASK: u64 = (1 << LOCAL_BITS) - 1;

/// Id of one event, or 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct EventId(pub u64);

impl EventId {
    /// Composes an id. `ring` < 256, `counter` counts modulo 2^34.
    #[must_use]
    pub const fn new(nonce: u16, ring: u8, counter: u64, detail: Detail, kind: EventKind) -> Self {
        Self(
            ((nonce as u64) << 50)
                | ((ring as u64) << 42)
                | ((counter & ((1 << 34) - 1)) << 8)
                | (detail.id_bits() << 4)
                | kind as u64,
        )
    }

    /// The kind of the event.
    #[must_use]
    pub const fn kind(self) -> EventKind {
        EventKind::from_index((self.0 & 15) as u8)
    }

    /// The detail wanted for the event's children.
    #[must_use]
    pub const fn detail(self) -> Detail {
        Detail(((self.0 >> 4) & 15) as u16)
    }

    /// The ring on which the event started.
    #[must_use]
    pub const fn ring(self) -> u8 {
        (self.0 >> 42) as u8
    }

    /// The process nonce, 14 bits.
    #[must_use]
    pub const fn nonce(self) -> u16 {
        (self.0 >> 50) as u16
    }

    /// Without the nonce: unique in this process.
    #[must_use]
    pub const fn local(self) -> u64 {
        self.0 & LOCAL_MASK
    }
}

/// What `init` hands to NCCL as the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextId(pub u64);

impl ContextId {
    /// Composes a context id. `slot` < 2^19.
    #[must_use]
    pub const fn new(nonce: u16, generation: u32, slot: u32) -> Self {
        Self(
            ((nonce as u64) << 50)
                | (((generation & 0x3fff_ffff) as u64) << 20)
                | (((slot & 0x7_ffff) as u64) << 1)
                | 1,
        )
    }

    /// Index of the communicator's hot slot.
    #[must_use]
    pub const fn slot(self) -> usize {
        ((self.0 >> 1) & 0x7_ffff) as usize
    }

    /// The process nonce, 14 bits.
    #[must_use]
    pub const fn nonce(self) -> u16 {
        (self.0 >> 50) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let id = EventId::new(0x3abc, 200, 0x3_1234_5678, Detail(5), EventKind::KernelCh);
        assert_eq!((id.nonce(), id.ring(), id.detail().0, id.kind()), (0x3abc, 200, 5, EventKind::KernelCh));
        let context = ContextId::new(0x3fff, 77, 0x7_ffff);
        assert_eq!((context.nonce(), context.slot()), (0x3fff, 0x7_ffff));
    }
}
