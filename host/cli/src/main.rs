//! The program collander.
fn main() {}
