//! Recordings played into the recorder.

use std::path::PathBuf;

use collander_event::EventKind;
use collander_recording::{CallKind, EventDescriptor, Recording};

use super::recorder::Recorder;
use crate::{Faults, Job, Options, Report, SimError, Work, run};

fn recordings() -> Vec<PathBuf> {
    // A folder with more recordings than the repository has can be named for a thorough run.
    let folder = std::env::var_os("COLLANDER_TEST_RECORDINGS")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/recordings")), PathBuf::from);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("recordings")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "gz"))
        .collect();
    files.sort();
    files
}

fn play(file: &str, options: Options) -> Result<Report, SimError> {
    let file = format!("{}/../../tests/recordings/{file}.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    run(&Job { work: Work::Recording { file: file.into() }, options }, &|_| ())
}

fn plain(recorder: &Recorder) -> Options {
    Options { expected: true, ..Options::new(recorder.path.clone()) }
}

#[test]
fn every_call_of_every_recording_arrives() {
    for file in recordings() {
        let recorder = Recorder::new();
        // The recorder of the recordings asked for all but ProxyCtrl, or for more: ask for everything.
        recorder.set_mask(0xffff);
        let work = Work::Recording { file: file.clone() };
        let report = run(&Job { work, options: plain(&recorder) }, &|_| ()).unwrap_or_else(|error| panic!("{error}"));
        let recording = Recording::read(&file).expect("readable");
        let hidden = file.to_string_lossy().contains("2.32.3-mix-socket-2r1p");
        let mut recorded = [0_u64; 5];
        let mut timers = 0_u64;
        for call in &recording.calls {
            match &call.kind {
                CallKind::Init(_) => recorded[0] += 1,
                CallKind::Start(start) => {
                    recorded[1] += 1;
                    if let EventDescriptor::KernelCh { timer, .. } = start.descriptor {
                        timers = timers.wrapping_add(timer);
                    }
                }
                CallKind::State(change) => {
                    recorded[2] += 1;
                    if let (22, collander_recording::StateArgument::Timer(timer)) = (change.state, change.argument) {
                        timers = timers.wrapping_add(timer);
                    }
                }
                CallKind::Stop { .. } => recorded[3] += 1,
                CallKind::Finalize { .. } => recorded[4] += 1,
            }
        }
        let calls = recorder.calls();
        assert_eq!(calls[..5], recorded, "{}", file.display());
        assert_eq!((calls[5], calls[6], report.failed_calls), (0, 0, 0), "{}", file.display());
        assert_eq!(report.calls, recording.calls.len() as u64);
        assert_eq!(recorder.timers(), timers, "{}", file.display());
        let kinds = [EventKind::Coll, EventKind::P2p].map(|kind| recorder.started(kind));
        assert_eq!([report.operations.coll, report.operations.p2p], kinds);
        assert_eq!(report.expected.len() as u64, report.operations.total());
        let channels: usize = report.expected.iter().map(|operation| operation.kernel_channels.len()).sum();
        assert_eq!(channels as u64, recorder.started(EventKind::KernelCh), "{}", file.display());
        if report.api >= 6 && !hidden && !file.to_string_lossy().contains("-p2p-") {
            let api = recorder.started(EventKind::CollApi) + recorder.started(EventKind::P2pApi);
            assert_eq!(report.operations.coll + report.operations.p2p + report.operations.api_only, api);
        }
        assert!(report.log.is_empty() || report.log.iter().any(|text| text == "recorder is here"));
    }
}

#[test]
fn loads_aborts_and_ranks_are_reported() {
    let recorder = Recorder::new();
    let report = play("2.27.7-abort-shm-4r1p", plain(&recorder)).expect("plays");
    assert_eq!((report.ranks, report.communicators, report.loads), (4, 8, 2));
    assert_eq!((report.never_stopped, report.operations.coll), (2, 27));
    let recorder = Recorder::new();
    let report = play("2.30.7-reinit-shm-4r2p.p0", plain(&recorder)).expect("plays");
    assert_eq!((report.ranks, report.communicators, report.loads), (2, 4, 2));
    // 8 of 40 API calls are Broadcasts, which make no Coll since 2.30.
    assert_eq!(report.operations.coll, 32);
}

#[test]
fn only_what_the_mask_brings_is_called() {
    let recorder = Recorder::new();
    recorder.set_mask(EventKind::KernelCh.bit());
    play("2.32.3-p2p-hosts-4r2p.p0", plain(&recorder)).expect("plays");
    for (kind, expected) in [
        (EventKind::P2p, 400),
        (EventKind::KernelCh, 400),
        (EventKind::ProxyOp, 0),
        (EventKind::ProxyStep, 0),
        (EventKind::KernelLaunch, 0),
        (EventKind::P2pApi, 400),
    ] {
        assert_eq!(recorder.started(kind), expected, "{kind:?}");
    }
    let recorder = Recorder::new();
    recorder.set_mask(0);
    let report = play("2.32.3-p2p-hosts-4r2p.p0", plain(&recorder)).expect("plays");
    assert_eq!((report.functions.start, report.functions.init, report.operations.total()), (0, 2, 0));
}

#[test]
fn null_handles_silence_the_event_and_not_its_children() {
    let null = EventKind::P2p.bit() | EventKind::ProxyOp.bit();
    for (file, steps) in [("2.27.7-p2p-socket-4r4p.p0", 0), ("2.32.3-p2p-hosts-4r2p.p0", 390)] {
        let recorder = Recorder::new();
        recorder.set_null_kinds(null);
        play(file, plain(&recorder)).expect("plays");
        assert_eq!(recorder.started(EventKind::ProxyStep), steps, "{file}: 2.27.7 alone leaves the steps out");
        assert!(recorder.started(EventKind::KernelCh) > 0);
        let [.., after_stop, violations] = recorder.calls();
        assert_eq!((after_stop, violations), (0, 0), "{file}");
    }
}

#[test]
fn every_version_can_play_every_recording() {
    for api in 1..=7 {
        for file in ["2.27.7-mix-p2p-4r1p", "2.28.9-mix-socket-2r1p", "2.32.3-p2p-hosts-4r2p.p1"] {
            let recorder = Recorder::new();
            let report = play(file, Options { api: Some(api), ..plain(&recorder) }).expect("plays");
            let [.., after_stop, violations] = recorder.calls();
            assert_eq!((after_stop, violations, report.failed_calls), (0, 0, 0), "v{api} {file}");
            let expected = if file.contains("mix-p2p") {
                400
            } else if file.contains("mix-socket") {
                120
            } else {
                400
            };
            assert_eq!(report.operations.coll + report.operations.p2p, expected, "v{api} {file}");
            assert_eq!(report.api, api);
            assert_eq!(recorder.started(EventKind::KernelCh) > 0, api >= 3, "v{api} {file}");
        }
    }
}

#[test]
fn faults_are_injected_and_counted() {
    let recorder = Recorder::new();
    let faults = Faults { late: 0.5, doubled: 0.5, stale: 0.5, seed: 7, ..Faults::default() };
    let report = play("2.28.9-mix-socket-2r1p", Options { faults: Some(faults), ..plain(&recorder) }).expect("plays");
    let injected = report.injected;
    assert!(injected.late > 500 && injected.doubled > 500 && injected.stale > 500, "{injected:?}");
    let [.., after_stop, violations] = recorder.calls();
    assert_eq!(after_stop, injected.total());
    assert_eq!((violations, report.operations.coll), (0, 120));
    let recorder = Recorder::new();
    let options = Options { faults: Some(Faults::all(0.2, 1)), ..plain(&recorder) };
    let report = play("2.28.9-mix-socket-2r1p", options).expect("plays");
    assert!(report.injected.foreign_handles > 100 && report.injected.foreign_contexts > 100);
    assert!(recorder.calls()[6] > 0 && report.operations.coll == 120);
}

#[test]
fn errors_name_the_library_and_the_version() {
    let recorder = Recorder::new();
    let missing = play("2.28.9-mix-socket-2r1p", Options::new("/nowhere/lib.so".into())).expect_err("refused");
    assert!(missing.to_string().contains("cannot load /nowhere/lib.so"), "{missing}");
    let version = play("2.28.9-mix-socket-2r1p", Options { api: Some(8), ..plain(&recorder) }).expect_err("refused");
    assert!(version.to_string().contains("version 8 does not exist"), "{version}");
}
