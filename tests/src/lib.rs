//! Kit for tests that cross crates.
