//! Runs some ranks of a scenario in this process, each on threads of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::clock::Clock;
use super::emit::Issuer;
use super::proxy::{Duties, Follower};
use super::rank::{Children, Launch, Member, Rank};
use super::timeline::{Planned, Timeline, instances};
use crate::Scenario;
use crate::caller::Caller;
use crate::error::SimError;
use crate::job::{Options, Progress};
use crate::library::{Communicator, Library, take_log_messages};
use crate::report::Report;

/// Launches that the user's thread may be ahead.
const AHEAD: usize = 4096;

/// Runs the ranks and closes the library.
pub(crate) fn run(
    scenario: &Scenario,
    ranks: &[u32],
    base_unix_ns: u64,
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, SimError> {
    scenario.check().map_err(|problem| SimError::Scenario { name: scenario.name.clone(), problem })?;
    if let Some(rank) = ranks.iter().find(|rank| **rank >= scenario.ranks) {
        let problem = format!("rank {rank} does not exist; the scenario has {}", scenario.ranks);
        return Err(SimError::Scenario { name: scenario.name.clone(), problem });
    }
    let library = Library::open(&options.library, options.api)?;
    let clock = Clock::new(base_unix_ns, options.realtime.unwrap_or(scenario.realtime), scenario.gpu_timer_ns);
    let begin = Instant::now();
    let total = scenario.steps * ranks.len() as u64;
    let done = AtomicU64::new(0);
    let step_done = || progress(Progress { done: done.fetch_add(1, Ordering::Relaxed) + 1, total });
    let ready = Barrier::new(ranks.len());
    let reports: Vec<Result<Report, SimError>> = thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .iter()
            .enumerate()
            .map(|(place, rank)| {
                let job = RankJob { library: &library, scenario, clock, rank: *rank, place, options, ready: &ready };
                let builder = thread::Builder::new().name(format!("rank-{rank}"));
                let step_done = &step_done;
                builder.spawn_scoped(scope, move || job.run(step_done))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.map_err(SimError::Thread)?.join().map_err(|_| SimError::Panicked)?)
            .collect()
    });
    let mut merged = Report { api: library.api(), ..Report::default() };
    for report in reports {
        merged.merge(report?);
    }
    merged.failed_calls = library.failures();
    let api = library.api();
    drop(library);
    merged.api = api;
    merged.ranks = ranks.len() as u64;
    merged.processes = 1;
    merged.loads = 1;
    merged.seconds = begin.elapsed().as_secs_f64();
    merged.log = take_log_messages().into_iter().map(|message| message.text).collect();
    Ok(merged)
}

struct RankJob<'a> {
    library: &'a Library,
    scenario: &'a Scenario,
    clock: Clock,
    rank: u32,
    /// The how-manieth rank of the process.
    place: usize,
    options: &'a Options,
    /// All ranks of the process have opened their communicators.
    ready: &'a Barrier,
}

impl RankJob<'_> {
    /// The life of a rank's user thread.
    fn run(&self, step_done: &(dyn Fn() + Sync)) -> Result<Report, SimError> {
        let mut caller = self.caller(0);
        let members = self.open(&mut caller);
        self.ready.wait();
        let rank = Rank { library: self.library, scenario: self.scenario, clock: self.clock, members: members? };
        let list = self.options.expected;
        let mut issuer = Issuer::new(&rank, caller, list);
        let mut followers = vec![Duties { kernels: true, proxies: !self.scenario.kernel_thread }];
        if self.scenario.kernel_thread {
            followers.push(Duties { kernels: false, proxies: true });
        }
        let mut report = Report::default();
        let followed = thread::scope(|scope| {
            let mut senders = Vec::new();
            let mut threads = Vec::new();
            for (number, duties) in followers.into_iter().enumerate() {
                let (sender, receiver) = sync_channel(AHEAD);
                senders.push(sender);
                let mut follower = Follower::new(&rank, duties, self.caller(1 + number as u64), list);
                threads.push(scope.spawn(move || {
                    follower.run(&receiver);
                    follower
                }));
            }
            self.steps(&mut issuer, &rank, &senders, step_done);
            drop(senders);
            threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| SimError::Panicked))
                .collect::<Result<Vec<_>, _>>()
        })?;
        if let Some(hang) = &self.scenario.hang {
            self.clock.wait_for_ms(hang.wait_ms);
        }
        for follower in followed {
            follower.caller.finish(&mut report);
            for children in follower.children {
                adopt(&mut issuer, children);
            }
        }
        for member in rank.members.iter().filter(|member| member.context.bits != 0) {
            self.library.finalize(&member.context);
            issuer.caller.functions.finalize += 1;
        }
        issuer.caller.finish(&mut report);
        report.operations = issuer.operations;
        report.expected = issuer.expected;
        report.communicators = rank.members.len() as u64;
        report.calls = report.functions.total();
        Ok(report)
    }

    fn caller(&self, thread: u64) -> Caller {
        Caller::new(self.options.faults, u64::from(self.rank) * 8 + thread)
    }

    fn open(&self, caller: &mut Caller) -> Result<Vec<Member>, SimError> {
        let groups = instances(self.scenario);
        let mut members = Vec::with_capacity(groups.len());
        for (spec, group) in self.scenario.communicator.iter().zip(groups) {
            let mine = group.into_iter().find_map(|instance| {
                let place = instance.members.iter().position(|rank| *rank == self.rank);
                place.map(|place| (instance, place as u32))
            });
            let Some((instance, rank)) = mine else { continue };
            let communicator = Arc::new(Communicator {
                id: instance.id,
                name: (!spec.unnamed).then(|| spec.name.clone().into_bytes()),
                nodes: instance.nodes as i32,
                ranks: instance.members.len() as i32,
                rank: rank as i32,
            });
            let context = self.library.init(&communicator)?;
            caller.functions.init += 1;
            let ordinal = (self.place * self.scenario.communicator.len() + members.len()) as u32;
            members.push(Member { instance, rank, context, ordinal });
        }
        Ok(members)
    }

    /// All steps. Replays of graphs come from a callback thread, one for the rank's life, as CUDA has it; the user's thread
    /// goes on when they are enqueued, so that kernels keep their order.
    fn steps(
        &self,
        issuer: &mut Issuer<'_>,
        rank: &Rank<'_>,
        senders: &[SyncSender<Launch>],
        step_done: &(dyn Fn() + Sync),
    ) {
        let mut timeline = Timeline::new(self.scenario);
        let issuer = &Mutex::new(issuer);
        let run = move |batch: &[(Planned, usize)], replays: bool| {
            let mut issuer = issuer.lock().unwrap_or_else(PoisonError::into_inner);
            for (planned, group) in batch {
                rank.clock.wait_until_about(planned.host_ns);
                let launch = if replays { issuer.replay(planned, *group) } else { issuer.issue(planned, *group) };
                for sender in senders {
                    // A follower that is gone has panicked, which its join will tell.
                    let _ = launch.clone().map(|launch| sender.send(launch));
                }
            }
        };
        let is_replay = |planned: &Planned| self.scenario.operation[planned.spec].graph && !planned.first;
        thread::scope(|scope| {
            let (callbacks, batches) = sync_channel::<Vec<(Planned, usize)>>(0);
            let (enqueued, done) = sync_channel(1);
            if self.scenario.operation.iter().any(|operation| operation.graph) {
                scope.spawn(move || {
                    for batch in batches {
                        run(&batch, true);
                        let _ = enqueued.send(());
                    }
                });
            }
            while let Some(step) = timeline.next_step(self.rank) {
                let step: Vec<_> = step.into_iter().map(|planned| (timeline.group_of(planned.spec), planned)).collect();
                for batch in step.chunk_by(|(_, one), (_, other)| is_replay(one) == is_replay(other)) {
                    let replays = batch.first().is_some_and(|(_, planned)| is_replay(planned));
                    let batch: Vec<_> = batch.iter().map(|(group, planned)| (planned.clone(), *group)).collect();
                    if !replays {
                        run(&batch, false);
                    } else if callbacks.send(batch).is_ok() {
                        // Fails if the callback thread has panicked, which the scope tells.
                        let _ = done.recv();
                    }
                }
                step_done();
            }
            drop(callbacks);
        });
    }
}

fn adopt(issuer: &mut Issuer<'_>, children: Children) {
    if let Some(operation) = issuer.expected.get_mut(children.place) {
        operation.kernel_channels.extend(children.kernel_channels);
        operation.proxy_operations += children.proxy_operations;
        operation.proxy_steps += children.proxy_steps;
    }
}
