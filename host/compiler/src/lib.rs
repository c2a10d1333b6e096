//! Compiles filters for `collander-engine`, whose `Settings` it shares.
//!
//! As `libcollander_compiler.so` it has the C functions of [`collander_engine::Answer`], which the engine calls at a cache miss, on its own
//! thread: nothing here starts a thread or installs a signal handler, and a panic becomes an answer. As a Rust library it
//! serves the command line and tests ([`Builtin`], [`componentize`]).
#![deny(unsafe_code)]

mod c_api;
mod componentize;

use std::panic::{AssertUnwindSafe, catch_unwind};

use collander_engine::{Compiler, CompilerError, Settings};
use wasmtime::Engine;

pub use componentize::{Form, componentize, form};

/// Why a filter cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// Neither a component nor a module.
    #[error("this is not WASM: a component or a core module is wanted")]
    NotWasm,
    /// Begins like WASM and then is none.
    #[error("it is damaged: {0}")]
    Malformed(String),
    /// The text format, with a mistake.
    #[error("{0}")]
    Text(String),
    /// A core module that is no filter.
    #[error("this core module is no filter: {0}")]
    Module(String),
    /// wasmtime refuses it.
    #[error("it does not compile: {0}")]
    Invalid(String),
    /// Not the filter's fault.
    #[error("the compiler failed: {0}")]
    Internal(String),
}

impl From<CompileError> for CompilerError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Internal(_) => Self::Unavailable(error.to_string()),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// Binary WASM of the text format; binary WASM comes back as it is.
///
/// # Errors
/// Where the text is wrong.
pub fn parse_text(text: &[u8]) -> Result<Vec<u8>, CompileError> {
    wat::parse_bytes(text).map(|bytes| bytes.into_owned()).map_err(|error| CompileError::Text(error.to_string()))
}

/// Compiles a component or core module to native code that an engine with the same settings loads. On the calling thread, which needs 2 MiB
/// of stack. A panic of the compiler becomes an error.
///
/// # Errors
/// [`CompileError`].
pub fn compile(settings: &Settings, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
    let compiled = catch_unwind(AssertUnwindSafe(|| {
        let component = componentize(wasm)?;
        let engine = Engine::new(&settings.config()).map_err(|error| CompileError::Internal(format!("{error:#}")))?;
        engine.precompile_component(&component).map_err(|error| CompileError::Invalid(format!("{error:#}")))
    }));
    compiled.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map_or("it panicked", |text| text.as_str());
        let error = CompileError::Internal(text.to_owned());
        // Dropping a payload can panic again.
        std::mem::forget(payload);
        Err(error)
    })
}

/// The compiler, linked in: for the command line and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtin(pub Settings);

impl Compiler for Builtin {
    fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompilerError> {
        Ok(compile(&self.0, wasm)?)
    }
}
