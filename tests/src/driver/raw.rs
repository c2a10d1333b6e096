//! The interface itself, version 7.

use std::ffi::{CString, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use anyhow::{Context as _, Result, ensure};
use collander_abi::{SYMBOLS, v7};
use collander_tests::protocol::Naming;
use libloading::os::unix::Library;

/// The struct that the library exports; it stays loaded.
fn profiler(path: &Path) -> Result<&'static v7::Profiler> {
    // SAFETY: the library under test is loaded already.
    let library = unsafe { Library::new(path) }?;
    // SAFETY: the symbol is this struct.
    let table = unsafe { library.get::<*const v7::Profiler>(SYMBOLS[6].to_bytes_with_nul()) }?.into_raw();
    std::mem::forget(library);
    // SAFETY: it lives as long as the library, which is not closed.
    Ok(unsafe { &*table.cast_const().cast::<v7::Profiler>() })
}

/// `init`, with a name of any length.
pub(crate) fn init(path: &Path, naming: &Naming) -> Result<u64> {
    static MASK: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
    let name = naming.name.clone().map(CString::new).transpose()?;
    let text = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
    let mut context: *mut c_void = null_mut();
    let init = profiler(path)?.init.context("init")?;
    // SAFETY: the mask lives for ever, name and context for the call.
    let result = unsafe { init(&raw mut context, naming.id, MASK.as_ptr(), text, 1, naming.ranks, naming.rank, None) };
    ensure!(result == 0, "init returned {result}");
    Ok(context as usize as u64)
}

/// Starts events of kinds that do not exist, and one with two bits; returns how many handles were not NULL.
pub(crate) fn unknown_kinds(path: &Path, context: u64) -> Result<u64> {
    let start = profiler(path)?.start_event.context("startEvent")?;
    let mut handles = 0;
    for kind in [0_u64, 3, 1 << 16, 1 << 40, u64::MAX] {
        // SAFETY: every bit pattern of zeros is a descriptor: integers and NULL pointers.
        let mut descriptor: v7::Descriptor = unsafe { std::mem::zeroed() };
        descriptor.event_type = kind;
        let mut handle: *mut c_void = null_mut();
        // SAFETY: descriptor and handle live for the call; the context is the library's own to judge.
        let result: c_int =
            unsafe { start(context as usize as *mut c_void, &raw mut handle, &raw mut descriptor) } as c_int;
        ensure!(result == 0, "startEvent returned {result}");
        handles += u64::from(!handle.is_null());
    }
    Ok(handles)
}
