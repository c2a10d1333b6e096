//! x "bench" "typed"
fn main(){}
