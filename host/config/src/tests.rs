use std::path::Path;
use std::time::Duration;

use collander_event::{Collective, Detail};

use super::*;
use crate::keys::KEYS;

const FULL: &str = include_str!("../tests/full.toml");

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().copied().collect()
}

fn from(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    load_from(Some((Path::new("collander.toml"), text)), &environment(variables))
}

fn config(text: &str, variables: &[(&str, &str)]) -> Config {
    from(text, variables).unwrap_or_else(|error| panic!("{error}")).config
}

/// The one problem of a configuration.
fn problem(text: &str, variables: &[(&str, &str)]) -> String {
    let lines = from(text, variables).expect_err("it should be refused").lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].clone()
}

fn jsonl(config: &Config, at: usize) -> &Jsonl {
    let SinkKind::Jsonl(jsonl) = &config.sinks[at].kind;
    jsonl
}

#[test]
fn without_anything_the_defaults_hold() {
    let config = load_from(None, &environment(&[])).unwrap().config;
    assert!(config.enabled && config.capture.collectives && config.capture.p2p);
    assert_eq!(config.capture.detail, Detail::CHANNELS);
    assert_eq!(
        (config.ring.total_bytes, config.ring.large_bytes, config.ring.small_bytes),
        (64 << 20, 16 << 20, 1 << 20)
    );
    assert_eq!((config.drain.period, config.drain.settle), (Duration::from_millis(5), Duration::from_millis(250)));
    assert_eq!((config.drain.max_open, config.drain.max_orphans), (262_144, 65_536));
    assert_eq!(config.drain.operation_timeout, Duration::from_secs(600));
    assert_eq!(config.sinks.len(), 1);
    assert_eq!((config.sinks[0].name.as_str(), config.sinks[0].queue_operations), ("jsonl", 65_536));
    let sink = jsonl(&config, 0);
    assert_eq!((sink.format, sink.compression, sink.level), (JsonFormat::Collander, Compression::Zstd, 3));
    assert_eq!((sink.directory.to_str(), sink.flush), (Some("collander-{job}"), Duration::from_secs(1)));
    assert_eq!((sink.rotate_bytes, sink.max_bytes), (32 << 20, 256 << 20));
    assert_eq!((config.job.id.as_str(), config.job.id_source.as_str()), ("unknown-jobid", "none"));
    assert!(!config.job.host.is_empty());
}

#[test]
fn the_full_file_says_what_it_says() {
    let config = config(FULL, &[]);
    assert!(!config.capture.p2p);
    assert_eq!(config.capture.detail, Detail(Detail::CHANNELS.0 | Detail::PROXY_OPERATIONS.0 | Detail::PROXY_STEPS.0));
    assert_eq!((config.capture.gpu_timer, config.capture.assume_ranks), (GpuTimer::TenNanoseconds, 16));
    assert_eq!(config.ring, Ring { total_bytes: 32 << 20, large_bytes: 8 << 20, small_bytes: 512 << 10 });
    assert_eq!(config.drain.operation_timeout, Duration::ZERO);
    assert_eq!(config.drain.period, Duration::from_micros(2500));
    let label = &config.labels[0];
    assert_eq!((label.label.as_str(), label.selector.names.as_slice()), ("tp", &["tp_*".to_owned()][..]));
    assert_eq!(config.labels[1].selector.ranks, Some((8, 8)));
    assert_eq!(config.labels[1].selector.ordinal, Some((2, u32::MAX)));
    assert_eq!(config.labels[1].selector.ids, ["0xabc*"]);
    let [small, p2p, rest] = config.sampling.as_slice() else { panic!("three rules") };
    assert_eq!((small.name.as_str(), small.keep, small.sinks), ("small", Keep::OneIn(4), 1));
    assert_eq!((small.min_bytes, small.max_bytes), (0, 64 << 10));
    assert_eq!(small.collectives, [Collective::AllReduce, Collective::AllGather]);
    assert_eq!((small.selector.nodes, small.selector.rank), (Some((2, 8)), Some((0, 3))));
    assert_eq!((p2p.name.as_str(), p2p.keep, p2p.detail), ("rule 2", Keep::PerSecond(100), None));
    assert_eq!(p2p.collectives, [Collective::Send]);
    let all = Detail::STEP_LIST.union(Detail::CHANNEL_LIST).union(Detail::PHASES).union(Detail::API).completed();
    assert_eq!((rest.keep, rest.detail, rest.sinks), (Keep::None, Some(all), u32::MAX));
    assert_eq!((rest.min_bytes, rest.max_bytes), (1 << 20, u64::MAX));
    let (first, second) = (jsonl(&config, 0), jsonl(&config, 1));
    assert_eq!((first.compression, first.level, first.flush), (Compression::Gzip, 9, Duration::from_millis(500)));
    assert_eq!((first.rotate_bytes, first.max_bytes, config.sinks[0].queue_operations), (1 << 20, 8 << 20, 4096));
    assert_eq!((second.format, second.compression), (JsonFormat::Inspector42, Compression::Plain));
    assert_eq!((second.min_size_bytes, second.require_kernel_timing, second.verbose), (0, false, true));
    assert_eq!((config.job.id.as_str(), config.job.id_source.as_str()), ("train_7", "config"));
    assert_eq!(config.job.labels, [("step".to_owned(), "3".to_owned()), ("team".to_owned(), "llm".to_owned())]);
}

#[test]
fn the_full_file_has_every_key() {
    for key in KEYS {
        if !["one_in", "per_second", "keep"].contains(&key.name) {
            assert!(FULL.contains(key.name), "{} is not in the full file", key.path());
        }
    }
}

#[test]
fn a_variable_beats_the_file() {
    let variables = [
        ("COLLANDER_ENABLED", "0"),
        ("COLLANDER_RING_TOTAL_BYTES", "128MiB"),
        ("COLLANDER_DRAIN_PERIOD", "20ms"),
        ("COLLANDER_CAPTURE_DETAIL", "channels,api"),
        ("COLLANDER_CAPTURE_GPU_TIMER", "nanoseconds"),
        ("COLLANDER_JOB_ID", "from-env"),
        ("COLLANDER_JOB_LABELS", "a=1, b = two"),
        ("COLLANDER_SAMPLE", "[{ size = \"..1KiB\", one_in = 4 }, { keep = \"none\", communicator = [\"x\", \"y\"] }]"),
        ("COLLANDER_SINK_FORMAT", "inspector-4.0"),
        ("COLLANDER_SINK_COMPRESSION", "plain"),
        ("COLLANDER_SINK_FLUSH", "2s"),
        ("COLLANDER_TEST_ANYTHING", "1"),
        ("COLLANDER_LIBRARY", "/x.so"),
    ];
    let config = config(FULL, &variables);
    assert!(!config.enabled);
    assert_eq!((config.ring.total_bytes, config.ring.large_bytes), (128 << 20, 8 << 20));
    assert_eq!(config.drain.period, Duration::from_millis(20));
    assert_eq!(config.capture.detail, Detail::CHANNELS.union(Detail::API));
    assert_eq!(config.capture.gpu_timer, GpuTimer::Nanoseconds);
    assert_eq!(config.job.id, "from-env");
    assert_eq!(config.job.labels[1], ("b".to_owned(), "two".to_owned()));
    assert_eq!(config.sampling.len(), 2);
    assert_eq!((config.sampling[0].keep, config.sampling[0].max_bytes), (Keep::OneIn(2), 1 << 10));
    assert_eq!(config.sampling[1].selector.names, ["x", "y"]);
    let sink = jsonl(&config, 0);
    assert_eq!((sink.format, sink.compression), (JsonFormat::Inspector40, Compression::Plain));
    assert_eq!((sink.flush, sink.max_bytes, config.sinks.len()), (Duration::from_secs(2), 8 << 20, 2));
}

#[test]
fn sink_variables_make_the_default_sink() {
    let config = config("", &[("COLLANDER_SINK_DIRECTORY", "/data/{host}"), ("COLLANDER_SINK_MAX_BYTES", "8MiB")]);
    let sink = jsonl(&config, 0);
    assert_eq!((sink.directory.to_str(), sink.compression), (Some("/data/{host}"), Compression::Zstd));
    assert_eq!((sink.max_bytes, sink.rotate_bytes), (8 << 20, 2 << 20));
}

#[test]
fn wrong_keys_name_themselves() {
    let text = "[drain]\nperiod = \"1ms\"\nperid = 3\n";
    let said = problem(text, &[]);
    assert!(said.starts_with("collander.toml:3: unknown key `perid` in [drain]; did you mean `period`?"), "{said}");
    assert!(problem("[drian]\n", &[]).contains("unknown key `drian` at the top; did you mean `drain`?"));
    assert!(problem("[[sample]]\nkeep = \"all\"\nsiez = 3", &[]).starts_with("collander.toml:3: unknown key `siez`"));
    let said = problem("", &[("COLLANDER_DRAIN_PERIODE", "1ms")]);
    assert_eq!(said, "COLLANDER_DRAIN_PERIODE: no such setting; did you mean COLLANDER_DRAIN_PERIOD?");
    assert!(
        problem("", &[("COLLANDER_SAMPLE", "[{ kep = 1 }]")])
            .starts_with("COLLANDER_SAMPLE: unknown key `kep` in [sample]")
    );
    assert!(problem("", &[("COLLANDER_QQQQQQQQQ", "1")]).contains("docs/reference/config.md"));
}

#[test]
fn wrong_values_name_themselves() {
    let cases = [
        (
            "[drain]\nperiod = \"1 parsec\"",
            "collander.toml:2: drain.period = \"1 parsec\": expected a span of time like \"10ms\", 100us to 10s",
        ),
        ("[drain]\nperiod = \"1us\"", "100us to 10s"),
        ("[drain]\nperiod = 0", "drain.period = 0: expected"),
        ("[ring]\nlarge_bytes = \"3MiB\"", "expected a power of two (64KiB to 1GiB), the nearest are 2MiB and 4MiB"),
        ("[ring]\ntotal_bytes = true", "ring.total_bytes = true: expected a size like \"4MiB\", 1MiB to 4GiB"),
        (
            "[ring]\ntotal_bytes = \"1MiB\"\nlarge_bytes = \"2MiB\"",
            "collander.toml:3: ring.large_bytes = 2097152: expected at most",
        ),
        ("enabled = \"perhaps\"", "collander.toml:1: enabled = \"perhaps\": expected true or false"),
        ("[capture]\ndetail = [\"channels\", \"chanels\"]", "expected a list of: channels, proxy_ops"),
        ("[[sample]]\none_in = 10", "one in 10: expected a power of two, the nearest are 8 and 16"),
        ("[[sample]]\nkeep = \"1/100\"", "the nearest are 64 and 128"),
        ("[[sample]]\nkeep = \"some\"", "expected \"all\", \"none\", \"1/16\" or \"100/s\""),
        ("[[sample]]\nkeep = \"all\"\none_in = 2", "keep and one_in exclude each other"),
        ("[[sample]]\nranks = \"8..2\"", "sample.ranks = \"8..2\": expected a number, [from, to]"),
        ("[[sample]]\nsize = \"64KiB..1KiB\"", "sample.size = \"64KiB..1KiB\": expected"),
        ("[[sample]]\ncollectives = [\"AllReduse\"]", "expected a function or a list of them: AllReduce"),
        ("[[sample]]\nsinks = [\"elsewhere\"]", "no sink is named \"elsewhere\"; expected jsonl"),
        ("[[sample]]\ncommunicator = \"a[b\"", "expected a `]`"),
        ("[[label]]\nranks = 8", "this [[label]] has no `label`"),
        ("[[sink]]\n[[sink]]", "a second sink is named \"jsonl\""),
        ("[[sink]]\nformat = \"xml\"", "expected one of: collander, inspector-4.0, inspector-4.2"),
        ("[[sink]]\ncompression = \"gzip\"\nlevel = 12", "expected 1 to 9 with gzip"),
        ("[[sink]]\nrotate_bytes = \"2MiB\"\nmax_bytes = \"1MiB\"", "expected at most max_bytes"),
        ("[job]\nlabels = { a = [1] }", "expected a table of texts"),
        ("drain = 3", "`drain` is integer; expected a table"),
        ("[sample]\nkeep = \"all\"", "expected [[sample]]"),
        ("[drain\n", "not valid TOML"),
    ];
    for (text, expected) in cases {
        let said = problem(text, &[]);
        assert!(said.contains(expected), "{text}\n{said}");
        assert!(said.starts_with("collander.toml:"), "{said}");
    }
    let said = problem("", &[("COLLANDER_RING_TOTAL_BYTES", "lots")]);
    assert!(said.starts_with("COLLANDER_RING_TOTAL_BYTES: ring.total_bytes = \"lots\": expected a size"), "{said}");
}

#[test]
fn all_problems_are_told_at_once() {
    let error = from("x = 1\n[drain]\nperiod = true\n[ring]\nsmall_bytes = 3", &[("COLLANDER_X", "1")]).unwrap_err();
    assert_eq!(error.lines().len(), 4, "{error}");
    assert!(!error.to_string().contains('\n'));
}

#[test]
fn a_missing_file_names_itself() {
    let error = load_with_notes(&environment(&[("COLLANDER_CONFIG", "/no/such/file.toml")])).unwrap_err();
    assert!(error.to_string().starts_with("COLLANDER_CONFIG: cannot read /no/such/file.toml"), "{error}");
}

#[test]
fn inspectors_variables_make_a_sink() {
    let variables = [
        ("NCCL_INSPECTOR_ENABLE", "1"),
        ("NCCL_INSPECTOR_DUMP_DIR", "/dump"),
        ("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "500000"),
        ("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "0"),
        ("NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "0"),
        ("NCCL_INSPECTOR_DUMP_VERBOSE", "1"),
        ("NCCL_INSPECTOR_ENABLE_P2P", "0"),
    ];
    let loaded = from("", &variables).unwrap();
    let sink = jsonl(&loaded.config, 0);
    assert_eq!((sink.format, sink.compression), (JsonFormat::Inspector42, Compression::Plain));
    assert_eq!((sink.directory.to_str(), sink.flush), (Some("/dump"), Duration::from_millis(500)));
    assert_eq!((sink.min_size_bytes, sink.require_kernel_timing, sink.verbose), (0, false, true));
    assert!(!loaded.config.capture.p2p && loaded.config.capture.detail.contains(Detail::CHANNEL_LIST));
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);

    let loaded =
        from("", &[("NCCL_INSPECTOR_ENABLE", "1"), ("SLURM_JOBID", "9"), ("NCCL_INSPECTOR_PROM_DUMP", "1")]).unwrap();
    assert_eq!(jsonl(&loaded.config, 0).directory.to_str(), Some("nccl-inspector-9"));
    assert_eq!(jsonl(&loaded.config, 0).flush, Duration::from_secs(1));
    assert_eq!(loaded.notes.len(), 2, "{:?}", loaded.notes);

    let ours = config("[[sink]]\ndirectory = \"here\"", &variables);
    assert_eq!((jsonl(&ours, 0).format, ours.capture.p2p), (JsonFormat::Collander, true));
    assert_eq!(jsonl(&config("", &[("NCCL_INSPECTOR_ENABLE", "0")]), 0).format, JsonFormat::Collander);
}

#[test]
fn variables_are_unique_and_known() {
    let mut names = env::variables();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(names.iter().any(|name| name == "COLLANDER_SINK_ROTATE_BYTES"));
}

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, reference()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == reference(), "docs/reference/config.md is out of date: BLESS=1 cargo test -p collander-config");
    for key in KEYS {
        assert!(found.contains(&format!("| `{}` |", key.name)), "{}", key.path());
    }
}

#[test]
fn a_configuration_that_is_no_regular_file_does_not_hold_up_the_job() {
    for path in ["/dev/zero", "/dev/full", "/proc"] {
        let environment: Environment = [("COLLANDER_CONFIG", path)].into_iter().collect();
        let error = load_with_notes(&environment).expect_err(path).to_string();
        assert!(error.contains(path) && error.contains("regular file"), "{error}");
    }
    let folder = tempfile::tempdir().expect("folder");
    let long = folder.path().join("long.toml");
    std::fs::write(&long, vec![b'#'; 2 << 20]).expect("written");
    let environment: Environment = [("COLLANDER_CONFIG", long.to_str().expect("UTF-8"))].into_iter().collect();
    let error = load_with_notes(&environment).expect_err("long").to_string();
    assert!(error.contains("bytes are more"), "{error}");
}
