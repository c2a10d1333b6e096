//! The seam between the drain and the sinks.
//!
//! The drain sends each sink batches of operations, each with a [`Snapshot`] of the common account taken when all
//! operations that had ended by then were in this or earlier batches. A sink adds its own counts to the latest snapshot
//! that it was given, so that every stats record balances exactly.

use std::sync::Arc;

use collander_event::{Accounting, Anomalies, DropReason, Operation, Tally};

/// The common account at one moment, as one sink has to continue it.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Unix ns at which it was taken.
    pub unix_ns: u64,
    /// Operations seen, by kind.
    pub seen: Tally,
    /// Left out by the head decision.
    pub sampled_head: u64,
    /// Left out by rules or filters that saw their numbers.
    pub sampled_filter: u64,
    /// Routed elsewhere: not for this sink.
    pub unrouted: u64,
    /// Lost in overrun rings.
    pub ring_overrun: u64,
    /// Pushed out of the assembler.
    pub evicted: u64,
    /// Lost because this sink's queue was full.
    pub queue_full: u64,
    /// Open in the assembler.
    pub open: u64,
    /// Anomalies so far.
    pub anomalies: Anomalies,
    /// Records read from the rings so far.
    pub records: u64,
    /// Extra records made (inferred groups): not part of the account.
    pub inferred_groups: u64,
    /// Communicators opened so far.
    pub communicators: u64,
}

/// What a sink counts itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkAccount {
    /// Operations that its write calls took.
    pub written: u64,
    /// Operations accepted and not yet written.
    pub pending: u64,
    /// Lost in the sink, by reason (`WriteFailed`, `ShutdownTimeout`, `NotRepresentable`; `Deleted` beside the sum).
    pub dropped: [u64; 7],
}

impl Snapshot {
    /// The sink's whole account.
    #[must_use]
    pub fn account(&self, sink: &SinkAccount) -> Accounting {
        let mut dropped = sink.dropped;
        dropped[DropReason::RingOverrun as usize] += self.ring_overrun;
        dropped[DropReason::Evicted as usize] += self.evicted;
        dropped[DropReason::QueueFull as usize] += self.queue_full;
        Accounting {
            seen: self.seen.total(),
            written: sink.written,
            dropped,
            sampled_head: self.sampled_head,
            sampled_filter: self.sampled_filter,
            unrouted: self.unrouted,
            open: self.open + sink.pending,
        }
    }
}

/// Where operations go. Called on the I/O thread only, which is ours: it may block, it must not panic.
pub trait Sink: Send {
    /// Its name in the configuration and in outputs.
    fn name(&self) -> &str;
    /// Takes one operation that is for it; counts it as pending. Inferred groups (`OpKind::InferredGroup`) are written
    /// but not counted.
    fn accept(&mut self, operation: &Operation);
    /// Writes what is pending with a stats record; `last`: the process or the library's life ends, close the file.
    /// Never fails: what could not be written is counted as dropped, and the next flush tries to resume.
    fn flush(&mut self, snapshot: &Snapshot, last: bool);
    /// Whether it wants a flush now: its interval has passed, or its buffer is full.
    fn wants_flush(&self) -> bool;
    /// What it counted.
    fn account(&self) -> SinkAccount;
    /// Something to tell the operator once (a path, an error), taken away by the call.
    fn take_message(&mut self) -> Option<String>;
    /// Where it writes, for the line at init.
    fn location(&self) -> String;
}

/// What the drain sends to a sink.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The operations; those whose `sinks` lack the sink's bit are not for it.
    pub operations: Arc<Vec<Operation>>,
    /// The account behind them.
    pub snapshot: Snapshot,
}
