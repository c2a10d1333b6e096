//! NCCL's logger: the only place where collander speaks. Called by `init`, `finalize` and our threads, never by a callback.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicPtr, Ordering};

use collander_abi::logger::{DebugLogger, LEVEL_INFO, LEVEL_WARN, SUBSYSTEM_PROFILE};

static LOGGER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// How loud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Shown with NCCL_DEBUG=INFO and the subsystem PROFILE.
    Info,
    /// Shown with NCCL_DEBUG=WARN.
    Warn,
}

/// Remembers the logger that `init` was given.
pub(crate) fn set(logger: Option<DebugLogger>) {
    if let Some(logger) = logger {
        LOGGER.store(logger as *mut (), Ordering::Release);
    }
}

/// Says one line. Without a logger (v1 to v3), warnings go to stderr and the rest nowhere.
#[allow(unsafe_code, reason = "calls NCCL's logger, a C function")]
pub(crate) fn say(level: Level, text: &str) {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let logger = LOGGER.load(Ordering::Acquire);
    if logger.is_null() {
        if level == Level::Warn {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "collander: {line}");
        }
        return;
    }
    let Ok(text) = CString::new(format!("collander: {line}")) else { return };
    let number: c_int = match level {
        Level::Info => LEVEL_INFO,
        Level::Warn => LEVEL_WARN,
    };
    // SAFETY: stored by `set` from a `DebugLogger`; NCCL's logger is a function of the loaded libnccl and thread-safe. The text
    // is an argument of "%s", never a format.
    unsafe {
        let logger: DebugLogger = std::mem::transmute::<*mut (), DebugLogger>(logger);
        logger(number, SUBSYSTEM_PROFILE, c"collander".as_ptr(), 0, c"%s".as_ptr(), text.as_ptr());
    }
}
