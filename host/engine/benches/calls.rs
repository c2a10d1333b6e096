//! What does a filter cost? Medians: ns a call and an operation (batches of 256), against the same decision in Rust; µs of
//! compiling, loading and renewing. One thread, guests in WAT: a compiled language's guest does a little more.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use collander_compiler::Builtin;
use collander_engine::{
    AggregateValue, Class, Filter, FilterHost, HostOptions, Limits, Observed, Outcome, Setup, Sketch, Source, Verdict,
};
use collander_event::{Collective, Operation};
use common::{Surroundings, guest, operations, setup};

const BATCH: usize = 256;

/// Median of `samples` runs of `body`, ns, each over `inner` repetitions.
fn median(samples: usize, inner: u32, mut body: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..samples)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..inner {
                body();
            }
            began.elapsed().as_nanos() as f64 / f64::from(inner)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn line(what: &str, value: f64, unit: &str, limit: &str) {
    println!("{what:<58} {value:>10.1} {unit:<3} {limit}");
}

fn observe(filter: &mut Filter, batch: &[Operation]) -> f64 {
    let mut observed = Observed::default();
    let each = median(200, 20, || filter.observe(black_box(batch), &mut observed)) / batch.len() as f64;
    assert_eq!(observed.outcome, Outcome::Decided);
    each
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = |cache: bool| HostOptions {
        cache: cache.then(|| folder.path().to_owned()),
        compiler: Some(Arc::new(Builtin::default())),
        ..HostOptions::default()
    };
    let host = FilterHost::new(options(false)).expect("starts");
    let cached = FilterHost::new(options(true)).expect("starts");
    let surroundings = Arc::new(Surroundings::default());
    let given =
        || Setup { limits: Limits { call_time: Duration::from_secs(1), ..Limits::default() }, ..setup(&surroundings) };
    let mut packed = host.load(&guest("bench"), given()).expect("loads");
    let mut typed = host.load(&guest("typed"), given()).expect("loads");

    let none: Arc<[_]> = Arc::new([]);
    let call = median(200, 1000, || packed.tick(black_box(1), none.clone()).expect("ticks"));
    line("host to guest: tick", call, "ns", "(at most 110)");
    let class = Class { communicator: 1, collective: Collective::AllReduce, size_class: 9 };
    let decide = median(200, 1000, || assert_eq!(packed.decide(black_box(class)), None));
    line("host to guest and back: decide", decide, "ns", "");

    let batch = operations(BATCH);
    let mut verdicts: Vec<Verdict> = Vec::with_capacity(BATCH);
    let native = median(200, 100, || {
        verdicts.clear();
        verdicts.extend(black_box(&batch).iter().map(|operation| {
            let slow = operation.duration_ns.unwrap_or(0) + operation.bytes.unwrap_or(0) > 1_000_000;
            if slow { Verdict::Keep } else { Verdict::Drop }
        }));
        black_box(&verdicts);
    }) / BATCH as f64;
    line("the same decision in Rust, an operation", native, "ns", "(floor)");
    let each = observe(&mut packed, &batch);
    line("observe, packed, an operation", each - native, "ns", "above the floor (at most 20)");
    let each = observe(&mut typed, &batch);
    line("observe, typed, an operation", each - native, "ns", "above the floor (at most 260)");
    for size in [1, 16, 64, 1024] {
        let batch = operations(size);
        let (packed, typed) = (observe(&mut packed, &batch), observe(&mut typed, &batch));
        println!("  batches of {size:>4}: packed {packed:>7.1} ns, typed {typed:>7.1} ns an operation");
    }

    let mut sketch = Sketch::default();
    let mut x = 1u64;
    let each = median(50, 10_000, || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sketch.observe((x >> 40) as f64);
    });
    line("a value into a histogram", each, "ns", "");
    let mut metrics = host.load(&guest("metrics"), given()).expect("loads");
    let each = median(50, 1, || metrics.tick(0, none.clone()).expect("ticks"));
    line("2000 updates, an alert and a record from a guest", each / 1000.0, "µs", "");
    assert!(matches!(
        metrics.take_aggregates()[0].value,
        AggregateValue::Histogram(_) | AggregateValue::Counter { .. }
    ));

    let wasm = guest("metrics");
    let compile = median(10, 1, || {
        assert_eq!(host.prepare(&wasm).expect("a filter").source, Source::Compiled);
    });
    line("compile and prepare", compile / 1000.0, "µs", "(stock filters: at most 100 000)");
    cached.prepare(&wasm).expect("a filter");
    let load = median(50, 1, || {
        assert_eq!(cached.prepare(&wasm).expect("a filter").source, Source::Cached);
    });
    line("prepare from the cache", load / 1000.0, "µs", "(at most 1000)");
    let loadable = cached.prepare(&wasm).expect("a filter");
    let start = median(100, 1, || drop(cached.start(&loadable, given()).expect("starts")));
    line("start: instance, describe, configure", start / 1000.0, "µs", "");
    let renew = median(500, 1, || metrics.renew_now().expect("a new instance"));
    line("renewal: instance, configure", renew / 1000.0, "µs", "(at most 100)");

    let stop = median(20, 1, || {
        let mut given = given();
        given.limits.call_time = Duration::from_millis(10);
        let mut endless = host.load(&guest("endless_in_tick"), given).expect("loads");
        let began = Instant::now();
        endless.tick(0, none.clone()).expect_err("it is stopped");
        surroundings.lines.lock().expect("not poisoned").clear();
        times().push(began.elapsed());
    });
    black_box(stop);
    let mut times = std::mem::take(&mut *times());
    times.sort();
    line(
        "a runaway with a budget of 10 ms is stopped after",
        times[times.len() / 2].as_secs_f64() * 1e3,
        "ms",
        "(at most 20)",
    );
    println!("{:<58} {:>10.1} ms", "  the longest of 20", times[times.len() - 1].as_secs_f64() * 1e3);
}

fn times() -> std::sync::MutexGuard<'static, Vec<Duration>> {
    static TIMES: std::sync::Mutex<Vec<Duration>> = std::sync::Mutex::new(Vec::new());
    TIMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
