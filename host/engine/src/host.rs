//! The runtime that filters run in: one a process.
#![allow(unsafe_code, reason = "loads native code, in one place")]

use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Precompiled};

use crate::cache::Cache;
use crate::compiler::{Compiler, CompilerError};
use crate::error::LoadError;
use crate::filter::{Filter, Setup};
use crate::host_imports::State;
use crate::prepared::{Prepared, linker, prepare};
use crate::settings::Settings;
use crate::ticker::Ticker;

/// Greatest filter, bytes.
pub const FILTER_BYTES: usize = 32 << 20;

/// How the runtime is set up.
#[derive(Debug, Default)]
pub struct HostOptions {
    /// What engine and compiler agree on.
    pub settings: Settings,
    /// Folder of compiled filters, made if missing, for its owner only; None: nothing is kept.
    pub cache: Option<PathBuf>,
    /// What compiles a filter that is not in the cache; None: such a filter is refused.
    pub compiler: Option<Arc<dyn Compiler>>,
}

/// Where the native code of a filter came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the cache.
    Cached,
    /// Compiled now.
    Compiled,
}

/// A filter that can be loaded into any number of pipelines.
#[derive(Clone, Debug)]
pub struct Loadable {
    prepared: Prepared,
    /// Where its code came from.
    pub source: Source,
    /// Why it is not in the cache, if that was wanted.
    pub cache_problem: Option<String>,
}

/// wasmtime's engine, the cache, and the thread that stops runaways (asleep while no filter runs). Make it on a thread whose signals are
/// blocked: its thread inherits that. No other thread is ever made, no signal handler installed.
#[derive(Debug)]
pub struct FilterHost {
    engine: Engine,
    linker: HostLinker,
    ticker: Arc<Ticker>,
    cache: Option<Cache>,
    compiler: Option<Arc<dyn Compiler>>,
}

/// `Linker` without a useful `Debug`.
struct HostLinker(Linker<State>);

impl std::fmt::Debug for HostLinker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Linker")
    }
}

impl FilterHost {
    /// Starts the runtime.
    ///
    /// # Errors
    /// `LoadError::Engine`: wasmtime or its thread does not start.
    pub fn new(options: HostOptions) -> Result<Self, LoadError> {
        let broken = |error: wasmtime::Error| LoadError::Engine(format!("{error:#}"));
        let engine = Engine::new(&options.settings.config()).map_err(broken)?;
        let linker = HostLinker(linker(&engine).map_err(broken)?);
        let ticker = Arc::new(Ticker::start(&engine).map_err(|error| LoadError::Engine(error.to_string()))?);
        let fingerprint = options.settings.fingerprint();
        let cache = options.cache.map(|folder| Cache::new(folder, fingerprint));
        Ok(Self { engine, linker, ticker, cache, compiler: options.compiler })
    }

    /// Compiles a filter or takes it from the cache, and checks its interface. The calling thread needs 2 MiB of stack if it is compiled.
    ///
    /// # Errors
    /// [`LoadError`]: what is missing, and what is supported.
    pub fn prepare(&self, wasm: &[u8]) -> Result<Loadable, LoadError> {
        check_bytes(wasm)?;
        if let Some(code) = self.cache.as_ref().and_then(|cache| cache.read(wasm)) {
            if let Ok(component) = self.deserialize(&code) {
                let prepared = prepare(&self.engine, &self.linker.0, &component)?;
                return Ok(Loadable { prepared, source: Source::Cached, cache_problem: None });
            }
            if let Some(cache) = &self.cache {
                cache.forget(wasm);
            }
        }
        let Some(compiler) = &self.compiler else {
            return Err(LoadError::Compiler("there is none".to_owned()));
        };
        let code = compiler.compile(wasm).map_err(|error| match error {
            CompilerError::Refused(text) => LoadError::Refused(text),
            CompilerError::Unavailable(text) => LoadError::Compiler(text),
        })?;
        let component = self.deserialize(&code).map_err(|error| LoadError::Compiler(format!("{error:#}")))?;
        let prepared = prepare(&self.engine, &self.linker.0, &component)?;
        let cache_problem = self.cache.as_ref().and_then(|cache| cache.write(wasm, &code).err());
        Ok(Loadable { prepared, source: Source::Compiled, cache_problem })
    }

    /// Makes native code of bytes that our compiler wrote: just now, or earlier into a file that only we can write.
    fn deserialize(&self, code: &[u8]) -> wasmtime::Result<Component> {
        if Engine::detect_precompiled(code) != Some(Precompiled::Component) {
            return Err(wasmtime::format_err!("it is no compiled component"));
        }
        // SAFETY: the bytes are what `Compiler::compile` returned: either in this process, or they come from a file in a folder that is
        // owned by us and writable by nobody else, with the digest that was written with it. wasmtime checks version and configuration.
        unsafe { Component::deserialize(&self.engine, code) }
    }

    /// Makes a filter of a pipeline: instantiates it, asks it to describe itself, checks and hands over its configuration.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn start(&self, loadable: &Loadable, setup: Setup) -> Result<Filter, LoadError> {
        Filter::new(loadable.prepared.clone(), self.ticker.clone(), setup)
    }

    /// [`Self::prepare`] and [`Self::start`].
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(&self, wasm: &[u8], setup: Setup) -> Result<Filter, LoadError> {
        self.start(&self.prepare(wasm)?, setup)
    }

    /// Whether the thread that stops runaways sleeps: it does 50 ms after the last call of a filter.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ticker.sleeps()
    }
}

/// What is no filter at all, without asking a compiler.
fn check_bytes(wasm: &[u8]) -> Result<(), LoadError> {
    let refused = |text: String| Err(LoadError::Refused(text));
    if wasm.is_empty() {
        return refused("the file is empty: a WASM component or module is wanted".to_owned());
    }
    if wasm.len() > FILTER_BYTES {
        return refused(format!("it has {} bytes: a filter has at most {FILTER_BYTES}", wasm.len()));
    }
    if !wasm.starts_with(b"\0asm") {
        return refused(
            "this is not WASM: it does not begin with \"\\0asm\"; build it first (collander build)".to_owned(),
        );
    }
    if wasm.len() < 8 {
        return refused(format!("it ends after {} bytes: the file is truncated", wasm.len()));
    }
    Ok(())
}
