//! `collander blackbox`: the last records of a process, while it runs or after it was killed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, Subcommand};
use collander_ring::{Image, ImageError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::blackbox::{self, Dump};
use crate::exit::{Exit, error};
use crate::output::{Ui, message, stdout};
use crate::units;

/// Reads the rings of a process: its last events, also after it was killed.
#[derive(ClapArgs, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints the last records as operations, of a running process or of a saved black box
    Dump {
        /// Process id, or a file that `hold` saved
        #[arg(value_name = "PID|FILE")]
        target: String,
        /// At most so many operations, the last ones
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
    /// Holds the rings of a process until it dies or the time is over, then saves and prints them
    ///
    /// A process that is killed (also with -9) while its rings are held leaves its last events.
    Hold {
        /// Process id
        pid: u32,
        /// End after this time [default: when the process dies]
        #[arg(long = "for", value_name = "TIME", value_parser = units::parse_duration)]
        time: Option<Duration>,
        /// Where to save them [default: collander-blackbox-PID.bin]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print at most so many operations, the last ones
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
}

/// Runs it.
pub fn run(args: &Args, ui: &Ui) -> Result<Exit> {
    match &args.command {
        Command::Dump { target, last } => {
            let path = Path::new(target);
            // A file of that name wins over a process of that number only if it is named as a path.
            let image = match target.parse::<u32>() {
                Ok(pid) if !target.contains('/') => Image::open_pid(pid),
                _ => Image::from_file(path),
            };
            print(&image.map_err(refused)?, *last, ui)
        }
        Command::Hold { pid, time, out, last } => {
            let image = Image::open_pid(*pid).map_err(refused)?;
            let out = out.clone().unwrap_or_else(|| format!("collander-blackbox-{pid}.bin").into());
            let died = wait(*pid, *time)?;
            image.save(&out).with_context(|| out.display().to_string())?;
            let state = if died { "has ended" } else { "is still running" };
            message(format!("process {pid} {state}; its black box is in {}", out.display()));
            print(&image, *last, ui)
        }
    }
}

fn refused(problem: ImageError) -> anyhow::Error {
    error(Exit::NothingFound, problem.to_string())
}

/// Until the process dies (true) or the time is over (false).
fn wait(pid: u32, time: Option<Duration>) -> Result<bool> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no such process id")?;
    let deadline = time.map(|time| Instant::now() + time);
    let pidfd = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(rustix::io::Errno::SRCH) => return Ok(true),
        Err(_) => return Ok(wait_by_signal_zero(raw, deadline)),
    };
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(problem) => return Err(problem).context("waiting for the process"),
        }
    }
}

/// For kernels before 5.3, which have no pidfd.
fn wait_by_signal_zero(pid: Pid, deadline: Option<Instant>) -> bool {
    loop {
        if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return true;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn print(image: &Image, last: Option<usize>, ui: &Ui) -> Result<Exit> {
    let dump = Dump::of(image, last)?;
    if ui.json {
        ui.write_json(&dump)?;
    } else {
        let mut out = stdout();
        out.write_all(blackbox::text(&dump, ui).as_bytes())?;
        out.flush()?;
    }
    Ok(Exit::Ok)
}
