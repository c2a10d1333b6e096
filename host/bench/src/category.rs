//! The kinds of calls that are timed, and one function for each through which the call is made.
//!
//! The functions are never inlined and never alike, so that callgrind can tell what each kind of call cost.

use std::ffi::{c_int, c_void};

use collander_abi::NcclResult;
use collander_abi::v7::{Descriptor, RecordEventState, StartEvent, StateArgs, StopEvent};

macro_rules! categories {
    ($($name:ident $variant:ident $kind:ident),+ $(,)?) => {
        /// A kind of call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Category {
            $(#[doc = stringify!($name)] $variant,)+
        }

        impl Category {
            /// All, in the order of a collective's life.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name in tables.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name),)+ }
            }

            /// The function through which it is made, as callgrind knows it.
            pub fn symbol(self) -> &'static str {
                match self { $(Self::$variant => concat!("bench_call_", stringify!($name)),)+ }
            }
        }

        /// One function a kind.
        pub mod through {
            use super::*;
            $(categories!{@$kind $name})+
        }
    };
    (@start $name:ident) => {
        /// Calls `startEvent`.
        ///
        /// # Safety
        /// The function is a loaded library's; handle and descriptor are valid for the call.
        #[inline(never)]
        #[unsafe(export_name = concat!("bench_call_", stringify!($name)))]
        pub unsafe extern "C" fn $name(
            call: StartEvent, context: *mut c_void, handle: *mut *mut c_void, descriptor: *mut Descriptor,
        ) -> NcclResult {
            // SAFETY: passed on from the caller.
            let result = unsafe { call(context, handle, descriptor) };
            distinct!($name);
            result
        }
    };
    (@stop $name:ident) => {
        /// Calls `stopEvent`.
        ///
        /// # Safety
        /// The function is a loaded library's, the handle one that it gave.
        #[inline(never)]
        #[unsafe(export_name = concat!("bench_call_", stringify!($name)))]
        pub unsafe extern "C" fn $name(call: StopEvent, handle: *mut c_void) -> NcclResult {
            // SAFETY: passed on from the caller.
            let result = unsafe { call(handle) };
            distinct!($name);
            result
        }
    };
    (@state $name:ident) => {
        /// Calls `recordEventState`.
        ///
        /// # Safety
        /// The function is a loaded library's, the handle one that it gave, the arguments NULL or valid for the call.
        #[inline(never)]
        #[unsafe(export_name = concat!("bench_call_", stringify!($name)))]
        pub unsafe extern "C" fn $name(
            call: RecordEventState, handle: *mut c_void, state: c_int, args: *mut StateArgs,
        ) -> NcclResult {
            // SAFETY: passed on from the caller.
            let result = unsafe { call(handle, state, args) };
            distinct!($name);
            result
        }
    };
}

/// Ends a function with something of its own: no tail call, and no merging of equal functions.
macro_rules! distinct {
    ($name:ident) => {
        // SAFETY: the text is a comment.
        unsafe { core::arch::asm!(concat!("/* ", stringify!($name), " */")) }
    };
}

categories! {
    group_api_start GroupApiStart start,
    group_api_state GroupApiState state,
    group_api_stop GroupApiStop stop,
    coll_api_start CollApiStart start,
    coll_api_stop CollApiStop stop,
    kernel_launch_start KernelLaunchStart start,
    kernel_launch_stop KernelLaunchStop stop,
    group_start GroupStart start,
    coll_start CollStart start,
    coll_stop CollStop stop,
    group_stop GroupStop stop,
    kernel_ch_start KernelChStart start,
    kernel_ch_state KernelChState state,
    kernel_ch_stop KernelChStop stop,
    proxy_op_start ProxyOpStart start,
    proxy_op_state ProxyOpState state,
    proxy_op_stop ProxyOpStop stop,
    proxy_step_start ProxyStepStart start,
    proxy_step_state ProxyStepState state,
    proxy_step_stop ProxyStepStop stop,
}
