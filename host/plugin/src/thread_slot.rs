//! This thread's ring and what goes with it, behind one thread-local word.
//!
//! The word is a thread-local of the *initial-exec* model, read by two instructions: the model that Rust gives a shared
//! library costs a call (`__tls_get_addr`) that is dearer than a whole record. It takes 8 bytes of the static TLS surplus
//! that glibc keeps for such libraries.

use std::cell::Cell;

use collander_event::{EventKind, LOCAL_MASK};
use collander_ring::Producer;

use crate::clock::is_counter;
use crate::guard::guarded;
use crate::hot::{HOT, HotCommunicator, NOBODY};
use crate::intern::{NameCache, Pair};
use crate::startup;

/// API calls of one group that wait for their operation; a power of two. More are written as records at once.
pub(crate) const STASH: usize = 64;

/// In `pending`: the GroupApi that this thread is in gave a record.
pub(crate) const RECORDED_GROUP: u32 = 1 << 31;

/// Counters of event ids have 34 bits.
const COUNTER_MASK: u64 = (1 << 34) - 1;

/// No event's id: the place is free.
pub(crate) const FREE: u64 = u64::MAX;

/// An API call that waits for its operation.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct StashedApi {
    /// Its handle, inverted if it is in no group (so that a Coll in the common case needs not ask); `FREE`: none.
    pub id: u64,
    /// Local id of its GroupApi, 0 if it has none, and from bit 50 on the datatype's code: as a Coll's record has them.
    pub group: u64,
    pub count: u64,
    pub stream: u64,
    pub user_tag: u64,
    pub context: u64,
    /// Function and datatype.
    pub names: Pair,
    pub root: i32,
}

impl StashedApi {
    const NONE: Self =
        Self { id: FREE, group: 0, count: 0, stream: 0, user_tag: 0, context: 0, names: Pair::NONE, root: 0 };

    /// Its handle. Not of a free place.
    pub(crate) const fn handle(&self) -> u64 {
        if self.group & LOCAL_MASK == 0 { !self.id } else { self.id }
    }

    /// Whether it is the call with this handle.
    #[inline(always)]
    pub(crate) const fn is(&self, handle: u64) -> bool {
        self.id == handle || (self.id == !handle && handle != !FREE)
    }
}

/// What one NCCL thread owns. Only that thread touches it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ThreadState {
    pub stash: [StashedApi; STASH],
    pub producer: Producer,
    /// Nonce, where event ids have it: what a handle of ours has beside its local id. Twice: two uses of one field would
    /// keep it in a register, which a Coll has not got.
    pub nonce: [u64; 2],
    /// Nonce and ring number, where event ids have them.
    pub id_base: u64,
    /// What handles are compared with: `id_base`, or something else where there is no counter for the common ways.
    pub own: u64,
    /// Handles of the next Group and GroupApi. Their counters are their own, since most give no record and then adding is
    /// all that they cost; no id of another kind is the same.
    pub next_group: u64,
    pub next_group_api: u64,
    /// Handle whose KernelChStop was just recorded: its stop needs no record.
    pub stopped_kernel: u64,
    /// The KernelCh start that was this thread's last record: its parent, its ticks, the ring's position after it.
    pub kernel_parent: u64,
    pub kernel_ticks: u64,
    pub kernel_position: u64,
    /// The communicator that was asked for last.
    pub communicator: &'static HotCommunicator,
    /// Handle of the GroupApi that this thread is in; 0: none.
    pub group_api: u64,
    /// Its depth.
    pub group_depth: u8,
    /// API calls in `stash`, and `RECORDED_GROUP`: what the stop of a GroupApi must do beside leaving it.
    pub pending: u32,
    pub names: NameCache,
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

impl ThreadState {
    /// A fresh handle for a Group. It is given before the next one is made: that is one addition in memory.
    #[inline(always)]
    pub(crate) fn new_group(&mut self, give: impl FnOnce(u64)) -> u64 {
        let id = self.next_group;
        give(id);
        self.next_group = self.next_group.wrapping_add(1 << 8);
        id
    }

    /// A fresh handle for a GroupApi, which this thread now is in.
    #[inline(always)]
    pub(crate) fn new_group_api(&mut self, give: impl FnOnce(u64)) -> u64 {
        let id = self.next_group_api;
        give(id);
        self.group_api = id;
        self.next_group_api = self.next_group_api.wrapping_add(1 << 8);
        id
    }
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
            let mut state = unsafe { Box::from_raw(state) };
            // The next thread's groups go on from where ours ended.
            let groups = state.next_group.max(state.next_group_api);
            state.producer.skip_counters((groups >> 8) & COUNTER_MASK);
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
        let id_base = HOT.nonce() | (u64::from(producer.ring()) << 42);
        let mut producer = producer;
        producer.mark_ids(id_base);
        let first = id_base | ((producer.peek_counter() & COUNTER_MASK) << 8);
        let state = Box::new(ThreadState {
            nonce: [HOT.nonce(); 2],
            id_base,
            own: if is_counter() { id_base } else { !id_base },
            next_group: first | EventKind::Group as u64,
            next_group_api: first | EventKind::GroupApi as u64,
            producer,
            stopped_kernel: 0,
            communicator: &NOBODY,
            kernel_parent: 0,
            kernel_ticks: 0,
            kernel_position: 0,
            group_api: 0,
            group_depth: 0,
            pending: 0,
            names: NameCache::new(),
            stash: [StashedApi::NONE; STASH],
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
