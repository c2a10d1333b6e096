//! NCCL's logger, which `init` hands to a plugin from v4 on.

use core::ffi::{c_char, c_int, c_ulong};

/// `ncclDebugLogger_t`: level, subsystems, source file and line, then as `printf`. Text that is not ours goes in as the
/// argument of `"%s"`, never as the format.
pub type DebugLogger =
    unsafe extern "C" fn(level: c_int, flags: c_ulong, file: *const c_char, line: c_int, fmt: *const c_char, ...);

/// Level: always shown.
pub const LEVEL_VERSION: c_int = 1;
/// Level: warning.
pub const LEVEL_WARN: c_int = 2;
/// Level: information.
pub const LEVEL_INFO: c_int = 3;
/// Level: abort.
pub const LEVEL_ABORT: c_int = 4;
/// Level: trace.
pub const LEVEL_TRACE: c_int = 5;

/// Subsystem: initialisation.
pub const SUBSYSTEM_INIT: c_ulong = 1;
/// Subsystem: the profiler.
pub const SUBSYSTEM_PROFILE: c_ulong = 0x4000;
/// All subsystems.
pub const SUBSYSTEM_ALL: c_ulong = !0;
