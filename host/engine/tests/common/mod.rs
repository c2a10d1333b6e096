//! The guests of `tests/guests`, and surroundings that remember what filters had done.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use collander_compiler::{Builtin, parse_text};
use collander_engine::{
    Alert, Class, Emitted, Filter, FilterHost, FilterPlan, HostOptions, Limits, LoadError, LogLevel, Services,
    Settings, Setup,
};
use collander_event::{Collective, Communicator, Operation};

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests")
}

/// The text of a guest: the frame, with the guest's functions in place of the defaults.
pub fn text(name: &str) -> String {
    let read = |name: &str| std::fs::read_to_string(folder().join(format!("{name}.wat"))).expect(name);
    let (frame, guest) = (read("frame"), read(name));
    let mut parts = frame.split(";; default: ");
    let mut whole = parts.next().expect("the head").to_owned();
    if guest.contains(";; typed") {
        whole = whole.replace("filter/tail-packed@", "filter/tail@");
    }
    whole.push_str(&guest);
    for part in parts {
        let (name, body) = part.split_once('\n').expect("a name");
        if name == "end" || !guest.contains(&format!("(func ${name} ")) {
            whole.push_str(body);
        }
    }
    whole
}

pub fn binary(text: &str) -> Vec<u8> {
    parse_text(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn guest(name: &str) -> Vec<u8> {
    binary(&text(name))
}

/// What filters had done.
#[derive(Debug, Default)]
pub struct Surroundings {
    pub lines: Mutex<Vec<(LogLevel, String)>>,
    pub records: Mutex<Vec<Emitted>>,
    pub alerts: Mutex<Vec<Alert>>,
    pub plans: Mutex<Vec<(Class, FilterPlan)>>,
    pub replans: Mutex<Vec<Option<u32>>>,
    pub dumps: Mutex<Vec<String>>,
    pub panics: bool,
}

impl Services for Surroundings {
    fn log(&self, _: &str, level: LogLevel, message: &str) {
        assert!(!self.panics || level == LogLevel::Error, "the logger panics");
        self.lines.lock().unwrap().push((level, message.to_owned()));
    }
    fn emit(&self, _: &str, record: Emitted) {
        self.records.lock().unwrap().push(record);
    }
    fn alert(&self, _: &str, alert: Alert) {
        self.alerts.lock().unwrap().push(alert);
    }
    fn set_plan(&self, _: &str, class: Class, plan: FilterPlan) {
        self.plans.lock().unwrap().push((class, plan));
    }
    fn replan(&self, _: &str, communicator: Option<u32>) {
        self.replans.lock().unwrap().push(communicator);
    }
    fn dump_black_box(&self, _: &str, reason: &str) {
        self.dumps.lock().unwrap().push(reason.to_owned());
    }
}

impl Surroundings {
    pub fn said(&self) -> String {
        self.lines.lock().unwrap().iter().map(|(_, line)| format!("{line}\n")).collect()
    }
}

pub fn host() -> FilterHost {
    FilterHost::new(HostOptions {
        settings: Settings::default(),
        cache: None,
        compiler: Some(Arc::new(Builtin::default())),
    })
    .expect("the runtime starts")
}

/// Limits without waiting between instances.
pub fn limits() -> Limits {
    Limits { back_off: Duration::ZERO, failures: 3, ..Limits::default() }
}

pub fn setup(surroundings: &Arc<Surroundings>) -> Setup {
    Setup {
        name: "under-test".to_owned(),
        config: Vec::new(),
        sinks: vec!["first".to_owned(), "second".to_owned()],
        limits: limits(),
        services: surroundings.clone(),
    }
}

pub fn load(name: &str, surroundings: &Arc<Surroundings>) -> Result<Filter, LoadError> {
    host().load(&guest(name), setup(surroundings))
}

/// As `load`, for guests that do much in a call: sanitizers and debug builds are slow.
pub fn load_patiently(name: &str, surroundings: &Arc<Surroundings>) -> Filter {
    let mut given = setup(surroundings);
    given.limits.call_time = Duration::from_secs(5);
    host().load(&guest(name), given).expect(name)
}

pub fn operations(count: usize) -> Vec<Operation> {
    let communicator = Arc::new(Communicator { ordinal: 3, ranks: Some(8), ..Communicator::default() });
    (0..count as u64)
        .map(|id| Operation {
            id,
            communicator: communicator.clone(),
            collective: Collective::AllReduce,
            bytes: Some(1 << 20),
            duration_ns: Some(if id % 2 == 0 { 2_000_000 } else { 1000 }),
            algbw: Some(1.5),
            algorithm: "RING",
            protocol: "SIMPLE",
            ..Operation::default()
        })
        .collect()
}
