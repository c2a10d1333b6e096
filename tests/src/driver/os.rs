//! What is asked of the operating system.

use std::ffi::{c_int, c_ulong};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::FromRawFd as _;

use anyhow::{Result, bail, ensure};
use collander_tests::protocol::{ALLOCATIONS, Reply};
use libloading::os::unix::Library;

/// Runs `work` in a forked child, which exits in order. Its reply becomes ours, with how it ended.
pub(crate) fn forked(reply: &mut Reply, work: impl FnOnce() -> Reply) -> Result<()> {
    let mut pipe: [c_int; 2] = [0; 2];
    // SAFETY: the array has room for the two descriptors, which become files below and have no other owner.
    let (mut reader, mut writer) = unsafe {
        ensure!(libc::pipe(pipe.as_mut_ptr()) == 0, "no pipe");
        (File::from_raw_fd(pipe[0]), File::from_raw_fd(pipe[1]))
    };
    // SAFETY: the child goes on with this thread only; locks of the C library are put in order by its own fork handlers,
    // and no other thread of ours runs now: requests are answered one at a time.
    match unsafe { libc::fork() } {
        -1 => bail!("fork failed"),
        0 => {
            drop(reader);
            let text = serde_json::to_vec(&work()).unwrap_or_default();
            let written = writer.write_all(&text).is_ok();
            drop(writer);
            std::process::exit(if written { 0 } else { 1 });
        }
        child => {
            drop(writer);
            let mut text = Vec::new();
            reader.read_to_end(&mut text)?;
            let mut status = 0;
            // SAFETY: the status has its place here.
            ensure!(unsafe { libc::waitpid(child, &raw mut status, 0) } == child, "waitpid failed");
            if !text.is_empty() {
                *reply = serde_json::from_slice(&text)?;
            }
            reply.status = Some(status);
        }
    }
    if let Some(error) = reply.error.take() {
        bail!("in the child: {error}");
    }
    Ok(())
}

/// Bounds the size of the files of this process, as a full disk would, or lifts the bound.
pub(crate) fn limit_files(bytes: Option<u64>) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes.unwrap_or(libc::RLIM_INFINITY), rlim_max: libc::RLIM_INFINITY };
    // SAFETY: plain calls; beyond the limit a write fails with EFBIG once the signal is ignored.
    let failed = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit)
    };
    ensure!(failed == 0, "setrlimit failed");
    Ok(())
}

/// A system call that nothing else makes.
pub(crate) fn marker() {
    // SAFETY: has no arguments and never fails.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// The kernel's id of this thread.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// The interposer's counter, if it is preloaded.
pub(crate) fn allocation_counter() -> Option<extern "C" fn() -> c_ulong> {
    let this = Library::this();
    // SAFETY: `src/interposer.c` defines it with this signature, and is never unloaded.
    unsafe { this.get::<extern "C" fn() -> c_ulong>(ALLOCATIONS.as_bytes()) }.ok().map(|symbol| *symbol)
}
