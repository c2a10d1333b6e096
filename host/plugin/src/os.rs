//! What is asked of the operating system: signal masks, fork, exit, process identity.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::hot::HOT;
use crate::{startup, thread_slot};

static PID: AtomicI32 = AtomicI32::new(0);
static FORKED: AtomicBool = AtomicBool::new(false);
static HANDLERS: Once = Once::new();

/// Whether this is a forked child: the plugin stays inert in it.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Whether a process id is not ours. Hot.
#[inline(always)]
pub(crate) fn is_other_process(pid: i32) -> bool {
    pid != PID.load(Ordering::Relaxed)
}

/// Installs the fork and exit handlers. Once a process; cold.
#[allow(unsafe_code, reason = "pthread_atfork, atexit")]
pub(crate) fn install_handlers() {
    HANDLERS.call_once(|| {
        PID.store(std::process::id() as i32, Ordering::Relaxed);
        // SAFETY: both take plain function pointers; the library is linked with `-z nodelete`, so they stay valid.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

/// In a forked child: no thread of ours exists, the rings are the parent's. Async-signal-safe: stores only.
extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
    HOT.switch_off();
    thread_slot::forget();
}

extern "C" fn at_exit() {
    if !is_forked() {
        startup::at_exit();
    }
}

/// Fourteen bits that tell this process from others of its node: the process id, mixed with the pid namespace.
pub(crate) fn nonce() -> u16 {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
    let mixed = namespace
        .iter()
        .flat_map(|link| link.as_os_str().as_encoded_bytes())
        .fold(0u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    ((std::process::id() ^ (mixed >> 16)) & 0x3fff) as u16
}

/// Spawns a thread of ours: named, all signals blocked from its first instruction, with a stack of its own size.
///
/// # Errors
/// When no thread can be made.
#[allow(unsafe_code, reason = "pthread_sigmask")]
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<std::thread::JoinHandle<()>> {
    // SAFETY: plain calls on signal sets that live here; the mask is put back before we return.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        let blocked = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) == 0;
        let spawned = std::thread::Builder::new().name(name.to_owned()).stack_size(1 << 20).spawn(work);
        if blocked {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
        spawned
    }
}
