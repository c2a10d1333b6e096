//! The program `collander`: `demo`, `sim`, `show`, `doctor`, `blackbox`.
//!
//! Data goes to stdout, messages to stderr; see `exit` for the exit codes. One file a subcommand in `commands`.
#![deny(unsafe_code)]

mod args;
mod blackbox;
mod commands;
mod doctor;
mod exit;
mod library_path;
mod output;
mod progress;
mod show;
mod sketch;
mod units;
mod workers;

use std::process::ExitCode;

use args::{Cli, Command};
use exit::Exit;
use output::{Ui, message};

fn main() -> ExitCode {
    let cli = Cli::parse_process();
    let ui = Ui::new(cli.json, cli.color);
    let result = match &cli.command {
        Command::Demo(args) => commands::demo::run(args, &ui),
        Command::Sim(args) => commands::sim::run(args, &ui),
        Command::Show(args) => commands::show::run(args, &ui),
        Command::Doctor(args) => commands::doctor::run(args, &ui),
        Command::Blackbox(args) => commands::blackbox::run(args, &ui),
        Command::SimWorker(args) => commands::sim_worker::run(args),
        Command::DoctorLoad(args) => commands::doctor::run_load(args),
        Command::GenDocs(args) => commands::gen_docs::run(args),
    };
    let exit = result.unwrap_or_else(|error| {
        let exit = exit::code_of(&error);
        if exit != Exit::Ok {
            message(format!("error: {error:#}"));
        }
        exit
    });
    ExitCode::from(exit as u8)
}
