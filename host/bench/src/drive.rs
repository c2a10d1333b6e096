//! One run: a library, many collectives, two threads (or one), one report.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::clock::{self, Calibration, Waiter};
use crate::collective::{self, MAX_CHANNELS, ProxyEvents, Shape, Work};
use crate::meter::Meter;
use crate::plugin::{self, Plugin};
use crate::queue::Queue;
use crate::report::{self, Report};

/// How to drive.
#[derive(Clone, Debug)]
pub struct Options {
    /// Interface version; None: the highest that the library has.
    pub version: Option<u32>,
    /// Collectives that are measured.
    pub collectives: u64,
    /// Collectives before them.
    pub warmup: u64,
    /// Most collectives that are issued and not finished.
    pub depth: usize,
    /// What each looks like.
    pub shape: Shape,
    /// Times each thread's part of a collective as a whole, not call by call.
    pub bulk: bool,
    /// Everything from one thread: for callgrind.
    pub inline: bool,
    /// Collectives a second; 0: as fast as possible.
    pub rate: f64,
    /// The two threads on a processor each.
    pub pin: bool,
}

/// Drives the library at `path`.
///
/// # Errors
/// The options make no sense, or the library cannot be opened.
pub fn run(path: &Path, options: &Options) -> Result<Report> {
    let channels = options.shape.channels;
    ensure!((1..=MAX_CHANNELS).contains(&channels), "--channels {channels}: expected 1 to {MAX_CHANNELS}");
    ensure!(options.depth >= 1, "--depth 0: expected at least 1");
    ensure!(options.collectives >= 1, "--collectives 0: expected at least 1");
    let calibration = Calibration::measure();
    let plugin = Plugin::open(path, options.version)?;
    let (mut user, mut proxy) = (Meter::new(calibration), Meter::new(calibration));
    let driver = Driver { plugin: &plugin, options };
    let elapsed = match (options.inline, options.bulk) {
        (false, false) => driver.two_threads::<true>(&mut user, &mut proxy),
        (false, true) => driver.two_threads::<false>(&mut user, &mut proxy),
        (true, false) => driver.one_thread::<true>(&mut user, &mut proxy),
        (true, true) => driver.one_thread::<false>(&mut user, &mut proxy),
    };
    let mut report = Report::new(path, &plugin, options, &calibration, &user, &proxy);
    report.collectives_per_s = options.collectives as f64 / elapsed.wall;
    report.background_cpu_ns_per_collective = elapsed.background_cpu * 1e9 / options.collectives as f64;
    report.resident_kib = elapsed.resident_kib;
    report.pinned = elapsed.pinned;
    report.finalize_ms = plugin.close();
    report.log_calls = plugin::log_calls();
    Ok(report)
}

struct Driver<'a> {
    plugin: &'a Plugin,
    options: &'a Options,
}

struct Elapsed {
    /// Seconds.
    wall: f64,
    /// CPU time of the library's own threads, seconds.
    background_cpu: f64,
    /// Resident memory at each tenth of the run, KiB.
    resident_kib: Vec<u64>,
    /// Whether the threads had a processor each.
    pinned: bool,
}

impl Driver<'_> {
    fn two_threads<const TIMED: bool>(&self, user: &mut Meter, proxy: &mut Meter) -> Elapsed {
        let options = self.options;
        let queue = Queue::new(options.depth);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let proxy_thread = scope.spawn(|| {
                let pinned = options.pin && clock::pin(1);
                (self.proxy_thread::<TIMED>(proxy, &queue, &ended), pinned)
            });
            let _ = options.pin && clock::pin(0);
            let wait_below = |limit: u64| {
                let mut waiter = Waiter::default();
                while queue.outstanding() >= limit {
                    waiter.wait();
                }
            };
            let mut elapsed =
                self.user_thread::<TIMED>(user, || wait_below(options.depth as u64), |work| queue.issue(work), |_| ());
            wait_below(1);
            ended.store(true, Ordering::Release);
            match proxy_thread.join() {
                Ok((proxy_cpu, pinned)) => {
                    elapsed.background_cpu -= proxy_cpu;
                    elapsed.pinned = pinned;
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
            elapsed
        })
    }

    fn one_thread<const TIMED: bool>(&self, user: &mut Meter, proxy: &mut Meter) -> Elapsed {
        let mut events = ProxyEvents::default();
        let run_at_once = |work: Work| {
            proxy.recording = work.number >= self.options.warmup;
            collective::progress::<TIMED>(self.plugin, &self.options.shape, proxy, &mut events, work);
        };
        self.user_thread::<TIMED>(user, || (), |_| (), run_at_once)
    }

    /// Issues all collectives: waits for `room`, calls `issue` where NCCL would tell the proxy thread of the collective
    /// and `after` when the user's thread has done with it.
    fn user_thread<const TIMED: bool>(
        &self,
        meter: &mut Meter,
        room: impl Fn(),
        issue: impl Fn(Work),
        mut after: impl FnMut(Work),
    ) -> Elapsed {
        let options = self.options;
        let total = options.warmup + options.collectives;
        let mut pace = Pace::new(options.rate);
        let mut resident_kib = Vec::with_capacity(16);
        let (mut wall, mut thread_cpu, mut process_cpu) = (Instant::now(), clock::thread_cpu(), clock::process_cpu());
        for number in 0..total {
            if number == options.warmup {
                meter.recording = true;
                pace = Pace::new(options.rate);
                (wall, thread_cpu, process_cpu) = (Instant::now(), clock::thread_cpu(), clock::process_cpu());
            }
            if number % total.div_ceil(10) == 0 {
                resident_kib.push(report::resident_kib());
            }
            pace.wait();
            room();
            let mut issued = None;
            meter.collective::<TIMED>(|meter| {
                collective::enqueue::<TIMED>(self.plugin, &options.shape, meter, number, |work| {
                    issue(work);
                    issued = Some(work);
                });
            });
            if let Some(work) = issued {
                after(work);
            }
        }
        resident_kib.push(report::resident_kib());
        Elapsed {
            wall: wall.elapsed().as_secs_f64(),
            background_cpu: (clock::process_cpu() - process_cpu) - (clock::thread_cpu() - thread_cpu),
            resident_kib,
            pinned: false,
        }
    }

    /// Returns the CPU seconds that the thread took for what was measured.
    fn proxy_thread<const TIMED: bool>(&self, meter: &mut Meter, queue: &Queue, ended: &AtomicBool) -> f64 {
        let options = self.options;
        let mut events = ProxyEvents::default();
        let mut waiter = Waiter::default();
        let mut cpu_before = clock::thread_cpu();
        loop {
            let Some(work) = queue.next() else {
                if ended.load(Ordering::Acquire) {
                    return clock::thread_cpu() - cpu_before;
                }
                waiter.wait();
                continue;
            };
            waiter = Waiter::default();
            if work.number >= options.warmup && !meter.recording {
                meter.recording = true;
                cpu_before = clock::thread_cpu();
            }
            collective::progress::<TIMED>(self.plugin, &options.shape, meter, &mut events, work);
            queue.finish(work);
        }
    }
}

/// Keeps to a number of collectives a second.
struct Pace {
    interval: Option<Duration>,
    next: Instant,
}

impl Pace {
    fn new(rate: f64) -> Self {
        Self { interval: (rate > 0.0).then(|| Duration::from_secs_f64(1.0 / rate)), next: Instant::now() }
    }

    fn wait(&mut self) {
        let Some(interval) = self.interval else { return };
        self.next += interval;
        let mut waiter = Waiter::default();
        loop {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            if left > Duration::from_micros(200) {
                std::thread::sleep(left - Duration::from_micros(120));
            } else {
                waiter.wait();
            }
        }
    }
}
