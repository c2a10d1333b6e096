//! The driver against the floors: which calls are made does not depend on the machine.

use std::collections::BTreeMap;

use crate::collective::Shape;
use crate::drive::{Options, run};
use crate::floors;
use crate::report::Report;

fn options(proxy: bool) -> Options {
    Options {
        version: None,
        collectives: 50,
        warmup: 10,
        depth: 4,
        shape: Shape { channels: 3, proxy, steps: 4, count: 1024 },
        bulk: false,
        inline: false,
        rate: 0.0,
        pin: false,
    }
}

fn issued(report: &Report) -> BTreeMap<&str, u64> {
    report.calls.iter().map(|call| (call.call.as_str(), call.issued)).collect()
}

#[test]
fn calls_follow_the_mask_and_the_shape() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let floors = floors::build(folder.path())?;
    for library in [&floors.null, &floors.ring, &floors.lean] {
        let report = run(library, &options(true))?;
        assert_eq!(report.version, 6);
        // All kinds but ProxyCtrl and NetPlugin are asked for; 60 collectives, 3 channels, 4 steps.
        let (collectives, channels, steps) = (60, 60 * 3, 60 * 3 * 4);
        let expected = [
            ("group_api_start", collectives),
            ("group_api_state", 2 * collectives),
            ("group_api_stop", collectives),
            ("coll_api_start", collectives),
            ("coll_api_stop", collectives),
            ("kernel_launch_start", collectives),
            ("kernel_launch_stop", collectives),
            ("group_start", collectives),
            ("group_stop", collectives),
            ("coll_start", collectives),
            ("coll_stop", collectives),
            ("kernel_ch_start", channels),
            ("kernel_ch_state", channels),
            ("kernel_ch_stop", channels),
            ("proxy_op_start", channels),
            ("proxy_op_state", channels),
            ("proxy_op_stop", channels),
            ("proxy_step_start", steps),
            ("proxy_step_state", 3 * steps),
            ("proxy_step_stop", steps),
        ];
        assert_eq!(issued(&report), BTreeMap::from(expected), "{}", report.name);
        assert!(report.calls.iter().all(|call| call.null_handles == 0));
        assert_eq!((report.user_ns.count, report.proxy_ns.count), (50, 50));
    }
    Ok(())
}

#[test]
fn one_thread_makes_the_same_calls() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let floors = floors::build(folder.path())?;
    let two = run(&floors.ring, &options(false))?;
    let one = run(&floors.ring, &Options { inline: true, bulk: true, ..options(false) })?;
    assert_eq!(issued(&one), issued(&two));
    assert!(!issued(&one).contains_key("proxy_op_start"));
    assert_eq!(one.user_ns.count, 50);
    Ok(())
}

#[test]
fn bad_options_and_libraries_name_themselves() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let floors = floors::build(folder.path())?;
    let message = |result: anyhow::Result<Report>| result.err().map(|error| format!("{error:#}")).unwrap_or_default();
    let mut none = options(false);
    none.shape.channels = 0;
    assert!(message(run(&floors.null, &none)).contains("--channels 0: expected 1 to 64"));
    assert!(message(run(&folder.path().join("absent.so"), &options(false))).contains("absent.so"));
    let v4 = Options { version: Some(4), ..options(false) };
    assert!(message(run(&floors.null, &v4)).contains("exports no ncclProfiler_v4"));
    Ok(())
}
