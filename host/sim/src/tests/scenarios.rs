//! Scenarios and loads run into the recorder.

use std::collections::BTreeMap;
use std::path::PathBuf;

use collander_event::EventKind;

use super::recorder::Recorder;
use crate::load::{self, Load};
use crate::{ExpectedOperation, Job, OperationKind, Options, Report, Scenario, Work, run, scenario_jobs};

fn example(name: &str) -> Scenario {
    let file = format!("{}/../../examples/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::load(file.as_ref()).unwrap_or_else(|error| panic!("{error}"))
}

/// All ranks in this process, as fast as possible, at a fixed time.
fn play(recorder: &Recorder, scenario: Scenario, api: Option<u8>) -> Report {
    let ranks = (0..scenario.ranks).collect();
    let work = Work::Scenario { scenario: Box::new(scenario), ranks, base_unix_ns: 1_800_000_000_000_000_000 };
    let options = Options { api, expected: true, realtime: Some(0.0), ..Options::new(recorder.path.clone()) };
    let report = run(&Job { work, options }, &|_| ()).unwrap_or_else(|error| panic!("{error}"));
    let [init, start, state, stop, finalize, after_stop, violations] = recorder.calls();
    assert_eq!((after_stop, violations, report.failed_calls), (0, 0, 0));
    let functions = report.functions;
    assert_eq!(
        [init, start, state, stop, finalize],
        [functions.init, functions.start, functions.state, functions.stop, functions.finalize]
    );
    assert_eq!(report.expected.len() as u64, report.operations.total());
    report
}

fn recorder(mask: u32) -> Recorder {
    let recorder = Recorder::new();
    recorder.set_mask(mask);
    recorder
}

fn duration(operation: &ExpectedOperation) -> Option<u64> {
    let start = operation.kernel_channels.iter().map(|channel| channel.start).min()?;
    let stops: Option<Vec<u64>> = operation.kernel_channels.iter().map(|channel| channel.stop).collect();
    Some(stops?.into_iter().max()? - start)
}

#[test]
fn every_kind_of_event_of_version_7_is_called() {
    let recorder = recorder(0xffff);
    let report = play(&recorder, example("everything"), Some(7));
    for kind in EventKind::ALL {
        assert!(recorder.started(kind) > 0, "{kind:?} never started");
    }
    assert_eq!(report.never_stopped, 0);
    assert_eq!((report.ranks, report.communicators), (4, 12));
    let of = |kind| report.expected.iter().filter(|operation| operation.kind == kind).count() as u64;
    assert_eq!(report.operations.coll, of(OperationKind::Coll));
    // 10 steps, 4 ranks: Broadcasts that are API calls only.
    assert_eq!((of(OperationKind::ApiOnly), of(OperationKind::CopyEngine)), (40, 40));
    assert!(report.expected.iter().any(|operation| operation.user_tag == 77));
}

#[test]
fn versions_agree_less_what_they_cannot_say() {
    let key = |operation: &ExpectedOperation| {
        let kind = if operation.kind == OperationKind::P2p { "p2p" } else { "collective" };
        (operation.context, kind, operation.function.clone(), operation.root_or_peer)
    };
    let run_with = |api| {
        let recorder = recorder(0xffff);
        let report = play(&recorder, example("everything"), Some(api));
        let mut keys = BTreeMap::new();
        for operation in &report.expected {
            *keys.entry(key(operation)).or_insert(0_u32) += 1;
        }
        let channels: Vec<_> = report.expected.iter().filter(|o| o.function == "AllReduce").cloned().collect();
        (keys, channels, report)
    };
    let (newest, coll, _) = run_with(7);
    for api in 1..7 {
        let (keys, older, report) = run_with(api);
        assert_eq!(keys, newest, "v{api}");
        if api < 6 {
            assert_eq!((report.operations.api_only, report.operations.copy_engine), (0, 0), "v{api}");
        }
        // The GPU times are the same wherever the version has them: of the symmetric kernels from v7 only.
        let timed = |operations: &[ExpectedOperation]| {
            let plain =
                operations.iter().filter(|operation| operation.channels == Some(2) && operation.context % 3 == 0);
            let mut times: Vec<_> =
                plain.map(|operation| (operation.context, operation.sequence, duration(operation))).collect();
            times.sort_unstable();
            times
        };
        if api >= 4 {
            assert_eq!(timed(&older), timed(&coll), "v{api}");
        }
    }
}

#[test]
fn the_straggler_comes_late_and_the_others_wait() {
    let mut scenario = example("tp-dp-straggler");
    scenario.steps = 6;
    let report = play(&recorder(0x46), scenario.clone(), None);
    assert_eq!(report.operations.coll, 8 * 6 * 11);
    // Ranks 4 to 7 are one TP group; rank 5 is its rank 1. The first operation of steps 0 and 3 tells.
    let first = |rank: i32, sequence| {
        let found = report.expected.iter().find(|operation| {
            (operation.rank, operation.sequence) == (rank, Some(sequence))
                && operation.ranks == 4
                && operation.context / 2 >= 4
                && operation.function == "AllReduce"
        });
        duration(found.expect("the operation")).expect("it ended")
    };
    for sequence in [0, 24] {
        assert!(first(1, sequence) < 2_000_000, "{}", first(1, sequence));
        for rank in [0, 2, 3] {
            assert!(first(rank, sequence) > 19_000_000);
        }
    }
    assert!(first(0, 8) < 5_000_000, "step 1 is as usual");
    let again = play(&recorder(0x46), scenario, None);
    assert_eq!(again.expected, report.expected, "the same seed gives the same times");
}

#[test]
fn a_slow_link_shows_in_its_steps_only() {
    let report = play(&recorder(0x46), example("slow-link"), None);
    let of = |sequence| {
        let found = report.expected.iter().find(|operation| {
            (operation.context, operation.sequence) == (3 * 2 + 1, Some(sequence)) && operation.ranks == 2
        });
        duration(found.expect("the operation")).expect("it ended") as f64
    };
    assert!(of(45) > 4.0 * of(10), "{} {}", of(45), of(10));
    assert!(of(70) < 1.5 * of(10));
}

#[test]
fn a_hang_leaves_the_others_open() {
    let report = play(&recorder(0x46), example("hang"), None);
    let open: Vec<_> = report.expected.iter().filter(|operation| duration(operation).is_none()).collect();
    assert_eq!(open.len(), 3, "{open:?}");
    assert!(open.iter().all(|operation| operation.function == "AllGather" && operation.sequence == Some(30)));
    assert!(open.iter().all(|operation| operation.rank != 2));
    assert_eq!(report.never_stopped, 3 * 8);
    assert_eq!(report.operations.coll, 4 * (30 * 2 + 1) + 3);
}

#[test]
fn an_abort_finalises_with_operations_open() {
    let report = play(&recorder(0x46), example("abort"), None);
    assert_eq!(report.functions.finalize, 4);
    // One kernel a rank has started and waits, the four behind it have not.
    assert_eq!(report.never_stopped, 4 * 8);
    let never = report.expected.iter().filter(|operation| operation.kernel_channels.is_empty()).count();
    assert_eq!(never, 4 * 4);
}

#[test]
fn graph_replays_have_no_api_call_and_no_new_sequence_number() {
    let recorder = recorder(0xffff);
    let report = play(&recorder, example("graphs"), Some(7));
    let replays: Vec<_> = report.expected.iter().filter(|operation| operation.graph_replay).collect();
    assert_eq!(replays.len(), 4 * 49 * 2);
    assert!(replays.iter().all(|operation| operation.sequence == Some(0)));
    // Captured calls are no operations; each rank has 50 AllGathers beside.
    assert_eq!(report.operations.coll, 4 * (49 * 2 + 50));
    assert_eq!(report.operations.api_only, 0);
    assert_eq!(recorder.started(EventKind::CollApi), 4 * (2 + 50));
    // Captured without kernel events, a graph within a node calls nobody.
    let silent = self::recorder(EventKind::Coll.bit());
    let report = play(&silent, example("graphs"), Some(7));
    assert_eq!(report.operations.coll, 4 * 50);
}

#[test]
fn a_scenario_is_cut_into_jobs_that_go_through_json() {
    let scenario = example("hang");
    let jobs = scenario_jobs(&scenario, &Options::new(PathBuf::from("lib.so")));
    assert_eq!(jobs.len(), 4);
    let text = serde_json::to_string(&jobs).expect("JSON");
    assert_eq!(serde_json::from_str::<Vec<Job>>(&text).expect("jobs"), jobs);
    assert_eq!(scenario_jobs(&example("graphs"), &Options::new("lib.so".into())).len(), 1);
}

#[test]
fn rates_and_files_of_all_examples_are_accepted() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
            files += 1;
        }
    }
    assert!(files >= 6);
}

#[test]
fn mistakes_in_a_scenario_are_named() {
    let good = "ranks = 4\nsteps = 1\n[[communicator]]\nname = \"tp\"\n[[operation]]\ncommunicator = \"tp\"\nfunction = \
                \"AllReduce\"\ncount = 1\n";
    assert!(Scenario::parse(good, "good.toml").is_ok());
    let message = |from: &str, to: &str| {
        Scenario::parse(&good.replace(from, to), "bad.toml").expect_err("must be refused").to_string()
    };
    for (from, to, expected) in [
        ("steps", "stps", "unknown field `stps`"),
        ("ranks = 4", "ranks = 0", "`ranks` is 0; expected 1 to 4096"),
        ("name = \"tp\"", "name = \"tp\"\nsize = 3", "`communicator `tp`: size × stride` is 3; expected a divisor"),
        (
            "communicator = \"tp\"",
            "communicator = \"dp\"",
            "operation 0: `communicator` is dp; expected one of [\"tp\"]",
        ),
        ("AllReduce", "AllRed", "`function` is AllRed; expected AllReduce, "),
        ("count = 1", "", "expected either `count` or `bytes`"),
        ("count = 1", "count = 1\ndatatype = \"float\\u00e9\"", "expected NCCL's name"),
    ] {
        let text = message(from, to);
        assert!(text.contains(expected) && text.contains("bad.toml"), "{text}");
    }
}

#[test]
fn loads_open_close_and_reload() {
    for (api, proxy_thread) in [(Some(4), true), (None, false)] {
        let recorder = Recorder::new();
        let load = Load {
            api,
            threads: 3,
            operations: 50,
            channels: 2,
            communicators: 4,
            loads: 3,
            proxy_thread,
            all_open_at_once: proxy_thread,
            ..Load::new(recorder.path.clone())
        };
        let report = load::run(&load).expect("runs");
        assert_eq!((report.operations.coll, report.communicators, report.loads), (3 * 3 * 4 * 50, 36, 3));
        let [init, start, state, stop, finalize, after_stop, violations] = recorder.calls();
        assert_eq!((init, finalize, after_stop, violations, report.never_stopped), (36, 36, 0, 0, 0));
        assert_eq!((start, state), (1800 * 4, 1800 * 2));
        assert_eq!((stop, report.calls), (start, init + start + state + stop + finalize));
    }
}
