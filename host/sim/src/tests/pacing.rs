//! Scenarios against the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use super::recorder::Recorder;
use crate::{Job, Options, Scenario, Work, run};

#[test]
fn gpu_stamps_are_unix_time_and_calls_come_after_them() {
    let text = "ranks = 2\nsteps = 20\ncompute_us = 2000\nprocesses = false\n[[communicator]]\nname = \"dp\"\n[[operation]]\n\
                communicator = \"dp\"\nfunction = \"AllReduce\"\nbytes = 1048576\n";
    let scenario = Scenario::parse(text, "pacing.toml").expect("a scenario");
    let recorder = Recorder::new();
    recorder.set_mask(0x46);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let base_unix_ns = now() + 20_000_000;
    let work = Work::Scenario { scenario: Box::new(scenario), ranks: vec![0, 1], base_unix_ns };
    let options = Options { expected: true, ..Options::new(recorder.path.clone()) };
    let report = run(&Job { work, options }, &|_| ()).expect("runs");
    let end = now();
    let stops =
        report.expected.iter().flat_map(|operation| &operation.kernel_channels).filter_map(|channel| channel.stop);
    let last = stops.max().expect("kernels");
    // 20 steps of 2 ms and more have passed on the wall, too.
    assert!(last > base_unix_ns + 38_000_000 && last <= end, "{base_unix_ns} {last} {end}");
    assert!(report.seconds > 0.055);
}

#[test]
fn rccl_counts_tens_of_nanoseconds() {
    let text = "ranks = 2\nsteps = 2\nprocesses = false\nrealtime = 0\ngpu_timer_ns = 10\n[[communicator]]\nname = \"dp\"\n\
                [[operation]]\ncommunicator = \"dp\"\nfunction = \"AllReduce\"\nbytes = 1048576\n";
    let scenario = Scenario::parse(text, "rccl.toml").expect("a scenario");
    let recorder = Recorder::new();
    let work = Work::Scenario { scenario: Box::new(scenario), ranks: vec![0], base_unix_ns: 1_800_000_000_000_000_000 };
    let options = Options { expected: true, ..Options::new(recorder.path.clone()) };
    let report = run(&Job { work, options }, &|_| ()).expect("runs");
    let start = report.expected[0].kernel_channels[0].start;
    assert!((180_000_000_000_000_000..180_000_000_100_000_000).contains(&start), "{start}");
}
