//! Ticks: the invariant TSC (x86-64) or CNTVCT_EL0 (aarch64), else clock_gettime.

use std::sync::atomic::{AtomicBool, Ordering};

use collander_event::Calibration;

/// Whether ticks are the CPU's counter; false: CLOCK_MONOTONIC nanoseconds. Set before the first event.
static COUNTER: AtomicBool = AtomicBool::new(false);

/// Now. 9 ns with the counter, 21 ns without. Any thread.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    if COUNTER.load(Ordering::Relaxed) { counter() } else { monotonic_ns() }
}

/// Whether [`counter`] is the clock. Hot paths learn it from `HOT`'s switches.
pub(crate) fn is_counter() -> bool {
    COUNTER.load(Ordering::Relaxed)
}

/// The CPU's counter; only if [`is_counter`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code, reason = "reads a CPU counter")]
pub(crate) fn counter() -> u64 {
    // SAFETY: every x86-64 CPU has rdtsc; Linux forbids it only to processes that asked for that (PR_SET_TSC).
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
#[allow(unsafe_code, reason = "reads a CPU counter")]
pub(crate) fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets EL0 read the virtual counter; no memory is touched.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn counter() -> u64 {
    monotonic_ns()
}

#[cold]
fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

#[allow(unsafe_code, reason = "clock_gettime")]
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes into the struct that we pass; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Unix time, ns. Our threads and cold code.
pub(crate) fn unix_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// Whether the CPU's counter runs at one rate in all states and on all cores.
#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    core::arch::x86_64::__cpuid(0x8000_0000).eax >= 0x8000_0007
        && core::arch::x86_64::__cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
const fn counter_is_invariant() -> bool {
    cfg!(target_arch = "aarch64")
}

/// Two clocks read at one moment: the tightest of several tries.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    monotonic_ns: u64,
    unix_ns: u64,
}

fn pair() -> Pair {
    let mut best = (u64::MAX, Pair { ticks: 0, monotonic_ns: 0, unix_ns: 0 });
    for _ in 0..5 {
        let before = ticks();
        let (monotonic_ns, unix_ns) = (monotonic_ns(), unix_ns());
        let after = ticks();
        let width = after.wrapping_sub(before);
        if width < best.0 {
            best = (width, Pair { ticks: before.wrapping_add(width / 2), monotonic_ns, unix_ns });
        }
    }
    best.1
}

/// Keeps the ticks calibrated: the rate against CLOCK_MONOTONIC over the longest span, the offset against CLOCK_REALTIME now.
#[derive(Debug)]
pub(crate) struct Calibrator {
    first: Pair,
}

impl Calibrator {
    /// Chooses the clock. Cold; before the first event.
    pub(crate) fn start() -> Self {
        COUNTER.store(counter_is_invariant(), Ordering::Relaxed);
        Self { first: pair() }
    }

    fn uses_counter() -> bool {
        COUNTER.load(Ordering::Relaxed)
    }

    /// Where ticks come from, for outputs.
    pub(crate) fn name() -> &'static str {
        match (Self::uses_counter(), cfg!(target_arch = "aarch64")) {
            (false, _) => "clock_gettime",
            (true, true) => "cntvct",
            (true, false) => "tsc",
        }
    }

    /// A fresh calibration; the longer after `start`, the better its rate (after 1 ms: 1e-4, after 1 s: 1e-7). Cold.
    pub(crate) fn calibrate(&self) -> Calibration {
        let now = pair();
        let elapsed_ticks = now.ticks.saturating_sub(self.first.ticks);
        let elapsed_ns = now.monotonic_ns.saturating_sub(self.first.monotonic_ns);
        let rate =
            if !Self::uses_counter() || elapsed_ticks == 0 { 1.0 } else { elapsed_ns as f64 / elapsed_ticks as f64 };
        Calibration { ticks: now.ticks, unix_ns: now.unix_ns, ns_per_tick: rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_unix_time() {
        let calibrator = Calibrator::start();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let calibration = calibrator.calibrate();
        let (seen, real) = (calibration.unix_ns(ticks()), unix_ns());
        assert!(seen.abs_diff(real) < 5_000_000, "{seen} {real}");
        assert!(calibration.ns_per_tick > 0.0 && calibration.ns_per_tick < 1000.0);
    }
}
