//! `init`, `finalize`, exit: cold, on NCCL's threads, bounded in time. Everything with a lock is here.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use collander_abi::logger::DebugLogger;
use collander_config::Config;
use collander_event::{Communicator, ContextId, EventKind};
use collander_pipeline::{Rules, label_of};
use collander_ring::{Producer, Region};
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::clock::{self, Calibrator};
use crate::drain::{self, Control, Drain};
use crate::guard::{self, guarded, install_hook};
use crate::hot::{self, API_COLL, API_P2P, HOT, OpenHot, SLOTS};
use crate::io::{Io, wait_while_moving};
use crate::nccl_log::{self, Level, say};
use crate::os;

pub(crate) use crate::os::is_other_process;

/// How long the last finalize, or exit, waits for sinks.
const PATIENCE: Duration = Duration::from_millis(900);

/// What `init` is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub api: u8,
    pub hash: u64,
    pub nodes: c_int,
    pub ranks: c_int,
    pub rank: c_int,
    pub logger: Option<DebugLogger>,
}

/// The rings of this process, once there are any.
#[derive(Debug)]
pub(crate) struct Rings {
    pub region: &'static Region,
    large: u64,
    small: u64,
}

static RINGS: OnceLock<Rings> = OnceLock::new();

/// The rings, if any communicator was opened.
#[inline]
pub(crate) fn rings() -> Option<&'static Rings> {
    RINGS.get()
}

impl Rings {
    /// A ring for the calling thread.
    pub(crate) fn acquire(&self, large: bool) -> Option<Producer> {
        self.region.acquire(if large { self.large } else { self.small })
    }

    pub(crate) fn count_unobserved(&self) {
        self.region.events_unobserved().fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn intern(&self, text: &[u8]) -> u8 {
        self.region.intern(text)
    }
}

#[cfg(test)]
pub(crate) fn rings_for_tests() -> &'static Rings {
    RINGS.get_or_init(|| Rings {
        region: Region::create(4 << 20, 7).expect("memory"),
        large: 1 << 20,
        small: 256 << 10,
    })
}

/// NCCL's activation mask: its own global, live until the library that gave it goes.
static MASK: AtomicPtr<AtomicI32> = AtomicPtr::new(std::ptr::null_mut());
/// Interface version whose mask bits are known.
static MASK_API: AtomicU32 = AtomicU32::new(0);

/// Stores what is wanted now. Any thread of ours, and `init`.
#[allow(unsafe_code, reason = "NCCL's live mask")]
pub(crate) fn store_mask(wanted: u32) {
    let pointer = MASK.load(Ordering::Acquire);
    if !pointer.is_null() {
        let known = EventKind::known_mask(MASK_API.load(Ordering::Relaxed) as u8);
        // SAFETY: NCCL gave us its global `int` in `init`, aligned and alive as long as any communicator is; it reads it with
        // relaxed atomics. The pointer is taken back before the last communicator closes.
        unsafe { &*pointer }.store((wanted & known) as i32, Ordering::Relaxed);
    }
}

/// What callbacks do beside the classes' wishes, for this mask.
pub(crate) fn switches(mask: u32) -> u32 {
    let plain = EventKind::Group.bit()
        | EventKind::GroupApi.bit()
        | EventKind::CollApi.bit()
        | EventKind::P2pApi.bit()
        | EventKind::KernelLaunch.bit()
        | EventKind::ProxyCtrl.bit();
    let mut bits = mask & plain;
    if mask & EventKind::Coll.bit() != 0 {
        bits |= API_COLL;
    }
    if mask & EventKind::P2p.bit() != 0 {
        bits |= API_P2P;
    }
    bits
}

#[derive(Debug)]
struct Open {
    ordinal: u32,
    slot: usize,
    communicator: Communicator,
}

#[derive(Debug)]
struct Worker {
    thread: std::thread::JoinHandle<()>,
    ended: Receiver<bool>,
    /// Goes up with what drain and I/O get done.
    progress: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Runtime {
    /// None: not loaded yet. Err: refused once, off for good.
    config: Option<Result<Arc<Config>, ()>>,
    rules: Option<Arc<Rules>>,
    calibrator: Option<Arc<Calibrator>>,
    session: u32,
    next_ordinal: u32,
    next_slot: usize,
    free_slots: Vec<usize>,
    generation: u32,
    open: HashMap<u64, Open>,
    worker: Option<Worker>,
}

static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

fn runtime() -> MutexGuard<'static, Option<Runtime>> {
    RUNTIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The drain's inbox: one for the life of the process, so that a callback can post without a lock.
static CONTROL: OnceLock<(Sender<Control>, Receiver<Control>)> = OnceLock::new();

fn control() -> &'static (Sender<Control>, Receiver<Control>) {
    CONTROL.get_or_init(unbounded)
}

/// A communicator opens. Returns its context, 0 if it is not observed. Never fails.
///
/// # Safety
/// NCCL's promise: `name` is NULL or NUL-terminated, `mask` valid.
#[allow(unsafe_code, reason = "reads NCCL's name, keeps its mask pointer")]
pub(crate) unsafe fn init(opening: Opening, name: *const c_char, mask: *mut c_int) -> u64 {
    // SAFETY: NCCL's promise.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
    if os::is_forked() {
        return 0;
    }
    install_hook();
    guarded(0, || {
        nccl_log::set(opening.logger);
        os::install_handlers();
        if !mask.is_null() && mask.is_aligned() {
            MASK_API.store(u32::from(opening.api), Ordering::Relaxed);
            // `AtomicI32` has the layout of `int`.
            MASK.store(mask.cast::<AtomicI32>(), Ordering::Release);
        }
        let mut guard = runtime();
        let context = guard.get_or_insert_default().open(opening, name);
        if context == 0 && guard.as_ref().is_some_and(|runtime| runtime.open.is_empty()) {
            store_mask(0);
        }
        context
    })
}

/// A communicator closes.
pub(crate) fn finalize(context: u64) {
    if os::is_forked() {
        return;
    }
    guarded((), || {
        if let Some(runtime) = runtime().as_mut() {
            runtime.close(context);
        }
    });
}

/// The process ends without (or after) finalize.
pub(crate) fn at_exit() {
    guarded((), || {
        // An exit inside init or finalize on this very thread would deadlock on a plain lock.
        let Ok(mut guard) = RUNTIME.try_lock() else { return };
        if let Some(runtime) = guard.as_mut() {
            runtime.shutdown();
        }
    });
}

/// v1 to v3 tell name, hash and rank with the first operation. No lock: a callback asks.
pub(crate) fn learn(context: u64, name: Option<&[u8]>, hash: u64, rank: i32) {
    if let Some(communicator) = hot::communicator(context) {
        communicator.learn(hash, rank);
        let name = name.map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
        let _ = control().0.send(Control::Learn { ordinal: communicator.ordinal(), name, hash, rank });
    }
}

impl Runtime {
    fn config(&mut self) -> Option<Arc<Config>> {
        let loaded = self.config.get_or_insert_with(|| {
            match collander_config::load_with_notes(&collander_config::Environment::of_process()) {
                Ok(loaded) => {
                    for note in &loaded.notes {
                        say(Level::Warn, note);
                    }
                    Ok(Arc::new(loaded.config))
                }
                Err(error) => {
                    for line in error.to_string().lines() {
                        say(Level::Warn, line);
                    }
                    say(Level::Warn, "the profiler stays off because of its configuration; the job runs on without it");
                    Err(())
                }
            }
        });
        loaded.as_ref().ok().filter(|config| config.enabled).cloned()
    }

    fn open(&mut self, opening: Opening, name: Option<&[u8]>) -> u64 {
        let Some(config) = self.config() else { return 0 };
        let rules = self.rules.get_or_insert_with(|| Arc::new(Rules::new(&config))).clone();
        let rings = match rings() {
            Some(rings) => rings,
            None => {
                self.calibrator = Some(Arc::new(Calibrator::start()));
                let nonce = os::nonce();
                match Region::create(config.ring.total_bytes, nonce) {
                    Ok(region) => {
                        HOT.set_nonce(nonce);
                        RINGS.get_or_init(|| Rings {
                            region,
                            large: config.ring.large_bytes,
                            small: config.ring.small_bytes,
                        })
                    }
                    Err(error) => {
                        self.config = Some(Err(()));
                        say(Level::Warn, &format!("no memory for the rings ({error}); the profiler stays off"));
                        return 0;
                    }
                }
            }
        };
        let first = self.worker.is_none();
        let calibrator = self.calibrator.get_or_insert_with(|| Arc::new(Calibrator::start())).clone();
        rings.region.calibrate(calibrator.calibrate());
        let mut locations = String::new();
        if first && !self.start(&config, &rules, rings, &calibrator, opening.api, &mut locations) {
            return 0;
        }
        let Some(slot) = self.free_slots.pop().or_else(|| {
            let slot = self.next_slot;
            self.next_slot += usize::from(slot < SLOTS);
            (slot < SLOTS).then_some(slot)
        }) else {
            rings.region.communicators_unobserved().fetch_add(1, Ordering::Relaxed);
            return 0;
        };
        let Some(hot) = hot::slot(slot) else { return 0 };
        let known = |n: c_int| u32::try_from(n).ok().filter(|n| *n > 0);
        let assumed = config.capture.assume_ranks;
        let mut communicator = Communicator {
            ordinal: self.next_ordinal,
            hash: opening.hash,
            name: name.map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default(),
            label: String::new(),
            rank: opening.rank,
            ranks: known(opening.ranks).or((assumed > 0).then_some(assumed)),
            nodes: known(opening.nodes),
            api: opening.api,
            opened_ns: clock::unix_ns(),
        };
        communicator.label = label_of(&config.labels, &communicator).to_owned();
        self.next_ordinal += 1;
        self.generation = self.generation.wrapping_add(1);
        let context = ContextId::new((HOT.nonce() >> 50) as u16, self.generation, slot as u32);
        let open = OpenHot {
            ordinal: communicator.ordinal,
            rank: communicator.rank,
            hash: communicator.hash,
            ranks: communicator.ranks.unwrap_or(0),
        };
        hot.open(context, open, &rules.compile(&communicator).words);
        rings.region.write_communicator(&communicator, true);
        let _ = control().0.send(Control::Open { communicator: Arc::new(communicator.clone()), slot });
        let mask = rules.mask();
        self.open.insert(context.0, Open { ordinal: communicator.ordinal, slot, communicator });
        HOT.switch_on(switches(mask));
        store_mask(mask);
        if first {
            say(
                Level::Info,
                &format!(
                    "{} profiler API v{}, sinks {locations}, mask {:#x}{}",
                    env!("CARGO_PKG_VERSION"),
                    opening.api,
                    mask & EventKind::known_mask(opening.api),
                    if rings.region.is_shared() { "" } else { ", no black box (no memfd)" },
                ),
            );
        }
        context.0
    }

    /// Starts our threads for one life of the library.
    fn start(
        &mut self,
        config: &Arc<Config>,
        rules: &Arc<Rules>,
        rings: &'static Rings,
        calibrator: &Arc<Calibrator>,
        api: u8,
        locations: &mut String,
    ) -> bool {
        self.session += 1;
        let process = collander_sinks::ProcessInfo {
            pid: std::process::id(),
            session: self.session,
            api: Some(api),
            start_unix_ns: clock::unix_ns(),
            clock: Calibrator::name(),
            gpu_uuid: None,
        };
        let mut sinks = Vec::new();
        for sink in &config.sinks {
            let built = collander_sinks::build(sink, &config.job, &process);
            if !locations.is_empty() {
                locations.push_str(", ");
            }
            locations.push_str(&format!("{} → {}", built.name(), built.location()));
            sinks.push((built, sink.queue_operations));
        }
        let progress = Arc::new(AtomicU64::new(0));
        let io = match Io::start(sinks, progress.clone()) {
            Ok(io) => io,
            Err(error) => return self.no_thread(&error),
        };
        let (done, ended) = crossbeam_channel::bounded(1);
        let drain = Drain::new(
            config.clone(),
            rules.clone(),
            rings.region,
            calibrator.clone(),
            control().1.clone(),
            io,
            progress.clone(),
        );
        match os::spawn("collander-drain", move || {
            let in_time = guarded(false, || drain::run(drain, PATIENCE));
            if guard::take_panicked() {
                say(Level::Warn, "the drain failed on an internal error; the profiler has switched itself off");
            }
            let _ = done.send(in_time);
        }) {
            Ok(thread) => {
                self.worker = Some(Worker { thread, ended, progress });
                true
            }
            Err(error) => self.no_thread(&error),
        }
    }

    fn no_thread(&mut self, error: &std::io::Error) -> bool {
        self.config = Some(Err(()));
        say(Level::Warn, &format!("no thread for the profiler ({error}); it stays off"));
        false
    }

    fn close(&mut self, context: u64) {
        // NULL, foreign, or finalised twice: nothing to do.
        let Some(open) = self.open.remove(&context) else { return };
        if let Some(hot) = hot::slot(open.slot) {
            hot.close();
        }
        if let Some(rings) = rings() {
            rings.region.write_communicator(&open.communicator, false);
        }
        self.free_slots.push(open.slot);
        let _ = control().0.send(Control::Close { ordinal: open.ordinal });
        if self.open.is_empty() {
            self.shutdown();
        }
    }

    /// The last communicator has closed, or the process ends.
    fn shutdown(&mut self) {
        MASK.store(std::ptr::null_mut(), Ordering::Release);
        let Some(worker) = self.worker.take() else { return };
        let _ = control().0.send(Control::Stop);
        worker.thread.thread().unpark();
        match wait_while_moving(&worker.ended, &worker.progress, PATIENCE + Duration::from_millis(100)) {
            Some(true) => {
                let _ = worker.thread.join();
            }
            // The drain has ended, and said what the sinks could not write.
            Some(false) => {}
            None => say(Level::Warn, "the drain did not end in time; what it held is lost"),
        }
        HOT.switch_off();
        for open in self.open.values() {
            if let Some(hot) = hot::slot(open.slot) {
                hot.close();
            }
        }
    }
}
