//! Core modules of languages without component tooling become components, WASI's preview 1 included.

use std::sync::{Arc, Mutex};

use collander_compiler::{Builtin, Form, compile, componentize, form, parse_text};
use collander_engine::{
    Alert, Class, Emitted, FilterHost, FilterPlan, HostOptions, Limits, LogLevel, Services, Settings, Setup,
};

const FRAME: &str = include_str!("../../../tests/guests/frame.wat");

/// A module: the frame of the tests' guests with more imports, and with `tick` replaced if one is given.
fn module(imports: &str, tick: &str) -> Vec<u8> {
    let mut parts = FRAME.split(";; default: ");
    let mut text = parts.next().expect("the head").replacen("(import", &format!("{imports}\n(import"), 1);
    text.push_str(tick);
    for part in parts {
        let (name, body) = part.split_once('\n').expect("a name");
        if name != "tick" || tick.is_empty() {
            text.push_str(body);
        }
    }
    parse_text(text.as_bytes()).expect("WAT")
}

const WASI: &str = r#"
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open"
      (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))"#;

#[derive(Debug, Default)]
struct Lines(Mutex<Vec<(LogLevel, String)>>);

impl Services for Lines {
    fn log(&self, _: &str, level: LogLevel, message: &str) {
        self.0.lock().expect("not poisoned").push((level, message.to_owned()));
    }
    fn emit(&self, _: &str, _: Emitted) {}
    fn alert(&self, _: &str, _: Alert) {}
    fn set_plan(&self, _: &str, _: Class, _: FilterPlan) {}
    fn replan(&self, _: &str, _: Option<u32>) {}
    fn dump_black_box(&self, _: &str, _: &str) {}
}

#[test]
fn a_module_becomes_a_component_that_compiles() {
    let module = module("", "");
    assert_eq!(form(&module).expect("WASM"), Form::Module);
    let component = componentize(&module).expect("a component");
    assert_eq!(form(&component).expect("WASM"), Form::Component);
    assert_eq!(componentize(&component).expect("as it is"), component);
    compile(&Settings::default(), &component).expect("native code");
}

#[test]
fn wasi_is_answered_by_nothing_and_what_is_written_is_logged() {
    // No file opens, the clock stands at 0, random bytes are fixed; a message, then the end.
    let tick = r#"
      (data (i32.const 2048) "panic: out of cheese")
      (data (i32.const 2080) "\00\08\00\00\14\00\00\00")
      (func $tick (param i64)
        (i64.store (i32.const 4096) (i64.const -1))
        (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 4096)))
        (if (i64.ne (i64.load (i32.const 4096)) (i64.const 0)) (then (unreachable)))
        (drop (call $random (i32.const 4096) (i32.const 2)))
        (if (i32.ne (i32.load16_u (i32.const 4096)) (i32.const 0x0404)) (then (unreachable)))
        (drop (call $environ (i32.const 4096) (i32.const 4100)))
        (if (i64.ne (i64.load (i32.const 4096)) (i64.const 0)) (then (unreachable)))
        (if (i32.eqz (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 0)
              (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 4096))) (then (unreachable)))
        (drop (call $fd_write (i32.const 2) (i32.const 2080) (i32.const 1) (i32.const 4096)))
        (if (i32.ne (i32.load (i32.const 4096)) (i32.const 20)) (then (unreachable)))
        (call $exit (i32.const 1)))
    "#;
    let module = module(WASI, tick);
    let component = componentize(&module).expect("a component");
    assert!(!String::from_utf8_lossy(&component).contains("wasi:"), "nothing of WASI is left to import");

    let lines = Arc::new(Lines::default());
    let compiler: Arc<dyn collander_engine::Compiler> = Arc::new(Builtin::default());
    let host = FilterHost::new(HostOptions { compiler: Some(compiler), ..HostOptions::default() }).expect("starts");
    let setup = Setup {
        name: "go".to_owned(),
        config: Vec::new(),
        sinks: Vec::new(),
        limits: Limits::default(),
        services: lines.clone(),
    };
    let mut filter = host.load(&module, setup).expect("loads");
    let failure = filter.tick(0, Arc::new([])).expect_err("it exits").to_string();
    assert!(failure.contains("it had said: panic: out of cheese"), "{failure}");
    assert_eq!(lines.0.lock().expect("not poisoned")[0], (LogLevel::Error, "panic: out of cheese".to_owned()));
}

#[test]
fn what_is_wrong_with_a_module_is_said() {
    let error = |module: &[u8]| componentize(module).expect_err("no filter").to_string();
    let unknown = error(&module(r#"(import "env" "system" (func (param i32)))"#, ""));
    assert!(unknown.contains("env"), "{unknown}");
    let wasi = error(&module(r#"(import "wasi_snapshot_preview1" "no_such_call" (func (param i32)))"#, ""));
    assert!(wasi.contains("no_such_call"), "{wasi}");
    assert!(parse_text(b"(module (func $f)").is_err());
    assert!(error(b"not wasm").contains("not WASM"));
}

#[test]
fn damaged_filters_are_refused_without_a_panic() {
    let settings = Settings::default();
    let module = module("", "");
    let component = componentize(&module).expect("a component");
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for round in 0..200 {
        let mut bytes = if round % 2 == 0 { module.clone() } else { component.clone() };
        for _ in 0..=random(4) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        if random(4) == 0 {
            bytes.truncate(random(bytes.len()));
        }
        if let Err(error) = compile(&settings, &bytes) {
            assert!(!matches!(error, collander_compiler::CompileError::Internal(_)), "round {round}: {error}");
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");
}
