//! The C side of NCCL's profiler plugin interface, versions 1 to 7: layouts, function types, states, results, logger.
//!
//! One module per version, each with the same type names: [`v7::Descriptor`], [`v7::Payload`] (a union of structs named
//! after the kinds of events), [`v7::StateArgs`] and [`v7::Profiler`], which a library exports as `ncclProfiler_v7`.
//! Members have NCCL's names in snake case; `type` is `event_type`. A C `bool` is a `u8` here, so that no value that a
//! foreign process writes can be undefined: read it as `!= 0`. Every offset and size is asserted at compile time, for
//! 64-bit Linux (x86-64 and aarch64 agree). Nothing here has behaviour: the crate can be linked anywhere.

pub mod event_kind;
pub mod logger;
pub mod result;
pub mod v1;
pub mod v2;
pub mod v3;
pub mod v4;
pub mod v5;
pub mod v6;
pub mod v7;

pub use logger::DebugLogger;
pub use result::NcclResult;

const _: () = assert!(size_of::<usize>() == 8, "NCCL exists on 64-bit systems only");

/// The symbols that NCCL looks for, by version; index 0 is v1.
pub const SYMBOLS: [&core::ffi::CStr; 7] = [
    c"ncclProfiler_v1",
    c"ncclProfiler_v2",
    c"ncclProfiler_v3",
    c"ncclProfiler_v4",
    c"ncclProfiler_v5",
    c"ncclProfiler_v6",
    c"ncclProfiler_v7",
];
