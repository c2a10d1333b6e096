//! The table: a row for each communicator, collective and size. Bounded memory, mergeable.

use collander_event::Collective;
use rustc_hash::FxHashMap;

use crate::sketch::Sketch;

/// Exact sizes a communicator and collective may have before they are joined to powers of two.
const SIZES: usize = 32;
/// Rows in all; what comes beyond is counted, not shown.
const ROWS: usize = 200_000;

/// Size of the operations of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// Not known: datatype or number of ranks unknown.
    Unknown,
    /// So many bytes.
    Exact(u64),
    /// From this power of two up to the next.
    From(u64),
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Communicator: NCCL's hash, or a number of our own where that is unknown.
    pub communicator: u64,
    /// Function.
    pub collective: Collective,
    /// Size.
    pub size: Size,
}

/// One rank's part of a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Member {
    /// Number of the process in the report.
    pub process: u32,
    /// Rank in the communicator; −1 if unknown.
    pub rank: i32,
    /// Operations with a measured duration.
    pub count: u64,
    /// Sum of their durations, ns.
    pub sum_ns: f64,
}

/// A row.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Operations.
    pub count: u64,
    /// Their durations, ns, where one is measured.
    pub durations: Sketch<7>,
    /// GB/s.
    pub algbw: Sketch<7>,
    /// busbw / algbw; None where it is unknown.
    pub bus_factor: Option<f64>,
    /// By rank.
    pub members: Vec<Member>,
}

impl Row {
    fn member(&mut self, process: u32, rank: i32) -> &mut Member {
        let is = |m: &Member| m.process == process && m.rank == rank;
        // The latest is nearly always the one: files are read one after another.
        let place = match self.members.last() {
            Some(last) if is(last) => Some(self.members.len() - 1),
            _ => self.members.iter().position(is),
        };
        let place = place.unwrap_or_else(|| {
            self.members.push(Member { process, rank, ..Member::default() });
            self.members.len() - 1
        });
        &mut self.members[place]
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.durations.merge(&other.durations);
        self.algbw.merge(&other.algbw);
        self.bus_factor = self.bus_factor.or(other.bus_factor);
        for member in other.members {
            let own = self.member(member.process, member.rank);
            own.count += member.count;
            own.sum_ns += member.sum_ns;
        }
    }
}

/// One operation, as the table takes it.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Communicator, as in [`Key`].
    pub communicator: u64,
    /// Function.
    pub collective: Collective,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Number of the process.
    pub process: u32,
    /// Rank in the communicator.
    pub rank: i32,
    /// Measured duration, ns.
    pub duration_ns: Option<f64>,
    /// GB/s.
    pub algbw: Option<f64>,
    /// GB/s.
    pub busbw: Option<f64>,
}

/// What is known of a communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommunicatorInfo {
    /// NCCL's hash, if known.
    pub hash: Option<String>,
    /// NCCL's name.
    pub name: String,
    /// Label.
    pub label: String,
    /// Ranks.
    pub ranks: Option<u32>,
    /// Nodes.
    pub nodes: Option<u32>,
}

/// All rows.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The rows.
    pub rows: FxHashMap<Key, Row>,
    /// The communicators by the number in [`Key`].
    pub communicators: FxHashMap<u64, CommunicatorInfo>,
    /// How many exact sizes each communicator and collective has; usize::MAX: joined.
    sizes: FxHashMap<(u64, Collective), usize>,
    /// Operations beyond the bound on rows.
    pub beyond: u64,
}

impl Table {
    /// Takes an operation.
    pub fn add(&mut self, sample: &Sample) {
        let group = (sample.communicator, sample.collective);
        let mut key = Key {
            communicator: sample.communicator,
            collective: sample.collective,
            size: sample.bytes.map_or(Size::Unknown, Size::Exact),
        };
        if !self.rows.contains_key(&key) {
            if let (Size::Exact(bytes), Some(&usize::MAX)) = (key.size, self.sizes.get(&group)) {
                key.size = class(bytes);
            }
            if !self.rows.contains_key(&key) {
                if self.rows.len() >= ROWS {
                    self.beyond += 1;
                    return;
                }
                if matches!(key.size, Size::Exact(_)) && self.count_size(group) {
                    key.size = sample.bytes.map_or(Size::Unknown, class);
                }
            }
        }
        let row = self.rows.entry(key).or_default();
        row.count += 1;
        let member = row.member(sample.process, sample.rank);
        if let Some(duration) = sample.duration_ns {
            member.count += 1;
            member.sum_ns += duration;
            row.durations.add(duration);
        }
        if let Some(algbw) = sample.algbw.filter(|algbw| *algbw > 0.0) {
            row.algbw.add(algbw);
            if row.bus_factor.is_none() {
                row.bus_factor = sample.busbw.map(|busbw| busbw / algbw);
            }
        }
    }

    /// One more exact size; true if that was one too many and the sizes were joined.
    fn count_size(&mut self, group: (u64, Collective)) -> bool {
        let sizes = self.sizes.entry(group).or_default();
        *sizes = sizes.saturating_add(1);
        if *sizes <= SIZES {
            return false;
        }
        self.join(group);
        true
    }

    fn join(&mut self, group: (u64, Collective)) {
        self.sizes.insert(group, usize::MAX);
        let of_group = |key: &Key| (key.communicator, key.collective) == group;
        let exact: Vec<Key> =
            self.rows.keys().filter(|k| of_group(k) && matches!(k.size, Size::Exact(_))).copied().collect();
        for key in exact {
            if let (Some(row), Size::Exact(bytes)) = (self.rows.remove(&key), key.size) {
                self.rows.entry(Key { size: class(bytes), ..key }).or_default().merge(row);
            }
        }
    }

    /// Learns about a communicator; what is known stays known.
    pub fn learn(&mut self, communicator: u64, info: CommunicatorInfo) {
        let known = self.communicators.entry(communicator).or_default();
        known.hash = info.hash.or(known.hash.take());
        if !info.name.is_empty() {
            known.name = info.name;
        }
        if !info.label.is_empty() {
            known.label = info.label;
        }
        known.ranks = info.ranks.or(known.ranks);
        known.nodes = info.nodes.or(known.nodes);
    }

    /// Takes all of another.
    pub fn merge(&mut self, other: Self) {
        for (communicator, info) in other.communicators {
            self.learn(communicator, info);
        }
        for group in other.sizes.iter().filter(|(_, n)| **n == usize::MAX).map(|(group, _)| *group) {
            self.join(group);
        }
        for (mut key, row) in other.rows {
            let group = (key.communicator, key.collective);
            if let Size::Exact(bytes) = key.size
                && !self.rows.contains_key(&key)
                && (self.sizes.get(&group) == Some(&usize::MAX) || self.count_size(group))
            {
                key.size = class(bytes);
            }
            self.rows.entry(key).or_default().merge(row);
        }
        self.beyond += other.beyond;
    }
}

const fn class(bytes: u64) -> Size {
    Size::From(if bytes == 0 { 0 } else { 1 << bytes.ilog2() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bytes: u64, rank: i32, duration: f64) -> Sample {
        Sample {
            communicator: 1,
            collective: Collective::AllReduce,
            bytes: Some(bytes),
            process: rank as u32,
            rank,
            duration_ns: Some(duration),
            algbw: Some(bytes as f64 / duration),
            busbw: Some(1.5 * bytes as f64 / duration),
        }
    }

    #[test]
    fn many_sizes_are_joined_and_none_is_lost() {
        let (mut whole, mut parts) = (Table::default(), [Table::default(), Table::default()]);
        for n in 1..=200u64 {
            let sample = sample(n * 1000, (n % 3) as i32, n as f64);
            whole.add(&sample);
            parts[(n % 2) as usize].add(&sample);
        }
        let [mut left, right] = parts;
        left.merge(right);
        for table in [&whole, &left] {
            assert!(table.rows.len() <= 9, "{}", table.rows.len());
            assert!(table.rows.keys().all(|key| matches!(key.size, Size::From(_))));
            assert_eq!(table.rows.values().map(|row| row.count).sum::<u64>(), 200);
            assert_eq!(table.rows.values().map(|row| row.durations.count()).sum::<u64>(), 200);
            assert!(table.rows.values().all(|row| row.members.len() <= 3));
        }
    }

    #[test]
    fn few_sizes_stay_exact() {
        let mut table = Table::default();
        for rank in 0..4 {
            table.add(&sample(1 << 20, rank, 100.0));
            table.add(&sample(1 << 10, rank, 10.0));
        }
        let key = Key { communicator: 1, collective: Collective::AllReduce, size: Size::Exact(1 << 20) };
        let row = &table.rows[&key];
        assert_eq!((row.count, row.members.len(), row.bus_factor), (4, 4, Some(1.5)));
        assert_eq!(table.rows.len(), 2);
    }
}
