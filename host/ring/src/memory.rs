//! Mapping memory: memfd, seals, populating. The only place that asks the kernel for it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;

use crate::layout::{
    COMMUNICATORS, COMMUNICATORS_OFFSET, CONTROLS_OFFSET, CommunicatorEntry, DATA_OFFSET, Header, MEMFD_NAME, NAMES,
    NAMES_OFFSET, NameEntry, RINGS, RingControl,
};
use crate::protocol::Slot;

/// A mapping of a region, never unmapped by a writer (NCCL threads may hold pointers into it until the process ends).
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// Unmap on drop: readers only.
    owned: bool,
}

// SAFETY: a mapping is plain shared memory that is only accessed through atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above; all access goes through `&Atomic…`.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: base and len are what mmap returned, and no reference outlives the mapping: all borrow `self`.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
        }
    }
}

impl Mapping {
    /// Creates the sealed memfd and maps it writable. The file holds no pages yet.
    pub(crate) fn create(len: usize) -> io::Result<(Self, Option<File>)> {
        match memfd(len) {
            Ok(file) => {
                let mapping = Self::map(Some(&file), len, true, false)?;
                let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
                // SAFETY: fcntl on a descriptor that we own; it takes an int.
                if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
                    // Kernels before 5.1 lack FUTURE_WRITE: the others suffice against SIGBUS.
                    // SAFETY: as above.
                    unsafe {
                        libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)
                    };
                }
                Ok((mapping, Some(file)))
            }
            // No memfd (seccomp, an old kernel, a file-size limit): the rings work, the black box does not.
            Err(_) => Ok((Self::map(None, len, true, false)?, None)),
        }
    }

    /// Maps a descriptor (or anonymous memory) shared.
    pub(crate) fn map(file: Option<&File>, len: usize, writable: bool, owned: bool) -> io::Result<Self> {
        let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let (flags, descriptor) = match file {
            Some(file) => (libc::MAP_SHARED | libc::MAP_NORESERVE, file.as_raw_fd()),
            None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1),
        };
        // SAFETY: a fresh mapping at an address that the kernel chooses; arguments are valid by construction.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, descriptor, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mmap returned NULL"))?;
        Ok(Self { base, len, owned })
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The bytes of a private, writable mapping, to fill it before it is shared with anyone.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` mapped bytes; `&mut self` excludes every other access through this mapping.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// All of it, as words.
    pub(crate) fn words(&self) -> &[std::sync::atomic::AtomicU64] {
        // SAFETY: `len / 8` aligned words of the mapping; atomics are valid for any bits.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.len / 8) }
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: every region is at least DATA_OFFSET long (checked where mapped) and page-aligned; Header is all atomics.
        unsafe { &*self.base.as_ptr().cast::<Header>() }
    }

    pub(crate) fn names(&self) -> &[NameEntry; NAMES] {
        // SAFETY: as for `header`; the offset is a multiple of the alignment.
        unsafe { &*self.base.as_ptr().add(NAMES_OFFSET).cast::<[NameEntry; NAMES]>() }
    }

    pub(crate) fn communicators(&self) -> &[CommunicatorEntry; COMMUNICATORS] {
        // SAFETY: as for `names`.
        unsafe { &*self.base.as_ptr().add(COMMUNICATORS_OFFSET).cast::<[CommunicatorEntry; COMMUNICATORS]>() }
    }

    pub(crate) fn controls(&self) -> &[RingControl; RINGS] {
        // SAFETY: as for `names`.
        unsafe { &*self.base.as_ptr().add(CONTROLS_OFFSET).cast::<[RingControl; RINGS]>() }
    }

    /// The slots at `offset`; None if they do not lie inside the data part.
    pub(crate) fn slots(&self, offset: u64, capacity: u64) -> Option<&[Slot]> {
        let bytes = capacity.checked_mul(64)?;
        let end = offset.checked_add(bytes)?;
        if offset < DATA_OFFSET as u64
            || !offset.is_multiple_of(64)
            || end > self.len as u64
            || !capacity.is_power_of_two()
        {
            return None;
        }
        // SAFETY: in bounds and aligned (just checked); Slot is all atomics, valid for any bits.
        Some(unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(offset as usize).cast::<Slot>(), capacity as usize)
        })
    }

    /// Allocates the pages of a range and maps them, so that no later access can fail or fault. Errors: no memory.
    pub(crate) fn populate(&self, file: Option<&File>, offset: usize, bytes: usize) -> io::Result<()> {
        if let Some(file) = file {
            // SAFETY: fallocate inside the file's size.
            let rc = unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as libc::off_t, bytes as libc::off_t) };
            if rc != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // SAFETY: the range lies in the mapping: callers pass what they allocated from it.
        let start = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: madvise on a range of our own mapping; POPULATE_WRITE reports failure instead of raising a signal.
        if unsafe { libc::madvise(start.cast(), bytes, MADV_POPULATE_WRITE) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(error);
        }
        // Before Linux 5.14: touch each page. The file's pages exist already, so this only maps them.
        for page in (0..bytes).step_by(4096) {
            // SAFETY: inside the range; the memory is not yet given to anybody, and a zero over a zero changes nothing.
            unsafe { start.add(page).write_volatile(0) };
        }
        Ok(())
    }
}

const F_SEAL_FUTURE_WRITE: libc::c_int = 0x10;
const MADV_POPULATE_WRITE: libc::c_int = 23;

fn memfd(len: usize) -> io::Result<File> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes into the struct that we pass.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if got && limit.rlim_cur != libc::RLIM_INFINITY && limit.rlim_cur < len as libc::rlim_t {
        // ftruncate beyond the limit would raise SIGXFSZ, which kills the job.
        return Err(io::Error::other("the file-size limit (ulimit -f) is smaller than the rings"));
    }
    let name = std::ffi::CString::new(MEMFD_NAME)?;
    // SAFETY: a NUL-terminated name and valid flags.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that we just got and that nobody else owns.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(len as u64)?;
    Ok(file)
}
