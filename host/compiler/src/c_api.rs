//! The library's C functions. The engine is their only caller; see `collander_engine::CompilerLibrary`.
#![allow(unsafe_code, reason = "a C interface")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use collander_engine::{Answer, COMPILER_ABI, CompilerError, Settings};

/// Hands bytes over.
fn answer(status: u32, bytes: Vec<u8>) -> Answer {
    let mut bytes = std::mem::ManuallyDrop::new(bytes);
    Answer { pointer: bytes.as_mut_ptr(), length: bytes.len(), capacity: bytes.capacity(), status }
}

fn guarded(body: impl FnOnce() -> Answer) -> Answer {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping a payload can panic again.
        std::mem::forget(payload);
        answer(2, b"the compiler panicked".to_vec())
    })
}

/// Version of these functions.
#[unsafe(no_mangle)]
pub extern "C" fn collander_compiler_abi() -> u32 {
    COMPILER_ABI
}

/// For what it compiles, as text.
#[unsafe(no_mangle)]
pub extern "C" fn collander_compiler_fingerprint() -> Answer {
    guarded(|| answer(0, Settings::default().fingerprint().into_bytes()))
}

/// Compiles. Status 0: native code; 1: why the filter is refused; 2: why the compiler is of no use.
///
/// # Safety
/// `wasm` has `length` bytes, unless that is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collander_compile(wasm: *const u8, length: usize) -> Answer {
    guarded(|| {
        let wasm = if length == 0 || wasm.is_null() {
            &[]
        } else {
            // SAFETY: the caller's promise.
            unsafe { std::slice::from_raw_parts(wasm, length) }
        };
        match crate::compile(&Settings::default(), wasm).map_err(CompilerError::from) {
            Ok(code) => answer(0, code),
            Err(CompilerError::Refused(text)) => answer(1, text.into_bytes()),
            Err(CompilerError::Unavailable(text)) => answer(2, text.into_bytes()),
        }
    })
}

/// Takes an answer back.
///
/// # Safety
/// The answer is one of this library's and was not given back before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collander_compiler_free(answer: Answer) {
    if !answer.pointer.is_null() {
        // SAFETY: pointer, length and capacity are those of the vector that `answer` took apart.
        drop(unsafe { Vec::from_raw_parts(answer.pointer, answer.length, answer.capacity) });
    }
}
