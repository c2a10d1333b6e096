//! Placeholder, replaced below.
use crate::error::SimError;
use crate::job::{Options, Progress};
use crate::report::Report;
use crate::scenario::Scenario;

pub(crate) fn run(
    _scenario: &Scenario,
    _ranks: &[u32],
    _base_unix_ns: u64,
    _options: &Options,
    _progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, SimError> {
    Err(SimError::Panicked)
}
