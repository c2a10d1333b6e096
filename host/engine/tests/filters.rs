//! Well-behaved guests: what they decide arrives, what they make is right.

mod common;

use std::sync::Arc;

use collander_engine::{
    AggregateValue, Class, FilterPlan, HostOptions, Observed, Outcome, PlanRate, Severity, Source, Value, Verdict,
};
use collander_event::{Collective, Detail};
use common::{Surroundings, guest, host, load, load_patiently, operations, setup};

#[test]
fn verdicts_routes_and_tags_arrive() {
    let mut observed = Observed::default();
    let batch = operations(3000);
    let mut filter = load_patiently("drops_all", &Arc::default());
    filter.observe(&batch, &mut observed);
    assert_eq!(observed.verdicts, vec![Verdict::Drop; 3000]);

    let mut filter = load_patiently("routes_all", &Arc::default());
    assert!(filter.is_packed());
    filter.observe(&batch, &mut observed);
    assert_eq!(observed.verdicts, vec![Verdict::Route(2); 3000]);
    // Batches of 1024: the tags' indexes are those of the whole.
    assert_eq!(observed.tags, [0, 1024, 2048].map(|at| (at, "slow".to_owned())));
    let stats = filter.stats();
    assert_eq!((stats.operations, stats.routed, stats.dropped, stats.fallback, stats.batches), (3000, 3000, 0, 0, 3));
}

#[test]
fn packed_and_typed_guests_see_the_numbers() {
    let mut observed = Observed::default();
    let mut batch = operations(10);
    let mut filter = load("bench", &Arc::default()).expect("loads");
    batch.iter_mut().for_each(|o| o.bytes = Some(0));
    filter.observe(&batch, &mut observed);
    let even_is_slow: Vec<_> = (0..10).map(|at| if at % 2 == 0 { Verdict::Keep } else { Verdict::Drop }).collect();
    assert_eq!(observed.verdicts, even_is_slow);

    let mut filter = load("typed", &Arc::default()).expect("loads");
    assert!(!filter.is_packed());
    batch[3].kind = collander_event::OpKind::P2p;
    filter.observe(&batch, &mut observed);
    let others: Vec<_> = (0..10).map(|at| if at == 3 { Verdict::Drop } else { Verdict::Keep }).collect();
    assert_eq!((&observed.verdicts, &observed.outcome), (&others, &Outcome::Decided));
}

#[test]
fn plans_arrive() {
    let mut filter = load("good_plan", &Arc::default()).expect("loads");
    let class = Class { communicator: 1, collective: Collective::AllGather, size_class: 12 };
    let plan = FilterPlan {
        rate: PlanRate::OneIn(4),
        detail: Detail::PROXY_STEPS.union(Detail::PROXY_OPERATIONS),
        sinks: 2,
        valid_for_ms: Some(5000),
    };
    assert_eq!(filter.decide(class), Some(plan));
    let mut filter = load("drops_all", &Arc::default()).expect("loads");
    assert_eq!(filter.decide(class), None);
}

#[test]
fn it_is_described_configured_and_configured_anew() {
    let mut given = setup(&Arc::default());
    given.config = vec![("limit".to_owned(), Value::Integer(50))];
    let mut filter = host().load(&guest("drops_all"), given).expect("loads");
    let description = filter.describe().clone();
    assert_eq!((description.name.as_str(), description.version.as_str()), ("guest", "0.1.0"));
    assert_eq!((description.wants, description.tick_every_ms), (Detail::CHANNELS, 100));
    assert_eq!(description.settings[0].default, Some(Value::Integer(7)));
    filter.configure(&[("limit".to_owned(), Value::Integer(51))]).expect("takes it");
    assert!(filter.configure(&[("limit".to_owned(), Value::Integer(0))]).is_err());
    assert_eq!(filter.snapshot().as_deref(), Some(b"guest".as_slice()));
    filter.restore(b"guest", "0.0.1").expect("takes it");
}

#[test]
fn aggregates_outlive_the_instance_and_alerts_are_folded() {
    let surroundings = Arc::new(Surroundings::default());
    let mut filter = load_patiently("metrics", &surroundings);
    for _ in 0..3 {
        filter.tick(0, Arc::new([])).expect("ticks");
    }
    filter.renew_now().expect("a new instance");
    filter.tick(0, Arc::new([])).expect("ticks");
    let aggregates = filter.take_aggregates();
    let value = |name: &str| &aggregates.iter().find(|a| a.name == name).expect(name).value;
    assert_eq!(*value("guest"), AggregateValue::Counter { delta: 4000.0, total: 4000.0 });
    let AggregateValue::Histogram(sketch) = value("latency") else { panic!("no histogram") };
    assert_eq!((sketch.count(), sketch.sum(), sketch.greatest()), (4000, 4.0 * 500_500.0, Some(1000.0)));
    for (q, exact) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
        let found = sketch.quantile(q).expect("values");
        assert!((found - exact).abs() / exact < 0.01, "p{q}: {found}");
    }
    filter.tick(0, Arc::new([])).expect("ticks");
    let aggregates = filter.take_aggregates();
    assert_eq!(aggregates[1].value, AggregateValue::Counter { delta: 1000.0, total: 5000.0 });
    assert!(filter.take_aggregates().is_empty(), "nothing happened since");

    let alerts = surroundings.alerts.lock().unwrap();
    assert_eq!(alerts.len(), 1);
    assert_eq!((alerts[0].key.as_str(), alerts[0].severity, alerts[0].count), ("guest", Severity::Warning, 1));
    assert_eq!(filter.stats().imports.alerts_folded, 4);
    let records = surroundings.records.lock().unwrap();
    assert_eq!((records.len(), records[0].sinks, &records[0].fields[0].1), (5, 2, &Value::Number(2.5)));
}

#[test]
fn the_cache_is_used_and_what_is_odd_is_compiled_again() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("deep/cache");
    let wasm = guest("drops_all");
    let host = || {
        collander_engine::FilterHost::new(HostOptions {
            cache: Some(cache.clone()),
            compiler: Some(Arc::new(collander_compiler::Builtin::default())),
            ..HostOptions::default()
        })
        .expect("starts")
    };
    let source = || host().prepare(&wasm).expect("a filter").source;
    assert_eq!((source(), source()), (Source::Compiled, Source::Cached));
    let file = std::fs::read_dir(&cache).expect("made").next().expect("one").expect("readable").path();
    assert_eq!(std::fs::metadata(&cache).expect("there").permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);

    let good = std::fs::read(&file).expect("readable");
    let mut flipped = good.clone();
    flipped[1000] ^= 1;
    for odd in [flipped, good[..100].to_vec(), Vec::new(), b"something else".to_vec()] {
        std::fs::write(&file, odd).expect("writable");
        assert_eq!((source(), source()), (Source::Compiled, Source::Cached));
    }
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    mode(&file, 0o666);
    assert_eq!((source(), source()), (Source::Compiled, Source::Cached));
    let elsewhere = folder.path().join("elsewhere");
    std::fs::rename(&file, &elsewhere).expect("movable");
    std::os::unix::fs::symlink(&elsewhere, &file).expect("a link");
    assert_eq!((source(), source()), (Source::Compiled, Source::Cached));
    // A folder that others may write is not used at all.
    mode(&cache, 0o777);
    let loadable = host().prepare(&wasm).expect("a filter");
    assert_eq!(loadable.source, Source::Compiled);
    assert!(loadable.cache_problem.is_some_and(|problem| problem.contains("others may write")));
    // Without a compiler, what is cached loads, and the rest says what is missing.
    mode(&cache, 0o700);
    let bare = collander_engine::FilterHost::new(HostOptions { cache: Some(cache.clone()), ..HostOptions::default() });
    let bare = bare.expect("starts");
    assert_eq!(bare.prepare(&wasm).expect("cached").source, Source::Cached);
    let error = bare.prepare(&guest("bench")).expect_err("not compiled").to_string();
    assert!(error.contains("not compiled yet"), "{error}");
}

#[test]
fn a_runtime_serves_filters_on_several_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let host = host();
    let loadable = host.prepare(&guest("routes_all")).expect("a filter");
    let bad = host.prepare(&guest("endless_in_observe")).expect("a filter");
    std::thread::scope(|scope| {
        for at in 0..3 {
            let loadable = if at == 0 { &bad } else { &loadable };
            let mut filter = is_send(host.start(loadable, setup(&Arc::default())).expect("starts"));
            scope.spawn(move || {
                let mut observed = Observed::default();
                let batch = operations(100);
                // By the wall, since several run at once: the good ones get time enough, the bad one ends.
                for _ in 0..20 {
                    filter.observe(&batch, &mut observed);
                    assert_eq!(observed.verdicts.len(), 100);
                }
                assert_eq!(filter.stats().operations, 2000);
            });
        }
    });
}
