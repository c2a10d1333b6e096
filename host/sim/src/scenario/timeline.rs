//! When each rank's operations are enqueued, start and end: computed, not measured, so that every process of a scenario
//! comes to the same times without talking to the others.

use collander_event::Collective;

use super::{OperationSpec, Pattern, Scenario};
use crate::faults::Random;

/// From the user's call to the earliest start of its kernel, ns.
const LAUNCH_NS: u64 = 20_000;
/// Between two calls of the user's thread, ns.
const CALL_NS: u64 = 5_000;

/// One communicator.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    /// Ranks of the job, in the order of their ranks in it.
    pub(super) members: Vec<u32>,
    pub(super) nodes: u32,
    pub(super) id: u64,
}

/// One operation of one rank. Times in ns since the simulation's begin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Planned {
    /// Index of the `[[operation]]`.
    pub(super) spec: usize,
    /// First of its repetitions ever: where a graph is captured.
    pub(super) first: bool,
    /// Which repetition.
    pub(super) repetition: u32,
    /// The user's call.
    pub(super) host_ns: u64,
    /// The kernel starts; None: never.
    pub(super) start_ns: Option<u64>,
    /// The kernel ends; None: never.
    pub(super) end_ns: Option<u64>,
}

/// The communicators of each `[[communicator]]`.
pub(super) fn instances(scenario: &Scenario) -> Vec<Vec<Instance>> {
    let groups = scenario.communicator.iter().enumerate();
    groups
        .map(|(number, group)| {
            let size = group.size.unwrap_or(scenario.ranks);
            let block = size * group.stride;
            let firsts = (0..scenario.ranks / block)
                .flat_map(|place| (0..group.stride).map(move |offset| place * block + offset));
            firsts
                .map(|first| {
                    let members: Vec<u32> = (0..size).map(|n| first + n * group.stride).collect();
                    let mut nodes: Vec<u32> = members.iter().map(|rank| rank / scenario.node_size()).collect();
                    nodes.dedup();
                    let id = Random::of(&[scenario.seed, number as u64, u64::from(first)]).next();
                    Instance { nodes: nodes.len() as u32, members, id }
                })
                .collect()
        })
        .collect()
}

/// Where a rank stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    #[default]
    Runs,
    /// Waits in a kernel that never ends.
    Stuck,
    /// Enters nothing any more.
    Gone,
}

/// Goes through the steps.
#[derive(Debug)]
pub(super) struct Timeline<'a> {
    scenario: &'a Scenario,
    groups: Vec<Vec<Instance>>,
    /// Where each operation's communicators are in `groups`.
    group_of: Vec<usize>,
    gpu_ns: Vec<u64>,
    /// End of the step before the last, when the host enqueues the next.
    host_ns: Vec<u64>,
    previous_end_ns: Vec<u64>,
    fate: Vec<Fate>,
    seen: Vec<bool>,
    step: u64,
    over: bool,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let place = |operation: &OperationSpec| {
            scenario.communicator.iter().position(|group| group.name == operation.communicator).unwrap_or(0)
        };
        let ranks = scenario.ranks as usize;
        Self {
            scenario,
            groups: instances(scenario),
            group_of: scenario.operation.iter().map(place).collect(),
            gpu_ns: vec![0; ranks],
            host_ns: vec![0; ranks],
            previous_end_ns: vec![0; ranks],
            fate: vec![Fate::Runs; ranks],
            seen: vec![false; scenario.operation.len()],
            step: 0,
            over: false,
        }
    }

    /// Index of an operation's `[[communicator]]`.
    pub(super) fn group_of(&self, spec: usize) -> usize {
        self.group_of[spec]
    }

    /// The next step of one rank; None: the job is over.
    pub(super) fn next_step(&mut self, rank: u32) -> Option<Vec<Planned>> {
        if self.over || self.step >= self.scenario.steps {
            return None;
        }
        let mut planned = Vec::new();
        self.compute();
        let scenario = self.scenario;
        let mut issued = 0;
        for (number, spec) in scenario.operation.iter().enumerate() {
            if !self.step.is_multiple_of(spec.every) {
                continue;
            }
            let first = !std::mem::replace(&mut self.seen[number], true);
            for repetition in 0..spec.repeat {
                for instance in 0..self.groups[self.group_of[number]].len() {
                    self.operation(number, first, repetition, instance, issued, rank, &mut planned);
                }
                issued += 1;
            }
        }
        let ended_here = scenario.hang.as_ref().is_some_and(|hang| hang.step == self.step)
            || scenario.abort.as_ref().is_some_and(|abort| abort.step == self.step);
        self.over = ended_here;
        self.step += 1;
        self.host_ns.copy_from_slice(&self.previous_end_ns);
        self.previous_end_ns.copy_from_slice(&self.gpu_ns);
        Some(planned)
    }

    /// The step's computation, and who is late.
    fn compute(&mut self) {
        let scenario = self.scenario;
        for rank in 0..scenario.ranks {
            let mut random = Random::of(&[scenario.seed, 1, self.step, u64::from(rank)]);
            let mut late_us = 0.0;
            for straggler in &scenario.straggler {
                if straggler.rank == rank && self.step.is_multiple_of(straggler.every) {
                    late_us += straggler.extra_ms * 1e3;
                }
            }
            let compute_us = scenario.compute_us * noisy(&mut random, scenario.speed.noise) + late_us;
            self.gpu_ns[rank as usize] += nanoseconds(compute_us);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one place calls it, in a loop over all of these")]
    fn operation(
        &mut self,
        number: usize,
        first: bool,
        repetition: u32,
        instance: usize,
        issued: u64,
        mine: u32,
        planned: &mut Vec<Planned>,
    ) {
        let scenario = self.scenario;
        let spec = &scenario.operation[number];
        let members = std::mem::take(&mut self.groups[self.group_of[number]][instance].members);
        if let Some(hang) = &scenario.hang
            && (hang.step, hang.operation, repetition) == (self.step, number, 0)
            && members.contains(&hang.rank)
        {
            self.fate[hang.rank as usize] = Fate::Gone;
        }
        let parts = [scenario.seed, 2, self.step, number as u64, u64::from(repetition)];
        let begins: Vec<u64> = members
            .iter()
            .map(|rank| {
                let mut random = Random::of(&[parts[0], parts[2], parts[3], parts[4], u64::from(*rank)]);
                let compute = nanoseconds(spec.compute_us * noisy(&mut random, scenario.speed.noise));
                let rank = *rank as usize;
                let host = self.host_ns[rank] + issued * CALL_NS;
                (self.gpu_ns[rank] + compute).max(host + LAUNCH_NS)
            })
            .collect();
        let all_run = members.iter().all(|rank| self.fate[*rank as usize] == Fate::Runs);
        let aborted = scenario.abort.as_ref().is_some_and(|abort| abort.step == self.step);
        let mut random = Random::of(&[&parts[..], &[instance as u64]].concat());
        let duration = self.duration_ns(spec, &members, noisy(&mut random, scenario.speed.noise));
        let end = begins.iter().max().copied().unwrap_or(0) + duration;
        for (rank, begin) in members.iter().zip(&begins) {
            let place = *rank as usize;
            let fate = self.fate[place];
            let ends = all_run && !aborted;
            if *rank == mine && fate != Fate::Gone {
                planned.push(Planned {
                    spec: number,
                    first,
                    repetition,
                    host_ns: self.host_ns[place] + issued * CALL_NS,
                    start_ns: (fate == Fate::Runs).then_some(*begin),
                    end_ns: ends.then_some(end),
                });
            }
            if ends {
                self.gpu_ns[place] = end;
            } else if fate == Fate::Runs {
                self.fate[place] = Fate::Stuck;
            }
        }
        self.groups[self.group_of[number]][instance].members = members;
    }

    /// From the last arrival to the end.
    fn duration_ns(&self, spec: &OperationSpec, members: &[u32], noise: f64) -> u64 {
        let (scenario, speed) = (self.scenario, &self.scenario.speed);
        let ranks = members.len() as u32;
        let node = |rank: &u32| rank / scenario.node_size();
        let within = members.windows(2).all(|pair| node(&pair[0]) == node(&pair[1]));
        let mut bandwidth = if within { speed.intra_node_gb_s } else { speed.inter_node_gb_s };
        for link in &scenario.slow_link {
            let here = link.ranks.is_empty() || link.ranks.iter().any(|rank| members.contains(rank));
            let named = link.communicator.as_ref().is_none_or(|name| *name == spec.communicator);
            if here && named && (link.from_step..link.to_step).contains(&self.step) {
                bandwidth /= link.factor;
            }
        }
        let bytes = spec.message_bytes(ranks) as f64;
        let moved = match (spec.is_p2p(), spec.pattern) {
            (true, Pattern::AllToAll) => bytes * f64::from(ranks.saturating_sub(1)),
            (true, Pattern::Ring) => bytes,
            (false, _) => bytes * Collective::from_text(&spec.function).bus_factor(ranks).unwrap_or(1.0),
        };
        // Bytes over GB/s are nanoseconds.
        nanoseconds(speed.latency_us) + (moved / bandwidth * noise) as u64
    }
}

/// A factor around 1, never below it by more than half the noise.
const fn noisy(random: &mut Random, noise: f64) -> f64 {
    let unit = random.unit();
    1.0 + noise * (unit * unit * 2.0 - 0.5)
}

const fn nanoseconds(us: f64) -> u64 {
    (us * 1e3) as u64
}
