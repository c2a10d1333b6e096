//! `show` on files made by hand: torn, several processes, several sinks, Inspector's; the table at 80 columns; the JSON
//! that scripts rely on.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::files::find;
use super::filter::Filter;
use super::operation;
use super::report::{Report, Sort};
use crate::commands::show::report;
use crate::output::{Paint, Ui};

const UI: Ui = Ui { json: false, paint: Paint::PLAIN, width: Some(80), progress: false };

fn header(pid: u32, session: u64, file: u32, sink: &str) -> String {
    json_line(json!({"type": "header", "format": "collander-jsonl", "version": 1, "host": "node-a", "pid": pid,
        "process_start_ns": 1_000, "session": session, "file": file, "sink": sink, "job": "7", "labels": {}}))
}

fn communicator(comm: u64, hash: &str, name: &str, label: &str, rank: i32, ranks: u32) -> String {
    json_line(json!({"type": "communicator", "comm": comm, "hash": hash, "name": name, "label": label, "rank": rank,
        "ranks": ranks, "nodes": 1, "api": 5, "opened_ns": 5}))
}

fn op(id: u64, comm: u64, collective: &str, bytes: u64, duration_ns: u64, factor: f64) -> String {
    let kind = if matches!(collective, "Send" | "Recv") { "p2p" } else { "coll" };
    let algbw = bytes as f64 / duration_ns as f64;
    json_line(
        json!({"type": "op", "id": id, "kind": kind, "comm": comm, "collective": collective, "seq": id, "count": 4,
        "datatype": "ncclFloat32", "bytes": bytes, "rank_bytes": bytes, "channels": 1, "channels_seen": 1,
        "enqueued_ns": 10, "enqueue_ns": 1, "duration_ns": duration_ns, "timing": "gpu", "algbw_gbs": algbw,
        "busbw_gbs": algbw * factor, "ended_ns": 20}),
    )
}

fn stats(sink: &str, flush: u64, last: bool, written: u64, full: u64, head: u64, open: u64) -> String {
    let seen = written + full + head + open;
    json_line(json!({"type": "stats", "sink": sink, "flush": flush, "unix_ns": 9, "final": last,
        "seen": {"total": seen, "coll": seen, "p2p": 0, "copy_engine": 0, "api": 0, "unknown": 0}, "written": written,
        "dropped": {"total": full, "ring_overrun": 0, "evicted": 0, "queue_full": full, "write_failed": 0,
        "shutdown_timeout": 0, "not_representable": 0}, "deleted": 0,
        "sampled_out": {"total": head, "head": head, "filter": 0, "unrouted": 0}, "open": open, "records": 1,
        "inferred_groups": 0, "communicators": 1, "anomalies": {"late_child": 2}}))
}

/// Keys in the order in which the sink writes them matter for `type` only: it comes first.
fn json_line(value: Value) -> String {
    let Value::Object(mut map) = value else { panic!("no object") };
    let kind = map.remove("type").unwrap();
    let rest = Value::Object(map).to_string();
    format!("{{\"type\":{kind},{}\n", &rest[1..])
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let bytes = match path.extension().and_then(|end| end.to_str()) {
        Some("zst") => zstd::encode_all(text.as_bytes(), 1).unwrap(),
        Some("gz") => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(text.as_bytes()).unwrap();
            out.finish().unwrap()
        }
        _ => text.as_bytes().to_vec(),
    };
    std::fs::write(&path, bytes).unwrap();
    path
}

fn shown(paths: &[PathBuf], filter: &Filter) -> (Report, Value) {
    let report = report(&find(paths).unwrap(), filter, Sort::default(), 0);
    let value = serde_json::to_value(&report).unwrap();
    (report, value)
}

/// Four ranks of one communicator, rank 2 always last; rotated, in three compressions, in folders.
fn job(folder: &Path) {
    for rank in 0..4u32 {
        let end = ["", ".zst", ".gz", ""][rank as usize];
        let mut first = header(100 + rank, 1, 1, "jsonl");
        first += &communicator(0, "0x7f8c496ae9f66101", "DP Group 0", "dp", rank as i32, 4);
        for n in 0..10 {
            let wait = if rank == 2 { 0 } else { 2_000_000 };
            first += &op(n, 0, "AllReduce", 16 << 20, 100_000 + wait + n * 100, 1.5);
        }
        first += &stats("jsonl", 1, false, 10, 0, 0, 3);
        let mut second = header(100 + rank, 1, 2, "jsonl");
        second += &communicator(0, "0x7f8c496ae9f66101", "DP Group 0", "dp", rank as i32, 4);
        for n in 10..13 {
            second += &op(n, 0, "Send", 4096, 20_000, 1.0);
        }
        second += &stats("jsonl", 2, true, 13, 1, 6, 0);
        write(folder, &format!("node-a/x-{rank}-1-1.jsonl{end}"), &first);
        write(folder, &format!("node-a/x-{rank}-1-2.jsonl{end}"), &second);
    }
}

#[test]
fn the_table_at_80_columns() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let (report, _) = shown(&[folder.path().to_owned()], &Filter::default());
    let text = report.text(&UI);
    let expected = "\
comm      collective   size count     p50     p99 algbw busbw slowest rank
dp 7f8c49 AllReduce  16 MiB    40 2.10 ms 2.10 ms  7.99    12 2 +2 ms
dp 7f8c49 Send        4 KiB    12   20 µs   20 µs 0.205 0.205 –
";
    assert_eq!(text.lines().take(3).map(|line| format!("{line}\n")).collect::<String>(), expected, "{text}");
    assert!(text.lines().take(3).all(|line| line.chars().count() <= 80));
    assert!(text.contains("rank 2 of 4 in dp 7f8c49 (process 102 on node-a)"), "{text}");
    assert!(text.contains("seen 80 = written 52 + dropped 4 + sampled out 24 + open 0: balances"), "{text}");
    assert!(text.contains("dropped: queue_full 4") && text.contains("anomalies: late_child 8"), "{text}");
}

#[test]
fn the_json_that_scripts_rely_on() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let (_, value) = shown(&[folder.path().to_owned()], &Filter::default());
    assert_eq!(value["operations"], json!({"coll": 40, "p2p": 12, "copy_engine": 0, "api": 0}));
    assert_eq!(
        (&value["seen"], &value["written"], &value["sampled_out"], &value["open"]),
        (&json!(80), &json!(52), &json!(24), &json!(0))
    );
    assert_eq!(value["dropped"]["queue_full"], 4);
    let dropped: u64 = value["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(80, 52 + dropped + 24);
    assert_eq!(value["anomalies"], json!({"late_child": 8}));
    assert_eq!((&value["processes"], &value["files"], &value["balanced"]), (&json!(4), &json!(8), &json!(true)));
    let straggler = &value["straggler"];
    assert_eq!((&straggler["rank"], &straggler["pid"], &straggler["host"]), (&json!(2), &json!(102), &json!("node-a")));
    let row = &value["table"][0];
    assert_eq!((&row["collective"], &row["bytes"], &row["count"]), (&json!("AllReduce"), &json!(16 << 20), &json!(40)));
    assert_eq!((&row["slowest"]["rank"], &row["slowest"]["how"]), (&json!(2), &json!("comes_last")));
    assert_eq!(row["communicator"]["name"], "DP Group 0");
}

#[test]
fn a_killed_process_leaves_what_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = header(1, 1, 1, "jsonl") + &communicator(0, "0x01", "", "", 0, 2);
    text += &op(1, 0, "AllReduce", 1024, 1000, 1.0);
    text += &stats("jsonl", 1, false, 1, 0, 0, 2);
    text += &op(2, 0, "AllReduce", 1024, 1000, 1.0);
    let torn = text.clone() + &op(3, 0, "AllReduce", 1024, 1000, 1.0)[..50];
    write(folder.path(), "plain.jsonl", &torn);
    let (report, value) = shown(&[folder.path().to_owned()], &Filter::default());
    assert_eq!((&value["operations"]["coll"], &value["unaccounted"]), (&json!(2), &json!(1)));
    assert_eq!((&value["seen"], &value["open"], &value["balanced"]), (&json!(3), &json!(2), &json!(true)));
    assert_eq!(value["bad_lines"], 0);
    assert!(report.text(&UI).contains("its last line is torn"), "{}", report.text(&UI));
    assert!(report.text(&UI).contains("1 of 1 session did not end in order"), "{}", report.text(&UI));

    let mut frames = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let last = zstd::encode_all(torn.as_bytes(), 1).unwrap();
    frames.extend(&last[..last.len() / 2]);
    let path = folder.path().join("frames.jsonl.zst");
    std::fs::write(&path, frames).unwrap();
    let (_, value) = shown(&[path], &Filter::default());
    assert_eq!(value["seen"], 3);
    assert!(value["damaged"][0]["what"].as_str().unwrap().contains("incomplete"), "{value}");
}

#[test]
fn damage_within_is_counted_and_the_rest_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = header(1, 1, 1, "jsonl") + &communicator(0, "0x01", "", "", 0, 2);
    text += "{\"type\":\"op\",\"id\":\n\u{1}\u{2}\n";
    text += &op(2, 0, "AllReduce", 1024, 1000, 1.0);
    let path = write(folder.path(), "a.jsonl", &text);
    let (_, value) = shown(&[path], &Filter::default());
    assert_eq!((&value["operations"]["coll"], &value["bad_lines"]), (&json!(1), &json!(2)));
}

#[test]
fn several_sinks_and_sessions_are_not_counted_twice() {
    let folder = tempfile::tempdir().unwrap();
    for sink in ["jsonl", "second"] {
        for session in 1..=2 {
            let mut text = header(1, session, 1, sink) + &communicator(0, "0x01", "", "", 0, 2);
            text += &op(1, 0, "AllReduce", 1024, 1000, 1.0);
            text += &stats(sink, 4, true, 1, 0, 1, 0);
            write(folder.path(), &format!("{sink}/h-1-{session}-1.jsonl"), &text);
        }
    }
    let (report, value) = shown(&[folder.path().to_owned()], &Filter::default());
    assert_eq!((&value["operations"]["coll"], &value["seen"], &value["sessions"]), (&json!(2), &json!(4), &json!(2)));
    assert_eq!(value["sinks"].as_array().unwrap().iter().map(|s| &s["seen"]).collect::<Vec<_>>(), [4, 4]);
    assert!(report.text(&UI).contains("sinks: jsonl, second; each process is counted by its first"));
    // The same file named twice is one file.
    let path = folder.path().join("jsonl/h-1-1-1.jsonl");
    let (_, value) = shown(&[path.clone(), path], &Filter::default());
    assert_eq!((&value["files"], &value["seen"]), (&json!(1), &json!(2)));
}

#[test]
fn filters_choose_operations_and_leave_the_account() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let only = |filter: Filter| shown(&[folder.path().to_owned()], &filter).1;
    let value = only(Filter { rank: vec![1], ..Filter::default() });
    assert_eq!((&value["operations"]["coll"], &value["seen"]), (&json!(10), &json!(80)));
    let value = only(Filter { min_bytes: Some(5000), ..Filter::default() });
    assert_eq!((&value["operations"]["coll"], &value["operations"]["p2p"]), (&json!(40), &json!(0)));
    let value = only(Filter { slower_than: Some(1_000_000), ..Filter::default() });
    assert_eq!(value["operations"]["coll"], 30);
    for (text, n) in [("Group 0", 40), ("dp", 40), ("0x7f8c", 40), ("tp", 0)] {
        let value = only(Filter { communicator: vec![text.into()], ..Filter::default() });
        assert_eq!(value["operations"]["coll"], n, "{text}");
    }
}

#[test]
fn inspectors_files_make_a_table_too() {
    let folder = tempfile::tempdir().unwrap();
    let line = |rank: u32, time: f64| {
        json!({"header": {"id": "0x7f8c496ae9f661", "rank": rank, "n_ranks": 2, "nnodes": 1},
            "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "x",
            "dump_timestamp_us": 1, "hostname": "h", "pid": 40 + rank},
            "coll_perf": {"coll": "AllGather", "coll_sn": 1, "coll_msg_size_bytes": 1024, "coll_exec_time_us": time,
            "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 2.0, "coll_busbw_gbs": 1.0}})
        .to_string()
            + "\n"
    };
    for rank in 0..2 {
        write(folder.path(), &format!("h-pid{}.log", 40 + rank), &line(rank, 100.0).repeat(5));
    }
    write(folder.path(), "other.log", "a log of something else\n");
    let (report, value) = shown(&[folder.path().to_owned()], &Filter::default());
    assert_eq!(
        (&value["operations"]["coll"], &value["seen"], &value["balanced"]),
        (&json!(10), &json!(10), &json!(true))
    );
    assert_eq!((&value["processes"], &value["table"][0]["bytes"]), (&json!(2), &json!(2048)));
    assert!(value["skipped"].as_array().unwrap().is_empty(), "{}", report.text(&UI));
    // Our own files of the same process win.
    let mut own = header(40, 1, 1, "jsonl").replace("node-a", "h") + &communicator(0, "0x01", "", "", 0, 2);
    own += &op(1, 0, "AllReduce", 1024, 1000, 1.0);
    write(folder.path(), "own.jsonl", &own);
    let (_, value) = shown(&[folder.path().to_owned()], &Filter::default());
    assert_eq!(value["operations"]["coll"], 6);
}

#[test]
fn one_operation_is_found_in_its_process() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let found = find(&[folder.path().to_owned()]).unwrap();
    assert_eq!(operation::search(&found, "7".parse().unwrap()).len(), 4);
    let matches = operation::search(&found, "102:7".parse().unwrap());
    assert_eq!(matches.len(), 1);
    let text = operation::text(&matches[0], &UI);
    assert!(text.starts_with("AllReduce 7\n"), "{text}");
    assert!(text.contains("dp DP Group 0 0x7f8c496ae9f66101 (rank 2 of 4"), "{text}");
    assert!(text.contains("duration_ns        101 µs") && text.contains("16 MiB (16777216)"), "{text}");
    assert!(operation::search(&found, "999999".parse().unwrap()).is_empty());
}

#[test]
fn what_is_not_ours_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let recording = write(folder.path(), "r.jsonl.gz", "{\"recording\":1}\n");
    let future = write(folder.path(), "f.jsonl", &header(1, 1, 1, "s").replace("\"version\":1", "\"version\":2"));
    let empty = write(folder.path(), "e.jsonl", "");
    let found = find(&[recording, future, empty]).unwrap();
    let why: Vec<&str> = found.skipped.iter().map(|(_, why)| why.as_str()).collect();
    assert!(found.inputs.is_empty());
    assert!(
        why[0].contains("sim --recording") && why[1].contains("version 2") && why[2].contains("no line"),
        "{why:?}"
    );
    assert!(find(&[folder.path().join("missing")]).is_err());
}
