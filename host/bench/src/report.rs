//! What a run found out, as data.

use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::category::Category;
use crate::clock::Calibration;
use crate::drive::Options;
use crate::histogram::Histogram;
use crate::meter::Meter;
use crate::plugin::Plugin;

/// Nanoseconds of something that was timed many times.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// How often it was timed.
    pub count: u64,
    /// Mean of the smallest 99 %.
    pub tmean99: f64,
    /// Mean of all.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

impl Times {
    fn new(histogram: &Histogram, calibration: &Calibration) -> Self {
        let ns = |ticks: f64| ticks * calibration.ns_per_tick;
        Self {
            count: histogram.len(),
            tmean99: ns(histogram.trimmed_mean()),
            mean: ns(histogram.mean()),
            p50: ns(histogram.quantile(0.5)),
            p99: ns(histogram.quantile(0.99)),
            p999: ns(histogram.quantile(0.999)),
            max: ns(histogram.max() as f64),
        }
    }
}

/// One kind of call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallReport {
    /// The kind, a name of [`Category`].
    pub call: String,
    /// Calls made, warm-up included.
    pub issued: u64,
    /// Starts that gave NULL.
    pub null_handles: u64,
    /// Times; all zero if calls were not timed one by one.
    pub ns: Times,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// File that was loaded.
    pub library: String,
    /// Name that it gives itself.
    pub name: String,
    /// Interface version that was driven.
    pub version: u32,
    /// Mask at the end.
    pub mask: u64,
    /// Collectives that were measured.
    pub collectives: u64,
    /// Channels of each.
    pub channels: usize,
    /// Whether there were proxy operations and steps.
    pub proxy: bool,
    /// Whether a collective was timed as a whole.
    pub bulk: bool,
    /// Whether the threads had a processor each.
    pub pinned: bool,
    /// User's thread, ns a collective.
    pub user_ns: Times,
    /// Proxy thread, ns a collective.
    pub proxy_ns: Times,
    /// Calls, by kind.
    pub calls: Vec<CallReport>,
    /// Calls a collective.
    pub calls_per_collective: f64,
    /// Collectives a second that went through.
    pub collectives_per_s: f64,
    /// CPU time of the library's own threads, ns a collective.
    pub background_cpu_ns_per_collective: f64,
    /// Resident memory at each tenth of the run, KiB.
    pub resident_kib: Vec<u64>,
    /// `dlopen`, ms.
    pub load_ms: f64,
    /// `init`, ms.
    pub init_ms: f64,
    /// `finalize`, ms.
    pub finalize_ms: f64,
    /// Calls of NCCL's logger.
    pub log_calls: u64,
}

impl Report {
    /// From what the two threads measured; what is known later is zero.
    pub fn new(
        path: &Path,
        plugin: &Plugin,
        options: &Options,
        calibration: &Calibration,
        user: &Meter,
        proxy: &Meter,
    ) -> Self {
        let mut calls = Vec::new();
        for &category in Category::ALL {
            let index = category as usize;
            for meter in [user, proxy] {
                if meter.issued[index] > 0 {
                    calls.push(CallReport {
                        call: category.name().to_owned(),
                        issued: meter.issued[index],
                        null_handles: meter.null_handles[index],
                        ns: Times::new(&meter.calls[index], calibration),
                    });
                }
            }
        }
        let total = (options.collectives + options.warmup) as f64;
        Self {
            library: path.display().to_string(),
            name: plugin.name.clone(),
            version: plugin.version,
            mask: plugin.mask(),
            collectives: options.collectives,
            channels: options.shape.channels,
            proxy: options.shape.proxy,
            bulk: options.bulk,
            pinned: false,
            user_ns: Times::new(&user.collectives, calibration),
            proxy_ns: Times::new(&proxy.collectives, calibration),
            calls_per_collective: calls.iter().map(|call| call.issued).sum::<u64>() as f64 / total,
            calls,
            collectives_per_s: 0.0,
            background_cpu_ns_per_collective: 0.0,
            resident_kib: Vec::new(),
            load_ms: plugin.load_ms,
            init_ms: plugin.init_ms,
            finalize_ms: 0.0,
            log_calls: 0,
        }
    }
}

impl Report {
    /// As text for people, nanoseconds.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} ({}) v{}, mask {:#x}: {} collectives of {} channels, {:.1} calls each, {:.0} a second\n{:20} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
            self.library,
            self.name,
            self.version,
            self.mask,
            self.collectives,
            self.channels,
            self.calls_per_collective,
            self.collectives_per_s,
            "ns",
            "count",
            "tmean99",
            "mean",
            "p50",
            "p99",
            "p99.9",
        );
        let calls = self.calls.iter().map(|call| (call.call.as_str(), &call.ns));
        let sums = [("collective, user", &self.user_ns), ("collective, proxy", &self.proxy_ns)];
        for (name, ns) in calls.chain(sums).filter(|(_, ns)| ns.count > 0) {
            let _ = writeln!(
                text,
                "{name:20} {:>10} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
                ns.count, ns.tmean99, ns.mean, ns.p50, ns.p99, ns.p999
            );
        }
        let resident = (self.resident_kib.first().unwrap_or(&0), self.resident_kib.last().unwrap_or(&0));
        let _ = writeln!(
            text,
            "own threads {:.0} ns CPU a collective; load {:.2} ms, init {:.2} ms, finalize {:.1} ms; resident {} to {} KiB",
            self.background_cpu_ns_per_collective, self.load_ms, self.init_ms, self.finalize_ms, resident.0, resident.1
        );
        text
    }
}

/// Resident memory of this process, KiB; 0 if the kernel does not tell.
pub fn resident_kib() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * page.max(0) as u64 / 1024
}
