//! One file a subcommand: its arguments and `run`.

pub mod blackbox;
pub mod demo;
pub mod doctor;
pub mod gen_docs;
pub mod show;
pub mod sim;
pub mod sim_worker;
