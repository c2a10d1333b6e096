use collander_event::{Channel, Flags, Phase, ProxyOperation, ProxyStep, Waits};
use serde_json::json;

use super::*;

const ALL: [Compression; 3] = [Compression::Plain, Compression::Gzip, Compression::Zstd];

#[test]
fn a_file_says_who_what_and_how_many() {
    for compression in ALL {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = sink(&config(&folder.path().join("a/b/{job}-{host}"), compression));
        assert!(sink.location().contains("a/b/7-node-a/node-a-42-1-1.jsonl"), "{}", sink.location());
        let communicator = communicator(3);
        accept(&mut sink, &communicator, 0..3);
        assert_eq!(sink.account().pending, 3);
        sink.flush(&snapshot(3), false);
        accept(&mut sink, &communicator, 3..5);
        sink.flush(&snapshot(5), true);
        assert_eq!((sink.account().written, sink.account().pending), (5, 0));
        let files = files(&folder.path().join("a/b/7-node-a"));
        assert_eq!(files.len(), 1);
        let end = match compression {
            Compression::Plain => "node-a-42-1-1.jsonl",
            Compression::Gzip => "node-a-42-1-1.jsonl.gz",
            Compression::Zstd => "node-a-42-1-1.jsonl.zst",
        };
        assert_eq!(files[0].file_name().unwrap(), end);
        let records = records(&files[0]);
        let types: Vec<&str> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["header", "communicator", "op", "op", "op", "stats", "op", "op", "stats"]);
        let created = records[0]["created_ns"].clone();
        assert_eq!(
            records[0],
            json!({"type": "header", "format": "collander-jsonl", "version": 1, "collander": env!("CARGO_PKG_VERSION"),
                "host": "node-a", "pid": 42, "process_start_ns": 1_700_000_000_000_000_000_u64, "session": 1, "file": 1,
                "created_ns": created, "sink": "jsonl", "job": "7", "job_source": "config", "labels": {"team": "a\"b"},
                "api": 5, "gpu_uuid": null, "clock": "tsc"})
        );
        assert_eq!(
            records[1],
            json!({"type": "communicator", "comm": 3, "hash": "0x7f8c496ae9f66101", "name": "DP Group 3", "label": "dp",
                "rank": 2, "ranks": 8, "nodes": 1, "api": 5, "opened_ns": 1_752_867_229_000_000_000_u64})
        );
        assert_eq!(
            records[3],
            json!({"type": "op", "id": 1280, "kind": "coll", "comm": 3, "collective": "AllReduce", "seq": 1,
                "count": 4_294_967_296_u64, "datatype": "ncclFloat32", "bytes": 17_179_869_184_u64,
                "rank_bytes": 17_179_869_184_u64, "algo": "RING", "proto": "LL", "channels": 1, "channels_seen": 1,
                "warps": 16, "enqueued_ns": 1_752_867_229_235_059_001_u64, "enqueue_ns": 5000, "queued_ns": 122_000,
                "duration_ns": 61_974_000, "longest_channel_ns": 61_974_000, "timing": "gpu", "algbw_gbs": 277.210_914,
                "busbw_gbs": 485.119_099, "ended_ns": 1_752_867_229_297_155_000_u64,
                "gpu_start": 1_752_867_229_235_181_000_u64, "gpu_stop": 1_752_867_229_297_155_000_u64})
        );
        let last = records.last().unwrap();
        assert_eq!(
            *last,
            json!({"type": "stats", "sink": "jsonl", "flush": 2, "unix_ns": 1_752_867_230_000_000_000_u64, "final": true,
                "seen": {"total": 38, "coll": 27, "p2p": 1, "copy_engine": 2, "api": 3, "unknown": 5}, "written": 5,
                "dropped": {"total": 8, "ring_overrun": 5, "evicted": 2, "queue_full": 1, "write_failed": 0,
                    "shutdown_timeout": 0, "not_representable": 0},
                "deleted": 0, "sampled_out": {"total": 21, "head": 11, "filter": 7, "unrouted": 3}, "open": 4,
                "records": 99, "inferred_groups": 1, "communicators": 2, "anomalies": {"double_stop": 6}})
        );
        of_type(&records, "stats").into_iter().for_each(assert_balances);
    }
}

#[test]
fn everything_known_of_an_operation_is_in_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = sink(&config(folder.path(), Compression::Plain));
    let waits = Waits { gpu: 1, peer: 2, wire: 3, flush: 4 };
    let step = ProxyStep {
        step: 1,
        start_ns: 2,
        gpu_wait_ns: 3,
        peer_wait_ns: 4,
        wait_ns: 5,
        flush_wait_ns: 6,
        stop_ns: 7,
        bytes: 8,
    };
    let phase = Phase { phase: 9, name: "p\"h", start: 10, stop: 0 };
    let operation = Operation {
        function: "ncclAllReduce",
        datatype_text: "strange",
        user_datatype: "ncclFloat16",
        partner: 4,
        flags: Flags(Flags::GRAPH | Flags::REPLAY | Flags::IN_INFERRED_GROUP),
        waits: Some(waits),
        sent_bytes: 11,
        received_bytes: 12,
        proxy_operations: 13,
        proxy_steps: 14,
        user_tag: u64::MAX,
        kernel_variant: "variant",
        sync_strategy: "strategy",
        group: 15,
        members: 16,
        channel_list: vec![
            Channel { channel: 1, gpu_start: 2, gpu_stop: 3, cpu_start_ns: 4, cpu_stop_ns: 5, phases: vec![phase] },
            Channel { channel: 2, cpu_start_ns: 6, ..Channel::default() },
        ],
        proxies: vec![
            ProxyOperation {
                channel: 1,
                peer: 2,
                send: true,
                steps: 3,
                steps_done: 4,
                chunk_bytes: 5,
                bytes: 6,
                foreign_pid: 7,
                start_ns: 8,
                in_progress_ns: 9,
                stop_ns: 10,
                waits,
                step_list: vec![step, ProxyStep { step: 2, start_ns: 3, ..ProxyStep::default() }],
            },
            ProxyOperation { peer: 1, start_ns: 2, ..ProxyOperation::default() },
        ],
        ..all_reduce(&communicator(0), 0)
    };
    sink.accept(&operation);
    sink.accept(&Operation {
        kind: OpKind::P2p,
        collective: Collective::Send,
        function: "Send",
        partner: 3,
        ..Operation::default()
    });
    sink.flush(&snapshot(2), true);
    let records = records(&files(folder.path())[0]);
    let ops = of_type(&records, "op");
    let full = ops[0];
    for (key, value) in [
        ("function", json!("ncclAllReduce")),
        ("datatype_text", json!("strange")),
        ("user_datatype", json!("ncclFloat16")),
        ("root", json!(4)),
        ("flags", json!(["graph", "replay", "in_inferred_group"])),
        ("waits", json!({"gpu_ns": 1, "peer_ns": 2, "wire_ns": 3, "flush_ns": 4})),
        ("sent_bytes", json!(11)),
        ("received_bytes", json!(12)),
        ("proxy_operations", json!(13)),
        ("proxy_steps", json!(14)),
        ("user_tag", json!("0xffffffffffffffff")),
        ("kernel_variant", json!("variant")),
        ("sync_strategy", json!("strategy")),
        ("group", json!(15)),
        ("members", json!(16)),
        (
            "channel_list",
            json!([{"channel": 1, "gpu_start": 2, "gpu_stop": 3, "cpu_start_ns": 4, "cpu_stop_ns": 5,
                "phases": [{"phase": 9, "name": "p\"h", "start": 10}]}, {"channel": 2, "cpu_start_ns": 6}]),
        ),
        (
            "proxies",
            json!([{"channel": 1, "peer": 2, "direction": "send", "steps": 3, "steps_done": 4, "chunk_bytes": 5, "bytes": 6,
                "foreign_pid": 7, "start_ns": 8, "in_progress_ns": 9, "stop_ns": 10,
                "waits": {"gpu_ns": 1, "peer_ns": 2, "wire_ns": 3, "flush_ns": 4},
                "step_list": [{"step": 1, "start_ns": 2, "gpu_wait_ns": 3, "peer_wait_ns": 4, "wait_ns": 5,
                    "flush_wait_ns": 6, "stop_ns": 7, "bytes": 8}, {"step": 2, "start_ns": 3, "bytes": 0}]},
                {"channel": 0, "peer": 1, "direction": "recv", "steps": 0, "steps_done": 0, "chunk_bytes": 0, "bytes": 0,
                "start_ns": 2}]),
        ),
    ] {
        assert_eq!(full[key], value, "{key}");
    }
    let bare = ops[1].as_object().unwrap();
    assert_eq!((&bare["peer"], &bare["bytes"], &bare["duration_ns"]), (&json!(3), &Value::Null, &Value::Null));
    assert_eq!((&bare["algbw_gbs"], &bare["timing"]), (&Value::Null, &json!("unobservable")));
    for absent in
        ["root", "algo", "proto", "warps", "flags", "waits", "queued_ns", "gpu_start", "group", "channel_list"]
    {
        assert!(!bare.contains_key(absent), "{absent}");
    }
    // Every key is documented.
    let documented = include_str!("../../../../../docs/output-fields.md");
    for record in &records {
        for key in record.as_object().unwrap().keys() {
            assert!(documented.contains(&format!("`{key}`")), "{key} is not in docs/output-fields.md");
        }
    }
}

#[test]
fn hostile_names_stay_valid_json() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = sink(&config(folder.path(), Compression::Zstd));
    let names = ["", "a\"b\\c/d\u{0}\u{1f}\n\r\t\u{7f}", "\u{fffd}\u{2028}\u{1f600}", &"x".repeat(100_000)];
    for (ordinal, name) in (0..).zip(names) {
        let hostile =
            Communicator { name: name.to_owned(), label: name.to_owned(), ..(*communicator(ordinal)).clone() };
        sink.accept(&all_reduce(&Arc::new(hostile), 0));
    }
    sink.flush(&snapshot(4), true);
    let records = records(&files(folder.path())[0]);
    let found: Vec<&str> =
        of_type(&records, "communicator").iter().map(|record| record["name"].as_str().unwrap()).collect();
    assert_eq!(found, names);
    assert_eq!(of_type(&records, "op").len(), 4);
}

#[test]
fn a_communicator_is_described_again_when_more_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = sink(&config(folder.path(), Compression::Plain));
    let unknown = Communicator { ordinal: 0, rank: -1, api: 3, ..Communicator::default() };
    let unknown = Arc::new(unknown);
    let known = communicator(0);
    sink.accept(&all_reduce(&unknown, 0));
    sink.accept(&all_reduce(&unknown, 1));
    sink.flush(&snapshot(2), false);
    sink.accept(&all_reduce(&known, 2));
    sink.accept(&all_reduce(&Arc::new((*known).clone()), 3));
    sink.flush(&snapshot(4), true);
    let records = records(&files(folder.path())[0]);
    let types: Vec<&str> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["header", "communicator", "op", "op", "stats", "communicator", "op", "op", "stats"]);
    for key in ["hash", "rank", "ranks", "nodes"] {
        assert_eq!(records[1][key], Value::Null, "{key}");
    }
    assert_eq!(records[5]["rank"], 2);
}

#[test]
fn inferred_groups_are_written_and_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = sink(&config(folder.path(), Compression::Plain));
    sink.accept(&Operation { kind: OpKind::InferredGroup, ..all_reduce(&communicator(0), 0) });
    assert_eq!(sink.account().pending, 0);
    sink.flush(&snapshot(0), true);
    assert_eq!(sink.account().written, 0);
    let records = records(&files(folder.path())[0]);
    assert_eq!((of_type(&records, "op").len(), of_type(&records, "stats")[0]["written"].as_u64()), (1, Some(0)));
}

#[test]
fn a_flush_without_news_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = sink(&config(folder.path(), Compression::Plain));
    sink.flush(&Snapshot::default(), false);
    assert!(files(folder.path()).is_empty());
    accept(&mut sink, &communicator(0), 0..1);
    sink.flush(&snapshot(1), false);
    let length = text(&files(folder.path())[0]).len();
    sink.flush(&snapshot(1), false);
    assert_eq!(text(&files(folder.path())[0]).len(), length);
    sink.flush(&snapshot(1), true);
    let records = records(&files(folder.path())[0]);
    assert_eq!(records.last().unwrap()["final"], true);
}

#[test]
fn a_kill_leaves_every_earlier_flush_readable() {
    for compression in ALL {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = sink(&config(folder.path(), compression));
        let communicator = communicator(0);
        accept(&mut sink, &communicator, 0..4);
        sink.flush(&snapshot(4), false);
        let path = files(folder.path()).remove(0);
        let first = std::fs::read(&path).unwrap().len();
        accept(&mut sink, &communicator, 4..6);
        sink.flush(&snapshot(6), false);
        let whole = std::fs::read(&path).unwrap();
        assert!(whole.len() > first);
        let torn = folder.path().join(format!("torn{}", super::super::encode::suffix(compression)));
        for length in first..whole.len() {
            std::fs::write(&torn, &whole[..length]).unwrap();
            let records = records(&torn);
            let ops = of_type(&records, "op").len();
            assert!((4..=6).contains(&ops), "{length}: {ops}");
            assert_eq!(records.iter().filter(|record| record["flush"] == 1).count(), 1, "{length}");
        }
    }
}

#[test]
fn another_load_or_process_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), Compression::Plain);
    let mut texts = Vec::new();
    for session in [1, 2, 2, 1] {
        let process = ProcessInfo { session, ..process() };
        let mut sink = JsonlSink::new("jsonl", &config, &job(), &process, Box::new(Disk));
        accept(&mut sink, &communicator(0), 0..session.into());
        sink.flush(&snapshot(session.into()), true);
        texts.push(text(Path::new(&files(folder.path()).last().unwrap())));
    }
    let names: Vec<String> =
        files(folder.path()).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["node-a-42-1-1.jsonl", "node-a-42-1-2.jsonl", "node-a-42-2-1.jsonl", "node-a-42-2-2.jsonl"]);
    assert_eq!(records(&files(folder.path())[1])[0]["file"], 2);
}

#[test]
fn a_batch_larger_than_the_buffer_keeps_the_buffer_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink =
        sink(&Jsonl { max_bytes: 1 << 30, rotate_bytes: 1 << 30, ..config(folder.path(), Compression::Zstd) });
    let communicator = communicator(0);
    let mut most = 0;
    for sequence in 0..20_000 {
        sink.accept(&all_reduce(&communicator, sequence));
        most = most.max(sink.pending_bytes());
    }
    assert!(most < 3 << 20, "{most}");
    assert!(sink.account().written > 0);
    assert_eq!(sink.account().written + sink.account().pending, 20_000);
    sink.flush(&snapshot(20_000), true);
    let records = records(&files(folder.path())[0]);
    assert_eq!(of_type(&records, "op").len(), 20_000);
    assert_balances(records.last().unwrap());
}

#[test]
fn the_account_adds_up_for_another_thread_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = sink(&config(folder.path(), Compression::Plain));
    let shared = sink.shared_account();
    let writer = std::thread::spawn(move || {
        let communicator = communicator(0);
        for round in 0..50 {
            accept(&mut sink, &communicator, round * 100..(round + 1) * 100);
            sink.flush(&snapshot((round + 1) * 100), false);
        }
    });
    let mut before = 0;
    while !writer.is_finished() {
        let account = shared.read();
        assert!(account.pending <= 5000 && account.written >= before);
        before = account.written;
    }
    writer.join().unwrap();
    assert_eq!((shared.read().written, shared.read().pending), (5000, 0));
}
