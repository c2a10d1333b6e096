//! The simulator against a C plugin that counts calls and notes violations.

mod pacing;
mod recorder;
mod replays;
mod scenarios;
