//! The one wasmtime configuration, for the engine that runs filters and for the compiler library that compiles them: native
//! code is only taken from an engine that was configured in the same way.
//!
//! Why each is what it is: `docs/decisions/0020-wasmtime.md`.

use wasmtime::{Config, WasmFeatures};

/// Version of wasmtime, part of every cache key. `Cargo.toml` pins the same one.
pub const WASMTIME_VERSION: &str = "48.0.8";

/// What the engine and the compiler must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Address space that a filter's memory takes, bytes; also the most that it can ever grow to.
    pub memory_reservation_bytes: u64,
    /// Unmapped space behind it, bytes.
    pub memory_guard_bytes: u64,
    /// Stack of a guest, bytes, on the stack of the thread that calls it: that one needs at least 256 KiB more.
    pub stack_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { memory_reservation_bytes: 64 << 20, memory_guard_bytes: 64 << 10, stack_bytes: 128 << 10 }
    }
}

impl Settings {
    /// The configuration. In a build with a compiler, also how it compiles.
    #[must_use]
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        // This is someone else's process: its signal handlers are not ours to replace.
        config.signals_based_traps(false);
        config.concurrency_support(false);
        config.epoch_interruption(true);
        config.memory_reservation(self.memory_reservation_bytes);
        config.memory_reservation_for_growth(0);
        config.memory_may_move(false);
        config.memory_guard_size(self.memory_guard_bytes);
        config.guard_before_linear_memory(false);
        config.native_unwind_info(false);
        config.max_wasm_stack(self.stack_bytes);
        config.wasm_backtrace_max_frames(std::num::NonZeroUsize::new(16));
        config.memory_init_cow(true);
        // What no filter needs is refused when it is compiled.
        for feature in [WasmFeatures::MULTI_MEMORY, WasmFeatures::MEMORY64, WasmFeatures::RELAXED_SIMD] {
            config.wasm_features(feature, false);
        }
        #[cfg(feature = "compiler")]
        {
            config.cranelift_opt_level(wasmtime::OptLevel::Speed);
        }
        config
    }

    /// Text that is equal for two builds exactly if native code can pass from one to the other: wasmtime's version, this
    /// configuration, the architecture and the features of this machine's CPU.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut text = format!(
            "wasmtime {WASMTIME_VERSION} {} {} memory {}+{} stack {}",
            std::env::consts::ARCH,
            std::env::consts::OS,
            self.memory_reservation_bytes,
            self.memory_guard_bytes,
            self.stack_bytes
        );
        for (name, present) in cpu_features() {
            if present {
                text.push(' ');
                text.push_str(name);
            }
        }
        text
    }
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<(&'static str, bool)> {
    macro_rules! detect {
        ($($name:tt)*) => { vec![$(($name, std::arch::is_x86_feature_detected!($name))),*] };
    }
    detect!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "fma" "bmi1" "bmi2" "lzcnt" "avx512f" "avx512dq"
        "avx512vl" "avx512bitalg" "avx512vbmi" "cmpxchg16b")
}

#[cfg(target_arch = "aarch64")]
fn cpu_features() -> Vec<(&'static str, bool)> {
    macro_rules! detect {
        ($($name:tt)*) => { vec![$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
    }
    detect!("lse" "paca" "fp16" "dotprod" "bti")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_features() -> Vec<(&'static str, bool)> {
    Vec::new()
}
