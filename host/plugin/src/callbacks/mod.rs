//! What each call of NCCL becomes: an id, a record, or nothing. Hot; NCCL's threads.
//!
//! The common case of a callback is one function without calls, which reads the descriptor as it goes (`*_known`); whatever
//! is rare (a new name, a first context, a foreign parent, records of parents) is done from the beginning by a cold one.
//! Nothing here can panic: `cargo xtask bench` looks for panic calls in the built library's callbacks.

mod api;
mod children;
mod operations;
mod stops;

use std::ffi::c_char;
use std::sync::atomic::AtomicU64;

use collander_event::{Detail, EventId, EventKind, LOCAL_MASK, PlanWord, Rate, RecordFlags, keeps};
use collander_ring::{Producer, RingCounters};

use crate::guard::guarded;
use crate::hot::{FAST, HOT, HotCommunicator, communicator};
use crate::startup;
use crate::thread_slot::ThreadState;

pub(crate) use api::{api, api_known, group_api, recorded_group_api, wanted_group_api};
pub(crate) use children::{child, kernel, kernel_known, launch_id, plain, record_known, wanted_child};
pub(crate) use operations::{coll, coll_known, p2p};
pub(crate) use stops::{end_of_group, rare_state, rare_stop, state, stop};

/// Whether events of a kind that no class asks for give records.
#[inline(always)]
pub(crate) fn records(kind: EventKind) -> bool {
    HOT.word() & kind.bit() != 0
}

/// A Coll or CeColl, whatever the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollEvent {
    pub parent: u64,
    pub sequence: u64,
    pub function: *const c_char,
    pub datatype: *const c_char,
    pub algorithm: *const c_char,
    pub protocol: *const c_char,
    pub count: u64,
    pub root: i32,
    pub channels: u8,
    pub warps: u8,
    pub in_place: bool,
    pub parent_group: u64,
    pub more: More,
    /// The version has API events, whose handle is the parent.
    pub has_api: bool,
}

/// What only newer versions tell; goes into an extension record when there is any of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct More {
    pub user_tag: u64,
    pub symmetric: bool,
    pub variant: *const c_char,
    pub strategy: *const c_char,
    pub batch_size: u32,
    pub batches: u32,
    pub ce_sequence: u32,
    pub stream: u64,
}

impl More {
    pub(crate) const NONE: Self = Self {
        user_tag: 0,
        symmetric: false,
        variant: std::ptr::null(),
        strategy: std::ptr::null(),
        batch_size: 0,
        batches: 0,
        ce_sequence: 0,
        stream: 0,
    };
}

/// A P2p.
#[derive(Clone, Copy, Debug)]
pub(crate) struct P2pEvent {
    pub parent: u64,
    pub function: *const c_char,
    pub datatype: *const c_char,
    pub count: u64,
    pub peer: i32,
    pub channels: u8,
    pub parent_group: u64,
    pub user_tag: u64,
    pub has_api: bool,
}

/// A CollApi or P2pApi.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiEvent {
    pub parent: u64,
    pub function: *const c_char,
    pub datatype: *const c_char,
    pub count: u64,
    pub root: i32,
    pub stream: u64,
    pub captured: bool,
    pub user_tag: u64,
}

/// A Coll's members, read when they are needed.
pub(crate) trait CollSource: Copy {
    fn parent(self) -> u64;
    /// Function, datatype, algorithm, protocol.
    fn texts(self) -> [*const c_char; 4];
    fn count(self) -> u64;
    fn sequence(self) -> u64;
    fn root(self) -> i32;
    /// nChannels | nWarps << 8
    fn channels_and_warps(self) -> u16;
    fn in_place(self) -> bool;
    /// Whether it is symmetric, or an extension record is due.
    fn is_unusual(self) -> bool;
}

/// An API call's members, read when they are needed.
pub(crate) trait ApiSource: Copy {
    fn parent(self) -> u64;
    fn function(self) -> *const c_char;
    fn datatype(self) -> *const c_char;
    fn count(self) -> u64;
    fn root(self) -> i32;
    fn stream(self) -> u64;
    fn captured(self) -> bool;
    fn user_tag(self) -> u64;
}

/// The same place, of which the compiler knows nothing: it computes the whole address, once, where it would add its parts at
/// each use or again.
#[inline(always)]
#[allow(unsafe_code, reason = "an empty line of assembly")]
pub(crate) fn whole<T>(place: &T) -> &T {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut pointer: *const T = place;
        // SAFETY: no instruction at all; the pointer stays that of `place`.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) pointer, options(pure, readonly, nostack, preserves_flags));
            &*pointer
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    place
}

/// [`whole`], to be changed.
#[inline(always)]
#[allow(unsafe_code, reason = "an empty line of assembly")]
pub(crate) fn whole_mut<T>(place: &mut T) -> &mut T {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut pointer: *mut T = place;
        // SAFETY: no instruction at all; the pointer stays that of `place`.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) pointer, options(pure, readonly, nostack, preserves_flags));
            &mut *pointer
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    place
}

/// The same value, of which the compiler knows nothing: it keeps comparisons in the order in which they stand, where it
/// would make a table of jumps, which costs more than the first few.
#[inline(always)]
#[allow(unsafe_code, reason = "an empty line of assembly")]
pub(crate) fn opaque(value: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut value = value;
        // SAFETY: no instruction at all.
        unsafe { core::arch::asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags)) };
        value
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    value
}

/// Whether a handle or context is of this process.
#[inline(always)]
fn is_ours(handle: u64) -> bool {
    (handle ^ HOT.nonce()) >> 50 == 0
}

/// [`is_ours`], by what this thread has at hand; false where the CPU has no counter to read.
#[inline(always)]
fn is_of(thread: &ThreadState, handle: u64) -> bool {
    (handle ^ thread.own) >> 50 == 0
}

/// A fresh id.
#[inline(always)]
fn new_id(thread: &mut ThreadState, detail: Detail, kind: EventKind) -> u64 {
    let mut id = 0;
    thread.producer.next_id(|bits| id = bits | (detail.id_bits() << 4) | kind as u64);
    id
}

/// A fresh id, which `give` gets before the next one is made.
#[inline(always)]
fn give_id(producer: &mut Producer, detail: Detail, kind: EventKind, give: impl FnOnce(u64)) -> u64 {
    let mut id = 0;
    producer.next_id(|bits| {
        id = bits | (detail.id_bits() << 4) | kind as u64;
        give(id);
    });
    id
}

/// The parent as records carry it, and the flag if it is foreign.
#[inline(always)]
fn parent_of(parent: u64) -> (EventId, u8) {
    if parent == 0 || is_ours(parent) {
        (EventId(parent & LOCAL_MASK), 0)
    } else {
        (EventId(0), RecordFlags::FOREIGN_PARENT)
    }
}

/// The communicator of a context, or a count of why not.
#[inline(always)]
fn find(context: u64, thread: &mut ThreadState) -> Option<&'static HotCommunicator> {
    let communicator = thread.communicator;
    if communicator.is_open_as(context) {
        return Some(communicator);
    }
    find_slow(context, thread)
}

#[inline(never)]
fn find_slow(context: u64, thread: &mut ThreadState) -> Option<&'static HotCommunicator> {
    if is_ours(context)
        && let Some(found) = communicator(context)
    {
        if HOT.word() & FAST != 0 {
            thread.communicator = found;
        }
        return Some(found);
    }
    lost_context(context, thread);
    None
}

#[cold]
#[inline(never)]
fn lost_context(context: u64, thread: &ThreadState) {
    let counters = thread.producer.counters();
    if context == 0 || !HOT.is_on() {
        // Communicators that `init` refused: counted there. And what comes after all went off.
    } else if is_ours(context) {
        RingCounters::bump(&counters.late_contexts);
    } else {
        RingCounters::bump(&counters.foreign_contexts);
    }
}

/// Whether the plan keeps it; counts it if not.
#[inline(always)]
fn decide(word: PlanWord, key: u64, k: impl FnOnce() -> u64, left_out: &AtomicU64) -> bool {
    if word.0 & 1 != 0 {
        // `Rate::All` is the only one with this bit.
        return true;
    }
    let keep = match word.rate() {
        Rate::OneIn(n) => keeps(n, key, k()),
        _ => false,
    };
    if !keep {
        RingCounters::bump(left_out);
    }
    keep
}

/// An event of a kind that the version does not have. Cold.
#[cold]
#[inline(never)]
pub(crate) fn unknown_kind(thread: &ThreadState) -> u64 {
    RingCounters::bump(&thread.producer.counters().unknown_kinds);
    0
}

/// A name code for events off the hot path (kernel phases).
///
/// # Safety
/// `text` is NULL or NUL-terminated for the call.
pub(crate) unsafe fn name_code(thread: &mut ThreadState, text: *const c_char) -> u8 {
    // SAFETY: the caller's promise.
    unsafe { thread.names.name(text) }.code
}

/// v1 to v3: name and hash of the communicator come with each operation. Cheap when known.
///
/// # Safety
/// `name` is NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn learn_communicator(context: u64, name: *const c_char, hash: u64, rank: i32) {
    if let Some(communicator) = communicator(context)
        && (communicator.hash() != hash || communicator.rank() != rank)
    {
        // SAFETY: the caller's promise.
        unsafe { learn_slow(context, name, hash, rank) };
    }
}

/// # Safety
/// As `learn_communicator`.
#[cold]
#[inline(never)]
unsafe extern "C" fn learn_slow(context: u64, name: *const c_char, hash: u64, rank: i32) {
    guarded((), || {
        // SAFETY: the caller's promise.
        let name = (!name.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes().to_vec());
        startup::learn(context, name.as_deref(), hash, rank);
    });
}
