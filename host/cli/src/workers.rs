//! Runs the jobs of a simulation, each in a process of its own: this program again, as `sim-worker`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use collander_sim::{Job, Report, Work};
use serde::Serialize;

use crate::commands::sim_worker::Message;

/// How the workers run.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// COLLANDER_CONFIG of the workers.
    pub config: Option<PathBuf>,
    /// COLLANDER_SINK_DIRECTORY of the workers.
    pub out: Option<PathBuf>,
    /// All must be done by then.
    pub timeout: Duration,
}

/// A worker that did not end well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// `rank 3`, or the recording.
    pub who: String,
    /// What happened.
    pub what: String,
}

/// What all workers did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// United reports of those that ended well.
    pub report: Report,
    /// Process ids, in the order of the jobs.
    pub pids: Vec<u32>,
    /// Those that did not.
    pub failures: Vec<Failure>,
}

enum Event {
    Said(usize, Message),
    Closed(usize),
}

struct Worker {
    child: Child,
    who: String,
    report: Option<Report>,
    error: Option<String>,
    share: f64,
}

/// Runs all jobs side by side. `progress` gets the share that is done, 0 to 1.
///
/// # Errors
/// A worker cannot be started. Workers that fail are in the outcome.
pub fn run(jobs: &[Job], setting: &Setting, progress: &mut dyn FnMut(f64)) -> Result<Outcome> {
    let (send, events) = mpsc::channel();
    let mut workers = Vec::with_capacity(jobs.len());
    for (number, job) in jobs.iter().enumerate() {
        match start(number, job, setting, send.clone()) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                workers.iter_mut().for_each(end);
                return Err(error);
            }
        }
    }
    drop(send);
    let pids = workers.iter().map(|worker| worker.child.id()).collect();
    let hung = listen(&mut workers, &events, setting.timeout, progress);
    let mut outcome = Outcome { pids, ..Outcome::default() };
    for (number, mut worker) in workers.into_iter().enumerate() {
        if hung.contains(&number) {
            end(&mut worker);
            let what = format!("no end within {:?}: killed (--timeout)", setting.timeout);
            outcome.failures.push(Failure { who: worker.who, what });
            continue;
        }
        let status = worker.child.wait()?;
        match worker.report {
            Some(report) if status.success() => outcome.report.merge(report),
            _ => {
                let what = worker.error.unwrap_or_else(|| describe(status));
                outcome.failures.push(Failure { who: worker.who, what });
            }
        }
    }
    Ok(outcome)
}

fn start(number: usize, job: &Job, setting: &Setting, send: Sender<Event>) -> Result<Worker> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut command = Command::new(program);
    command.arg("sim-worker").stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(config) = &setting.config {
        command.env("COLLANDER_CONFIG", config);
    }
    if let Some(out) = &setting.out {
        command.env("COLLANDER_SINK_DIRECTORY", out);
    }
    let mut child = command.spawn().context("starting a worker")?;
    let text = serde_json::to_vec(job)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    // On threads of their own: a worker that reads slowly or dies must not hold up the others.
    std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&text)));
    std::thread::spawn(move || {
        let Some(stdout) = stdout else { return };
        for line in BufReader::new(stdout).split(b'\n') {
            let Ok(line) = line else { break };
            // A plugin may print to stdout.
            if let Ok(message) = serde_json::from_slice(&line)
                && send.send(Event::Said(number, message)).is_err()
            {
                return;
            }
        }
        let _ = send.send(Event::Closed(number));
    });
    Ok(Worker { child, who: name_of(job), report: None, error: None, share: 0.0 })
}

/// Until all have closed their output, or the time is over; returns those that have not.
fn listen(
    workers: &mut [Worker],
    events: &Receiver<Event>,
    timeout: Duration,
    progress: &mut dyn FnMut(f64),
) -> Vec<usize> {
    let deadline = Instant::now() + timeout;
    let mut open: Vec<usize> = (0..workers.len()).collect();
    while !open.is_empty() {
        match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Said(number, Message::Progress(now))) => {
                workers[number].share = if now.total == 0 { 0.0 } else { now.done as f64 / now.total as f64 };
            }
            Ok(Event::Said(number, Message::Report(report))) => {
                workers[number].report = Some(*report);
                workers[number].share = 1.0;
            }
            Ok(Event::Said(number, Message::Error(error))) => workers[number].error = Some(error),
            Ok(Event::Closed(number)) => open.retain(|other| *other != number),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
        progress(workers.iter().map(|worker| worker.share).sum::<f64>() / workers.len() as f64);
    }
    // A worker can close its output and still not end.
    for (number, worker) in workers.iter_mut().enumerate() {
        while !open.contains(&number) && !matches!(worker.child.try_wait(), Ok(Some(_)) | Err(_)) {
            if Instant::now() >= deadline {
                open.push(number);
            } else {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    open
}

fn end(worker: &mut Worker) {
    let _ = worker.child.kill();
    let _ = worker.child.wait();
}

fn name_of(job: &Job) -> String {
    match &job.work {
        Work::Recording { file } => file.display().to_string(),
        Work::Scenario { ranks, .. } => match ranks.as_slice() {
            [rank] => format!("rank {rank}"),
            [first, .., last] => format!("ranks {first} to {last}"),
            [] => "no rank".into(),
        },
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}{}", signal_name(signal)),
        (None, Some(0)) => "ended without a report".into(),
        (None, code) => format!("ended with exit code {}", code.unwrap_or(-1)),
    }
}

const fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL: an instruction that this CPU lacks)",
        6 => " (SIGABRT: the library aborted)",
        7 => " (SIGBUS)",
        9 => " (SIGKILL: by someone, or for lack of memory)",
        11 => " (SIGSEGV: the library crashed)",
        15 => " (SIGTERM)",
        _ => "",
    }
}
