//! NVIDIA Inspector's format 4.0, line by line.

use std::collections::HashMap;

use anyhow::{Context as _, Result, ensure};
use collander_event::{Collective, Datatype};
use collander_sim::{ExpectedOperation, OperationKind};
use collander_tests::{File, Request};
use serde_json::Value;

use super::{scenario_request, setup};

const SCENARIO: &str = r#"
ranks = 4
ranks_per_node = 2
processes = false
steps = 5
realtime = 0

[[communicator]]
name = "world"

[[operation]]
communicator = "world"
function = "AllReduce"
bytes = 1048576
channels = 3

[[operation]]
communicator = "world"
function = "AllGather"
datatype = "ncclFloat16"
bytes = 65536
channels = 2

[[operation]]
communicator = "world"
function = "ReduceScatter"
datatype = "ncclFloat64"
bytes = 4194304
channels = 2

[[operation]]
communicator = "world"
function = "Reduce"
count = 10
channels = 1

[[operation]]
communicator = "world"
function = "SendRecv"
count = 65536
channels = 1
"#;

/// The line as Inspector would print these values: keys in its order, numbers in its form.
fn rendered(line: &Value) -> Result<String> {
    let text = |value: &Value| -> Result<String> {
        Ok(format!("{:?}", value.as_str().context("a text")?).replace('/', "\\/"))
    };
    let whole = |value: &Value| -> Result<u64> { value.as_u64().context("a whole number") };
    let decimal = |value: &Value| -> Result<String> { Ok(format!("{:.6}", value.as_f64().context("a number")?)) };
    let (header, metadata, perf) = (&line["header"], &line["metadata"], &line["coll_perf"]);
    let header = format!(
        r#"{{"id":{},"rank":{},"n_ranks":{},"nnodes":{}}}"#,
        text(&header["id"])?,
        whole(&header["rank"])?,
        whole(&header["n_ranks"])?,
        whole(&header["nnodes"])?
    );
    let metadata = format!(
        r#"{{"inspector_output_format_version":{},"git_rev":{},"rec_mechanism":{},"dump_timestamp_us":{},"hostname":{},"pid":{}}}"#,
        text(&metadata["inspector_output_format_version"])?,
        text(&metadata["git_rev"])?,
        text(&metadata["rec_mechanism"])?,
        whole(&metadata["dump_timestamp_us"])?,
        text(&metadata["hostname"])?,
        whole(&metadata["pid"])?
    );
    let perf = format!(
        r#"{{"coll":{},"coll_sn":{},"coll_msg_size_bytes":{},"coll_exec_time_us":{},"coll_timing_source":{},"coll_algobw_gbs":{},"coll_busbw_gbs":{}}}"#,
        text(&perf["coll"])?,
        whole(&perf["coll_sn"])?,
        whole(&perf["coll_msg_size_bytes"])?,
        whole(&perf["coll_exec_time_us"])?,
        text(&perf["coll_timing_source"])?,
        decimal(&perf["coll_algobw_gbs"])?,
        decimal(&perf["coll_busbw_gbs"])?
    );
    Ok(format!(r#"{{"header":{header},"metadata":{metadata},"coll_perf":{perf}}}"#))
}

/// Who it is: rank, function, sequence number.
type Key = (i64, String, u64);

#[test]
fn collectives_as_inspector_4_0_writes_them() -> Result<()> {
    let mut child = setup()?.variable("COLLANDER_SINK_FORMAT", "inspector-4.0").spawn()?;
    let pid = child.pid();
    let report = child.ask(&scenario_request(SCENARIO, None)?)?.report.context("a report")?;
    child.end()?;
    let paths: Vec<_> = std::fs::read_dir(child.out())?.flatten().map(|entry| entry.path()).collect();
    let path =
        paths.iter().find(|path| path.to_string_lossy().ends_with(&format!("-pid{pid}.log"))).context("a log")?;
    let mut told: HashMap<Key, &ExpectedOperation> = HashMap::new();
    for operation in report.expected.iter().filter(|operation| operation.kind == OperationKind::Coll) {
        let size = operation.count * u64::from(Datatype::from_text(&operation.datatype).size());
        if size >= 8192 {
            let key = (operation.rank.into(), operation.function.clone(), operation.sequence.context("a number")?);
            told.insert(key, operation);
        }
    }
    ensure!(told.len() == 4 * 5 * 3, "{}", told.len());
    for line in std::fs::read_to_string(path)?.lines() {
        let value: Value = serde_json::from_str(line)?;
        ensure!(rendered(&value)? == line, "{line}\nis not\n{}", rendered(&value)?);
        let (header, metadata, perf) = (&value["header"], &value["metadata"], &value["coll_perf"]);
        ensure!(metadata["inspector_output_format_version"] == "v4.0", "{line}");
        ensure!(metadata["rec_mechanism"] == "nccl_profiler_interface" && metadata["pid"] == pid, "{line}");
        let function = perf["coll"].as_str().context("a function")?.to_owned();
        let key = (header["rank"].as_i64().context("a rank")?, function, perf["coll_sn"].as_u64().context("a number")?);
        let operation = told.remove(&key).with_context(|| format!("not told, or twice: {line}"))?;
        check_numbers(header, perf, operation).with_context(|| line.to_owned())?;
    }
    ensure!(told.is_empty(), "not written: {:?}", told.keys());
    check_account(&paths, &report)
}

fn check_numbers(header: &Value, perf: &Value, operation: &ExpectedOperation) -> Result<()> {
    let mut id = format!("{:#x}", operation.communicator);
    id.truncate(16);
    ensure!(header["id"] == id && header["n_ranks"] == 4 && header["nnodes"] == 2, "header");
    let size = operation.count * u64::from(Datatype::from_text(&operation.datatype).size());
    let spans = operation.kernel_channels.iter().filter_map(|channel| Some(channel.stop? - channel.start));
    let us = spans.max().context("channels")? / 1000;
    ensure!(perf["coll_msg_size_bytes"] == size && perf["coll_exec_time_us"] == us, "size {size}, time {us}");
    ensure!(perf["coll_timing_source"] == "kernel_gpu", "source");
    let ranks = 4.0;
    let (times, factor) = match Collective::from_text(&operation.function) {
        Collective::AllReduce => (1.0, 2.0 * (ranks - 1.0) / ranks),
        _ => (ranks, (ranks - 1.0) / ranks),
    };
    let algbw = if us == 0 { 0.0 } else { size as f64 * times / 1e9 / (us as f64 / 1e6) };
    let close =
        |value: &Value, wanted: f64| value.as_f64().is_some_and(|value| (value - wanted).abs() < 2e-6 + wanted * 1e-9);
    ensure!(close(&perf["coll_algobw_gbs"], algbw), "algbw {algbw}");
    ensure!(close(&perf["coll_busbw_gbs"], algbw * factor), "busbw {}", algbw * factor);
    Ok(())
}

/// Beside it stands our account, which says what the format cannot.
fn check_account(paths: &[std::path::PathBuf], report: &collander_sim::Report) -> Result<()> {
    let beside = paths.iter().find(|path| path.to_string_lossy().ends_with(".stats.jsonl")).context("no stats")?;
    let lines = File::read(beside)?.lines;
    let last = lines.last().context("a line")?;
    ensure!(last["type"] == "stats" && last["final"] == true && last["open"] == 0, "{last}");
    ensure!(last["seen"]["total"] == report.operations.total() && last["written"] == 60, "{last}");
    ensure!(last["dropped"]["not_representable"] == report.operations.total() - 60, "{last}");
    Ok(())
}

/// A request that is answered without a library.
#[test]
fn inspector_rejects_an_unknown_version() -> Result<()> {
    let mut child = setup()?.variable("COLLANDER_SINK_FORMAT", "inspector-9.9").spawn()?;
    child.ask(&Request::Open(None))?;
    let opened = child.ask(&Request::Init(collander_tests::Naming::new(1, "world")))?;
    ensure!(opened.context == 0 && opened.log.iter().any(|line| line.contains("inspector-9.9")), "{opened:?}");
    child.end()
}
