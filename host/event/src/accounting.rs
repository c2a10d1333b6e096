//! seen = written + dropped + sampled out + open, per sink, exactly.

/// Why an operation that was seen did not reach a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// Its start record was overtaken in the ring before the drain read it.
    RingOverrun,
    /// Pushed out of the assembler because too many were open.
    Evicted,
    /// The sink's queue was full.
    QueueFull,
    /// The sink failed to write it: disk full, missing, read-only.
    WriteFailed,
    /// The sink did not finish in time at the end.
    ShutdownTimeout,
    /// Written, and later deleted with the oldest file to stay within the bound on disk. Counted apart: such
    /// operations also count as written; see the `deleted` field of the stats record.
    Deleted,
    /// The sink's format cannot say it (Inspector's: P2P in 4.0, operations without a kernel time).
    NotRepresentable,
}

impl DropReason {
    /// All, in order.
    pub const ALL: [Self; 7] = [
        Self::RingOverrun,
        Self::Evicted,
        Self::QueueFull,
        Self::WriteFailed,
        Self::ShutdownTimeout,
        Self::Deleted,
        Self::NotRepresentable,
    ];

    /// Name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RingOverrun => "ring_overrun",
            Self::Evicted => "evicted",
            Self::QueueFull => "queue_full",
            Self::WriteFailed => "write_failed",
            Self::ShutdownTimeout => "shutdown_timeout",
            Self::Deleted => "deleted",
            Self::NotRepresentable => "not_representable",
        }
    }
}

/// Operations by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Coll events.
    pub coll: u64,
    /// P2p events.
    pub p2p: u64,
    /// Copy-engine collectives.
    pub copy_engine: u64,
    /// API calls that never became one of these.
    pub api: u64,
    /// Kind not known: the record was lost.
    pub unknown: u64,
}

impl Tally {
    /// Of all kinds.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.coll + self.p2p + self.copy_engine + self.api + self.unknown
    }
}

/// The account of one sink, or (with `written` 0) of what is common to all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// All operations of this process: `written + dropped + sampled_out + open`.
    pub seen: u64,
    /// Reached the sink's file (or reader) as far as it can tell: its write call succeeded.
    pub written: u64,
    /// Lost, by reason (index: `DropReason as usize`). `Deleted` is not part of the sum.
    pub dropped: [u64; 7],
    /// Left out by the head decision, before they ran.
    pub sampled_head: u64,
    /// Left out by a rule or filter that saw their numbers.
    pub sampled_filter: u64,
    /// Routed to other sinks.
    pub unrouted: u64,
    /// Not finished, or finished and not yet written.
    pub open: u64,
}

impl Accounting {
    /// Lost in all.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        DropReason::ALL.iter().filter(|r| **r != DropReason::Deleted).map(|r| self.dropped[*r as usize]).sum()
    }

    /// Left out in all.
    #[must_use]
    pub const fn sampled_out(&self) -> u64 {
        self.sampled_head + self.sampled_filter + self.unrouted
    }

    /// Whether the equation holds.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.seen == self.written + self.dropped_total() + self.sampled_out() + self.open
    }
}
