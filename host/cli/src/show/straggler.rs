//! Who is slow.
//!
//! All ranks leave a collective together, but each enters when it is ready: the rank that the others wait for has the
//! *shortest* kernels, and theirs are longer by what they wait. So the slowest rank of a collective is the one whose mean
//! duration is the lowest, if it is clearly lower than the others'. This needs no clocks that agree between hosts, and the
//! mean (not the median) times the count is what the others waited in all. For sends and receives there is no such rule, and
//! the rank with the longest mean is named.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::read::Process;
use super::table::{Key, Row, Table};

/// A difference below this share of the longer mean is noise.
const NOISE: f64 = 0.10;
/// So is one below this many ns.
const NOISE_NS: f64 = 2_000.0;
/// Operations that a rank needs before it is judged.
const ENOUGH: u64 = 3;

/// How a rank is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The others wait for it.
    ComesLast,
    /// Its sends and receives take longest.
    TakesLongest,
}

/// The slowest rank of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slowest {
    /// Rank in the communicator.
    pub rank: i32,
    /// By how much its mean differs from the median of the others' means, ns.
    pub by_ns: f64,
    /// Mean of its durations, ns.
    pub own_ns: f64,
    /// Median of the others' means, ns.
    pub others_ns: f64,
    /// In what way.
    pub how: How,
    /// Number of the process.
    #[serde(skip)]
    pub process: u32,
    /// Operations of the rank.
    #[serde(skip)]
    pub count: u64,
}

/// Judges a row.
pub fn slowest(key: &Key, row: &Row) -> Option<Slowest> {
    let judged = row.members.iter().enumerate().filter(|(_, member)| member.count >= ENOUGH);
    let mut means: Vec<(f64, usize)> =
        judged.map(|(place, member)| (member.sum_ns / member.count as f64, place)).collect();
    if means.len() < 2 {
        return None;
    }
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    let p2p = key.collective.is_p2p();
    let candidate = if p2p { means.len() - 1 } else { 0 };
    let (own_ns, place) = means.remove(candidate);
    let middle = means.len() / 2;
    let others_ns = if means.len().is_multiple_of(2) {
        f64::midpoint(means[middle - 1].0, means[middle].0)
    } else {
        means[middle].0
    };
    let by_ns = (others_ns - own_ns).abs();
    if by_ns < NOISE_NS || by_ns < NOISE * own_ns.max(others_ns) {
        return None;
    }
    let member = &row.members[place];
    Some(Slowest {
        rank: member.rank,
        by_ns,
        own_ns,
        others_ns,
        how: if p2p { How::TakesLongest } else { How::ComesLast },
        process: member.process,
        count: member.count,
    })
}

/// The rank of the job for which the others waited most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Straggler {
    /// Its rank in the largest communicator that it is in, which is the job's rank if all ranks are in one.
    pub rank: i32,
    /// Ranks of that communicator.
    pub of_ranks: Option<u32>,
    /// That communicator, as in the table's keys.
    #[serde(skip)]
    pub communicator: u64,
    /// Its rank in the job, where the caller knows it (the demo).
    pub job_rank: Option<u32>,
    /// The process that holds it.
    #[serde(flatten)]
    pub who: Option<Process>,
    /// Number of the process.
    #[serde(skip)]
    pub process: u32,
    /// How long one of the others waited for it in all, ns: the sum over its collectives.
    pub waited_ns: f64,
    /// As a share of the time that the others spent in these collectives.
    pub share: f64,
    /// Where it shows most.
    #[serde(skip)]
    pub worst: (Key, Slowest),
}

/// Judges the whole table.
pub fn straggler(table: &Table) -> Option<Straggler> {
    let identity = identities(table);
    let mut sums = FxHashMap::<(u32, i32), (f64, f64, Option<(Key, Slowest)>)>::default();
    for (key, row) in &table.rows {
        let Some(slow) = slowest(key, row).filter(|slow| slow.how == How::ComesLast) else { continue };
        let weight = slow.count as f64;
        let sum = sums.entry(identity.of(slow.process, slow.rank)).or_insert((0.0, 0.0, None));
        sum.0 += slow.by_ns * weight;
        sum.1 += slow.others_ns * weight;
        if sum.2.is_none_or(|(_, worst)| worst.by_ns * (worst.count as f64) < slow.by_ns * weight) {
            sum.2 = Some((*key, slow));
        }
    }
    let (who, (waited_ns, spent_ns, worst)) = sums.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let worst = worst?;
    let (rank, of_ranks, communicator) =
        largest_communicator(table, &identity, who).unwrap_or((worst.1.rank, None, worst.0.communicator));
    Some(Straggler {
        rank,
        of_ranks,
        communicator,
        job_rank: None,
        who: None,
        process: who.0,
        waited_ns,
        share: waited_ns / spent_ns,
        worst,
    })
}

/// Who is who across communicators: the process, and where a process holds several ranks of one communicator, its rank too.
struct Identities {
    several: FxHashSet<u32>,
}

impl Identities {
    fn of(&self, process: u32, rank: i32) -> (u32, i32) {
        if self.several.contains(&process) { (process, rank) } else { (process, -1) }
    }
}

fn identities(table: &Table) -> Identities {
    let mut several = FxHashSet::default();
    let mut seen = FxHashSet::default();
    for row in table.rows.values() {
        seen.clear();
        several.extend(row.members.iter().map(|member| member.process).filter(|process| !seen.insert(*process)));
    }
    Identities { several }
}

/// Rank, number of ranks and key of a communicator.
type Place = (i32, Option<u32>, u64);

/// The largest communicator that someone is in.
fn largest_communicator(table: &Table, identities: &Identities, who: (u32, i32)) -> Option<Place> {
    let mut largest: Option<(usize, Place)> = None;
    for (key, row) in &table.rows {
        let ranks = table.communicators.get(&key.communicator).and_then(|info| info.ranks);
        let size = ranks.map_or(row.members.len(), |ranks| ranks as usize);
        if largest.is_some_and(|(most, _)| most >= size) {
            continue;
        }
        if let Some(member) = row.members.iter().find(|m| identities.of(m.process, m.rank) == who) {
            largest = Some((size, (member.rank, ranks, key.communicator)));
        }
    }
    largest.map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use collander_event::Collective;

    use super::*;
    use crate::show::table::{CommunicatorInfo, Sample};

    fn table(collective: Collective, late: i32, wait: f64) -> Table {
        let mut table = Table::default();
        for rank in 0..8 {
            for n in 0..50 {
                let own = 100_000.0 + f64::from(n) * 20.0;
                table.add(&Sample {
                    communicator: 7,
                    collective,
                    bytes: Some(4096),
                    process: rank as u32,
                    rank,
                    duration_ns: Some(if rank == late { own } else { own + wait }),
                    algbw: None,
                    busbw: None,
                });
            }
        }
        table.learn(7, CommunicatorInfo { ranks: Some(8), ..CommunicatorInfo::default() });
        table
    }

    #[test]
    fn the_rank_that_the_others_wait_for_is_named_with_their_wait() {
        let straggler = straggler(&table(Collective::AllReduce, 5, 2e6)).unwrap();
        assert_eq!((straggler.rank, straggler.of_ranks), (5, Some(8)));
        assert!((straggler.worst.1.by_ns / 2e6 - 1.0).abs() < 0.05);
        assert!((straggler.share - 0.95).abs() < 0.02);
    }

    #[test]
    fn noise_names_nobody() {
        assert_eq!(straggler(&table(Collective::AllReduce, 5, 3e3)), None);
    }

    #[test]
    fn for_sends_the_longest_is_named() {
        let table = table(Collective::Send, 5, -90_000.0);
        let (key, row) = table.rows.iter().next().unwrap();
        let slow = slowest(key, row).unwrap();
        assert_eq!((slow.rank, slow.how), (5, How::TakesLongest));
        assert_eq!(straggler(&table), None);
    }
}
