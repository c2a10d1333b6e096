//! What the pipeline uses: a filter that always answers, whatever its guest does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use collander_event::{Communicator, OpenOperation, Operation};

use crate::bindings::decisions;
use crate::convert;
use crate::error::{Failure, FailureKind, LoadError};
use crate::host_imports::{Durable, ImportCounts, State};
use crate::instance::{Answer, Instance};
use crate::limits::{Growth, Limits};
use crate::packed::Packed;
use crate::prepared::{Prepared, TailIndices};
use crate::schema;
use crate::ticker::Ticker;
use crate::types::{Aggregate, Class, Description, FilterPlan, LogLevel, Services, Value, Verdict};

/// Operations that a guest sees at once.
pub const BATCH: usize = 1024;
/// Greatest snapshot, bytes.
const SNAPSHOT_BYTES: usize = 1 << 20;

/// What a filter is given at load.
#[derive(Clone)]
pub struct Setup {
    /// Its name in the operator's configuration: in logs, alerts and as the label of what it makes.
    pub name: String,
    /// The operator's configuration of it.
    pub config: Vec<(String, Value)>,
    /// Sinks that it can route to, at most 32; the order gives them their bits.
    pub sinks: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// What it can have done.
    pub services: Arc<dyn Services>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("name", &self.name).field("sinks", &self.sinks).finish_non_exhaustive()
    }
}

/// Whether a filter works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Running,
    /// Its instance failed; a new one is made at the first call after `retry_at`. Batches take the fallback until then.
    Waiting {
        /// When.
        retry_at: Instant,
    },
    /// It failed too often. Everything is kept, as if it were not there.
    Disabled,
}

impl Health {
    /// Name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting { .. } => "waiting",
            Self::Disabled => "disabled",
        }
    }
}

/// How the verdicts of a batch came about.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Outcome {
    /// The filter decided.
    #[default]
    Decided,
    /// It failed on at least a part of the batch, which took the fallback.
    Failed(Failure),
    /// It waits for a new instance; the batch took the fallback.
    Waiting,
    /// It is disabled; everything is kept.
    Disabled,
}

/// What became of a batch. Reuse it: its memory is kept.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// One an operation, in the same order, whatever happened.
    pub verdicts: Vec<Verdict>,
    /// Words with which the filter marked operations, by index.
    pub tags: Vec<(u32, String)>,
    /// How the verdicts came about.
    pub outcome: Outcome,
}

/// Counters of a filter since it was loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterStats {
    /// Whether it works.
    pub health: Health,
    /// Operations that it was shown, or that took its fallback.
    pub operations: u64,
    /// Dropped by its verdict.
    pub dropped: u64,
    /// Routed by its verdict.
    pub routed: u64,
    /// Operations that took the fallback.
    pub fallback: u64,
    /// Batches shown.
    pub batches: u64,
    /// ns in `observe`, conversion included.
    pub observe_ns: u64,
    /// The longest `observe`, ns.
    pub observe_longest_ns: u64,
    /// Failures by kind (index: `FailureKind as usize`).
    pub failures: [u64; 8],
    /// Instances made after the first.
    pub renewals: u64,
    /// Plans that `decide` returned and that are not valid.
    pub bad_plans: u64,
    /// Series open.
    pub series: usize,
    /// What the imports counted.
    pub imports: ImportCounts,
    /// The last failure, for people; "" if there was none.
    pub last_failure: String,
}

/// A loaded filter of one pipeline. Calls come from one thread, which needs 512 KiB of stack.
#[derive(Debug)]
pub struct Filter {
    prepared: Prepared,
    ticker: Arc<Ticker>,
    setup: Setup,
    name: Arc<str>,
    description: Arc<Description>,
    config: Arc<BTreeMap<String, Value>>,
    instance: Option<Instance>,
    /// While there is no instance.
    durable: Option<Box<Durable>>,
    communicators: BTreeMap<u32, Arc<Communicator>>,
    packed: Packed,
    health: Health,
    in_a_row: u32,
    failed_at: Option<Instant>,
    told: [bool; 8],
    stats: FilterStats,
}

/// Why a call did not come about.
enum NotCalled {
    Waiting,
    Disabled,
    Failed(Failure),
}

impl Filter {
    /// Instantiates, describes, checks the configuration, configures.
    pub(crate) fn new(prepared: Prepared, ticker: Arc<Ticker>, mut setup: Setup) -> Result<Self, LoadError> {
        setup.sinks.truncate(32);
        let failed = |during| move |failure| LoadError::Failed { during, failure };
        let mut this = Self {
            name: setup.name.as_str().into(),
            description: Arc::new(Description {
                name: String::new(),
                version: String::new(),
                summary: String::new(),
                settings: Vec::new(),
                emits: Vec::new(),
                wants: collander_event::Detail(0),
                tick_every_ms: 0,
                on_failure_keep: true,
            }),
            config: Arc::default(),
            durable: Some(Box::new(Durable::new(&setup.limits))),
            prepared,
            ticker,
            setup,
            instance: None,
            communicators: BTreeMap::new(),
            packed: Packed::default(),
            health: Health::Running,
            in_a_row: 0,
            failed_at: None,
            told: [false; 8],
            stats: FilterStats {
                health: Health::Running,
                operations: 0,
                dropped: 0,
                routed: 0,
                fallback: 0,
                batches: 0,
                observe_ns: 0,
                observe_longest_ns: 0,
                failures: [0; 8],
                renewals: 0,
                bad_plans: 0,
                series: 0,
                imports: ImportCounts::default(),
                last_failure: String::new(),
            },
        };
        let start_time = this.setup.limits.start_time;
        let mut instance = this.instantiate().map_err(failed("it cannot be instantiated"))?;
        let description = instance.describe(&this.ticker, start_time).map_err(failed("describe failed"))?;
        let description = convert::description(description);
        schema::check_description(&description).map_err(LoadError::Description)?;
        let config = schema::resolve(&description.settings, &this.setup.config).map_err(LoadError::Config)?;
        this.config = Arc::new(config);
        this.description = Arc::new(description);
        instance.state().config = this.config.clone();
        match instance.configure(&this.ticker, start_time, &this.setup.sinks).map_err(failed("configure failed"))? {
            Ok(()) => {}
            Err(message) => return Err(LoadError::ConfigRefused(message)),
        }
        this.instance = Some(instance);
        Ok(this)
    }

    fn instantiate(&mut self) -> Result<Instance, Failure> {
        let durable = self.durable.take().unwrap_or_else(|| Box::new(Durable::new(&self.setup.limits)));
        let limits = &self.setup.limits;
        let state = State {
            name: self.name.clone(),
            services: self.setup.services.clone(),
            config: self.config.clone(),
            known_sinks: convert::sink_mask(self.setup.sinks.len()),
            dump_every: limits.dump_every,
            growth: Growth {
                memory_bytes: limits.memory_bytes,
                table_elements: limits.table_elements,
                instances: limits.instances,
            },
            durable,
            batch: 0,
            tags: Vec::new(),
            open: None,
            now_ns: 0,
            last_error: None,
        };
        Instance::new(&self.prepared, state, limits, &self.ticker).map_err(|(failure, state)| {
            self.durable = Some(state.durable);
            failure
        })
    }

    /// A new instance, where the last one failed.
    fn renew(&mut self) -> Result<(), Failure> {
        self.stats.renewals += 1;
        let mut instance = self.instantiate()?;
        let start_time = self.setup.limits.start_time;
        let ready = match instance.configure(&self.ticker, start_time, &self.setup.sinks) {
            Ok(Ok(())) => instance.reopen(&self.ticker, self.communicators.values()),
            Ok(Err(message)) => Err(Failure::Refused(message)),
            Err(failure) => Err(failure),
        };
        match ready {
            Ok(()) => {
                self.instance = Some(instance);
                self.health = Health::Running;
                Ok(())
            }
            Err(failure) => {
                self.durable = Some(instance.into_state().durable);
                Err(failure)
            }
        }
    }

    /// Calls the guest, after making a new instance if that is due.
    #[inline]
    fn call<R>(
        &mut self,
        during: &'static str,
        body: impl FnOnce(&mut Instance, &Ticker, &mut Packed) -> Result<R, Failure>,
    ) -> Result<R, NotCalled> {
        if self.instance.is_none() {
            match self.health {
                Health::Disabled => return Err(NotCalled::Disabled),
                Health::Waiting { retry_at } if Instant::now() < retry_at => return Err(NotCalled::Waiting),
                _ => {}
            }
            if let Err(failure) = self.renew() {
                self.fail("renewal", &failure);
                return Err(NotCalled::Failed(failure));
            }
        }
        let Some(instance) = &mut self.instance else { return Err(NotCalled::Waiting) };
        match body(instance, &self.ticker, &mut self.packed) {
            Ok(answer) => Ok(answer),
            Err(failure) => {
                self.fail(during, &failure);
                Err(NotCalled::Failed(failure))
            }
        }
    }

    /// The instance is of no use any more.
    fn fail(&mut self, during: &str, failure: &Failure) {
        if let Some(instance) = self.instance.take() {
            self.durable = Some(instance.into_state().durable);
        }
        let kind = failure.kind();
        self.stats.failures[kind as usize] += 1;
        let now = Instant::now();
        let limits = &self.setup.limits;
        let in_a_row = self.failed_at.is_some_and(|at| now.duration_since(at) < limits.probation);
        self.in_a_row = if in_a_row { self.in_a_row + 1 } else { 1 };
        self.failed_at = Some(now);
        let text = format!("{during}: {failure}");
        if self.in_a_row >= limits.failures {
            self.health = Health::Disabled;
            let times = self.in_a_row;
            self.tell(&format!(
                "disabled after {times} failures in a row, everything is passed on as if it were not there; the last: {text}"
            ));
        } else {
            let doublings = self.in_a_row.saturating_sub(2).min(16);
            let wait = if self.in_a_row < 2 {
                std::time::Duration::ZERO
            } else {
                limits.back_off.saturating_mul(1 << doublings).min(limits.back_off_most)
            };
            self.health = Health::Waiting { retry_at: now + wait };
            if !std::mem::replace(&mut self.told[kind as usize], true) {
                let keep = if self.keeps_on_failure() { "kept" } else { "dropped" };
                self.tell(&format!("failed in {text}\n  the batch is {keep}; a new instance is made"));
            }
        }
        self.stats.last_failure = text;
    }

    fn tell(&self, text: &str) {
        for line in text.lines() {
            self.setup.services.log(&self.name, LogLevel::Error, line);
        }
    }

    fn keeps_on_failure(&self) -> bool {
        self.setup.limits.on_failure_keep.unwrap_or(self.description.on_failure_keep)
    }

    /// Its name in the operator's configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it said of itself when it was loaded.
    #[must_use]
    pub fn describe(&self) -> &Arc<Description> {
        &self.description
    }

    /// Whether it looks at packed records.
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        matches!(self.prepared.tail, TailIndices::Packed(_))
    }

    /// Whether it works.
    #[must_use]
    pub const fn health(&self) -> Health {
        self.health
    }

    /// Gives it another configuration. A guest that fails at it is renewed with the old one.
    ///
    /// # Errors
    /// The configuration is not valid, or refused: the old one stays in force.
    pub fn configure(&mut self, config: &[(String, Value)]) -> Result<(), LoadError> {
        let resolved = Arc::new(schema::resolve(&self.description.settings, config).map_err(LoadError::Config)?);
        let old = std::mem::replace(&mut self.config, resolved.clone());
        let (time, sinks) = (self.setup.limits.start_time, self.setup.sinks.clone());
        let answer = self.call("configure", |instance, ticker, _| {
            instance.state().config = resolved;
            instance.configure(ticker, time, &sinks)
        });
        let refused = match answer {
            Ok(Ok(())) => {
                self.setup.config = config.to_vec();
                return Ok(());
            }
            Ok(Err(message)) => {
                // It may have taken over a part: the old configuration needs a new guest.
                if let Some(instance) = self.instance.take() {
                    self.durable = Some(instance.into_state().durable);
                }
                self.health = Health::Waiting { retry_at: Instant::now() };
                LoadError::ConfigRefused(message)
            }
            Err(NotCalled::Failed(failure)) => LoadError::Failed { during: "configure failed", failure },
            Err(NotCalled::Waiting) => LoadError::Config("it waits for a new instance; try again".to_owned()),
            Err(NotCalled::Disabled) => LoadError::Config("the filter is disabled; load it again".to_owned()),
        };
        self.config = old;
        Err(refused)
    }

    /// A communicator opened, or more became known of it.
    pub fn communicator_opened(&mut self, communicator: &Arc<Communicator>) {
        let known = self.communicators.insert(communicator.ordinal, communicator.clone());
        // A renewal tells it all that are open.
        if self.instance.is_none() || known.as_ref() == Some(communicator) {
            return;
        }
        let _ =
            self.call("communicator-opened", |instance, ticker, _| instance.communicator_opened(ticker, communicator));
    }

    /// A communicator closed.
    pub fn communicator_closed(&mut self, ordinal: u32) {
        if self.communicators.remove(&ordinal).is_none() || self.instance.is_none() {
            return;
        }
        let _ = self.call("communicator-closed", |instance, ticker, _| instance.communicator_closed(ticker, ordinal));
    }

    /// Its plan for a class; None: the configured default holds, also where the filter fails or its plan is not valid.
    pub fn decide(&mut self, class: Class) -> Option<FilterPlan> {
        let plan: decisions::Plan =
            self.call("decide", |instance, ticker, _| instance.decide(ticker, class)).ok()??;
        match convert::plan(plan, convert::sink_mask(self.setup.sinks.len())) {
            Ok(plan) => Some(plan),
            Err(error) => {
                self.stats.bad_plans += 1;
                self.fail("decide", &Failure::BadVerdict(error));
                None
            }
        }
    }

    /// Shows it a batch of any length. `observed` has a verdict for each operation afterwards, whatever happens.
    pub fn observe(&mut self, batch: &[Operation], observed: &mut Observed) {
        observed.verdicts.clear();
        observed.tags.clear();
        observed.outcome = Outcome::Decided;
        self.stats.operations += batch.len() as u64;
        for chunk in batch.chunks(BATCH) {
            self.observe_chunk(chunk, observed);
        }
    }

    fn observe_chunk(&mut self, chunk: &[Operation], observed: &mut Observed) {
        let began = Instant::now();
        let first = observed.verdicts.len();
        let known = convert::sink_mask(self.setup.sinks.len());
        let verdicts = &mut observed.verdicts;
        let answer = self.call("observe", |instance, ticker, packed| {
            let answer = instance.observe(ticker, chunk, packed)?;
            match answer {
                Answer::Packed(bytes) => convert::verdict_bytes(&bytes, chunk.len(), known, verdicts),
                Answer::Typed(list) => convert::verdicts(&list, chunk.len(), known, verdicts),
            }
            .map_err(Failure::BadVerdict)
        });
        match answer {
            Ok(()) => {
                // An empty answer keeps all.
                verdicts.resize(first + chunk.len(), Verdict::Keep);
                if let Some(instance) = &mut self.instance {
                    let tags = &mut instance.state().tags;
                    observed.tags.extend(tags.drain(..).map(|(index, tag)| (index + first as u32, tag)));
                }
                for verdict in &verdicts[first..] {
                    self.stats.dropped += u64::from(*verdict == Verdict::Drop);
                    self.stats.routed += u64::from(matches!(verdict, Verdict::Route(_)));
                }
            }
            Err(why) => {
                verdicts.truncate(first);
                let disabled = matches!(why, NotCalled::Disabled);
                let keep = disabled || self.keeps_on_failure();
                verdicts.resize(first + chunk.len(), if keep { Verdict::Keep } else { Verdict::Drop });
                self.stats.fallback += chunk.len() as u64;
                let outcome = match why {
                    NotCalled::Failed(failure) => Outcome::Failed(failure),
                    NotCalled::Waiting => Outcome::Waiting,
                    NotCalled::Disabled => Outcome::Disabled,
                };
                if !matches!(observed.outcome, Outcome::Failed(_)) {
                    observed.outcome = outcome;
                }
            }
        }
        let took = began.elapsed().as_nanos() as u64;
        self.stats.batches += 1;
        self.stats.observe_ns += took;
        self.stats.observe_longest_ns = self.stats.observe_longest_ns.max(took);
    }

    /// Its timer, every `describe().tick_every_ms`. `now_ns`: Unix time. `open`: operations that have not ended, which it can ask for until
    /// the call returns.
    ///
    /// # Errors
    /// How it failed; it goes on with a new instance.
    pub fn tick(&mut self, now_ns: u64, open: Arc<[OpenOperation]>) -> Result<(), Failure> {
        let ticked = self.call("tick", |instance, ticker, _| {
            let state = instance.state();
            (state.open, state.now_ns) = (Some(open), now_ns);
            let ticked = instance.tick(ticker, now_ns);
            instance.state().open = None;
            ticked
        });
        match ticked {
            Err(NotCalled::Failed(failure)) => Err(failure),
            Ok(()) | Err(NotCalled::Waiting | NotCalled::Disabled) => Ok(()),
        }
    }

    /// Its series that changed in the window that ends now; the next window begins. Also of a filter that waits or is disabled.
    pub fn take_aggregates(&mut self) -> Vec<Aggregate> {
        match (&mut self.instance, &mut self.durable) {
            (Some(instance), _) => instance.state().durable.metrics.take(),
            (None, Some(durable)) => durable.metrics.take(),
            (None, None) => Vec::new(),
        }
    }

    /// Its state for a successor, at most 1 MiB; None if it has none or fails.
    pub fn snapshot(&mut self) -> Option<Vec<u8>> {
        let time = self.setup.limits.start_time;
        let state = self.call("snapshot", |instance, ticker, _| instance.snapshot(ticker, time)).ok()?;
        (!state.is_empty() && state.len() <= SNAPSHOT_BYTES).then_some(state)
    }

    /// Hands it the state of a predecessor.
    ///
    /// # Errors
    /// Why it is of no use: in the filter's words, or how it failed.
    pub fn restore(&mut self, state: &[u8], from_version: &str) -> Result<(), String> {
        let time = self.setup.limits.start_time;
        match self.call("restore", |instance, ticker, _| instance.restore(ticker, time, state, from_version)) {
            Ok(answer) => answer,
            Err(NotCalled::Failed(failure)) => Err(failure.to_string()),
            Err(NotCalled::Waiting) => Err("it waits for a new instance".to_owned()),
            Err(NotCalled::Disabled) => Err("it is disabled".to_owned()),
        }
    }

    /// Throws the instance away and makes a new one, as after a failure; for tests and benchmarks.
    ///
    /// # Errors
    /// How the new one failed.
    pub fn renew_now(&mut self) -> Result<(), Failure> {
        if let Some(instance) = self.instance.take() {
            self.durable = Some(instance.into_state().durable);
        }
        self.renew()
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> FilterStats {
        let durable = self.instance.as_ref().map(|instance| &instance.peek().durable).or(self.durable.as_ref());
        FilterStats {
            health: self.health,
            series: durable.map_or(0, |durable| durable.metrics.len()),
            imports: durable.map_or_else(ImportCounts::default, |durable| durable.counts),
            ..self.stats.clone()
        }
    }

    /// Failures of a kind.
    #[must_use]
    pub fn failures(&self, kind: FailureKind) -> u64 {
        self.stats.failures[kind as usize]
    }
}
