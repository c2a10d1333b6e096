//! What each call of NCCL becomes: an id, a record, or nothing. Hot; NCCL's threads.
//!
//! Nothing here can panic: `cargo xtask test` looks for panic calls in the built library's callbacks.

use std::ffi::c_char;
use std::sync::atomic::AtomicU64;

use collander_event::{
    Detail, EventId, EventKind, LOCAL_MASK, Payload, PlanWord, Rate, Record, RecordFlags, StartHeader, State, keeps,
};
use collander_ring::RingCounters;

use crate::clock::{counter, is_counter, ticks};
use crate::guard::guarded;
use crate::hot::{API_COLL, API_P2P, HOT, HotCommunicator, ON, communicator};
use crate::startup;
use crate::thread_slot::{STASH, StashedApi, ThreadState, attach, current};

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

/// Whether a handle or context is of this process.
#[inline(always)]
fn is_ours(handle: u64) -> bool {
    (handle ^ HOT.nonce()) >> 50 == 0
}

/// [`is_ours`], by what this thread has at hand.
#[inline(always)]
fn is_of(thread: &ThreadState, handle: u64) -> bool {
    (handle ^ thread.id_base) >> 50 == 0
}

/// A fresh id: nonce and ring are in `id_base`.
#[inline(always)]
fn new_id(thread: &mut ThreadState, detail: Detail, kind: EventKind) -> u64 {
    // The counter's low 34 bits, at bit 8.
    let counter = (thread.producer.next_counter() << 30) >> 22;
    thread.id_base | counter | (detail.id_bits() << 4) | kind as u64
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
    if thread.last_context == context
        && let Some(communicator) = thread.last_communicator
        && communicator.is_open_as(context)
    {
        return Some(communicator);
    }
    find_slow(context, thread)
}

#[inline(never)]
fn find_slow(context: u64, thread: &mut ThreadState) -> Option<&'static HotCommunicator> {
    if is_ours(context)
        && let Some(found) = communicator(context)
    {
        thread.last_context = context;
        thread.last_communicator = Some(found);
        return Some(found);
    }
    lost_context(context, thread);
    None
}

#[cold]
#[inline(never)]
fn lost_context(context: u64, thread: &ThreadState) {
    let counters = thread.producer.counters();
    if context == 0 {
        // Communicators that `init` refused: counted there.
    } else if is_ours(context) {
        RingCounters::bump(&counters.late_contexts);
    } else {
        RingCounters::bump(&counters.foreign_contexts);
    }
}

/// Whether the plan keeps it; counts it if not.
#[inline(always)]
fn decide(word: PlanWord, key: u64, k: impl FnOnce() -> u64, left_out: &AtomicU64) -> bool {
    if word.0 & 3 == 1 {
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

/// A Coll starts. Returns its handle, 0 for none.
///
/// # Safety
/// The texts are NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn coll(thread: &mut ThreadState, context: u64, event: CollEvent, kind: EventKind) -> u64 {
    if HOT.word() & ON == 0 {
        return 0;
    }
    let Some(communicator) = find(context, thread) else { return 0 };
    // SAFETY: the caller's promise.
    let [function, datatype, algorithm, protocol] =
        unsafe { thread.names.four([event.function, event.datatype, event.algorithm, event.protocol]) };
    let (parent, mut flags) = parent_of(event.parent);
    let mut api_datatype = 0;
    if event.has_api {
        match take_api(thread, parent.0) {
            Some(names) => api_datatype = (names >> 8) as u8,
            None => flags |= RecordFlags::NO_API,
        }
    }
    let bytes = event.count.wrapping_mul(u64::from(datatype.size));
    let word = PlanWord(communicator.plan(function.collective, bytes));
    let counters = thread.producer.counters();
    let left_out = if matches!(kind, EventKind::CeColl) { &counters.sampled_ce } else { &counters.sampled_coll };
    let key = communicator.hash() ^ (u64::from(function.collective) << 56);
    let replay = flags & RecordFlags::NO_API != 0;
    let k = || if replay { communicator.next_replay(function.collective) } else { event.sequence };
    if !decide(word, key, k, left_out) {
        return 0;
    }
    if event.in_place {
        flags |= RecordFlags::IN_PLACE;
    }
    if event.more.symmetric {
        flags |= RecordFlags::SYMMETRIC;
    }
    let more = event.more.user_tag != 0 || !event.more.variant.is_null() || matches!(kind, EventKind::CeColl);
    if more {
        flags |= RecordFlags::EXTENDED;
    }
    let group = if thread.group_api != 0 { thread.group_api } else { event.parent_group };
    let id = new_id(thread, word.detail(), kind);
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(id),
        parent,
        ordinal: thread.producer.next_ordinal(),
        flags: RecordFlags(flags),
        channels: event.channels,
        warps: event.warps,
        communicator: communicator.ordinal(),
    };
    let payload = Payload::Coll {
        sequence: event.sequence,
        count: event.count,
        function: function.code,
        datatype: datatype.code,
        algorithm: algorithm.code,
        protocol: protocol.code,
        root: event.root,
        group: EventId(group),
        api_datatype,
    };
    thread.producer.push(&Record::start(header, payload.words()));
    if more {
        // SAFETY: the caller's promise.
        unsafe { extend(thread, id, event.more) };
    }
    id
}

/// # Safety
/// As `coll`.
#[cold]
#[inline(never)]
unsafe fn extend(thread: &mut ThreadState, id: u64, more: More) {
    // SAFETY: the caller's promise.
    let (variant, strategy) = unsafe { (thread.names.name(more.variant), thread.names.name(more.strategy)) };
    let words = Payload::extension_words(
        more.user_tag,
        variant.code,
        strategy.code,
        more.batch_size,
        more.batches,
        more.ce_sequence,
        more.stream,
    );
    thread.producer.push(&Record::extension(ticks(), EventId(id), words));
}

/// Takes the API call that waits for an operation; its names, or None if it is not there.
#[inline(always)]
fn take_api(thread: &mut ThreadState, parent: u64) -> Option<u64> {
    let place = &mut thread.stash[(parent >> 8) as usize & (STASH - 1)];
    if place.id != parent || parent == 0 {
        return None;
    }
    place.id = 0;
    thread.pending = thread.pending.wrapping_sub(1);
    Some(place.names)
}

/// A P2p starts.
///
/// # Safety
/// The texts are NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn p2p(thread: &mut ThreadState, context: u64, event: P2pEvent) -> u64 {
    if HOT.word() & ON == 0 {
        return 0;
    }
    let Some(communicator) = find(context, thread) else { return 0 };
    // SAFETY: the caller's promise.
    let (function, datatype) = unsafe { (thread.names.name(event.function), thread.names.name(event.datatype)) };
    let (parent, mut flags) = parent_of(event.parent);
    if event.has_api && take_api(thread, parent.0).is_none() {
        flags |= RecordFlags::NO_API;
    }
    let receives = function.collective == collander_event::Collective::Recv as u8;
    let number = communicator.next_p2p(event.peer, receives);
    let bytes = event.count.wrapping_mul(u64::from(datatype.size));
    let word = PlanWord(communicator.plan(function.collective, bytes));
    let (own, peer) = (communicator.rank() as u32, event.peer as u32);
    let (from, to) = if receives { (peer, own) } else { (own, peer) };
    let key = communicator.hash() ^ ((u64::from(from) << 32) | u64::from(to));
    if !decide(word, key, || number, &thread.producer.counters().sampled_p2p) {
        return 0;
    }
    let more = event.user_tag != 0;
    if more {
        flags |= RecordFlags::EXTENDED;
    }
    let group = if thread.group_api != 0 { thread.group_api } else { event.parent_group };
    let id = new_id(thread, word.detail(), EventKind::P2p);
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(id),
        parent,
        ordinal: thread.producer.next_ordinal(),
        flags: RecordFlags(flags),
        channels: event.channels,
        warps: 0,
        communicator: communicator.ordinal(),
    };
    let payload = Payload::P2p {
        sequence: number,
        count: event.count,
        function: function.code,
        datatype: datatype.code,
        peer: event.peer,
        group: EventId(group),
        group_depth: thread.group_depth,
    };
    thread.producer.push(&Record::start(header, payload.words()));
    if more {
        // SAFETY: no texts are passed.
        unsafe { extend(thread, id, More { user_tag: event.user_tag, ..More::NONE }) };
    }
    id
}

/// A Group, KernelLaunch or ProxyCtrl starts: always an id, a record only if the kind is wanted.
#[inline(always)]
pub(crate) fn plain(thread: &mut ThreadState, context: u64, parent: u64, kind: EventKind, payload: Payload) -> u64 {
    let id = new_id(thread, Detail(0), kind);
    if HOT.word() & kind.bit() != 0 {
        return record_plain(thread, context, parent, id, payload, 0);
    }
    id
}

#[inline(never)]
fn record_plain(thread: &mut ThreadState, context: u64, parent: u64, id: u64, payload: Payload, flags: u8) -> u64 {
    let ordinal = find(context, thread).map_or(u32::MAX, HotCommunicator::ordinal);
    let (parent, foreign) = parent_of(parent);
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(id),
        parent,
        flags: RecordFlags(flags | foreign),
        communicator: ordinal,
        ..StartHeader::default()
    };
    thread.producer.push(&Record::start(header, payload.words()));
    id
}

/// A GroupApi starts.
#[inline(always)]
pub(crate) fn group_api(thread: &mut ThreadState, context: u64, parent: u64, depth: i32, captured: bool) -> u64 {
    let id = new_id(thread, Detail(0), EventKind::GroupApi);
    thread.group_api = id & LOCAL_MASK;
    thread.group_depth = depth as u8;
    if HOT.word() & EventKind::GroupApi.bit() != 0 {
        let flags = if captured { RecordFlags::GRAPH_CAPTURED } else { 0 };
        return record_plain(thread, context, parent, id, Payload::GroupApi { depth }, flags);
    }
    id
}

/// A CollApi or P2pApi starts: it waits for its operation, which takes its datatype along; if none follows in its group, it
/// becomes an operation itself.
///
/// # Safety
/// The texts are NULL or NUL-terminated for the call.
#[inline(always)]
pub(crate) unsafe fn api(thread: &mut ThreadState, context: u64, event: ApiEvent, kind: EventKind) -> u64 {
    let word = HOT.word();
    // SAFETY: the caller's promise.
    let (function, datatype) = unsafe { (thread.names.name(event.function), thread.names.name(event.datatype)) };
    let id = new_id(thread, Detail(0), kind);
    let names = u64::from(function.code) | (u64::from(datatype.code) << 8) | (u64::from(event.root as u32) << 32);
    if event.captured || word & kind.bit() != 0 {
        record_api(thread, context, id, names, event);
    }
    let wanted = if matches!(kind, EventKind::P2pApi) { API_P2P } else { API_COLL };
    if !event.captured && word & wanted != 0 {
        let at = (id >> 8) as usize & (STASH - 1);
        if thread.stash[at].id != 0 {
            emit_stashed(thread, at);
        }
        thread.stash[at] = StashedApi {
            id: id & LOCAL_MASK,
            group: thread.group_api,
            count: event.count,
            stream: event.stream,
            user_tag: event.user_tag,
            names,
            collective: function.collective,
            size: datatype.size,
            context,
        };
        thread.pending = thread.pending.wrapping_add(1);
    }
    id
}

#[inline(never)]
fn record_api(thread: &mut ThreadState, context: u64, id: u64, names: u64, event: ApiEvent) {
    let payload = Payload::Api {
        stream: event.stream,
        count: event.count,
        function: names as u8,
        datatype: (names >> 8) as u8,
        root: event.root,
        user_tag: event.user_tag,
    };
    let flags = if event.captured { RecordFlags::GRAPH_CAPTURED } else { 0 };
    record_plain(thread, context, event.parent, id, payload, flags);
}

/// Writes a waiting API call as an operation of its own.
#[cold]
#[inline(never)]
fn emit_stashed(thread: &mut ThreadState, at: usize) {
    let api = thread.stash[at & (STASH - 1)];
    thread.stash[at & (STASH - 1)].id = 0;
    thread.pending = thread.pending.wrapping_sub(1);
    if api.id == 0 {
        return;
    }
    let Some(communicator) = find(api.context, thread) else { return };
    let word = PlanWord(communicator.plan(api.collective, api.count.wrapping_mul(u64::from(api.size))));
    if matches!(word.rate(), Rate::None) {
        RingCounters::bump(&thread.producer.counters().sampled_coll);
        return;
    }
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(api.id),
        parent: EventId(api.group),
        ordinal: thread.producer.next_ordinal(),
        flags: RecordFlags(RecordFlags::API_ONLY),
        communicator: communicator.ordinal(),
        ..StartHeader::default()
    };
    let payload = Payload::Api {
        stream: api.stream,
        count: api.count,
        function: api.names as u8,
        datatype: (api.names >> 8) as u8,
        root: (api.names >> 32) as i32,
        user_tag: api.user_tag,
    };
    thread.producer.push(&Record::start(header, payload.words()));
}

#[cold]
#[inline(never)]
fn emit_all_stashed(thread: &mut ThreadState) {
    // In the order in which they were called.
    let mut order: [(u64, usize); STASH] = [(0, 0); STASH];
    let mut waiting = 0;
    for (at, api) in thread.stash.iter().enumerate() {
        if api.id != 0
            && let Some(place) = order.get_mut(waiting)
        {
            *place = (api.id, at);
            waiting += 1;
        }
    }
    let order = order.get_mut(..waiting).unwrap_or_default();
    order.sort_unstable();
    for (_, at) in order {
        emit_stashed(thread, *at);
    }
    thread.pending = 0;
}

/// A child that only matters if its parent's class asks for such children: NULL handle and not a store more otherwise.
#[inline(always)]
pub(crate) fn wanted_child(parent: u64, detail: Detail) -> bool {
    // A foreign parent's bits are another process's, which has the same wishes more often than not.
    (parent >> 4) & u64::from(detail.0) & 15 != 0
}

/// Any child event starts; `wanted_child` was asked.
#[inline(always)]
pub(crate) fn child(
    thread: &mut ThreadState,
    parent: u64,
    kind: EventKind,
    channel: u8,
    flags: u8,
    payload: Payload,
) -> u64 {
    if !is_of(thread, parent) || !is_counter() {
        return rare_child(thread, parent, kind, channel, flags, payload.words());
    }
    // A child's children are wanted in the detail that the operation has.
    let id = new_id(thread, EventId(parent).detail(), kind);
    let header = StartHeader {
        ticks: counter(),
        id: EventId(id),
        parent: EventId(parent & LOCAL_MASK),
        flags: RecordFlags(flags),
        channels: channel,
        ..StartHeader::default()
    };
    let record = Record::start(header, payload.words());
    match payload {
        // One word of payload: the rest of the slot keeps what it had.
        Payload::ProxyStep { .. } => thread.producer.push_short::<5>(&record),
        _ => thread.producer.push(&record),
    }
    id
}

/// A KernelCh starts; `wanted_child` was asked.
///
/// The channels of one operation start in one sweep of NCCL's: while nothing else is recorded between them, they share the
/// clock reading of the first, which is most of what a record costs. Only if NCCL gives GPU times: without, each has its own.
#[inline(always)]
pub(crate) fn kernel(thread: &mut ThreadState, parent: u64, channel: u8, timer: u64) -> u64 {
    let kind = EventKind::KernelCh;
    let payload = Payload::KernelCh { timer };
    if !is_of(thread, parent) || !is_counter() {
        return rare_child(thread, parent, kind, channel, 0, payload.words());
    }
    let id = new_id(thread, EventId(parent).detail(), kind);
    let position = thread.producer.position();
    if thread.kernel_parent != parent || thread.kernel_position != position || timer == 0 {
        thread.kernel_parent = parent;
        thread.kernel_ticks = counter();
    }
    thread.kernel_position = position.wrapping_add(1);
    let header = StartHeader {
        ticks: thread.kernel_ticks,
        id: EventId(id),
        parent: EventId(parent & LOCAL_MASK),
        channels: channel,
        ..StartHeader::default()
    };
    thread.producer.push_short::<5>(&Record::start(header, payload.words()));
    id
}

/// A child of another process's event (PXN), which is detached; and any child where the CPU has no counter to read.
#[cold]
#[inline(never)]
fn rare_child(
    thread: &mut ThreadState,
    parent: u64,
    kind: EventKind,
    channel: u8,
    flags: u8,
    payload: [u64; 4],
) -> u64 {
    let (record_parent, foreign) = parent_of(parent);
    let detail = if foreign == 0 { EventId(parent).detail() } else { Detail(0) };
    let id = new_id(thread, detail, kind);
    let header = StartHeader {
        ticks: ticks(),
        id: EventId(id),
        parent: record_parent,
        flags: RecordFlags(flags | foreign),
        channels: channel,
        ..StartHeader::default()
    };
    thread.producer.push(&Record::start(header, payload));
    id
}

/// `stopEvent`.
#[inline(always)]
pub(crate) fn stop(handle: u64) {
    if is_plain(handle) {
        return stop_plain(handle);
    }
    if let Some(thread) = current() {
        if handle == thread.stopped_kernel {
            thread.stopped_kernel = 0;
            return;
        }
        if is_of(thread, handle) && is_counter() {
            thread.producer.push_short::<4>(&Record::stop(counter(), EventId(handle)));
            return;
        }
    }
    stop_slow(handle);
}

/// A stop on a thread that has no ring yet, or of a foreign handle.
#[cold]
#[inline(never)]
fn stop_slow(handle: u64) {
    let Some(thread) = current().or_else(|| attach(handle & 15 == EventKind::KernelCh as u64)) else { return };
    if is_ours(handle) {
        thread.producer.push(&Record::stop(ticks(), EventId(handle)));
    } else {
        RingCounters::bump(&thread.producer.counters().foreign_handles);
    }
}

/// The stop of a group, an API call or a launch.
#[inline(always)]
fn stop_plain(handle: u64) {
    if handle & 15 == EventKind::GroupApi as u64
        && let Some(thread) = current()
        && thread.group_api == handle & LOCAL_MASK
    {
        thread.group_api = 0;
        thread.group_depth = 0;
        if thread.pending != 0 {
            emit_all_stashed(thread);
        }
    }
    if (1u32 << (handle & 15)) & HOT.word() != 0 {
        stop_slow(handle);
    }
}

/// Kinds whose events give a record only if the switches ask for it.
const PLAIN_KINDS: u32 = EventKind::Group.bit()
    | EventKind::GroupApi.bit()
    | EventKind::CollApi.bit()
    | EventKind::P2pApi.bit()
    | EventKind::KernelLaunch.bit()
    | EventKind::ProxyCtrl.bit();

/// Whether a handle's kind gives records only if the switches ask for it.
#[inline(always)]
const fn is_plain(handle: u64) -> bool {
    PLAIN_KINDS >> (handle & 15) & 1 != 0
}

/// `recordEventState`. `argument`: the first eight bytes of the arguments, None if they are NULL.
#[inline(always)]
pub(crate) fn state(handle: u64, number: i32, argument: Option<u64>) {
    if is_plain(handle) {
        if (1u32 << (handle & 15)) & HOT.word() != 0 {
            state_slow(handle, number, argument);
        }
        return;
    }
    if let Some(argument) = argument
        && let Some(thread) = current()
        && is_of(thread, handle)
        && (number as u32) < 63
        && is_counter()
    {
        if number == i32::from(State::KERNEL_CH_STOP.0) {
            // NCCL calls stopEvent right after it, on the same thread: that needs no record.
            thread.stopped_kernel = handle;
        }
        let record = Record::state(counter(), EventId(handle), State(number as u8), argument, RecordFlags(0));
        thread.producer.push_short::<4>(&record);
        return;
    }
    state_slow(handle, number, argument);
}

/// The rare rest: no ring yet, a foreign handle, no arguments, a number that is no state of any version.
#[cold]
#[inline(never)]
fn state_slow(handle: u64, number: i32, argument: Option<u64>) {
    let Some(thread) = current().or_else(|| attach(!is_plain(handle))) else { return };
    if !is_ours(handle) {
        RingCounters::bump(&thread.producer.counters().foreign_handles);
        return;
    }
    if number == i32::from(State::KERNEL_CH_STOP.0) {
        thread.stopped_kernel = handle;
    }
    let flags = if argument.is_none() { RecordFlags::NULL_OR_FOREIGN } else { 0 };
    let number = if (0..63).contains(&number) { number as u8 } else { 63 };
    let record = Record::state(ticks(), EventId(handle), State(number), argument.unwrap_or(0), RecordFlags(flags));
    thread.producer.push(&record);
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
unsafe fn learn_slow(context: u64, name: *const c_char, hash: u64, rank: i32) {
    guarded((), || {
        // SAFETY: the caller's promise.
        let name = (!name.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes().to_vec());
        startup::learn(context, name.as_deref(), hash, rank);
    });
}
