//! Configuration: `collander.toml`, environment variables, label and sampling rules.
#![forbid(unsafe_code)]

mod validated;

pub use validated::{
    Capture, Compression, Config, Drain, GpuTimer, Job, JsonFormat, Jsonl, Keep, LabelRule, Ring, SamplingRule, Selector,
    SinkConfig, SinkKind,
};
