use collander_event::{Channel, DropReason};

use super::*;

/// Numbers that Inspector's documentation publishes: what goes in, and the lines that came out of it.
const V40: &str = r#"{"header":{"id":"0x9e7a479f95a66c","rank":31,"n_ranks":32,"nnodes":4},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"REV","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":STAMP,"hostname":"example-hostname","pid":468528},"coll_perf":{"coll":"ReduceScatter","coll_sn":129,"coll_msg_size_bytes":65536,"coll_exec_time_us":110,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":19.065018,"coll_busbw_gbs":18.469236}}"#;
const FRAME42: &str = r#"{"header":{"id":"0x7f8c496ae9f661","comm_name":"DP Group 0","rank":2,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.2","git_rev":"REV","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":STAMP,"hostname":"example-hostname","pid":1639453},"#;
const V42: [&str; 4] = [
    r#""dump_stats":{"coll_records":2,"coll_dropped_total":0,"coll_dropped_since_last_dump":0,"p2p_records":1,"p2p_dropped_total":0,"p2p_dropped_since_last_dump":0}}"#,
    r#""coll_perf":{"coll":"AllReduce","coll_algo":"RING","coll_proto":"LL","coll_sn":1407,"coll_msg_size_bytes":17179869184,"coll_exec_time_us":61974,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119099}}"#,
    r#""coll_perf":{"coll":"ReduceScatter","coll_algo":"RING","coll_proto":"SIMPLE","coll_sn":1231,"coll_msg_size_bytes":2147483648,"coll_exec_time_us":41057,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":418.439467,"coll_busbw_gbs":366.134533}}"#,
    r#""p2p_perf":{"p2p":"Send","p2p_sn":7,"p2p_peer":3,"p2p_msg_size_bytes":536870912,"p2p_exec_time_us":1154,"p2p_timing_source":"kernel_gpu","p2p_algobw_gbs":465.226094,"p2p_busbw_gbs":465.226094}}"#,
];

fn inspector(directory: &Path, format: JsonFormat) -> Jsonl {
    Jsonl { format, ..config(directory, Compression::Plain) }
}

fn make(config: &Jsonl, pid: u32) -> JsonlSink {
    let job = Job { host: "example-hostname".into(), ..job() };
    JsonlSink::new("inspector", config, &job, &ProcessInfo { pid, ..process() }, Box::new(Disk))
}

/// Lines with the time of the dump and the revision, which differ, made the same.
fn lines(path: &Path) -> Vec<String> {
    let revision = format!("\"collander-{}\"", env!("CARGO_PKG_VERSION"));
    text(path)
        .lines()
        .map(|line| {
            let at = line.find("\"dump_timestamp_us\":").unwrap() + 20;
            let end = at + line[at..].find(',').unwrap();
            let stamp: u64 = line[at..end].parse().unwrap();
            assert!(stamp > 1_700_000_000_000_000, "{stamp}");
            format!("{}STAMP{}", &line[..at], &line[end..]).replace(&revision, "\"REV\"")
        })
        .collect()
}

fn reduce_scatter(
    communicator: &Arc<Communicator>,
    sequence: u64,
    bytes: u64,
    us: u64,
    protocol: &'static str,
) -> Operation {
    Operation {
        collective: Collective::ReduceScatter,
        function: "ReduceScatter",
        protocol,
        count: bytes / 4,
        rank_bytes: Some(bytes),
        longest_channel_ns: Some(us * 1000 + 999),
        ..all_reduce(communicator, sequence)
    }
}

fn send(communicator: &Arc<Communicator>) -> Operation {
    Operation {
        kind: OpKind::P2p,
        collective: Collective::Send,
        function: "Send",
        algorithm: "",
        protocol: "",
        partner: 3,
        rank_bytes: Some(536_870_912),
        longest_channel_ns: Some(1_154_000),
        ..all_reduce(communicator, 0)
    }
}

#[test]
fn version_4_0_reproduces_the_published_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = make(&inspector(folder.path(), JsonFormat::Inspector40), 468_528);
    let communicator = Arc::new(Communicator {
        hash: 0x9e7a_479f_95a6_6c12,
        rank: 31,
        ranks: Some(32),
        nodes: Some(4),
        ..(*communicator(0)).clone()
    });
    sink.accept(&reduce_scatter(&communicator, 129, 65_536, 110, "SIMPLE"));
    sink.accept(&send(&communicator));
    sink.flush(&snapshot(2), true);
    let path = folder.path().join("example-hostname-pid468528.log");
    assert_eq!(lines(&path), [V40]);
    let account = sink.account();
    assert_eq!((account.written, account.dropped[DropReason::NotRepresentable as usize]), (1, 1));
    let stats = records(&folder.path().join("example-hostname-pid468528.log.stats.jsonl"));
    assert_eq!((stats[0]["type"].as_str(), stats[0]["pid"].as_u64()), (Some("header"), Some(468_528)));
    assert_eq!((number(&stats[1]["written"]), number(&stats[1]["dropped"]["not_representable"])), (1, 1));
    assert_balances(&stats[1]);
    assert_eq!((stats.len(), &stats[1]["final"]), (2, &Value::Bool(true)));
}

#[test]
fn version_4_2_reproduces_the_published_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = make(&inspector(folder.path(), JsonFormat::Inspector42), 1_639_453);
    let communicator = communicator(0);
    for _ in 0..7 {
        sink.accept(&Operation { count: 0, ..send(&communicator) });
    }
    sink.accept(&all_reduce(&communicator, 1407));
    sink.accept(&reduce_scatter(&communicator, 1231, 2_147_483_648, 41_057, "SIMPLE"));
    sink.accept(&send(&communicator));
    sink.flush(&snapshot(10), true);
    let expected: Vec<String> = V42.iter().map(|rest| format!("{FRAME42}{rest}")).collect();
    assert_eq!(lines(&folder.path().join("example-hostname-pid1639453.log")), expected);
}

#[test]
fn verbose_adds_the_traces() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = make(&Jsonl { verbose: true, ..inspector(folder.path(), JsonFormat::Inspector42) }, 1);
    let channel =
        |channel, start, stop| Channel { channel, cpu_start_ns: start, cpu_stop_ns: stop, ..Channel::default() };
    let begin = 1_752_867_229_235_059_000;
    sink.accept(&Operation {
        enqueued_ns: begin,
        enqueue_ns: 5_000,
        channel_list: vec![
            channel(0, begin + 122_000, begin + 40_752_000),
            channel(1, begin + 123_000, begin + 40_000_000),
        ],
        ..all_reduce(&communicator(0), 0)
    });
    sink.flush(&snapshot(1), true);
    let line = &lines(&folder.path().join("example-hostname-pid1.log"))[1];
    let traces = concat!(
        r#","event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":8,"kernel_record_sn":7},{"channel_id":1,"kernel_start_sn":4,"kernel_stop_sn":6,"kernel_record_sn":5}]}"#,
        r#","event_trace_ts":{"coll_start_ts":1752867229235059,"coll_stop_ts":1752867229235064,"kernel_events":[{"channel_id":0,"kernel_start_ts":1752867229235181,"kernel_stop_ts":1752867229275811,"kernel_record_ts":1752867229275811},{"channel_id":1,"kernel_start_ts":1752867229235182,"kernel_stop_ts":1752867229275059,"kernel_record_ts":1752867229275059}]}}}"#,
    );
    assert!(line.ends_with(traces), "{line}");
}

#[test]
fn rules_and_what_cannot_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let rules = Jsonl { min_size_bytes: 8192, ..inspector(folder.path(), JsonFormat::Inspector42) };
    let good = all_reduce(&communicator(0), 0);
    let no_ranks = Arc::new(Communicator { ranks: None, ..(*communicator(1)).clone() });
    let left_out = [
        Operation { rank_bytes: Some(8191), ..good.clone() },
        Operation { count: 0, ..good.clone() },
        Operation { timing: Timing::KernelCpu, ..good.clone() },
        Operation { timing: Timing::Unobservable, ..good.clone() },
        Operation { longest_channel_ns: None, duration_ns: None, ..good.clone() },
        Operation { kind: OpKind::CopyEngine, ..good.clone() },
        Operation { kind: OpKind::Api, ..good.clone() },
        all_reduce(&no_ranks, 0),
    ];
    let mut sink = make(&rules, 1);
    left_out.iter().for_each(|operation| sink.accept(operation));
    sink.accept(&Operation { kind: OpKind::InferredGroup, ..good.clone() });
    sink.accept(&Operation { rank_bytes: None, datatype_text: "Unknown", ..good.clone() });
    sink.accept(&Operation { collective: Collective::AllToAll, function: "AlltoAll", ..good.clone() });
    sink.accept(&Operation { longest_channel_ns: Some(999), ..good.clone() });
    sink.flush(&snapshot(11), true);
    let account = sink.account();
    assert_eq!((account.written, account.dropped[DropReason::NotRepresentable as usize]), (3, 8));
    let lines = lines(&folder.path().join("example-hostname-pid1.log"));
    assert_eq!(lines.len(), 4);
    assert!(lines[1].contains(r#""coll_msg_size_bytes":0,"#), "{}", lines[1]);
    assert!(
        lines[2].contains(r#""coll":"Invalid""#) && lines[2].contains(r#""coll_algobw_gbs":0.000000,"#),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].contains(r#""coll_exec_time_us":0,"#) && lines[3].contains(r#""coll_busbw_gbs":0.000000"#),
        "{}",
        lines[3]
    );

    let mut sink = make(&Jsonl { require_kernel_timing: false, ..rules }, 2);
    sink.accept(&Operation { timing: Timing::KernelCpu, ..good.clone() });
    sink.accept(&Operation { timing: Timing::EnqueueOnly, longest_channel_ns: None, duration_ns: Some(5000), ..good });
    sink.flush(&snapshot(2), true);
    let text = text(&folder.path().join("example-hostname-pid2.log"));
    assert!(text.contains(r#""kernel_cpu""#) && text.contains(r#""collective_cpu","#), "{text}");
}

#[test]
fn names_are_written_as_inspector_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = make(&inspector(folder.path(), JsonFormat::Inspector42), 1);
    for (ordinal, name) in (0..).zip(["a/b\"\\\n\u{1}", "", &"é".repeat(2000)]) {
        let hash = if ordinal == 1 { 0xabc } else { u64::MAX };
        let named = Communicator { name: name.to_owned(), hash, ..(*communicator(ordinal)).clone() };
        sink.accept(&all_reduce(&Arc::new(named), 0));
    }
    sink.flush(&snapshot(3), true);
    let path = folder.path().join("example-hostname-pid1.log");
    let records = records(&path);
    assert!(text(&path).contains(r#""id":"0xffffffffffffff","comm_name":"a\/b\"\\\n\u0001","#));
    assert_eq!(
        (records[2]["header"]["comm_name"].as_str(), records[2]["header"]["id"].as_str()),
        (Some("unknown"), Some("0xabc"))
    );
    assert_eq!(records[4]["header"]["comm_name"].as_str().unwrap().len(), 2048);
}

#[test]
fn an_earlier_file_is_kept_and_losses_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let earlier = folder.path().join("example-hostname-pid1.log");
    std::fs::write(&earlier, "earlier").unwrap();
    let faults = Arc::new(Faults::default());
    let job = Job { host: "example-hostname".into(), ..job() };
    let config = inspector(folder.path(), JsonFormat::Inspector42);
    let disk = Box::new(FaultyDisk(Arc::clone(&faults)));
    let mut sink = JsonlSink::new("inspector", &config, &job, &ProcessInfo { pid: 1, ..process() }, disk);
    let communicator = communicator(0);
    accept(&mut sink, &communicator, 0..2);
    sink.flush(&snapshot(2), false);
    assert!(sink.take_message().unwrap().contains("example-hostname-pid1-1.log"));
    Faults::set(&faults.write, 28);
    accept(&mut sink, &communicator, 2..5);
    sink.flush(&snapshot(5), false);
    Faults::set(&faults.write, 0);
    std::thread::sleep(Duration::from_millis(15));
    accept(&mut sink, &communicator, 5..6);
    sink.flush(&snapshot(6), true);
    assert_eq!(std::fs::read_to_string(&earlier).unwrap(), "earlier");
    let log = records(&folder.path().join("example-hostname-pid1-1.log"));
    let dump = &log[3]["dump_stats"];
    assert_eq!((number(&dump["coll_records"]), number(&dump["coll_dropped_total"])), (1, 3));
    assert_eq!(number(&dump["coll_dropped_since_last_dump"]), 3);
    assert_eq!(log.len(), 5);
    let stats = records(&folder.path().join("example-hostname-pid1-1.log.stats.jsonl"));
    assert_eq!((number(&stats[1]["written"]), number(&stats[1]["dropped"]["write_failed"])), (3, 3));
    assert_balances(&stats[1]);
}
