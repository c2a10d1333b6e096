//! The limits that collander promises to keep, and whether it does.

use serde::Serialize;

use crate::category::Category;
use crate::scenario::Scenario;

/// Default: share of ringfloor, user's thread.
pub const DEFAULT_USER: f64 = 0.65;
/// Default: share of ringfloor, proxy thread.
pub const DEFAULT_PROXY: f64 = 0.75;
/// Everything recorded: share of ringfloor, either thread.
pub const EVERYTHING: f64 = 1.25;
/// Sampled out: nanoseconds a collective above null, user's thread.
pub const SAMPLED_OUT_NS: f64 = 15.0;
/// Milliseconds to load.
pub const LOAD_MS: f64 = 5.0;
/// Milliseconds of `init`, default rings.
pub const INIT_MS: f64 = 2.0;
/// Milliseconds of `finalize`, working disk.
pub const FINALIZE_MS: f64 = 50.0;
/// Stripped library, MiB.
pub const LIBRARY_MIB: f64 = 3.0;
/// Growth of resident memory over the last nine tenths of a long run, MiB: what counts as flat.
pub const GROWTH_MIB: f64 = 8.0;

/// Most instructions of a call, or None if none is promised.
pub fn instructions(scenario: Scenario, category: Category) -> Option<f64> {
    use Category::{
        CollApiStart, CollApiStop, CollStart, CollStop, GroupApiStart, GroupApiState, GroupApiStop, GroupStart,
        GroupStop, KernelChStop, KernelLaunchStart, KernelLaunchStop,
    };
    let parent = matches!(
        category,
        GroupApiStart
            | GroupApiState
            | GroupApiStop
            | CollApiStop
            | KernelLaunchStart
            | KernelLaunchStop
            | GroupStart
            | GroupStop
    );
    let (start, recorded, unrecorded) = (140.0, 75.0, 15.0);
    match (scenario, category) {
        // It counts and looks its plan up: held by its time, not by its instructions.
        (Scenario::SampledOut, CollStart | CollStop) => None,
        // Its names and count go into the operation's record, or, if none follows, into one of its own.
        (_, CollApiStart) => Some(recorded),
        (Scenario::SampledOut, _) => Some(unrecorded),
        (_, CollStart) => Some(start),
        // Merged with the state before it.
        (_, KernelChStop) => Some(unrecorded),
        (Scenario::Default, _) if parent => Some(unrecorded),
        _ => Some(recorded),
    }
}

/// One limit and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What.
    pub what: String,
    /// Measured.
    pub measured: f64,
    /// Most that is allowed.
    pub limit: f64,
    /// Of both.
    pub unit: &'static str,
    /// Whether it holds.
    pub ok: bool,
}

impl Check {
    /// Compares.
    pub fn new(what: impl Into<String>, measured: f64, limit: f64, unit: &'static str) -> Self {
        Self { what: what.into(), measured, limit, unit, ok: measured <= limit }
    }

    /// As a line of a table.
    pub fn line(&self) -> String {
        let Self { what, measured, limit, unit, ok } = self;
        format!("{:5} {what:46} {measured:>10.2} {unit:14} limit {limit}", if *ok { "ok" } else { "OVER" })
    }
}
