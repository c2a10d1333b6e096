//! Records to operations.
//!
//! Joined by id, never by time: rings may be read in any order. An operation is over when its own stop and those of all
//! that was announced below it have come, or by one of the rules of `closing`. See docs/assembler.md for the rules one by
//! one. Memory is bounded by `drain.max_open`, `drain.max_orphans` and fixed tables; whatever is odd is an [`Anomaly`].

mod children;
mod closing;
mod communicators;
mod emit;
mod gpu_clock;
mod graphs;
mod groups;
mod open;
mod operations;
mod table;
mod waiting;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use collander_config::Config;
use collander_event::{
    Anomalies, Anomaly, Calibration, Collective, Communicator, Datatype, EventKind, NameTable, OpenOperation,
    Operation, Record, RecordType,
};

use crate::account::Account;
use crate::rules::{PlanChange, Rules};
use crate::sink_stage::Snapshot;
use communicators::Communicators;
use gpu_clock::{Remembered, TimerUnit};
use graphs::Captured;
use groups::{Inferred, RingGroup};
use open::{Child, Open, Slab};
use table::IdTable;
use waiting::Waiting;

/// Ordinals count modulo 2^28.
const ORDINAL_MASK: u32 = (1 << 28) - 1;

/// What a name code means.
#[derive(Clone, Copy, Debug, Default)]
struct Meaning {
    collective: Collective,
    datatype: Datatype,
}

/// Reference to a slot as long as it is the same operation.
type Ticket = (u32, u32);

/// Makes operations of records. The drain thread only.
#[derive(Debug)]
pub struct Assembler {
    config: Config,
    rules: Rules,
    names: NameTable,
    meanings: Box<[Option<Meaning>; 256]>,
    calibration: Calibration,
    table: IdTable,
    ops: Slab<Open>,
    children: Slab<Child>,
    detached: usize,
    communicators: Communicators,
    waiting: Waiting,
    captured: Captured,
    /// Ordinal of the last operation start, by ring.
    ordinals: Box<[u32; 256]>,
    groups: Vec<RingGroup>,
    inferred: Slab<Inferred>,
    watched: VecDeque<(Ticket, u64)>,
    closing: VecDeque<(Ticket, u64)>,
    unit: TimerUnit,
    remembered: Remembered,
    pass: u64,
    now_ns: u64,
    next_timeout_ns: u64,
    /// Latest enqueue known when records were last lost: what is older may miss its stops.
    lossy_until: u64,
    newest_enqueued: u64,
    account: Account,
    finished: Vec<Operation>,
    changes: Vec<PlanChange>,
    woken: Vec<Record>,
}

impl Assembler {
    /// An assembler for one process.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            rules: Rules::new(config),
            names: NameTable::default(),
            meanings: Box::new([None; 256]),
            calibration: Calibration::UNIX_NANOSECONDS,
            table: IdTable::new(),
            ops: Slab::new(),
            children: Slab::new(),
            detached: 0,
            communicators: Communicators::default(),
            waiting: Waiting::new(config.drain.max_orphans),
            captured: Captured::default(),
            ordinals: Box::new([0; 256]),
            groups: (0..256).map(|_| RingGroup::default()).collect(),
            inferred: Slab::new(),
            watched: VecDeque::new(),
            closing: VecDeque::new(),
            unit: TimerUnit::new(config.capture.gpu_timer),
            remembered: Remembered::new(),
            pass: 0,
            now_ns: 0,
            next_timeout_ns: 0,
            lossy_until: 0,
            newest_enqueued: 0,
            account: Account::default(),
            finished: Vec::new(),
            changes: Vec::new(),
            woken: Vec::new(),
            config: config.clone(),
        }
    }

    /// The names behind codes; the drain learns new ones before it pushes records that use them.
    pub fn names(&mut self) -> &mut NameTable {
        &mut self.names
    }

    /// How many name codes are known.
    #[must_use]
    pub fn names_known(&self) -> usize {
        self.names.len()
    }

    /// Sets the calibration that later records are converted with.
    pub fn calibrate(&mut self, calibration: Calibration) {
        self.calibration = calibration;
    }

    /// Takes the next record of a ring. Records of one ring come in their order; rings in any.
    #[inline]
    pub fn push(&mut self, ring: u8, record: &Record) {
        self.account.records += 1;
        self.apply(ring, record);
    }

    #[inline]
    fn apply(&mut self, ring: u8, record: &Record) {
        let kind = record.id().kind();
        match record.record_type() {
            RecordType::State => self.child_state(record),
            RecordType::Start => match kind {
                EventKind::KernelCh => self.kernel_start(record),
                EventKind::Coll | EventKind::P2p | EventKind::CeColl => self.operation_start(ring, record),
                EventKind::CollApi | EventKind::P2pApi => self.api_start(ring, record),
                EventKind::ProxyOp => self.proxy_start(record),
                EventKind::ProxyStep => self.step_start(record),
                EventKind::KernelPhase => self.phase_start(record),
                EventKind::CeSync | EventKind::CeBatch => self.copy_engine_start(record),
                EventKind::Group
                | EventKind::GroupApi
                | EventKind::KernelLaunch
                | EventKind::ProxyCtrl
                | EventKind::NetPlugin => {}
            },
            RecordType::Stop => match kind {
                EventKind::CollApi | EventKind::P2pApi => self.api_stop(record),
                EventKind::Group
                | EventKind::GroupApi
                | EventKind::KernelLaunch
                | EventKind::ProxyCtrl
                | EventKind::NetPlugin => {}
                _ => self.stop(record),
            },
            RecordType::Extension => self.extension(record),
        }
    }

    /// The reader of a ring was overtaken: so many records were not read.
    pub fn overtaken(&mut self, _ring: u8, records_lost: u64) {
        self.account.anomalies.add(Anomaly::RecordsOvertaken, records_lost);
        self.lossy_until = self.newest_enqueued.max(1);
        self.communicators.walk_again();
    }

    /// Where a ring that earlier lives of the library used stands: the ordinal of the last operation start, modulo 2^28.
    pub fn start_ring(&mut self, ring: u8, last_ordinal: u32) {
        self.ordinals[usize::from(ring)] = last_ordinal & ORDINAL_MASK;
    }

    /// Tells the ordinal of the last operation start that was written to a ring (its counter, modulo 2^28), when all that
    /// could be read of it was read: operations lost at the end are counted so.
    pub fn ring_ended(&mut self, ring: u8, last_ordinal: u32) {
        let last = self.ordinals[usize::from(ring)];
        let lost = last_ordinal.wrapping_sub(last) & ORDINAL_MASK;
        if lost > 0 && lost < ORDINAL_MASK / 2 {
            self.ordinals[usize::from(ring)] = last_ordinal & ORDINAL_MASK;
            self.lose(u64::from(lost));
        }
    }

    /// Counts the operations that are missing before this ordinal.
    #[inline]
    fn note_ordinal(&mut self, ring: u8, ordinal: u32) {
        if ordinal == 0 {
            return;
        }
        let last = &mut self.ordinals[usize::from(ring)];
        let ahead = ordinal.wrapping_sub(*last) & ORDINAL_MASK;
        if ahead == 0 || ahead > ORDINAL_MASK / 2 {
            return;
        }
        *last = ordinal;
        if ahead > 1 {
            self.lose(u64::from(ahead - 1));
        }
    }

    #[cold]
    fn lose(&mut self, operations: u64) {
        self.account.seen.unknown += operations;
        self.account.ring_overrun += operations;
    }

    /// A communicator was opened. Before its first record, if it can be.
    pub fn communicator_opened(&mut self, communicator: Arc<Communicator>) {
        self.account.communicators += 1;
        self.set_communicator(communicator);
    }

    /// More became known of a communicator (v1 to v3: name, hash, rank).
    pub fn communicator_updated(&mut self, communicator: Arc<Communicator>) {
        self.set_communicator(communicator);
    }

    fn set_communicator(&mut self, communicator: Arc<Communicator>) {
        let ordinal = communicator.ordinal;
        let plan = self.rules.plan_of(&communicator);
        self.communicators.set(communicator, plan);
        if self.rules.adjusted() {
            let words = self.rules.plan(plan).words.iter().enumerate();
            self.changes.extend(words.map(|(index, word)| PlanChange { communicator: ordinal, index, word: *word }));
        }
    }

    /// A communicator was finalised, and all that was recorded before was pushed: what is open on it is closed.
    pub fn communicator_closed(&mut self, ordinal: u32) {
        let Some(index) = self.communicators.find(ordinal) else { return };
        while let slot = self.communicators[index].first
            && slot != open::NONE
        {
            self.close_finalised(slot);
        }
        self.communicators.remove(index);
    }

    /// A drain period has passed: all rings were read. `now_unix_ns` by the CPU's clock; `last`: nothing will follow, all
    /// that is open is closed. Afterwards [`Self::take_finished`].
    pub fn end_of_pass(&mut self, now_unix_ns: u64, last: bool) {
        if self.now_ns == 0 {
            self.touch_all(now_unix_ns);
        }
        self.pass += 1;
        self.now_ns = self.now_ns.max(now_unix_ns);
        self.expire_waiting(last);
        self.decide_idle_groups(last);
        self.walk_communicators();
        self.look_at_watched();
        self.finish_closing(last);
        self.check_timeouts();
        if last {
            self.close_all();
        }
    }

    /// Adjusts the rates of rules that keep at most so many a second. Call it every drain period.
    pub fn adjust_rates(&mut self, now_unix_ns: u64) {
        for (plan, index, word) in self.rules.adjust(now_unix_ns) {
            let changes = self.communicators.with_plan(plan);
            self.changes.extend(changes.map(|communicator| PlanChange { communicator, index, word }));
        }
    }

    /// Takes the plan words that have to be stored on the hot side.
    pub fn take_plan_changes(&mut self) -> Vec<PlanChange> {
        std::mem::take(&mut self.changes)
    }

    /// Moves the finished operations to the end of `out`.
    pub fn take_finished(&mut self, out: &mut Vec<Operation>) {
        out.append(&mut self.finished);
    }

    /// The operations that have started and not ended, oldest first, at most `limit`.
    #[must_use]
    pub fn open_operations(&self, limit: usize) -> Vec<OpenOperation> {
        let mut slots: Vec<(u64, u32)> =
            (0u32..).zip(&self.ops.items).filter(|(_, op)| op.id != 0).map(|(slot, op)| (op.enqueued, slot)).collect();
        if slots.len() > limit && limit > 0 {
            slots.select_nth_unstable(limit - 1);
        }
        slots.truncate(limit);
        slots.sort_unstable();
        slots.into_iter().map(|(_, slot)| self.open_operation(slot)).collect()
    }

    /// How many operations are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.ops.used()
    }

    /// The account so far, without what the hot side counts (see [`crate::HotCounts`]). Finished operations that were not
    /// taken yet count as open.
    #[must_use]
    pub fn snapshot(&self, now_unix_ns: u64) -> Snapshot {
        let account = &self.account;
        let untaken = self.finished.iter().filter(|op| op.kind != collander_event::OpKind::InferredGroup).count();
        Snapshot {
            unix_ns: now_unix_ns,
            seen: account.seen,
            sampled_filter: account.sampled_filter,
            ring_overrun: account.ring_overrun,
            evicted: account.evicted,
            open: (self.ops.used() + untaken) as u64,
            anomalies: account.anomalies.clone(),
            records: account.records,
            inferred_groups: account.inferred_groups,
            communicators: account.communicators,
            ..Snapshot::default()
        }
    }

    /// Operations handed out so far, inferred groups not counted.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.account.finished
    }

    /// Oddities so far.
    #[must_use]
    pub fn anomalies(&self) -> &Anomalies {
        &self.account.anomalies
    }

    fn count(&mut self, anomaly: Anomaly) {
        self.account.anomalies.count(anomaly);
    }

    /// What a name code means; looked up once, when its text is known.
    #[inline]
    fn meaning(&mut self, code: u8) -> Meaning {
        match self.meanings[usize::from(code)] {
            Some(meaning) => meaning,
            None => self.look_up(code),
        }
    }

    #[cold]
    fn look_up(&mut self, code: u8) -> Meaning {
        let text = self.names.text(code);
        let meaning = Meaning { collective: Collective::from_text(text), datatype: Datatype::from_text(text) };
        if !text.is_empty() {
            self.meanings[usize::from(code)] = Some(meaning);
        }
        meaning
    }

    /// Lets a record wait for an id that is not known yet.
    #[cold]
    fn wait(&mut self, id: u64, record: &Record) {
        let evicted = self.waiting.add(id, *record, self.pass);
        self.account.anomalies.add(Anomaly::EvictedOrphan, evicted);
    }

    /// An id became known: what waited for it goes on.
    #[inline]
    fn wake(&mut self, id: u64) {
        if !self.waiting.is_empty() {
            self.wake_waiting(id);
        }
    }

    #[cold]
    fn wake_waiting(&mut self, id: u64) {
        let mut woken = std::mem::take(&mut self.woken);
        woken.clear();
        self.waiting.take(id, &mut woken);
        for record in &woken {
            self.apply(0, record);
        }
        self.woken = woken;
    }

    fn expire_waiting(&mut self, last: bool) {
        if self.waiting.is_empty() {
            return;
        }
        let mut expired = std::mem::take(&mut self.woken);
        expired.clear();
        self.waiting.expire(if last { u64::MAX } else { self.pass.saturating_sub(2) }, &mut expired);
        for record in &expired {
            self.count(if record.record_type() == RecordType::Start {
                Anomaly::OrphanChild
            } else {
                Anomaly::UnknownHandle
            });
        }
        self.woken = expired;
    }
}
