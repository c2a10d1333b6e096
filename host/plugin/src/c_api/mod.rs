//! The seven exported structs. These files only convert; what happens is in `callbacks` and `startup`.

mod newer;
mod older;
mod places;
mod sources;

use std::ffi::{c_char, c_int, c_void};

use collander_abi::result::{NcclResult, SUCCESS};

use crate::callbacks::opaque;
use crate::thread_slot::attach;
use crate::{callbacks, startup};

const NAME: *const c_char = c"collander".as_ptr();

/// Reads one member through a raw pointer: no reference to a whole descriptor is made, since an older version's is shorter.
macro_rules! read {
    ($descriptor:ident . $($member:tt).+) => { (&raw const (*$descriptor).$($member).+).read() };
}
use read;

#[inline(always)]
fn number<T: ?Sized>(pointer: *mut T) -> u64 {
    pointer.cast::<u8>() as u64
}

/// Stores a handle where NCCL wants it. It always is stored, also NULL.
///
/// # Safety
/// `place` is NCCL's, valid for the call.
#[inline(always)]
unsafe fn give(place: *mut *mut c_void, handle: u64) {
    // SAFETY: the caller's promise.
    unsafe { place.write(handle as *mut c_void) };
}

/// The first event of a thread: gives it a ring and calls `again`, or gives the event no handle.
///
/// # Safety
/// As `again`, which is `startEvent`'s function for the event.
#[cold]
#[inline(never)]
unsafe fn first_event<D>(
    context: *mut c_void,
    handle: *mut *mut c_void,
    descriptor: D,
    large: bool,
    again: unsafe extern "C" fn(*mut c_void, *mut *mut c_void, D) -> NcclResult,
) -> NcclResult {
    // SAFETY: NCCL's promise, handed on.
    unsafe {
        if attach(large).is_some() {
            return again(context, handle, descriptor);
        }
        give(handle, 0);
    }
    SUCCESS
}

/// `stopEvent` of every version.
unsafe extern "C" fn stop_event(handle: *mut c_void) -> NcclResult {
    let handle = number(handle);
    callbacks::stop(handle, SUCCESS, || rare_stop_event(handle), || end_of_group(handle))
}

/// `SUCCESS`, of which the compiler does not know: else it would put it in after the call of a rare function, which then is
/// no jump any more, and costs the common way a register saved.
#[inline(always)]
fn unknown_success() -> NcclResult {
    opaque(SUCCESS as u64) as NcclResult
}

#[cold]
#[inline(never)]
extern "C" fn rare_stop_event(handle: u64) -> NcclResult {
    callbacks::rare_stop(handle);
    unknown_success()
}

#[cold]
#[inline(never)]
extern "C" fn end_of_group(handle: u64) -> NcclResult {
    callbacks::end_of_group(handle);
    unknown_success()
}

/// The arguments of all versions are at least eight bytes, of which the first eight count.
///
/// # Safety
/// `arguments` is NULL or valid for the call.
#[inline(always)]
unsafe fn argument<T>(arguments: *mut T) -> Option<u64> {
    if arguments.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { arguments.cast::<u64>().read() })
}

/// `recordEventState` of every version.
///
/// # Safety
/// `arguments` is NULL or valid for the call.
unsafe extern "C" fn record_event_state<T>(handle: *mut c_void, state: c_int, arguments: *mut T) -> NcclResult {
    // SAFETY: the caller's promise.
    let argument = || unsafe { argument(arguments) };
    // SAFETY: the caller's promise.
    let rare = || unsafe { rare_record_event_state(handle, state, arguments) };
    callbacks::state(number(handle), state, argument, SUCCESS, rare)
}

/// # Safety
/// `arguments` is NULL or valid for the call.
#[cold]
#[inline(never)]
unsafe extern "C" fn rare_record_event_state<T>(handle: *mut c_void, state: c_int, arguments: *mut T) -> NcclResult {
    // SAFETY: the caller's promise.
    callbacks::rare_state(number(handle), state, unsafe { argument(arguments) });
    unknown_success()
}

/// `finalize` of every version.
unsafe extern "C" fn finalize(context: *mut c_void) -> NcclResult {
    startup::finalize(number(context));
    SUCCESS
}
