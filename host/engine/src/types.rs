//! What a filter and its surroundings say to each other, as native types: no type of wasmtime leaves this crate.

use collander_event::{Collective, Detail};

use crate::sketch::Sketch;

/// Version of the interface that this host speaks, as `major.minor.patch`. Older patches of the same minor work too.
pub const INTERFACE_VERSION: &str = "0.1.0";

/// Value of a setting, or of a field of an emitted record.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// Whole number.
    Integer(i64),
    /// Number; always finite where the engine hands it out.
    Number(f64),
    /// Text.
    Text(String),
}

impl Value {
    /// Name of its type, as messages have it.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Flag(_) => "flag",
            Self::Integer(_) => "integer",
            Self::Number(_) => "number",
            Self::Text(_) => "text",
        }
    }
}

/// Type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingType {
    /// True or false.
    Flag,
    /// Whole number.
    Integer,
    /// Number; an integer is accepted.
    Number,
    /// Text.
    Text,
}

/// A setting that the operator may give.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its key in the configuration.
    pub key: String,
    /// What it is.
    pub setting_type: SettingType,
    /// What it does, its unit, in one line.
    pub summary: String,
    /// Used if the operator gives none.
    pub default: Option<Value>,
    /// Whether the operator must give it.
    pub required: bool,
    /// Least value, inclusive.
    pub minimum: Option<f64>,
    /// Greatest value, inclusive.
    pub maximum: Option<f64>,
    /// The texts that are allowed; empty: any.
    pub choices: Vec<String>,
}

/// What a filter says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// One line.
    pub summary: String,
    /// The configuration that it takes.
    pub settings: Vec<Setting>,
    /// Names of its metrics, kinds of its records.
    pub emits: Vec<String>,
    /// Detail that it needs from the beginning (completed with what it implies).
    pub wants: Detail,
    /// Milliseconds between ticks; 0: none, else at least 10.
    pub tick_every_ms: u32,
    /// Whether a batch on which it fails is kept.
    pub on_failure_keep: bool,
}

/// What a head decision is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// Ordinal of the communicator.
    pub communicator: u32,
    /// The call.
    pub collective: Collective,
    /// As `collander_event::size_class` has it, 0 to 47.
    pub size_class: u8,
}

/// How many of a class are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanRate {
    /// None.
    None,
    /// All.
    All,
    /// One in 2^n, n ≤ 40.
    OneIn(u8),
    /// At most so many a second, at least 1; the host adjusts a power of two.
    PerSecond(u32),
}

/// A head decision, checked: its sinks exist, its numbers are in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPlan {
    /// How many.
    pub rate: PlanRate,
    /// In which detail (completed with what it implies).
    pub detail: Detail,
    /// To which sinks, a bit each in the order given at load; 0: the pipeline's own.
    pub sinks: u32,
    /// Milliseconds until the class is decided anew, at least 1; None: until `replan`.
    pub valid_for_ms: Option<u32>,
}

/// A tail decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Left out.
    Drop,
    /// Kept, to the sinks that it goes to anyway.
    Keep,
    /// Kept, to these sinks instead; never empty, each exists.
    Route(u32),
}

/// Weight of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// Weight of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Severity {
    Info,
    Warning,
    Critical,
    /// The alert of this key is over.
    Resolved,
}

impl Severity {
    /// Name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
            Self::Resolved => "resolved",
        }
    }
}

/// An alert that is raised, changes its severity, or is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// What is folded by.
    pub key: String,
    /// Weight.
    pub severity: Severity,
    /// For people.
    pub message: String,
    /// Labels, as the filter gave them.
    pub labels: Vec<(String, String)>,
    /// How often it was raised so far, this time included (resolved: in all).
    pub count: u64,
}

/// A record that a filter emits.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// Its kind.
    pub kind: String,
    /// Its fields, in order, keys unique.
    pub fields: Vec<(String, Value)>,
    /// To which sinks, a bit each; 0: the pipeline's own.
    pub sinks: u32,
}

/// How the values of a series are aggregated within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Metric {
    Counter,
    Gauge,
    Histogram,
}

impl Metric {
    /// Name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What a series holds.
#[derive(Clone, Debug, PartialEq)]
pub enum AggregateValue {
    /// Sum within the window, and since the series was opened.
    Counter {
        /// Within the window.
        delta: f64,
        /// Since it was opened.
        total: f64,
    },
    /// The last value.
    Gauge(f64),
    /// Distribution within the window.
    Histogram(Box<Sketch>),
}

/// One series at the end of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Its name.
    pub name: String,
    /// Unit of the value.
    pub unit: String,
    /// Labels, sorted by key.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: AggregateValue,
}

/// What a filter can have done by its surroundings. All calls come from within a call of the filter, on the thread that made it: they must not block,
/// and must not call the filter. A panic in one ends the guest's call, no more.
pub trait Services: Send + Sync {
    /// A line for the operator: one line, at most 1000 bytes, already rate-limited. `filter` is the name in the configuration.
    fn log(&self, filter: &str, level: LogLevel, message: &str);
    /// A record for sinks.
    fn emit(&self, filter: &str, record: Emitted);
    /// An alert, already folded.
    fn alert(&self, filter: &str, alert: Alert);
    /// The plan of a class.
    fn set_plan(&self, filter: &str, class: Class, plan: FilterPlan);
    /// The filter's plans of a communicator (of all, if none is named) are forgotten.
    fn replan(&self, filter: &str, communicator: Option<u32>);
    /// Save the last events of the process.
    fn dump_black_box(&self, filter: &str, reason: &str);
}
