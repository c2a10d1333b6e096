//! The real library, driven as NCCL drives it, and what it writes. Each case is a process of its own.

mod accounting;
mod api_versions;
mod faults;
mod inspector;
mod life;
mod no_allocation;
mod recordings;
mod sampling;
mod scenarios;
mod two_processes;

use anyhow::Result;
use collander_sim::{Options, Scenario, scenario_jobs};
use collander_tests::{Child, Collectives, Naming, Reply, Request, Setup, places};

/// A driver with the default configuration.
fn setup() -> Result<Setup> {
    Setup::new(env!("CARGO_BIN_EXE_collander-test-driver"))
}

/// Options of a job that lists its operations.
fn options(api: Option<u8>) -> Options {
    Options { api, expected: true, ..Options::new(places::library()) }
}

/// A driver with the library loaded and one communicator, and its context.
fn opened(setup: Setup, api: Option<u8>) -> Result<(Child, u64)> {
    let mut child = setup.spawn()?;
    child.ask(&Request::Open(api))?;
    let context = child.ask(&Request::Init(Naming::new(0xabc, "world")))?.context;
    Ok((child, context))
}

/// Runs AllReduces.
fn all_reduces(child: &mut Child, context: u64, first: u64, count: u64) -> Result<Reply> {
    child.ask(&Request::Collectives(Collectives::new(context, first, count)))
}

/// Waits until so many operations have been seen, and none is open: an end has a bounded time, which a library without
/// optimisation may need longer for.
fn settled(child: &Child, operations: u64) -> Result<()> {
    until(|| {
        // A file may be deleted while it is read.
        let stats = child.output().and_then(|output| output.session()?.last().cloned());
        Ok(stats.is_ok_and(|stats| stats["seen"]["total"].as_u64() >= Some(operations) && stats["open"] == 0))
    })
}

/// All of a scenario in one process, as fast as possible.
fn scenario_request(text: &str, api: Option<u8>) -> Result<Request> {
    let mut scenario = Scenario::parse(text, "test")?;
    scenario.realtime = 0.0;
    request_of(scenario, api)
}

/// The same, at the scenario's own pace.
fn paced_request(text: &str, api: Option<u8>) -> Result<Request> {
    request_of(Scenario::parse(text, "test")?, api)
}

fn request_of(mut scenario: Scenario, api: Option<u8>) -> Result<Request> {
    scenario.processes = false;
    let jobs = scenario_jobs(&scenario, &options(api));
    Ok(Request::Job(Box::new(jobs.into_iter().next().expect("a job"))))
}

/// Waits until it holds; four minutes are for ever.
fn until(mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = std::time::Instant::now();
    while !holds()? {
        anyhow::ensure!(begin.elapsed().as_secs() < 240, "waited in vain");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(())
}
