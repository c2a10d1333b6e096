//! No unwind crosses the C boundary.
//!
//! The hot paths of `callbacks` cannot panic: they index by masks, and wrap their arithmetic; `cargo xtask bench` looks into
//! the built library for panic calls in them, before it measures. Whatever is not hot runs inside [`guarded`]: an unwind is caught, sets a flag,
//! and switches the plugin off; the drain reports it once. Our panic hook prints nothing for panics on such a thread.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::hot::HOT;

static PANICKED: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

thread_local! {
    /// Panics on this thread, at this moment, are ours and silent.
    static OURS: Cell<bool> = const { Cell::new(false) };
}

/// Installs our panic hook in front of the one that is there: silent where we catch, the other one elsewhere. Once; cold.
pub(crate) fn install_hook() {
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !OURS.try_with(Cell::get).unwrap_or(true) {
                previous(info);
            }
        }));
    });
}

/// Runs `work`; an unwind ends here: the plugin goes off, `fallback` is returned. Cold paths of any thread.
pub(crate) fn guarded<T>(fallback: T, work: impl FnOnce() -> T) -> T {
    let before = OURS.try_with(|ours| ours.replace(true)).unwrap_or(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    let _ = OURS.try_with(|ours| ours.set(before));
    match result {
        Ok(value) => value,
        Err(payload) => {
            // Dropping a payload can itself panic; it is a few bytes, once in a process.
            std::mem::forget(payload);
            HOT.switch_off();
            PANICKED.store(true, Ordering::Relaxed);
            fallback
        }
    }
}

/// Whether a panic was caught since the last call. The drain.
pub(crate) fn take_panicked() -> bool {
    PANICKED.swap(false, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_in_the_guard_and_switches_off() {
        install_hook();
        HOT.switch_on(0);
        assert_eq!(guarded(7, || panic!("planted")), 7);
        assert!(!HOT.is_on());
        assert!(take_panicked());
        assert!(!take_panicked());
        assert_eq!(guarded(7, || 8), 8);
    }
}
