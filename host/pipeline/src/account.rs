//! The common account: what the assembler counted, and what only the hot side can count.

use collander_event::{Anomalies, Anomaly, Tally};

use crate::sink_stage::Snapshot;

/// What the assembler counts. `seen = finished + left out + overrun + evicted + open`, always.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub seen: Tally,
    pub finished: u64,
    pub sampled_filter: u64,
    pub ring_overrun: u64,
    pub evicted: u64,
    pub inferred_groups: u64,
    pub communicators: u64,
    pub records: u64,
    pub anomalies: Anomalies,
}

/// Sums of the rings' counters: what never became a record. Totals since the process began, not differences.
#[derive(Clone, Debug, Default)]
pub struct HotCounts {
    /// Operations that the head decision left out, by kind.
    pub sampled: Tally,
    /// Stops and states of handles of other processes, or NULL.
    pub foreign_handles: u64,
    /// Events with contexts of other processes.
    pub foreign_contexts: u64,
    /// Events with contexts that were finalised.
    pub late_contexts: u64,
    /// Events of kinds that the version does not have.
    pub unknown_kinds: u64,
    /// Events on threads without a ring.
    pub events_unobserved: u64,
    /// Communicators beyond the table.
    pub communicators_unobserved: u64,
    /// Names that did not fit the table.
    pub names_unobserved: u64,
}

impl HotCounts {
    /// What was counted since `before`: one life of the library in a process that loads it again.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        let (now, then) = (&self.sampled, &before.sampled);
        Self {
            sampled: Tally {
                coll: now.coll.saturating_sub(then.coll),
                p2p: now.p2p.saturating_sub(then.p2p),
                copy_engine: now.copy_engine.saturating_sub(then.copy_engine),
                api: now.api.saturating_sub(then.api),
                unknown: now.unknown.saturating_sub(then.unknown),
            },
            foreign_handles: self.foreign_handles.saturating_sub(before.foreign_handles),
            foreign_contexts: self.foreign_contexts.saturating_sub(before.foreign_contexts),
            late_contexts: self.late_contexts.saturating_sub(before.late_contexts),
            unknown_kinds: self.unknown_kinds.saturating_sub(before.unknown_kinds),
            events_unobserved: self.events_unobserved.saturating_sub(before.events_unobserved),
            communicators_unobserved: self.communicators_unobserved.saturating_sub(before.communicators_unobserved),
            names_unobserved: self.names_unobserved.saturating_sub(before.names_unobserved),
        }
    }

    /// Adds them to an assembler's snapshot. The counters must have been read before or at the moment at which the rings
    /// were read, so that no operation is counted twice; a later read is only ahead.
    pub fn complete(&self, snapshot: &mut Snapshot) {
        let (seen, sampled) = (&mut snapshot.seen, &self.sampled);
        seen.coll += sampled.coll;
        seen.p2p += sampled.p2p;
        seen.copy_engine += sampled.copy_engine;
        seen.api += sampled.api;
        seen.unknown += sampled.unknown;
        snapshot.sampled_head += sampled.total();
        for (anomaly, count) in [
            (Anomaly::ForeignHandle, self.foreign_handles),
            (Anomaly::ForeignContext, self.foreign_contexts),
            (Anomaly::LateContext, self.late_contexts),
            (Anomaly::UnknownKind, self.unknown_kinds),
            (Anomaly::EventsUnobserved, self.events_unobserved),
            (Anomaly::CommunicatorsUnobserved, self.communicators_unobserved),
            (Anomaly::NameTableFull, self.names_unobserved),
        ] {
            snapshot.anomalies.add(anomaly, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SinkAccount;

    #[test]
    fn head_sampled_operations_are_seen_and_left_out() {
        let mut snapshot = Snapshot { seen: Tally { coll: 3, ..Tally::default() }, open: 3, ..Snapshot::default() };
        let hot = HotCounts {
            sampled: Tally { coll: 5, p2p: 2, ..Tally::default() },
            late_contexts: 4,
            ..HotCounts::default()
        };
        hot.complete(&mut snapshot);
        let account = snapshot.account(&SinkAccount::default());
        assert!(account.balances());
        assert_eq!((account.seen, account.sampled_head), (10, 7));
        assert_eq!(snapshot.anomalies.get(Anomaly::LateContext), 4);
    }
}
