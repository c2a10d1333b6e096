//! This thread's ring and what goes with it, behind one thread-local word.
//!
//! The word is a thread-local of the *initial-exec* model, read by two instructions: the model that Rust gives a shared
//! library costs a call (`__tls_get_addr`) that is dearer than a whole record. It takes 8 bytes of the static TLS surplus
//! that glibc keeps for such libraries.

use std::cell::Cell;

use collander_ring::Producer;

use crate::guard::guarded;
use crate::hot::{HOT, HotCommunicator};
use crate::intern::NameCache;
use crate::startup;

/// API calls of one group that wait for their operation; a power of two. More are written as records at once.
pub(crate) const STASH: usize = 64;

/// An API call that waits for its operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StashedApi {
    /// Local id; 0: none.
    pub id: u64,
    /// Local id of its GroupApi.
    pub group: u64,
    pub count: u64,
    pub stream: u64,
    pub user_tag: u64,
    /// function | datatype << 8 | root << 32
    pub names: u64,
    /// Class of the function, and size of the datatype.
    pub collective: u8,
    pub size: u8,
    pub context: u64,
}

/// What one NCCL thread owns. Only that thread touches it.
#[derive(Debug)]
pub(crate) struct ThreadState {
    pub producer: Producer,
    /// Nonce and ring number, where event ids have them.
    pub id_base: u64,
    /// Handle whose KernelChStop was just recorded: its stop needs no record.
    pub stopped_kernel: u64,
    /// The KernelCh start that was this thread's last record: its parent, its ticks, the ring's position after it.
    pub kernel_parent: u64,
    pub kernel_ticks: u64,
    pub kernel_position: u64,
    /// The communicator that was asked for last, and its context.
    pub last_context: u64,
    pub last_communicator: Option<&'static HotCommunicator>,
    /// Local id of the GroupApi that this thread is in; 0: none.
    pub group_api: u64,
    pub group_depth: u8,
    /// API calls in `stash`.
    pub pending: u32,
    pub names: NameCache,
    pub stash: [StashedApi; STASH],
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
core::arch::global_asm!(
    ".pushsection .tbss.collander_thread_slot,\"awT\",@nobits",
    ".p2align 3",
    ".globl collander_thread_slot",
    ".hidden collander_thread_slot",
    ".type collander_thread_slot,@object",
    ".size collander_thread_slot,8",
    "collander_thread_slot:",
    ".zero 8",
    ".popsection",
);

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
core::arch::global_asm!(
    ".pushsection .tbss.collander_thread_slot,\"awT\",%nobits",
    ".p2align 3",
    ".globl collander_thread_slot",
    ".hidden collander_thread_slot",
    ".type collander_thread_slot,%object",
    ".size collander_thread_slot,8",
    "collander_thread_slot:",
    ".zero 8",
    ".popsection",
);

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline(always)]
fn load() -> *mut ThreadState {
    let value: *mut ThreadState;
    // SAFETY: reads this thread's copy of our own thread-local word; `gottpoff` is how the initial-exec model finds it.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + collander_thread_slot@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) value,
            options(nostack, preserves_flags, readonly, pure),
        );
    }
    value
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn store(value: *mut ThreadState) {
    // SAFETY: writes this thread's copy of our own thread-local word.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + collander_thread_slot@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) value,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
#[inline(always)]
fn load() -> *mut ThreadState {
    let value: *mut ThreadState;
    // SAFETY: reads this thread's copy of our own thread-local word; `gottprel` is how the initial-exec model finds it.
    unsafe {
        core::arch::asm!(
            "adrp {0}, :gottprel:collander_thread_slot",
            "ldr {0}, [{0}, :gottprel_lo12:collander_thread_slot]",
            "mrs {1}, tpidr_el0",
            "ldr {0}, [{1}, {0}]",
            out(reg) value,
            out(reg) _,
            options(nostack, preserves_flags, readonly, pure),
        );
    }
    value
}

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
fn store(value: *mut ThreadState) {
    // SAFETY: writes this thread's copy of our own thread-local word.
    unsafe {
        core::arch::asm!(
            "adrp {0}, :gottprel:collander_thread_slot",
            "ldr {0}, [{0}, :gottprel_lo12:collander_thread_slot]",
            "mrs {1}, tpidr_el0",
            "str {2}, [{1}, {0}]",
            out(reg) _,
            out(reg) _,
            in(reg) value,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
mod portable {
    thread_local!(pub(super) static SLOT: std::cell::Cell<*mut super::ThreadState> = const { std::cell::Cell::new(std::ptr::null_mut()) });
}
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
fn load() -> *mut ThreadState {
    portable::SLOT.with(Cell::get)
}
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
fn store(value: *mut ThreadState) {
    portable::SLOT.with(|slot| slot.set(value));
}

/// This thread's state, if it has one. Hot.
#[inline(always)]
pub(crate) fn current() -> Option<&'static mut ThreadState> {
    // SAFETY: the word is null or what `attach` stored on this very thread: a leaked Box that only this thread uses, freed
    // by this thread's exit after the word was cleared. Callbacks do not nest, so there is one `&mut` at a time.
    unsafe { load().as_mut() }
}

thread_local! {
    /// The thread is ending, or never gets a ring.
    static GONE: Cell<bool> = const { Cell::new(false) };
    static EXIT: Exit = const { Exit };
}

struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        GONE.with(|gone| gone.set(true));
        let state = load();
        store(std::ptr::null_mut());
        if !state.is_null() {
            // SAFETY: what `attach` leaked on this thread; the word is cleared, so nobody else refers to it.
            let state = unsafe { Box::from_raw(state) };
            state.producer.retire();
        }
    }
}

/// Gives this thread a ring. Its first event; allocates. `large`: it sees kernel or proxy events. None: the plugin is off,
/// the memory bound is reached (counted), or the thread is ending.
#[cold]
#[inline(never)]
pub(crate) fn attach(large: bool) -> Option<&'static mut ThreadState> {
    guarded(None, || {
        if !HOT.is_on() {
            return None;
        }
        let runtime = startup::rings()?;
        let producer = if GONE.with(Cell::get) { None } else { runtime.acquire(large) };
        let Some(producer) = producer else {
            runtime.count_unobserved();
            return None;
        };
        EXIT.with(|_| ());
        let state = Box::new(ThreadState {
            id_base: HOT.nonce() | (u64::from(producer.ring()) << 42),
            producer,
            stopped_kernel: 0,
            last_context: 0,
            last_communicator: None,
            kernel_parent: 0,
            kernel_ticks: 0,
            kernel_position: 0,
            group_api: 0,
            group_depth: 0,
            pending: 0,
            names: NameCache::new(),
            stash: [StashedApi::default(); STASH],
        });
        store(Box::into_raw(state));
        current()
    })
}

/// Forgets this thread's ring without giving it back: a forked child shares the memory with its parent. The child.
pub(crate) fn forget() {
    store(std::ptr::null_mut());
    GONE.with(|gone| gone.set(true));
}
