//! The host's side of `wit/since-v0.1.0/host.wit`.
//!
//! Nothing here blocks, everything is bounded, and a panic ends the guest's call instead of unwinding through it.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use collander_event::OpenOperation;

use crate::bindings::{decisions, host, traffic};
use crate::convert;
use crate::error::HostPanic;
use crate::limits::{Growth, Limits, PerSecond};
use crate::metrics::{Registry, is_name};
use crate::types::{Alert, Emitted, LogLevel, Services, Severity, Value};

/// A log line is cut here.
const LINE_BYTES: usize = 1000;
/// Open operations given at once.
const OPEN_OPERATIONS: usize = 1000;
/// Tags an operation, and bytes of one.
const TAGS: usize = 8;
const TAG_BYTES: usize = 64;

/// What the imports counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Log lines written.
    pub log_lines: u64,
    /// Log lines beyond the limit.
    pub log_lines_dropped: u64,
    /// Records emitted.
    pub records: u64,
    /// Records beyond the limit of bytes a second, or not valid.
    pub records_dropped: u64,
    /// Alerts told.
    pub alerts: u64,
    /// Alerts that were folded into an open one.
    pub alerts_folded: u64,
    /// Alerts beyond the limit of open ones, or not valid.
    pub alerts_dropped: u64,
    /// `open-series` calls that were refused.
    pub series_refused: u64,
    /// Values that were refused: not finite, a counter that falls, a number that is no series.
    pub values_refused: u64,
    /// Plans set.
    pub plans: u64,
    /// Plans that are not valid.
    pub plans_refused: u64,
    /// Tags that were refused.
    pub tags_refused: u64,
    /// Black-box dumps asked for and passed on.
    pub dumps: u64,
    /// Dumps asked for too soon.
    pub dumps_dropped: u64,
}

/// What outlives an instance.
#[derive(Debug)]
pub(crate) struct Durable {
    pub(crate) metrics: Registry,
    alerts: HashMap<String, (Severity, u64)>,
    open_alerts: usize,
    lines: PerSecond,
    output: PerSecond,
    dumped: Option<Instant>,
    pub(crate) counts: ImportCounts,
}

impl Durable {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            metrics: Registry::new(limits.series),
            alerts: HashMap::new(),
            open_alerts: limits.open_alerts,
            lines: PerSecond::new(limits.log_lines_per_second),
            output: PerSecond::new(limits.output_bytes_per_second),
            dumped: None,
            counts: ImportCounts::default(),
        }
    }
}

/// What an instance's store carries.
pub(crate) struct State {
    pub(crate) name: Arc<str>,
    pub(crate) services: Arc<dyn Services>,
    pub(crate) config: Arc<BTreeMap<String, Value>>,
    pub(crate) known_sinks: u32,
    pub(crate) dump_every: std::time::Duration,
    pub(crate) growth: Growth,
    pub(crate) durable: Box<Durable>,
    /// Operations of the batch that `observe` looks at; 0 elsewhere.
    pub(crate) batch: usize,
    pub(crate) tags: Vec<(u32, String)>,
    /// In `tick` only.
    pub(crate) open: Option<Arc<[OpenOperation]>>,
    pub(crate) now_ns: u64,
    /// Last line that was logged as an error: the message of a panic, if a trap follows.
    pub(crate) last_error: Option<String>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("name", &self.name).field("durable", &self.durable).finish_non_exhaustive()
    }
}

/// A text on one line, of at most so many bytes.
fn line(text: &str, bytes: usize) -> String {
    let cut = &text[..text.floor_char_boundary(bytes)];
    cut.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Runs the host's part of a call.
fn guarded<R>(what: &'static str, body: impl FnOnce() -> R) -> wasmtime::Result<R> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        // Dropping a payload can panic again.
        std::mem::forget(payload);
        HostPanic(format!("{what}: {text}")).into()
    })
}

impl State {
    fn take_line(&mut self, level: LogLevel, message: &str) {
        if level == LogLevel::Error {
            self.last_error = Some(line(message, LINE_BYTES));
        }
        if self.durable.lines.take(1) {
            self.durable.counts.log_lines += 1;
            self.services.log(&self.name, level, &line(message, LINE_BYTES));
        } else {
            self.durable.counts.log_lines_dropped += 1;
        }
    }

    fn take_record(&mut self, kind: String, fields: Vec<(String, host::Value)>, sinks: u32) {
        let size = |(key, value): &(String, host::Value)| {
            key.len() + if let host::Value::Text(text) = value { text.len() } else { 8 }
        };
        let bytes: usize = kind.len() + fields.iter().map(size).sum::<usize>();
        let finite = |value: &host::Value| !matches!(value, host::Value::Number(n) if !n.is_finite());
        let valid = is_name(&kind)
            && fields.len() <= 64
            && sinks & !self.known_sinks == 0
            && fields.iter().all(|(key, value)| is_name(key) && finite(value))
            && fields.iter().enumerate().all(|(at, (key, _))| fields[..at].iter().all(|(other, _)| other != key));
        if !valid || !self.durable.output.take(bytes as u64) {
            self.durable.counts.records_dropped += 1;
            return;
        }
        self.durable.counts.records += 1;
        let fields = fields.into_iter().map(|(key, value)| (key, convert::value(value))).collect();
        self.services.emit(&self.name, Emitted { kind, fields, sinks });
    }

    fn take_alert(&mut self, key: String, severity: Severity, message: &str, labels: Vec<(String, String)>) {
        let durable = &mut *self.durable;
        let valid = (1..=128).contains(&key.len())
            && labels.len() <= 8
            && labels.iter().all(|(k, v)| is_name(k) && v.len() <= 128);
        if !valid {
            durable.counts.alerts_dropped += 1;
            return;
        }
        let count = match (durable.alerts.get_mut(&key), severity) {
            (None, Severity::Resolved) => return,
            (Some((_, count)), Severity::Resolved) => {
                let count = *count;
                durable.alerts.remove(&key);
                count
            }
            (Some((known, count)), severity) => {
                *count += 1;
                if *known == severity {
                    durable.counts.alerts_folded += 1;
                    return;
                }
                *known = severity;
                *count
            }
            (None, severity) => {
                if durable.alerts.len() >= durable.open_alerts || !durable.output.take(message.len() as u64) {
                    durable.counts.alerts_dropped += 1;
                    return;
                }
                durable.alerts.insert(key.clone(), (severity, 1));
                1
            }
        };
        durable.counts.alerts += 1;
        let message = line(message, LINE_BYTES);
        self.services.alert(&self.name, Alert { key, severity, message, labels, count });
    }

    fn take_tag(&mut self, index: u32, tag: String) {
        let tags = self.tags.iter().filter(|(at, _)| *at == index).count();
        let valid = (index as usize) < self.batch && (1..=TAG_BYTES).contains(&tag.len()) && tags < TAGS;
        if valid && !tag.chars().any(char::is_control) {
            self.tags.push((index, tag));
        } else {
            self.durable.counts.tags_refused += 1;
        }
    }
}

impl host::Host for State {
    fn log(&mut self, level: host::Level, message: String) -> wasmtime::Result<()> {
        guarded("log", || self.take_line(convert::level(level), &message))
    }

    fn config_text(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        guarded("config-text", || match self.config.get(&key) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        })
    }

    fn config_integer(&mut self, key: String) -> wasmtime::Result<Option<i64>> {
        guarded("config-integer", || match self.config.get(&key) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        })
    }

    fn config_number(&mut self, key: String) -> wasmtime::Result<Option<f64>> {
        guarded("config-number", || match self.config.get(&key) {
            Some(Value::Number(value)) => Some(*value),
            Some(Value::Integer(value)) => Some(*value as f64),
            _ => None,
        })
    }

    fn config_flag(&mut self, key: String) -> wasmtime::Result<Option<bool>> {
        guarded("config-flag", || match self.config.get(&key) {
            Some(Value::Flag(value)) => Some(*value),
            _ => None,
        })
    }

    fn open_series(
        &mut self,
        metric: host::Metric,
        name: String,
        unit: String,
        labels: Vec<(String, String)>,
    ) -> wasmtime::Result<Result<u32, host::Refusal>> {
        guarded("open-series", || {
            let opened = self.durable.metrics.open(convert::metric(metric), name, unit, labels);
            self.durable.counts.series_refused += u64::from(opened.is_err());
            opened
        })
    }

    fn update(&mut self, series: u32, value: f64) -> wasmtime::Result<()> {
        guarded("update", || {
            let taken = self.durable.metrics.update(series, value);
            self.durable.counts.values_refused += u64::from(!taken);
        })
    }

    fn emit(&mut self, kind: String, fields: Vec<(String, host::Value)>, sinks: u32) -> wasmtime::Result<()> {
        guarded("emit", || self.take_record(kind, fields, sinks))
    }

    fn alert(
        &mut self,
        key: String,
        severity: host::Severity,
        message: String,
        labels: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        guarded("alert", || self.take_alert(key, convert::severity(severity), &message, labels))
    }

    fn set_plan(&mut self, class: traffic::Class, plan: decisions::Plan) -> wasmtime::Result<()> {
        guarded("set-plan", || match (convert::class(class), convert::plan(plan, self.known_sinks)) {
            (Ok(class), Ok(plan)) => {
                self.durable.counts.plans += 1;
                self.services.set_plan(&self.name, class, plan);
            }
            _ => self.durable.counts.plans_refused += 1,
        })
    }

    fn replan(&mut self, communicator: Option<u32>) -> wasmtime::Result<()> {
        guarded("replan", || self.services.replan(&self.name, communicator))
    }

    fn open_operations(&mut self, older_than: u64) -> wasmtime::Result<Vec<traffic::OpenOperation>> {
        guarded("open-operations", || {
            let Some(open) = &self.open else { return Vec::new() };
            let latest = self.now_ns.saturating_sub(older_than);
            let mut found: Vec<_> = open.iter().filter(|open| open.operation.enqueued_ns <= latest).collect();
            found.sort_by_key(|open| open.operation.enqueued_ns);
            found.into_iter().take(OPEN_OPERATIONS).map(convert::open_operation).collect()
        })
    }

    fn tag(&mut self, index: u32, tag: String) -> wasmtime::Result<()> {
        guarded("tag", || self.take_tag(index, tag))
    }

    fn dump_black_box(&mut self, reason: String) -> wasmtime::Result<()> {
        guarded("dump-black-box", || {
            if self.durable.dumped.is_some_and(|at| at.elapsed() < self.dump_every) {
                self.durable.counts.dumps_dropped += 1;
                return;
            }
            self.durable.dumped = Some(Instant::now());
            self.durable.counts.dumps += 1;
            self.services.dump_black_box(&self.name, &line(&reason, LINE_BYTES));
        })
    }
}

impl traffic::Host for State {}
impl decisions::Host for State {}
