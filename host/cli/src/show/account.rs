//! The accounting: totals over processes, each from its last `stats` record.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::record::{Header, Stats};

/// Who wrote: one load of the library in one process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Session {
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// When the library was loaded.
    pub process_start_ns: u64,
    /// Which load.
    pub session: u64,
}

impl Session {
    /// Of a file.
    pub fn of(header: &Header) -> Self {
        Self {
            host: header.host.clone(),
            pid: header.pid,
            process_start_ns: header.process_start_ns,
            session: header.session,
        }
    }
}

/// One sink's part of a session.
#[derive(Clone, Debug, Default)]
struct Part {
    stats: Option<Stats>,
    /// Operations in lines behind the last stats record of the file with the last stats record.
    unaccounted: u64,
}

/// The last stats of every session and sink.
#[derive(Clone, Debug, Default)]
pub struct Account {
    parts: FxHashMap<(Session, String), Part>,
}

/// The sum over sessions, by one sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sessions that have a stats record.
    pub sessions: u64,
    /// Of these, those that ended in order.
    pub ended: u64,
    /// Seen.
    pub seen: u64,
    /// Seen by kind.
    pub seen_by_kind: BTreeMap<String, u64>,
    /// Written.
    pub written: u64,
    /// Lost, by reason; without `deleted`.
    pub dropped: BTreeMap<String, u64>,
    /// Lost in all.
    pub dropped_total: u64,
    /// In deleted files.
    pub deleted: u64,
    /// Left out in all.
    pub sampled_out: u64,
    /// Left out, by cause.
    pub sampled_out_by: BTreeMap<String, u64>,
    /// Open.
    pub open: u64,
    /// Anomalies by name.
    pub anomalies: BTreeMap<String, u64>,
    /// Operations in the files that no stats record counts: the process was killed.
    pub unaccounted: u64,
}

impl Totals {
    /// Whether the equation holds.
    pub fn balanced(&self) -> bool {
        self.seen == self.written + self.dropped_total + self.sampled_out + self.open
    }

    fn add(&mut self, part: &Part) {
        self.unaccounted += part.unaccounted;
        let Some(stats) = &part.stats else { return };
        self.sessions += 1;
        self.ended += u64::from(stats.last);
        self.seen += total(&stats.seen);
        self.written += stats.written;
        self.dropped_total += total(&stats.dropped);
        self.deleted += stats.deleted;
        self.sampled_out += total(&stats.sampled_out);
        self.open += stats.open;
        sum(&mut self.seen_by_kind, &stats.seen);
        sum(&mut self.dropped, &stats.dropped);
        sum(&mut self.sampled_out_by, &stats.sampled_out);
        sum(&mut self.anomalies, &stats.anomalies);
    }
}

/// The `total`, or the sum of the others where there is none.
fn total(counts: &BTreeMap<String, u64>) -> u64 {
    counts.get("total").copied().unwrap_or_else(|| counts.values().sum())
}

fn sum(into: &mut BTreeMap<String, u64>, from: &BTreeMap<String, u64>) {
    for (name, count) in from.iter().filter(|(name, _)| *name != "total") {
        *into.entry(name.clone()).or_default() += count;
    }
}

impl Account {
    /// Takes what one file said: its last stats, and the operations in lines behind it.
    pub fn add(&mut self, session: Session, sink: &str, stats: Option<Stats>, behind: u64) {
        let part = self.parts.entry((session, sink.to_owned())).or_default();
        let flush = |stats: &Option<Stats>| stats.as_ref().map_or(0, |stats| stats.flush);
        // A file without any stats holds what was never counted, unless a later file of the session has some.
        if flush(&stats) > flush(&part.stats) {
            part.unaccounted = behind;
            part.stats = stats;
        } else if stats.is_none() && part.stats.is_none() {
            part.unaccounted += behind;
        }
    }

    /// Takes all of another.
    pub fn merge(&mut self, other: Self) {
        for ((session, sink), part) in other.parts {
            self.add(session, &sink, part.stats, part.unaccounted);
        }
    }

    /// The sums by one sink for each session, as `sink_of` chooses.
    pub fn totals(&self, sink_of: impl Fn(&Session) -> Option<String>) -> Totals {
        let mut totals = Totals::default();
        for ((session, sink), part) in &self.parts {
            if sink_of(session).as_ref() == Some(sink) {
                totals.add(part);
            }
        }
        totals
    }

    /// The sums of each sink.
    pub fn by_sink(&self) -> BTreeMap<String, Totals> {
        let mut sinks = BTreeMap::<String, Totals>::new();
        for ((_, sink), part) in &self.parts {
            sinks.entry(sink.clone()).or_default().add(part);
        }
        sinks
    }
}
