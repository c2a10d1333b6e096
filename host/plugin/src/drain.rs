//! The drain thread: rings → assembler → sinks' queues. It reads in batches, well behind the producers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use collander_config::Config;
use collander_event::{Communicator, Operation, Record, Tally};
use collander_pipeline::{Assembler, HotCounts, Rules, Snapshot, label_of};
use collander_ring::{Region, RingReader};
use crossbeam_channel::Receiver;

use crate::clock::{self, Calibrator};
use crate::guard;
use crate::hot;
use crate::io::Io;
use crate::nccl_log::{Level, say};

/// What `init`, `finalize` and callbacks post.
#[derive(Debug)]
pub(crate) enum Control {
    /// A communicator opened.
    Open { communicator: Arc<Communicator>, slot: usize },
    /// v1 to v3: what its first operation told.
    Learn { ordinal: u32, name: String, hash: u64, rank: i32 },
    /// It closed: what was published before is to be read first.
    Close { ordinal: u32 },
    /// The last one closed, or the process ends.
    Stop,
}

/// Records read at once from a ring.
const BATCH: usize = 8192;
/// Operations sent to sinks at once.
const OPERATIONS: usize = 2048;
/// A snapshot is sent at least so often when something changed.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(50);

/// All that the drain owns.
#[derive(Debug)]
pub(crate) struct Drain {
    config: Arc<Config>,
    rules: Arc<Rules>,
    region: &'static Region,
    calibrator: Arc<Calibrator>,
    inbox: Receiver<Control>,
    io: Io,
    /// Goes up with all that is read, for those who wait for the end.
    progress: Arc<AtomicU64>,
    assembler: Assembler,
    readers: Vec<RingReader>,
    /// What the rings' counters said when this life of the library began.
    before: HotCounts,
    slots: HashMap<u32, usize>,
    communicators: HashMap<u32, Arc<Communicator>>,
    buffer: Vec<Record>,
    finished: Vec<Operation>,
    sent: Instant,
    changed: bool,
    calibrated: Instant,
}

impl Drain {
    pub(crate) fn new(
        config: Arc<Config>,
        rules: Arc<Rules>,
        region: &'static Region,
        calibrator: Arc<Calibrator>,
        inbox: Receiver<Control>,
        io: Io,
        progress: Arc<AtomicU64>,
    ) -> Self {
        // What earlier lives of the library left in the rings was theirs; counters go on from where they stand.
        let mut assembler = Assembler::new(&config);
        let readers: Vec<_> = (0..region.rings()).map(|ring| RingReader { next: region.head(ring) }).collect();
        for ring in 0..region.rings() {
            let kept = region.counters(ring).kept.load(Ordering::Relaxed);
            assembler.start_ring(ring as u8, kept as u32);
        }
        Self {
            assembler,
            config,
            rules,
            region,
            calibrator,
            inbox,
            io,
            progress,
            readers,
            before: hot_counts(region),
            slots: HashMap::new(),
            communicators: HashMap::new(),
            buffer: Vec::with_capacity(BATCH),
            finished: Vec::new(),
            sent: Instant::now(),
            changed: true,
            calibrated: Instant::now(),
        }
    }

    /// Takes what was posted. Returns closed communicators, and whether to stop.
    fn take_control(&mut self) -> (Vec<u32>, bool) {
        let mut closed = Vec::new();
        while let Ok(message) = self.inbox.try_recv() {
            self.changed = true;
            match message {
                Control::Open { communicator, slot } => {
                    self.slots.insert(communicator.ordinal, slot);
                    self.communicators.insert(communicator.ordinal, communicator.clone());
                    self.assembler.communicator_opened(communicator);
                }
                Control::Learn { ordinal, name, hash, rank } => self.learn(ordinal, name, hash, rank),
                Control::Close { ordinal } => closed.push(ordinal),
                Control::Stop => return (closed, true),
            }
        }
        (closed, false)
    }

    fn learn(&mut self, ordinal: u32, name: String, hash: u64, rank: i32) {
        let Some(known) = self.communicators.get(&ordinal) else { return };
        let mut communicator = Communicator { name, hash, rank, ..Communicator::clone(known) };
        communicator.label = label_of(&self.config.labels, &communicator).to_owned();
        self.region.write_communicator(&communicator, true);
        if let Some(hot) = self.slots.get(&ordinal).and_then(|slot| hot::slot(*slot)) {
            hot.store_plan(&self.rules.compile(&communicator).words);
        }
        let communicator = Arc::new(communicator);
        self.communicators.insert(ordinal, communicator.clone());
        self.assembler.communicator_updated(communicator);
    }

    /// Reads every ring up to where it stood when this pass came to it, at least once.
    fn read(&mut self) {
        self.region.learn_names(self.assembler.names());
        for ring in 0..self.region.rings() {
            if self.readers.len() <= ring {
                self.readers.resize(ring + 1, RingReader::default());
            }
            let until = self.region.head(ring);
            while self.readers[ring].next < until {
                self.buffer.clear();
                let lost = self.region.read(ring, &mut self.readers[ring], BATCH, &mut self.buffer);
                if lost > 0 {
                    self.assembler.overtaken(ring as u8, lost);
                }
                self.changed = true;
                self.progress.fetch_add(1, Ordering::Relaxed);
                self.region.learn_names(self.assembler.names());
                for record in &self.buffer {
                    self.assembler.push(ring as u8, record);
                }
                self.send_finished(false);
            }
            self.region.recycle(ring, &self.readers[ring]);
        }
    }

    fn send_finished(&mut self, all: bool) {
        self.assembler.take_finished(&mut self.finished);
        while self.finished.len() >= OPERATIONS || (all && !self.finished.is_empty()) {
            let rest = self.finished.split_off(self.finished.len().min(OPERATIONS));
            let batch = Arc::new(std::mem::replace(&mut self.finished, rest));
            let snapshot = self.snapshot();
            self.io.send(&batch, &snapshot);
            self.sent = Instant::now();
        }
    }

    /// The common account: what the assembler knows, and what callbacks counted. Operations that wait in `finished` are open.
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.assembler.snapshot(clock::unix_ns());
        let counted = |o: &&Operation| o.kind != collander_event::OpKind::InferredGroup;
        snapshot.open += self.finished.iter().filter(counted).count() as u64;
        hot_counts(self.region).since(&self.before).complete(&mut snapshot);
        snapshot
    }

    fn pass(&mut self, last: bool) -> bool {
        if self.calibrated.elapsed() >= Duration::from_secs(1) || last {
            self.calibrated = Instant::now();
            let calibration = self.calibrator.calibrate();
            self.region.calibrate(calibration);
            self.assembler.calibrate(calibration);
        }
        let (closed, stop) = self.take_control();
        self.read();
        for ordinal in closed {
            self.assembler.communicator_closed(ordinal);
            self.slots.remove(&ordinal);
            self.communicators.remove(&ordinal);
        }
        if last {
            // Operation starts that were overtaken and that no later start on their ring gave away.
            for ring in 0..self.region.rings() {
                let kept = self.region.counters(ring).kept.load(Ordering::Relaxed);
                self.assembler.ring_ended(ring as u8, kept as u32);
            }
        }
        self.assembler.end_of_pass(clock::unix_ns(), last);
        self.adjust_rates();
        self.send_finished(true);
        if self.changed && (self.sent.elapsed() >= SNAPSHOT_EVERY || last) {
            self.changed = false;
            self.sent = Instant::now();
            self.io.send(&Arc::default(), &self.snapshot());
        }
        if guard::take_panicked() {
            say(Level::Warn, "an internal error was caught; the profiler has switched itself off, the job runs on");
        }
        stop
    }

    fn adjust_rates(&mut self) {
        self.assembler.adjust_rates(clock::unix_ns());
        for change in self.assembler.take_plan_changes() {
            if let Some(hot) = self.slots.get(&change.communicator).and_then(|slot| hot::slot(*slot)) {
                hot.store_word(change.index, change.word);
            }
        }
    }
}

/// Sums over the rings of what only callbacks count.
fn hot_counts(region: &Region) -> HotCounts {
    let mut sums = HotCounts::default();
    for ring in 0..region.rings() {
        let counters = region.counters(ring);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Tally { coll, p2p, copy_engine, .. } = &mut sums.sampled;
        *coll += get(&counters.sampled_coll);
        *p2p += get(&counters.sampled_p2p);
        *copy_engine += get(&counters.sampled_ce);
        sums.foreign_handles += get(&counters.foreign_handles);
        sums.foreign_contexts += get(&counters.foreign_contexts);
        sums.late_contexts += get(&counters.late_contexts);
        sums.unknown_kinds += get(&counters.unknown_kinds);
    }
    let stats = region.stats();
    sums.names_unobserved = stats.names_lost;
    sums.events_unobserved = stats.events_unobserved;
    sums.communicators_unobserved = stats.communicators_unobserved;
    sums
}

/// The thread. Returns whether all sinks ended within `patience`.
pub(crate) fn run(mut drain: Drain, patience: Duration) -> bool {
    let first = drain.calibrator.calibrate();
    drain.assembler.calibrate(first);
    while !drain.pass(false) {
        std::thread::park_timeout(drain.config.drain.period);
    }
    // Whatever threads published before the last finalize is in the rings now; two passes settle orphans.
    drain.pass(false);
    drain.pass(false);
    drain.pass(true);
    let Drain { io, .. } = drain;
    let ended = io.stop(patience);
    if !ended {
        say(Level::Warn, "a sink did not finish in time: what it had not yet written is lost");
    }
    ended
}
