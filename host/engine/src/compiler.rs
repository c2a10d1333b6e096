//! Where native code comes from when it is not in the cache: a library beside the one that NCCL loads, loaded at a cache miss
//! only, since it is ten times its size.
#![allow(unsafe_code, reason = "calls a foreign library; each block has the fact that makes it sound")]

use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::{Library, Symbol};

/// Version of the C functions below. A library with another one is refused.
pub const COMPILER_ABI: u32 = 1;

/// Why there is no native code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompilerError {
    /// It is no filter that can be compiled: for its author.
    #[error("{0}")]
    Refused(String),
    /// The compiler itself is missing or failed: for the operator.
    #[error("{0}")]
    Unavailable(String),
}

/// Makes native code of filters.
pub trait Compiler: Send + Sync + std::fmt::Debug {
    /// Compiles a component or core module, on the calling thread, which needs 2 MiB of stack. Returns what the engine can load if it was configured by the same
    /// `Settings`.
    ///
    /// # Errors
    /// [`CompilerError`].
    fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompilerError>;
}

/// What the library's functions return: bytes that belong to it, until `collander_compiler_free`.
#[derive(Debug)]
#[repr(C)]
pub struct Answer {
    /// The bytes; never null if `length` is not 0.
    pub pointer: *mut u8,
    /// How many.
    pub length: usize,
    /// How many were allocated.
    pub capacity: usize,
    /// 0: what was asked for; 1: a text, for the filter's author; 2: a text, for the operator.
    pub status: u32,
}

/// `collander_compiler_abi`
pub type AbiFunction = unsafe extern "C" fn() -> u32;
/// `collander_compiler_fingerprint`
pub type FingerprintFunction = unsafe extern "C" fn() -> Answer;
/// `collander_compile`
pub type CompileFunction = unsafe extern "C" fn(*const u8, usize) -> Answer;
/// `collander_compiler_free`
pub type FreeFunction = unsafe extern "C" fn(Answer);

/// `libcollander_compiler.so`, loaded when it is first needed and kept.
#[derive(Debug)]
pub struct CompilerLibrary {
    path: PathBuf,
    fingerprint: String,
    library: OnceLock<Result<Library, CompilerError>>,
}

impl CompilerLibrary {
    /// A library by its path; it is not opened yet. `fingerprint`: `Settings::fingerprint` of the engine that will run the code.
    #[must_use]
    pub fn new(path: PathBuf, fingerprint: String) -> Self {
        Self { path, fingerprint, library: OnceLock::new() }
    }

    fn unavailable(&self, what: impl std::fmt::Display) -> CompilerError {
        CompilerError::Unavailable(format!(
            "{}: {what}; install libcollander_compiler.so of the same version beside the profiler library",
            self.path.display()
        ))
    }

    fn open(&self) -> Result<Library, CompilerError> {
        // SAFETY: the path is the operator's; our library's constructors do nothing.
        let library = unsafe { Library::new(&self.path) }.map_err(|error| self.unavailable(error))?;
        // SAFETY: the symbol, if it is there, has this type in every version.
        let abi = unsafe {
            let abi: Symbol<'_, AbiFunction> =
                library.get(b"collander_compiler_abi\0").map_err(|error| self.unavailable(error))?;
            abi()
        };
        if abi != COMPILER_ABI {
            return Err(self.unavailable(format_args!("it speaks version {abi}, version {COMPILER_ABI} is needed")));
        }
        // SAFETY: version `COMPILER_ABI` of the library has this function of this type.
        let answer = unsafe {
            let fingerprint: Symbol<'_, FingerprintFunction> =
                library.get(b"collander_compiler_fingerprint\0").map_err(|error| self.unavailable(error))?;
            fingerprint()
        };
        let fingerprint = self.take(&library, answer)?.1;
        if fingerprint != self.fingerprint.as_bytes() {
            let other = String::from_utf8_lossy(&fingerprint).into_owned();
            return Err(self.unavailable(format_args!("it compiles for “{other}”, not for “{}”", self.fingerprint)));
        }
        Ok(library)
    }

    /// Copies an answer and gives it back.
    fn take(&self, library: &Library, answer: Answer) -> Result<(u32, Vec<u8>), CompilerError> {
        let bytes = if answer.length == 0 || answer.pointer.is_null() {
            Vec::new()
        } else {
            // SAFETY: the library promises `length` initialised bytes that live until they are freed.
            unsafe { std::slice::from_raw_parts(answer.pointer, answer.length) }.to_vec()
        };
        let status = answer.status;
        // SAFETY: version `COMPILER_ABI` has this function of this type; the answer is its own and not used again.
        unsafe {
            let free: Symbol<'_, FreeFunction> =
                library.get(b"collander_compiler_free\0").map_err(|error| self.unavailable(error))?;
            free(answer);
        }
        Ok((status, bytes))
    }
}

impl Compiler for CompilerLibrary {
    fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompilerError> {
        let library = self.library.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)?;
        // SAFETY: version `COMPILER_ABI` has this function of this type; the slice lives through the call.
        let answer = unsafe {
            let compile: Symbol<'_, CompileFunction> =
                library.get(b"collander_compile\0").map_err(|error| self.unavailable(error))?;
            compile(wasm.as_ptr(), wasm.len())
        };
        let (status, bytes) = self.take(library, answer)?;
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        match status {
            0 => Ok(bytes),
            1 => Err(CompilerError::Refused(text())),
            _ => Err(CompilerError::Unavailable(text())),
        }
    }
}
