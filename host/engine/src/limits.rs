//! What a filter may use. The defaults are fit for production; the operator's configuration can change each.

use std::time::{Duration, Instant};

use wasmtime::ResourceLimiter;

/// Limits of one filter instance, or of one filter over all its instances where it says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// CPU time of one call; 1 ms to 10 s; default 10 ms. A runaway is stopped within twice of it.
    pub call_time: Duration,
    /// CPU time of instantiation, `describe` and `configure` each; default 100 ms.
    pub start_time: Duration,
    /// Memory of an instance, bytes; default 16 MiB, at most 64 MiB.
    pub memory_bytes: usize,
    /// Elements of each of its tables; default 20 000.
    pub table_elements: usize,
    /// Core instances within a component; default 32.
    pub instances: usize,
    /// Bytes that one call may take from the guest; default 2 MiB.
    pub host_call_bytes: usize,
    /// Bytes of emitted records a second; default 1 MiB.
    pub output_bytes_per_second: u64,
    /// Log lines a second; default 20.
    pub log_lines_per_second: u64,
    /// Series that it may open over its life; default 1000.
    pub series: usize,
    /// Alerts that may be open at once; default 1000.
    pub open_alerts: usize,
    /// Failures in a row (each within `probation` of the one before) after which it is disabled; default 5.
    pub failures: u32,
    /// First wait before a new instance, after the second failure in a row; doubles up to `back_off_most`; default 100 ms.
    pub back_off: Duration,
    /// Longest wait before a new instance; default 10 s.
    pub back_off_most: Duration,
    /// An instance that lives longer than this without failure is healthy: the next failure is the first again; default 60 s.
    pub probation: Duration,
    /// Least time between black-box dumps; default 1 minute.
    pub dump_every: Duration,
    /// What a batch gets on which the filter fails: kept or dropped; None: what the filter declares.
    pub on_failure_keep: Option<bool>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_time: Duration::from_millis(10),
            start_time: Duration::from_millis(100),
            memory_bytes: 16 << 20,
            table_elements: 20_000,
            instances: 32,
            host_call_bytes: 2 << 20,
            output_bytes_per_second: 1 << 20,
            log_lines_per_second: 20,
            series: 1000,
            open_alerts: 1000,
            failures: 5,
            back_off: Duration::from_millis(100),
            back_off_most: Duration::from_secs(10),
            probation: Duration::from_secs(60),
            dump_every: Duration::from_secs(60),
            on_failure_keep: None,
        }
    }
}

/// What a limit says when it is hit; ends the guest's call.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum LimitHit {
    #[error("it wanted {wanted} bytes of memory, its limit is {limit}")]
    Memory { wanted: usize, limit: usize },
    #[error("it wanted a table of {wanted} elements, its limit is {limit}")]
    Table { wanted: usize, limit: usize },
}

/// Watches over an instance's growth.
#[derive(Debug)]
pub(crate) struct Growth {
    pub(crate) memory_bytes: usize,
    pub(crate) table_elements: usize,
    pub(crate) instances: usize,
}

impl ResourceLimiter for Growth {
    fn memory_growing(&mut self, _now: usize, wanted: usize, _most: Option<usize>) -> wasmtime::Result<bool> {
        if wanted > self.memory_bytes {
            return Err(LimitHit::Memory { wanted, limit: self.memory_bytes }.into());
        }
        Ok(true)
    }

    fn table_growing(&mut self, _now: usize, wanted: usize, _most: Option<usize>) -> wasmtime::Result<bool> {
        if wanted > self.table_elements {
            return Err(LimitHit::Table { wanted, limit: self.table_elements }.into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        8
    }

    fn memories(&self) -> usize {
        // Each has its own reservation of address space.
        1
    }
}

/// So much a second, counted in whole seconds.
#[derive(Debug)]
pub(crate) struct PerSecond {
    limit: u64,
    used: u64,
    began: Instant,
}

impl PerSecond {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, used: 0, began: Instant::now() }
    }

    /// Takes so much, if it is there.
    pub(crate) fn take(&mut self, amount: u64) -> bool {
        if self.used.saturating_add(amount) > self.limit {
            if self.began.elapsed() < Duration::from_secs(1) {
                return false;
            }
            self.began = Instant::now();
            self.used = 0;
        }
        if amount > self.limit {
            return false;
        }
        self.used += amount;
        true
    }
}
