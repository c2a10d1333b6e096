//! Core modules of languages without component tooling become components, WASI's preview 1 included.

use collander_compiler::{Form, compile, componentize, form, parse_text};
use collander_engine::Settings;

const FRAME: &str = include_str!("../../../tests/guests/frame.wat");

fn with(text: &str) -> Vec<u8> {
    let parts: String = FRAME
        .split(";; default: ")
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { part.split_once('\n').map_or("", |p| p.1) })
        .collect();
    let at = parts.rfind(')').expect("the end");
    parse_text(format!("{}{text}\n)", &parts[..at]).as_bytes()).expect("WAT")
}

fn importing(import: &str, text: &str) -> Vec<u8> {
    let parts: String = FRAME
        .split(";; default: ")
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { part.split_once('\n').map_or("", |p| p.1) })
        .collect();
    let parts = parts.replacen("(import", &format!("{import}\n(import"), 1);
    let at = parts.rfind(')').expect("the end");
    parse_text(format!("{}{text}\n)", &parts[..at]).as_bytes()).expect("WAT")
}

#[test]
fn a_module_becomes_a_component_that_compiles() {
    let module = with("");
    assert_eq!(form(&module).expect("WASM"), Form::Module);
    let component = componentize(&module).expect("a component");
    assert_eq!(form(&component).expect("WASM"), Form::Component);
    assert_eq!(componentize(&component).expect("as it is"), component);
    compile(&Settings::default(), &component).expect("native code");
}

#[test]
fn wasi_is_answered_by_nothing() {
    let import = r#"
        (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))"#;
    let component = componentize(&importing(import, "")).expect("a component");
    let text = String::from_utf8_lossy(&component);
    assert!(!text.contains("wasi:"), "nothing of WASI is left to import");
    compile(&Settings::default(), &component).expect("native code");
}

#[test]
fn what_is_wrong_with_a_module_is_said() {
    let error = |module: &[u8]| componentize(module).expect_err("no filter").to_string();
    let unknown = error(&importing(r#"(import "env" "system" (func (param i32)))"#, ""));
    assert!(unknown.contains("env"), "{unknown}");
    let wasi = error(&importing(r#"(import "wasi_snapshot_preview1" "no_such_call" (func (param i32)))"#, ""));
    assert!(wasi.contains("no_such_call"), "{wasi}");
    assert!(parse_text(b"(module (func $f)").is_err());
    assert!(error(b"not wasm").contains("not WASM"));
}
