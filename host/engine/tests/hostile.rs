//! Each guest of `tests/guests` fails in its own way; the batch takes its fallback, the message says why, and the engine goes on.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use collander_engine::{Class, FailureKind, Health, LoadError, Observed, Outcome, Setup, Value, Verdict};
use collander_event::{Collective, Communicator};
use common::{Surroundings, binary, guest, host, limits, load, load_patiently, operations, setup, text};

const CLASS: Class = Class { communicator: 3, collective: Collective::AllReduce, size_class: 21 };

/// Shows three batches to a guest that fails at each: all fall back, then it is disabled.
fn fails_in_observe(name: &str, kind: FailureKind, says: &str) {
    let surroundings = Arc::new(Surroundings::default());
    let host = host();
    let mut filter = host.load(&guest(name), setup(&surroundings)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut neighbour = host.load(&guest("drops_all"), setup(&surroundings)).expect("the neighbour");
    let batch = operations(100);
    let mut observed = Observed::default();
    for round in 1..=3 {
        let began = Instant::now();
        filter.observe(&batch, &mut observed);
        println!("{name}: stopped after {:?}", began.elapsed());
        assert_eq!(observed.verdicts, vec![Verdict::Keep; 100], "{name}");
        let Outcome::Failed(failure) = &observed.outcome else { panic!("{name}: {:?}", observed.outcome) };
        assert_eq!(failure.kind(), kind, "{name}: {failure}");
        assert!(failure.to_string().contains(says), "{name}: {failure}");
        assert_eq!(filter.failures(kind), round);
        neighbour.observe(&batch, &mut observed);
        assert_eq!(observed.verdicts, vec![Verdict::Drop; 100], "{name}: the neighbour is not affected");
    }
    assert_eq!(filter.health(), Health::Disabled, "{name}");
    filter.observe(&batch, &mut observed);
    assert_eq!((observed.verdicts.len(), &observed.outcome), (100, &Outcome::Disabled), "{name}");
    let stats = filter.stats();
    assert_eq!((stats.operations, stats.fallback, stats.renewals), (400, 400, 2), "{name}");
    let said = surroundings.said();
    assert!(said.contains("failed in observe") && said.contains("disabled after 3 failures"), "{name}: {said}");
    assert_eq!(said.matches("failed in observe").count(), 1, "{name}: once is enough: {said}");
}

#[test]
fn what_traps_in_observe_takes_the_fallback() {
    fails_in_observe("unreachable", FailureKind::Trap, "it had said: assertion failed: left == right");
    fails_in_observe("unreachable", FailureKind::Trap, "at observe");
    fails_in_observe("out_of_bounds", FailureKind::Trap, "out of bounds memory access");
    fails_in_observe("division_by_zero", FailureKind::Trap, "integer divide by zero");
    fails_in_observe("null_call", FailureKind::Trap, "uninitialized element");
    fails_in_observe("wrong_signature", FailureKind::Trap, "indirect call type mismatch");
    fails_in_observe("integer_overflow", FailureKind::Trap, "integer overflow");
    fails_in_observe("result_out_of_bounds", FailureKind::Trap, "out of bounds");
    fails_in_observe("deep_recursion", FailureKind::Stack, "its stack overflowed");
}

#[test]
fn what_breaks_a_limit_takes_the_fallback() {
    fails_in_observe("memory_growth", FailureKind::Memory, "its limit is 16777216");
    fails_in_observe("memory_from_the_start", FailureKind::Memory, "538181632 bytes of memory");
    fails_in_observe("table_growth", FailureKind::Table, "its limit is 20000");
    fails_in_observe("endless_in_observe", FailureKind::Time, "it ran longer than 10ms");
}

#[test]
fn verdicts_that_make_no_sense_take_the_fallback() {
    fails_in_observe("too_many_verdicts", FailureKind::BadVerdict, "101 verdicts for 100 operations");
    fails_in_observe("bad_verdict", FailureKind::BadVerdict, "verdict 77 of operation 0");
    fails_in_observe("unknown_sink", FailureKind::BadVerdict, "goes to sinks 0b1000000, of which there are 0b11");
}

#[test]
fn an_endless_loop_is_stopped_in_every_export() {
    let error = |name| match load(name, &Arc::default()) {
        Ok(_) => panic!("{name} loads"),
        Err(error) => error.to_string(),
    };
    assert!(error("endless_at_start").contains("cannot be instantiated: it ran longer than 100ms"));
    assert!(error("endless_in_describe").contains("describe failed: it ran longer than 100ms"));
    assert!(error("endless_in_configure").contains("configure failed: it ran longer than 100ms"));

    let communicator = Arc::new(Communicator { ordinal: 3, ..Communicator::default() });
    for name in ["communicator_opened", "communicator_closed", "decide", "tick", "snapshot", "restore"] {
        let surroundings = Arc::new(Surroundings::default());
        let mut filter = load(&format!("endless_in_{name}"), &surroundings).expect(name);
        let began = Instant::now();
        match name {
            "communicator_opened" => filter.communicator_opened(&communicator),
            "communicator_closed" => {
                filter.communicator_opened(&communicator);
                filter.communicator_closed(3);
            }
            "decide" => assert_eq!(filter.decide(CLASS), None),
            "tick" => assert!(filter.tick(0, Arc::new([])).is_err()),
            "snapshot" => assert_eq!(filter.snapshot(), None),
            _ => assert!(filter.restore(b"x", "0.0.1").is_err()),
        }
        println!("{name}: stopped after {:?}", began.elapsed());
        assert_eq!(filter.failures(FailureKind::Time), 1, "{name}");
        assert!(surroundings.said().contains("it ran longer than"), "{name}");
        if name == "communicator_opened" {
            filter.communicator_closed(3);
        }
        // It goes on with a new instance.
        let mut observed = Observed::default();
        filter.observe(&operations(10), &mut observed);
        assert_eq!((observed.verdicts.len(), &observed.outcome), (10, &Outcome::Decided), "{name}");
        assert_eq!(filter.health(), Health::Running, "{name}");
    }
}

#[test]
fn a_filter_that_declares_to_drop_drops_and_the_operator_has_the_last_word() {
    let drops = text("unreachable").replace(r#""\64\00\00\00" "\01\00\00\00")"#, r#""\64\00\00\00" "\00\00\00\00")"#);
    let host = host();
    let mut filter = host.load(&binary(&drops), setup(&Arc::default())).expect("loads");
    assert!(!filter.describe().on_failure_keep);
    let mut observed = Observed::default();
    filter.observe(&operations(2), &mut observed);
    assert_eq!(observed.verdicts, [Verdict::Drop; 2]);
    let mut given = setup(&Arc::default());
    given.limits.on_failure_keep = Some(true);
    let mut filter = host.load(&binary(&drops), given).expect("loads");
    filter.observe(&operations(2), &mut observed);
    assert_eq!(observed.verdicts, [Verdict::Keep; 2]);
}

#[test]
fn a_plan_that_is_not_valid_is_the_default() {
    let mut filter = load("bad_plan", &Arc::default()).expect("loads");
    assert_eq!(filter.decide(CLASS), None);
    assert_eq!((filter.stats().bad_plans, filter.failures(FailureKind::BadVerdict)), (1, 1));
}

#[test]
fn floods_end_at_their_limits() {
    let surroundings = Arc::new(Surroundings::default());
    let mut given = setup(&surroundings);
    given.limits.call_time = Duration::from_secs(5);
    let host = host();
    let none = Arc::new([]) as Arc<[collander_event::OpenOperation]>;

    let mut filter = host.load(&guest("log_flood"), given.clone()).expect("loads");
    filter.tick(0, none.clone()).expect("ticks");
    let imports = filter.stats().imports;
    assert_eq!(imports.log_lines + imports.log_lines_dropped, 10_000);
    assert!(surroundings.lines.lock().unwrap().len() as u64 == imports.log_lines && imports.log_lines < 400);

    let mut filter = host.load(&guest("million_series"), given.clone()).expect("loads");
    for _ in 0..1000 {
        filter.tick(0, none.clone()).expect("ticks");
    }
    let stats = filter.stats();
    assert_eq!((stats.series, stats.imports.series_refused), (1000, 999_000));
    assert_eq!(filter.take_aggregates().len(), 1000);

    let mut filter = host.load(&guest("emit_flood"), given.clone()).expect("loads");
    filter.tick(0, none.clone()).expect("ticks");
    let imports = filter.stats().imports;
    assert_eq!(imports.records + imports.records_dropped, 100_000);
    assert!(imports.records_dropped > 0, "{imports:?}");
    assert_eq!(surroundings.records.lock().unwrap().len() as u64, imports.records);
}

#[test]
fn what_is_too_large_from_the_start_does_not_load() {
    let host = host();
    let with = |text: String, change: &dyn Fn(&mut collander_engine::Limits)| {
        let mut given = setup(&Arc::default());
        change(&mut given.limits);
        host.load(&binary(&text), given)
    };
    let error = |text, change: &dyn Fn(&mut collander_engine::Limits)| match with(text, change) {
        Ok(_) => panic!("it loads"),
        Err(error) => error.to_string(),
    };
    let large = text("drops_all").replace(r#"(memory (export "memory") 20)"#, r#"(memory (export "memory") 8192)"#);
    let said = error(large, &|_| {});
    assert!(said.contains("it wanted 536870912 bytes of memory, its limit is 16777216"), "{said}");
    let table = text("drops_all").replace("(table $functions 1 funcref)", "(table $functions 100000 funcref)");
    let said = error(table, &|_| {});
    assert!(said.contains("it wanted a table of 100000 elements, its limit is 20000"), "{said}");
    let said = error(text("drops_all"), &|limits| limits.instances = 1);
    assert!(said.contains("resource limit exceeded: instance count"), "{said}");

    let quiet = |limits: &mut collander_engine::Limits| (limits.open_alerts, limits.series) = (0, 1);
    let mut filter = with(text("metrics"), &quiet).expect("loads");
    filter.tick(0, Arc::new([])).expect("ticks");
    let imports = filter.stats().imports;
    assert_eq!((imports.alerts, imports.alerts_dropped, imports.series_refused), (0, 1, 1));
}

#[test]
fn what_the_host_copies_is_bounded() {
    for (name, says) in [
        ("huge_emit", "out of bounds"),
        ("repeated_emit", "handed more to the host"),
        ("not_utf8", "utf-8"),
        ("bad_enum", "discriminant"),
    ] {
        let surroundings = Arc::new(Surroundings::default());
        let mut filter = load_patiently(name, &surroundings);
        let failure = filter.tick(0, Arc::new([])).expect_err(name);
        assert_eq!(failure.kind(), FailureKind::Trap, "{name}: {failure}");
        assert!(failure.to_string().contains(says), "{name}: {failure}");
        assert!(surroundings.records.lock().unwrap().is_empty(), "{name}");
    }
    let error = load("endless_description", &Arc::default()).expect_err("a list of 4 billion");
    println!("{error}");
    let error = load("bad_name", &Arc::default()).expect_err("a space").to_string();
    assert!(error.contains("name \"g est\""), "{error}");
}

#[test]
fn a_guest_whose_memory_is_full_fails_alone() {
    let mut filter = load("bad_realloc", &Arc::default()).expect("loads");
    let communicator = Arc::new(Communicator { ordinal: 3, ..Communicator::default() });
    filter.communicator_opened(&communicator);
    filter.communicator_closed(3);
    let mut observed = Observed::default();
    filter.observe(&operations(10), &mut observed);
    assert!(matches!(observed.outcome, Outcome::Failed(_)), "{:?}", observed.outcome);
    filter.observe(&operations(10), &mut observed);
    assert_eq!(observed.outcome, Outcome::Decided);
}

#[test]
fn hostile_arguments_are_refused_and_counted() {
    let surroundings = Arc::new(Surroundings::default());
    let mut filter = load_patiently("hostile_imports", &surroundings);
    filter.tick(1 << 60, Arc::new([])).expect("nothing of it ends the call");
    let imports = filter.stats().imports;
    assert_eq!((imports.series_refused, imports.values_refused), (3, 4));
    assert_eq!((imports.records, imports.records_dropped), (0, 2));
    assert_eq!((imports.alerts, imports.alerts_dropped), (0, 1));
    assert_eq!((imports.plans, imports.plans_refused), (0, 4));
    assert_eq!((imports.tags_refused, imports.dumps, imports.dumps_dropped), (1, 1, 1));
    let lines = surroundings.lines.lock().unwrap();
    assert!(lines.len() == 1 && lines[0].1.len() == 1000 && !lines[0].1.contains('\0'), "{}", lines[0].1.len());
    assert_eq!(*surroundings.replans.lock().unwrap(), [Some(u32::MAX), None]);
}

#[test]
fn a_stack_of_512_kib_is_enough_for_what_overflows_its_own() {
    let host = host();
    let recursion = host.prepare(&guest("deep_recursion")).expect("a filter");
    let packed = host.prepare(&guest("metrics")).expect("a filter");
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let run = move || {
        let mut observed = Observed::default();
        let mut filter = host.start(&recursion, setup(&Arc::default())).expect("starts");
        filter.observe(&operations(1000), &mut observed);
        assert_eq!(filter.failures(FailureKind::Stack), 1);
        let mut filter = host.start(&packed, setup(&Arc::default())).expect("starts");
        filter.observe(&operations(1000), &mut observed);
        assert_eq!(observed.outcome, Outcome::Decided);
    };
    small.spawn(run).expect("a thread").join().expect("no overflow of ours");
}

#[test]
fn a_panic_on_our_side_ends_the_call_only() {
    let surroundings = Arc::new(Surroundings { panics: true, ..Surroundings::default() });
    let mut filter = load("log_flood", &surroundings).expect("loads");
    let failure = filter.tick(0, Arc::new([])).expect_err("the logger panics");
    assert_eq!(failure.kind(), FailureKind::Host);
    assert!(failure.to_string().contains("the logger panics"), "{failure}");
    let mut observed = Observed::default();
    filter.observe(&operations(10), &mut observed);
    assert_eq!(observed.outcome, Outcome::Decided);
}

#[test]
fn configuration_is_checked_and_can_be_refused() {
    let host = host();
    let error = |name: &str, config: Vec<(String, Value)>| {
        host.load(&guest(name), Setup { config, ..setup(&Arc::default()) }).expect_err(name).to_string()
    };

    assert_eq!(error("refuses", Vec::new()), "it refuses its configuration: no sink called history");
    let wrong = error("drops_all", vec![("limits".to_owned(), Value::Integer(3))]);
    assert_eq!(wrong, "its configuration is not valid: limits is no setting of this filter: it has limit");
    let wrong = error("drops_all", vec![("limit".to_owned(), Value::Integer(101))]);
    assert_eq!(wrong, "its configuration is not valid: limit: 101 is more than 100");
}

#[test]
fn what_is_no_filter_is_refused_by_name() {
    let host = host();
    let error = |wasm: &[u8]| host.prepare(wasm).expect_err("no filter").to_string();
    let contains = |wasm: &[u8], what: &str| {
        let error = error(wasm);
        assert!(error.contains(what), "{error:?} lacks {what:?}");
        println!("{}", error.lines().next().unwrap_or_default());
    };
    contains(b"", "empty");
    contains(b"\0asm", "truncated");
    contains(b"#!/bin/sh\necho filter", "not WASM");
    contains(&vec![0; 200 << 20], "at most");
    contains(&[b"\0asm\x01\0\0\0".as_slice(), &[0xff; 4096]].concat(), "damaged");
    let good = guest("drops_all");
    contains(&good[..good.len() / 2], "damaged");
    let component = collander_compiler::componentize(&good).expect("a component");
    contains(&component[..component.len() / 2], "");
    contains(&binary("(module)"), "no filter");
    contains(&binary("(component)"), "does not export collander:filter/lifecycle@0.1.0");

    // Versions.
    contains(&binary(&text("drops_all").replace("@0.1.0", "@0.2.0")), "0.2.0");
    contains(&binary(&text("drops_all").replace("@0.1.0", "@0.0.9")), "0.0.9");
    for version in ["0.2.0", "0.0.9", "1.0.0", "0.1.7"] {
        let text =
            format!(r#"(component (instance $i) (export "collander:filter/lifecycle@{version}" (instance $i)))"#);
        let error = host.prepare(&binary(&text)).expect_err("another version");
        assert!(matches!(&error, LoadError::Version { wanted, .. } if wanted == version), "{error}");
    }
    // Too little, too much.
    let without = text("drops_all").replace(r#"(export "collander:filter/head@0.1.0#decide" (func $decide))"#, "");
    contains(&binary(&without), "head");
    let import = r#"(import "env" "system" (func $system (param i32) (result i32)))"#;
    let more = text("drops_all").replacen("(import", &format!("{import}\n(import"), 1);
    contains(&binary(&more), "env");
    let files = r#"(component (import "wasi:filesystem/types@0.2.0" (instance)))"#;
    contains(&binary(files), "no files, network, environment");
    // The right names with the wrong types.
    let empty = r#"(component (instance $i)
        (export "collander:filter/lifecycle@0.1.0" (instance $i))
        (export "collander:filter/head@0.1.0" (instance $i))
        (export "collander:filter/tail@0.1.0" (instance $i)))"#;
    contains(&binary(empty), "is not the one of collander:filter@0.1.0");
    // What filters do not get: a second memory, 64-bit memory.
    contains(&binary("(module (memory 1) (memory 1))"), "");
}

#[test]
fn what_fails_is_tried_again_after_a_while_only() {
    let surroundings = Arc::new(Surroundings::default());
    let mut given = setup(&surroundings);
    given.limits.back_off = Duration::from_secs(3600);
    given.limits.back_off_most = Duration::from_secs(3600);
    given.limits.failures = 10;
    let mut filter = host().load(&guest("unreachable"), given).expect("loads");
    let mut observed = Observed::default();
    let batch = operations(5);
    for _ in 0..2 {
        filter.observe(&batch, &mut observed);
        assert!(matches!(observed.outcome, Outcome::Failed(_)));
    }
    for _ in 0..100 {
        filter.observe(&batch, &mut observed);
        assert_eq!(observed.outcome, Outcome::Waiting);
    }
    assert!(matches!(filter.health(), Health::Waiting { .. }));
    assert_eq!((filter.stats().renewals, filter.stats().fallback), (1, 510));
}

#[test]
fn every_guest_here_is_tested() {
    let tests = [include_str!("hostile.rs"), include_str!("filters.rs"), include_str!("../benches/calls.rs")].concat();
    for entry in std::fs::read_dir(common::folder()).expect("the folder") {
        let path = entry.expect("an entry").path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".wat")) else {
            continue;
        };
        let named = name == "frame" || tests.contains(&format!("\"{name}\""));
        let endless = name.strip_prefix("endless_in_").is_some_and(|export| tests.contains(&format!("\"{export}\"")));
        assert!(named || endless, "{name}.wat is in no test");
    }
    let _ = limits();
}
