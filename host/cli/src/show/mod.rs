//! From files to what `show` and `demo` print.

pub mod account;
pub mod files;
pub mod filter;
pub mod inspector;
pub mod lines;
pub mod operation;
pub mod read;
pub mod record;
pub mod report;
pub mod straggler;
pub mod table;
#[cfg(test)]
mod tests;
pub mod text;
