//! What the machine gives: kernel, clock, limits.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::process::{Resource, getrlimit};

use super::Check;

/// All checks; `ring_bytes`: what the rings take, `file_bytes`: the largest file that sinks write.
pub fn check(ring_bytes: u64, file_bytes: u64) -> Vec<Check> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let limit = |resource| getrlimit(resource).current;
    let mut checks = vec![memfd(), clock(&cpu)];
    checks.extend(limits(
        limit(Resource::As),
        limit(Resource::Memlock),
        limit(Resource::Fsize),
        ring_bytes,
        file_bytes,
    ));
    checks
}

fn memfd() -> Check {
    const ID: &str = "memfd";
    let attempt = || -> rustix::io::Result<bool> {
        let file = memfd_create("collander-doctor", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, 4096)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(fcntl_add_seals(&file, SealFlags::FUTURE_WRITE).is_ok())
    };
    match attempt() {
        Ok(true) => Check::ok(ID, "the kernel makes sealed memory files: the black box works"),
        Ok(false) => Check::warn(
            ID,
            "the kernel cannot seal memory files against later writers (before Linux 5.1)",
            "the black box works; only processes of the same user can reach it all the same",
        ),
        Err(error) => Check::warn(
            ID,
            format!("no memory file (memfd_create): {error}"),
            "recording works; `collander blackbox` does not. Allow memfd_create in the seccomp profile of the container",
        ),
    }
}

/// Whether the CPU's counter can be used as a clock.
pub fn clock(cpuinfo: &str) -> Check {
    const ID: &str = "clock";
    if cfg!(target_arch = "aarch64") {
        return Check::ok(ID, "the counter CNTVCT_EL0 runs at a constant rate");
    }
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    if has("constant_tsc") && has("nonstop_tsc") {
        Check::ok(ID, "the time stamp counter is invariant (constant_tsc, nonstop_tsc)")
    } else {
        Check::warn(
            ID,
            "the time stamp counter is not said to be invariant: collander falls back to clock_gettime, about 20 ns a record",
            "on a virtual machine, pass the CPU's flags through",
        )
    }
}

/// Judges limits (None: unlimited).
pub fn limits(
    address_space: Option<u64>,
    locked: Option<u64>,
    file_size: Option<u64>,
    ring_bytes: u64,
    file_bytes: u64,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let text = crate::units::bytes;
    if let Some(limit) = address_space {
        let what =
            format!("the address space is limited to {} (ulimit -v); the rings take {}", text(limit), text(ring_bytes));
        let fix = "ulimit -v unlimited; CUDA reserves far more address space than this anyway";
        checks.push(if limit < ring_bytes.saturating_mul(4) {
            Check::fail("address_space", what, fix)
        } else {
            Check::warn("address_space", what, fix)
        });
    }
    if let Some(limit) = locked.filter(|limit| *limit < 1 << 30) {
        checks.push(Check::warn(
            "locked_memory",
            format!(
                "locked memory is limited to {} (ulimit -l): collander needs none, NCCL over InfiniBand does",
                text(limit)
            ),
            "ulimit -l unlimited",
        ));
    }
    if let Some(limit) = file_size.filter(|limit| *limit < file_bytes) {
        checks.push(Check::fail(
            "file_size",
            format!(
                "files are limited to {} (ulimit -f) and ours grow to {}: a write beyond the limit kills the process \
                 (SIGXFSZ)",
                text(limit),
                text(file_bytes)
            ),
            "ulimit -f unlimited, or a smaller rotate_bytes",
        ));
    }
    if checks.is_empty() {
        checks.push(Check::ok("limits", "no limit on address space, locked memory or file size is in the way"));
    }
    checks
}
