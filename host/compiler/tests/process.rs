//! What filters cost the process that they run in, measured in processes of their own, with the compiler as the library that is shipped.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use collander_engine::{
    Alert, Class, CompilerLibrary, Emitted, FilterHost, FilterPlan, HostOptions, LogLevel, Observed, Outcome, Services,
    Settings, Setup, Source,
};
use collander_event::{Communicator, Operation};

/// `libcollander_compiler.so` of this build.
fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("our path");
    exe.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("libcollander_compiler.so"))
        .find(|path| path.exists())
        .expect("libcollander_compiler.so beside the test")
}

/// Runs one of the tests below in a process of its own.
fn in_child(name: &str, limit_kib: Option<u64>) -> String {
    let exe = std::env::current_exe().expect("our path");
    let limit = limit_kib.map_or_else(String::new, |kib| format!("ulimit -v {kib}; "));
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("{limit}exec \"$0\" --exact {name} --ignored --nocapture --test-threads 1"))
        .arg(exe)
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&output.stderr));
    print!("{text}");
    text
}

/// A number of `/proc/self/status`.
fn status(key: &str, radix: u32) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).expect(key);
    u64::from_str_radix(line.split_whitespace().next().expect("a value"), radix).expect("a number")
}

fn count(path: &str) -> usize {
    std::fs::read_dir(path).expect("proc").count()
}

fn maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").expect("proc").lines().count()
}

#[derive(Debug)]
struct Quiet;

impl Services for Quiet {
    fn log(&self, _: &str, _: LogLevel, _: &str) {}
    fn emit(&self, _: &str, _: Emitted) {}
    fn alert(&self, _: &str, _: Alert) {}
    fn set_plan(&self, _: &str, _: Class, _: FilterPlan) {}
    fn replan(&self, _: &str, _: Option<u32>) {}
    fn dump_black_box(&self, _: &str, _: &str) {}
}

fn setup() -> Setup {
    let limits =
        collander_engine::Limits { failures: u32::MAX, back_off_most: std::time::Duration::ZERO, ..Default::default() };
    Setup {
        name: "under-test".to_owned(),
        config: Vec::new(),
        sinks: vec!["jsonl".to_owned()],
        limits,
        services: Arc::new(Quiet),
    }
}

fn host() -> FilterHost {
    let settings = Settings::default();
    let compiler = CompilerLibrary::new(library(), settings.fingerprint());
    FilterHost::new(HostOptions { settings, cache: None, compiler: Some(Arc::new(compiler)) }).expect("starts")
}

/// A guest of `tests/guests`, as `host/engine/tests/common` makes it.
fn guest(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests");
    let read = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.wat"))).expect(name);
    let (frame, guest) = (read("frame"), read(name));
    let mut parts = frame.split(";; default: ");
    let mut whole = parts.next().expect("the head").to_owned() + &guest;
    for part in parts {
        let (name, body) = part.split_once('\n').expect("a name");
        if name == "end" || !guest.contains(&format!("(func ${name} ")) {
            whole.push_str(body);
        }
    }
    collander_compiler::parse_text(whole.as_bytes()).expect("WAT")
}

fn batch() -> Vec<Operation> {
    vec![Operation { bytes: Some(1 << 30), ..Operation::default() }; 256]
}

#[test]
#[ignore = "run by the tests below, in a process of its own"]
fn child_signals_and_threads() {
    let (caught, ignored, threads) = (status("SigCgt", 16), status("SigIgn", 16), count("/proc/self/task"));
    let host = host();
    let mut filters: Vec<_> = ["bench", "unreachable", "out_of_bounds", "division_by_zero", "deep_recursion"]
        .iter()
        .map(|name| host.load(&guest(name), setup()).expect(name))
        .collect();
    let mut observed = Observed::default();
    for filter in &mut filters {
        filter.observe(&batch(), &mut observed);
    }
    assert!(matches!(observed.outcome, Outcome::Failed(_)));
    assert_eq!((status("SigCgt", 16), status("SigIgn", 16)), (caught, ignored), "no signal disposition of ours");
    assert_eq!(count("/proc/self/task"), threads + 1, "one thread, which stops runaways; none of the compiler");
    drop(filters);
    let began = std::time::Instant::now();
    while !host.is_idle() {
        assert!(began.elapsed().as_secs() < 20, "the thread that stops runaways never sleeps");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(host);
    assert_eq!(count("/proc/self/task"), threads, "and none when the runtime is gone");
}

#[test]
#[ignore = "run by the tests below, in a process of its own"]
fn child_address_space() {
    let host = host();
    let loadable = host.prepare(&guest("bench")).expect("a filter");
    assert_eq!(loadable.source, Source::Compiled);
    let mut filters = vec![host.start(&loadable, setup()).expect("starts")];
    let before = status("VmSize", 10);
    for _ in 0..10 {
        filters.push(host.start(&loadable, setup()).expect("starts"));
    }
    let each = (status("VmSize", 10) - before) / 10;
    println!("address space: {each} KiB a filter, {} KiB in all", status("VmSize", 10));
    assert!(each <= 65 << 10, "{each} KiB a filter");
    let mut observed = Observed::default();
    for filter in &mut filters {
        filter.observe(&batch(), &mut observed);
        assert_eq!(observed.outcome, Outcome::Decided);
    }
}

#[test]
#[ignore = "run by the tests below, in a process of its own"]
fn child_renewals() {
    let host = host();
    let loadable = host.prepare(&guest("bench")).expect("a filter");
    let failing = host.prepare(&guest("unreachable")).expect("a filter");
    let mut filters: Vec<_> = (0..8).map(|_| host.start(&loadable, setup()).expect("starts")).collect();
    let mut bad = host.start(&failing, setup()).expect("starts");
    for ordinal in 0..64 {
        let communicator =
            Arc::new(Communicator { ordinal, name: format!("communicator {ordinal}"), ..Communicator::default() });
        filters.iter_mut().chain([&mut bad]).for_each(|filter| filter.communicator_opened(&communicator));
    }
    let batch = &batch()[..32];
    let mut observed = Observed::default();
    let mut before = (0, 0);
    for round in 0..1250 {
        for filter in &mut filters {
            filter.renew_now().expect("a new instance");
            filter.observe(batch, &mut observed);
            assert_eq!(observed.outcome, Outcome::Decided);
        }
        bad.observe(batch, &mut observed);
        if round == 250 {
            before = (status("VmRSS", 10), maps());
        }
    }
    let after = (status("VmRSS", 10), maps());
    println!("after 2 000 renewals: {before:?} KiB and maps; after 10 000: {after:?}");
    assert!(after.0 <= before.0 + 2048, "RSS grew from {} to {} KiB", before.0, after.0);
    assert!(after.1 <= before.1 + 8, "maps grew from {} to {}", before.1, after.1);
    assert_eq!(filters[0].stats().renewals, 1250);
    // Each batch meets a new instance; the first failure is not a renewal.
    assert_eq!(bad.stats().renewals, 1249);
}

#[test]
fn no_signal_handler_and_one_thread() {
    in_child("child_signals_and_threads", None);
}

#[test]
fn address_space_is_bounded() {
    in_child("child_address_space", None);
}

#[test]
fn it_works_where_address_space_is_limited() {
    in_child("child_address_space", Some(8_000_000));
}

#[test]
fn ten_thousand_renewals_leave_nothing_behind() {
    in_child("child_renewals", None);
}

#[test]
fn a_compiler_that_is_missing_or_another_is_named() {
    let settings = Settings::default();
    let error = |path: PathBuf, fingerprint: &str| {
        let compiler = CompilerLibrary::new(path, fingerprint.to_owned());
        let host = FilterHost::new(HostOptions { compiler: Some(Arc::new(compiler)), ..HostOptions::default() });
        host.expect("starts").prepare(&guest("bench")).expect_err("no compiler").to_string()
    };
    let missing = error(PathBuf::from("/nowhere/libcollander_compiler.so"), &settings.fingerprint());
    assert!(missing.contains("/nowhere/libcollander_compiler.so") && missing.contains("install"), "{missing}");
    let other = error(library(), "wasmtime 1.0");
    assert!(other.contains("not for “wasmtime 1.0”"), "{other}");
    let host = host();
    let refused = host.prepare(b"\0asm\x01\0\0\0\xff\xff").expect_err("damaged").to_string();
    assert!(refused.contains("damaged"), "{refused}");
}
