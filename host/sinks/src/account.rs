//! What a sink counts, readable from another thread while the sink's own thread hangs in a write.

use std::sync::atomic::{AtomicU64, Ordering};

use collander_event::DropReason;
use collander_pipeline::SinkAccount;

/// Counters of one sink. Written by its thread only; any thread may read.
///
/// What is pending is not kept but computed, so that every reading adds up to what was accepted.
#[derive(Debug, Default)]
pub struct SharedAccount {
    accepted: AtomicU64,
    written: AtomicU64,
    write_failed: AtomicU64,
    not_representable: AtomicU64,
    deleted: AtomicU64,
}

impl SharedAccount {
    /// The account at this moment. Acquire pairs with the Release of `add`: an operation that is counted as gone was
    /// counted as accepted before, so what is pending never becomes negative.
    #[must_use]
    pub fn read(&self) -> SinkAccount {
        let deleted = self.deleted.load(Ordering::Acquire);
        let written = self.written.load(Ordering::Acquire);
        let write_failed = self.write_failed.load(Ordering::Acquire);
        let not_representable = self.not_representable.load(Ordering::Acquire);
        let accepted = self.accepted.load(Ordering::Acquire);
        let mut dropped = [0; 7];
        dropped[DropReason::WriteFailed as usize] = write_failed;
        dropped[DropReason::NotRepresentable as usize] = not_representable;
        dropped[DropReason::Deleted as usize] = deleted;
        SinkAccount { written, pending: accepted.saturating_sub(written + write_failed + not_representable), dropped }
    }

    pub(crate) fn accepted(&self) {
        add(&self.accepted, 1);
    }

    pub(crate) fn not_representable(&self) {
        add(&self.not_representable, 1);
    }

    pub(crate) fn written(&self, operations: u64) {
        add(&self.written, operations);
    }

    pub(crate) fn write_failed(&self, operations: u64) {
        add(&self.write_failed, operations);
    }

    pub(crate) fn deleted(&self, operations: u64) {
        add(&self.deleted, operations);
    }
}

/// There is one writer, so a load and a store are enough.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Release);
}
