//! JSON Lines files: `sink` decides when, the formats say what, `encode` compresses, `files` rotates, `storage` is the disk.

mod encode;
mod files;
mod format_collander;
mod format_inspector;
mod inspector_numbers;
mod json;
mod operation;
mod sink;
mod storage;

pub(crate) use sink::JsonlSink;
pub(crate) use storage::Disk;

#[cfg(test)]
mod tests;
