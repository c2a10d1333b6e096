//! The seven exported structs. These files only convert; what happens is in `callbacks` and `startup`.

mod newer;
mod older;

use std::ffi::{c_char, c_int, c_void};

use collander_abi::result::{NcclResult, SUCCESS};

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
    large: bool,
    context: *mut c_void,
    handle: *mut *mut c_void,
    descriptor: D,
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
    callbacks::stop(number(handle));
    SUCCESS
}

/// `recordEventState` of every version; the arguments of all are at least eight bytes, of which the first eight count.
///
/// # Safety
/// `arguments` is NULL or valid for the call.
unsafe extern "C" fn record_event_state<T>(handle: *mut c_void, state: c_int, arguments: *mut T) -> NcclResult {
    let argument = if arguments.is_null() {
        None
    } else {
        // SAFETY: NCCL's promise.
        Some(unsafe { arguments.cast::<u64>().read() })
    };
    callbacks::state(number(handle), state, argument);
    SUCCESS
}

/// `finalize` of every version.
unsafe extern "C" fn finalize(context: *mut c_void) -> NcclResult {
    startup::finalize(number(context));
    SUCCESS
}
