//! Hidden `sim-worker`: one process of a simulated job. The job comes as JSON on stdin; progress and the report go as JSON
//! lines to stdout.

use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use collander_sim::{Job, Progress, Report};
use serde::{Deserialize, Serialize};

use crate::exit::Exit;

/// Runs one process of a simulated job.
#[derive(ClapArgs, Debug)]
pub struct Args {}

/// A line on a worker's stdout.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// How far it is.
    Progress(Progress),
    /// It is done.
    Report(Box<Report>),
    /// It could not run.
    Error(String),
}

/// Runs it.
pub fn run(_: &Args) -> Result<Exit> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("reading the job from stdin")?;
    let job: Job = serde_json::from_str(&text).context("stdin is no job")?;
    // What plugins print to stdout would come between: one lock a line, and the reader skips what is no message.
    let out = Mutex::new(std::io::stdout());
    let say = |message: &Message| -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&line)?;
        Ok(out.flush()?)
    };
    let result = collander_sim::run(&job, &|progress| {
        // A parent that has gone away ends us by the report below.
        let _ = say(&Message::Progress(progress));
    });
    match result {
        Ok(report) => {
            say(&Message::Report(Box::new(report)))?;
            Ok(Exit::Ok)
        }
        Err(error) => {
            say(&Message::Error(error.to_string()))?;
            Ok(Exit::WorkerFailed)
        }
    }
}
