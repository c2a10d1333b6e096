//! The command line.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{blackbox, demo, doctor, gen_docs, show, sim, sim_worker};
use crate::exit::Exit;
use crate::output::ColorChoice;

/// See what NCCL does: collectives, sends and receives of a training job, recorded by a profiler plugin.
#[derive(Debug, Parser)]
#[command(name = "collander", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// Write data as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour the output
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorChoice,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
#[allow(missing_docs, reason = "clap takes the documentation from the arguments' types")]
pub enum Command {
    Demo(demo::Args),
    Sim(sim::Args),
    Show(show::Args),
    Doctor(doctor::Args),
    Blackbox(blackbox::Args),
    #[command(hide = true)]
    SimWorker(sim_worker::Args),
    #[command(hide = true)]
    DoctorLoad(doctor::LoadArgs),
    #[command(hide = true)]
    GenDocs(gen_docs::Args),
}

impl Cli {
    /// The command with the exit codes in its help.
    pub fn command_with_codes() -> clap::Command {
        Self::command().after_help(Exit::help())
    }

    /// Parses the process's arguments; writes help or an error and ends the process if that is what is asked.
    pub fn parse_process() -> Self {
        let matches = Self::command_with_codes().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command_with_codes().debug_assert();
    }

    #[test]
    fn the_forms_that_scripts_rely_on_parse() {
        for form in [
            "collander sim --scenario a.toml --library l.so --api 7 --config c.toml --out d --json",
            "collander sim --recording a.gz b.gz --json",
            "collander sim --recording a.gz --recording b.gz --out d",
            "collander show a b --json",
            "collander --json show a",
            "collander blackbox dump 12 --last 5",
            "collander blackbox dump image.bin",
            "collander blackbox hold 12 --for 10s --out f",
            "collander demo",
            "collander doctor --json",
        ] {
            Cli::try_parse_from(form.split(' ')).unwrap_or_else(|e| panic!("{form}: {e}"));
        }
        for form in [
            "collander sim",
            "collander sim --scenario a --recording b",
            "collander show",
            "collander sim --recording a --api 8",
        ] {
            assert!(Cli::try_parse_from(form.split(' ')).is_err(), "{form}");
        }
    }
}
