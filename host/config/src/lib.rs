//! Configuration: `collander.toml`, environment variables, label and sampling rules.
//!
//! [`load`] is all that the plugin needs. Read → merge → validate: `raw` and `env` know the keys from the table in `keys`,
//! `merge` lets a variable beat the file, `validate` makes the [`Config`], in which every default is filled in. Nothing
//! here runs on an NCCL thread but `load`, once, in the first `init`.
#![forbid(unsafe_code)]

mod env;
mod error;
mod inspector;
mod job;
mod keys;
mod load;
mod merge;
mod raw;
mod read;
mod reference;
mod units;
mod validate;
mod validated;

pub use env::Environment;
pub use error::{ConfigError, Problem};
pub use job::sanitise;
pub use load::{Loaded, load, load_from, load_with_notes};
pub use reference::reference;
pub use units::{bytes, duration, show_bytes, show_duration};
pub use validated::{
    Capture, Compression, Config, Drain, GpuTimer, Job, JsonFormat, Jsonl, Keep, LabelRule, Ring, SamplingRule,
    Selector, SinkConfig, SinkKind,
};

#[cfg(test)]
mod tests;
