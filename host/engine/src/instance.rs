//! One living guest. It dies with its first failure.

use std::sync::Arc;
use std::time::Duration;

use collander_event::{Communicator, Operation};
use wasmtime::component::Instance as Component;
use wasmtime::{Store, Trap, WasmBacktrace};

use crate::bindings::{decisions, head, lifecycle, tail, tail_packed};
use crate::convert;
use crate::error::{Failure, HostPanic};
use crate::host_imports::State;
use crate::limits::{LimitHit, Limits};
use crate::packed::Packed;
use crate::prepared::{Prepared, TailIndices};
use crate::ticker::Ticker;

/// The export that looks at traffic.
enum Tail {
    Typed(tail::Guest),
    Packed(tail_packed::Guest),
}

/// A store with the guest's exports.
pub(crate) struct Instance {
    store: Store<State>,
    lifecycle: lifecycle::Guest,
    head: head::Guest,
    tail: Tail,
    call_time: Duration,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("state", self.store.data()).finish_non_exhaustive()
    }
}

/// What an answer of `observe` was.
pub(crate) enum Answer {
    Typed(Vec<decisions::Verdict>),
    Packed(Vec<u8>),
}

impl Instance {
    /// Makes a guest. On failure the state comes back.
    pub(crate) fn new(
        prepared: &Prepared,
        state: State,
        limits: &Limits,
        ticker: &Ticker,
    ) -> Result<Self, (Failure, Box<State>)> {
        let engine = prepared.pre.engine();
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.growth);
        store.set_hostcall_fuel(limits.host_call_bytes);
        store.set_max_component_handles(1000);
        // Before anything of the guest runs: a store begins with a deadline of 0.
        store.set_epoch_deadline(Ticker::ticks(limits.start_time));
        let made = {
            let _running = ticker.begin();
            (|| {
                let instance: Component = prepared.pre.instantiate(&mut store)?;
                let lifecycle = prepared.lifecycle.load(&mut store, &instance)?;
                let head = prepared.head.load(&mut store, &instance)?;
                let tail = match &prepared.tail {
                    TailIndices::Typed(indices) => Tail::Typed(indices.load(&mut store, &instance)?),
                    TailIndices::Packed(indices) => Tail::Packed(indices.load(&mut store, &instance)?),
                };
                Ok::<_, wasmtime::Error>((lifecycle, head, tail))
            })()
        };
        match made {
            Ok((lifecycle, head, tail)) => Ok(Self { store, lifecycle, head, tail, call_time: limits.call_time }),
            Err(error) => {
                let failure = failure(&error, store.data(), limits.start_time);
                Err((failure, Box::new(store.into_data())))
            }
        }
    }

    pub(crate) fn state(&mut self) -> &mut State {
        self.store.data_mut()
    }

    pub(crate) fn peek(&self) -> &State {
        self.store.data()
    }

    pub(crate) fn into_state(self) -> State {
        self.store.into_data()
    }

    /// Runs one call of the guest within `time`.
    #[inline]
    fn call<R>(
        &mut self,
        ticker: &Ticker,
        time: Duration,
        body: impl FnOnce(&mut Self) -> wasmtime::Result<R>,
    ) -> Result<R, Failure> {
        self.store.set_epoch_deadline(Ticker::ticks(time));
        if self.peek().last_error.is_some() {
            // Said in an earlier call: not what a trap in this one is about.
            self.state().last_error = None;
        }
        let result = {
            let _running = ticker.begin();
            body(self)
        };
        result.map_err(|error| failure(&error, self.store.data(), time))
    }

    pub(crate) fn describe(&mut self, ticker: &Ticker, time: Duration) -> Result<lifecycle::Description, Failure> {
        self.call(ticker, time, |this| this.lifecycle.call_describe(&mut this.store))
    }

    pub(crate) fn configure(
        &mut self,
        ticker: &Ticker,
        time: Duration,
        sinks: &[String],
    ) -> Result<Result<(), String>, Failure> {
        self.call(ticker, time, |this| this.lifecycle.call_configure(&mut this.store, sinks))
    }

    pub(crate) fn communicator_opened(&mut self, ticker: &Ticker, communicator: &Communicator) -> Result<(), Failure> {
        let communicator = convert::communicator(communicator);
        self.call(ticker, self.call_time, |this| {
            this.lifecycle.call_communicator_opened(&mut this.store, &communicator)
        })
    }

    pub(crate) fn communicator_closed(&mut self, ticker: &Ticker, ordinal: u32) -> Result<(), Failure> {
        self.call(ticker, self.call_time, |this| this.lifecycle.call_communicator_closed(&mut this.store, ordinal))
    }

    pub(crate) fn decide(
        &mut self,
        ticker: &Ticker,
        class: crate::types::Class,
    ) -> Result<Option<decisions::Plan>, Failure> {
        let class = convert::class_to_guest(class);
        self.call(ticker, self.call_time, |this| this.head.call_decide(&mut this.store, class))
    }

    pub(crate) fn tick(&mut self, ticker: &Ticker, now_ns: u64) -> Result<(), Failure> {
        self.call(ticker, self.call_time, |this| this.lifecycle.call_tick(&mut this.store, now_ns))
    }

    pub(crate) fn snapshot(&mut self, ticker: &Ticker, time: Duration) -> Result<Vec<u8>, Failure> {
        self.call(ticker, time, |this| this.lifecycle.call_snapshot(&mut this.store))
    }

    pub(crate) fn restore(
        &mut self,
        ticker: &Ticker,
        time: Duration,
        state: &[u8],
        version: &str,
    ) -> Result<Result<(), String>, Failure> {
        self.call(ticker, time, |this| this.lifecycle.call_restore(&mut this.store, state, version))
    }

    /// Shows a batch to the guest.
    pub(crate) fn observe(
        &mut self,
        ticker: &Ticker,
        batch: &[Operation],
        packed: &mut Packed,
    ) -> Result<Answer, Failure> {
        self.state().batch = batch.len();
        let time = self.call_time;
        let answer = if matches!(self.tail, Tail::Packed(_)) {
            packed.fill(batch);
            self.call(ticker, time, |this| match &this.tail {
                Tail::Packed(guest) => {
                    guest.call_observe(&mut this.store, packed.operations(), packed.children()).map(Answer::Packed)
                }
                Tail::Typed(_) => Ok(Answer::Packed(Vec::new())),
            })
        } else {
            let typed: Vec<_> = batch.iter().map(convert::operation).collect();
            self.call(ticker, time, |this| match &this.tail {
                Tail::Typed(guest) => guest.call_observe(&mut this.store, &typed).map(Answer::Typed),
                Tail::Packed(_) => Ok(Answer::Typed(Vec::new())),
            })
        };
        self.state().batch = 0;
        answer
    }

    /// Tells a new guest what it has missed.
    pub(crate) fn reopen<'a>(
        &mut self,
        ticker: &Ticker,
        communicators: impl Iterator<Item = &'a Arc<Communicator>>,
    ) -> Result<(), Failure> {
        for communicator in communicators {
            self.communicator_opened(ticker, communicator)?;
        }
        Ok(())
    }
}

/// What an error of wasmtime means.
fn failure(error: &wasmtime::Error, state: &State, limit: Duration) -> Failure {
    let trace = backtrace(error);
    if let Some(panic) = error.downcast_ref::<HostPanic>() {
        return Failure::Host(panic.0.clone());
    }
    if let Some(hit) = error.downcast_ref::<LimitHit>() {
        let detail = hit.to_string();
        return match hit {
            LimitHit::Memory { .. } => Failure::Memory { detail, trace },
            LimitHit::Table { .. } => Failure::Table { detail, trace },
        };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => Failure::Time { limit, trace },
        Some(Trap::StackOverflow) => Failure::Stack { trace },
        Some(trap) => {
            let mut detail = trap.to_string();
            if let Some(said) = &state.last_error {
                detail.push_str("; it had said: ");
                detail.push_str(said);
            }
            Failure::Trap { detail, trace }
        }
        None => {
            let cause = error.root_cause().to_string();
            let detail = if cause.contains("fuel allocated for hostcalls") {
                format!("it handed more to the host in one call than it may ({cause})")
            } else {
                cause
            };
            Failure::Trap { detail, trace }
        }
    }
}

/// Where the guest was, a line a frame, innermost first; "" if that is not known.
fn backtrace(error: &wasmtime::Error) -> String {
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let mut text = String::new();
    for frame in trace.frames().iter().take(16) {
        let name = match frame.func_name() {
            Some(name) => readable(name),
            None => format!("function {}", frame.func_index()),
        };
        text.push_str("\n  at ");
        text.push_str(&name);
    }
    text
}

/// A function's name, readable and bounded.
fn readable(name: &str) -> String {
    let cut = &name[..name.floor_char_boundary(160)];
    cut.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
