//! Time: the counter that calls are timed with, the kernel's clocks, and where threads run.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::histogram::Histogram;

/// Counter before the timed code: nothing of that code has begun, nothing earlier is still under way.
#[inline(always)]
pub fn begin() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_lfence, _rdtsc};
        // SAFETY: every x86-64 processor has both instructions.
        unsafe {
            _mm_lfence();
            let ticks = _rdtsc();
            _mm_lfence();
            ticks
        }
    }
    #[cfg(target_arch = "aarch64")]
    counter_aarch64()
}

/// Counter after the timed code has finished.
#[inline(always)]
pub fn end() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{__rdtscp, _mm_lfence};
        let mut processor = 0;
        // SAFETY: `processor` is writable; every processor that NCCL runs on has the instruction.
        unsafe {
            let ticks = __rdtscp(&raw mut processor);
            _mm_lfence();
            ticks
        }
    }
    #[cfg(target_arch = "aarch64")]
    counter_aarch64()
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter_aarch64() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user code read the virtual counter; no memory is touched.
    unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack)) };
    ticks
}

/// What the counter means on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Nanoseconds a tick.
    pub ns_per_tick: f64,
    /// Ticks between [`begin`] and [`end`] with nothing between them (the median): taken off every reading.
    pub overhead: u64,
}

impl Calibration {
    /// Measures for 0.2 s.
    pub fn measure() -> Self {
        let (wall, ticks) = (Instant::now(), begin());
        while wall.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        let (wall, ticks) = (wall.elapsed(), end() - ticks);
        let mut empty = Histogram::new();
        for _ in 0..200_000 {
            let before = begin();
            empty.add(black_box(end()) - before);
        }
        Self { ns_per_tick: wall.as_nanos() as f64 / ticks as f64, overhead: empty.quantile(0.5) as u64 }
    }

    /// Duration of a reading, in ticks, without the cost of reading.
    #[inline(always)]
    pub fn elapsed(&self, before: u64, after: u64) -> u64 {
        (after - before).saturating_sub(self.overhead)
    }
}

/// CPU time of the calling thread, seconds.
pub fn thread_cpu() -> f64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process, seconds.
pub fn process_cpu() -> f64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds since 1970, what a GPU's global timer would say.
pub fn unix_ns() -> u64 {
    (read_clock(libc::CLOCK_REALTIME) * 1e9) as u64
}

fn read_clock(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable, the clock is one that Linux always has.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Binds the calling thread to the processor of that index among those that the process may use.
/// Returns false, and changes nothing, when there are fewer than two.
pub fn pin(index: usize) -> bool {
    // SAFETY: an all-zero set is a valid, empty set; the calls read and write only that set.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed) != 0 {
            return false;
        }
        let usable: Vec<usize> =
            (0..libc::CPU_SETSIZE as usize).filter(|&processor| libc::CPU_ISSET(processor, &allowed)).collect();
        if usable.len() < 2 {
            return false;
        }
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(usable[index % usable.len()], &mut one);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const one) == 0
    }
}

/// Waits politely: spins first, then gives the processor away.
#[derive(Debug, Default)]
pub struct Waiter(u32);

impl Waiter {
    /// One more round.
    pub fn wait(&mut self) {
        self.0 += 1;
        if self.0 < 64 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}
