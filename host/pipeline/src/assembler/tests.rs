//! Synthetic records for what NCCL is known to do, one test each; see `kit` for how they are made.

mod bounds;
mod copy_engine;
mod endings;
mod fuzz;
mod graphs;
mod groups;
mod kernels;
mod kit;
mod naming;
mod proxies;
mod sampling;
