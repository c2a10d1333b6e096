//! v5, v6 and v7: API events, an 8-byte `type`, `init` with the communicator's id second.
//!
//! What v5 and v6 have lies where v7 has it (asserted in `places`), so one function reads all three, member by member; what only
//! v7 has is read only if the version is 7.

use std::ffi::{c_char, c_int, c_void};

use collander_abi::logger::DebugLogger;
use collander_abi::result::{NcclResult, SUCCESS};
use collander_abi::v7::Descriptor;
use collander_abi::{v5, v6, v7};
use collander_event::{Detail, EventKind, Payload, RecordFlags};

use super::sources::{CollApiAt, CollAt};
use super::{NAME, finalize, first_event, give, number, read, record_event_state, stop_event};
use crate::callbacks::{self, ApiEvent, ApiSource, CollEvent, CollSource, More, P2pEvent, opaque};
use crate::startup::{self, Opening};
use crate::thread_slot::{ThreadState, current};

/// # Safety
/// NCCL's promise: valid pointers; `name` is NULL or NUL-terminated.
#[allow(clippy::too_many_arguments, reason = "NCCL's signature")]
unsafe extern "C" fn init<const API: u8>(
    context: *mut *mut c_void,
    hash: u64,
    mask: *mut c_int,
    name: *const c_char,
    nodes: c_int,
    ranks: c_int,
    rank: c_int,
    logger: Option<DebugLogger>,
) -> NcclResult {
    let opening = Opening { api: API, hash, nodes, ranks, rank, logger };
    // SAFETY: NCCL's promise, handed on.
    unsafe { give(context, startup::init(opening, name, mask)) };
    SUCCESS
}

/// `startEvent`: groups, and a jump to the function of any other kind, so that each saves only the registers it needs.
///
/// # Safety
/// NCCL's promise: `d` is a descriptor of version `API`; its texts are NULL or NUL-terminated for the call.
unsafe extern "C" fn start_event<const API: u8, D>(
    context: *mut c_void,
    handle: *mut *mut c_void,
    d: *mut D,
) -> NcclResult {
    let d = d.cast::<Descriptor>().cast_const();
    // SAFETY: NCCL's promise, handed on to the function of the kind that `type` names.
    unsafe {
        let kind = read!(d.event_type);
        if kind == GROUP {
            let (false, Some(thread)) = (callbacks::records(EventKind::Group), current()) else {
                return recorded_group(context, handle, d);
            };
            thread.new_group(|id| give(handle, id));
            return SUCCESS;
        }
        let kind = opaque(kind);
        if kind == COLL {
            return on_coll::<API>(context, handle, d);
        }
        let kind = opaque(kind);
        if kind == GROUP_API {
            let (false, Some(thread)) = (callbacks::records(EventKind::GroupApi), current()) else {
                return recorded_group_api(context, handle, d);
            };
            callbacks::group_api(thread, read!(d.payload.group_api.group_depth), |id| give(handle, id));
            return SUCCESS;
        }
        let kind = opaque(kind);
        if kind == KERNEL_CH {
            return on_kernel_ch(context, handle, d);
        }
        let kind = opaque(kind);
        if kind == COLL_API {
            return on_coll_api::<API>(context, handle, d);
        }
        if opaque(kind) == PROXY_STEP {
            return on_proxy_step(context, handle, d);
        }
        if opaque(kind) == PROXY_OP {
            return on_proxy_op(context, handle, d);
        }
        if opaque(kind) == KERNEL_LAUNCH {
            return on_kernel_launch(context, handle, d);
        }
        on_other::<API>(context, handle, d)
    }
}

const KERNEL_CH: u64 = EventKind::KernelCh.bit() as u64;
const PROXY_STEP: u64 = EventKind::ProxyStep.bit() as u64;
const COLL: u64 = EventKind::Coll.bit() as u64;
const GROUP: u64 = EventKind::Group.bit() as u64;
const COLL_API: u64 = EventKind::CollApi.bit() as u64;
const PROXY_OP: u64 = EventKind::ProxyOp.bit() as u64;
const KERNEL_LAUNCH: u64 = EventKind::KernelLaunch.bit() as u64;
const GROUP_API: u64 = EventKind::GroupApi.bit() as u64;

/// Makes the function of one kind, with `startEvent`'s own signature. `wanted`: what must hold for the event to have a
/// handle at all; `large`: the thread sees kernel or proxy events.
macro_rules! on {
    ($(#[$doc:meta])* $name:ident $(<const $api:ident>)?, large: $large:expr, wanted: |$w:ident| $wanted:expr,
     |$thread:ident, $context:ident, $d:ident| $body:block) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As `start_event`; the kind is this one.
        #[inline(never)]
        unsafe extern "C" fn $name $(<const $api: u8>)? (
            context: *mut c_void,
            handle: *mut *mut c_void,
            $d: *const Descriptor,
        ) -> NcclResult {
            // SAFETY: NCCL's promise; the union member read is the one that `type` names, and only members of the version.
            unsafe {
                let $w = $d;
                if !$wanted {
                    give(handle, 0);
                    return SUCCESS;
                }
                let Some($thread) = current() else {
                    return first_event(context, handle, $d, $large, $name $(::<$api>)?);
                };
                let $context = number(context);
                let given = $body;
                give(handle, given);
            }
            SUCCESS
        }
    };
}

/// KernelCh.
///
/// # Safety
/// As `start_event`; the kind is this one.
#[inline(never)]
unsafe extern "C" fn on_kernel_ch(context: *mut c_void, handle: *mut *mut c_void, d: *const Descriptor) -> NcclResult {
    // SAFETY: NCCL's promise.
    unsafe {
        let parent = number(read!(d.parent_obj));
        if !callbacks::wanted_child(parent, Detail::CHANNELS) {
            give(handle, 0);
            return SUCCESS;
        }
        let Some(thread) = current() else {
            return first_event(context, handle, d, true, on_kernel_ch);
        };
        let (channel, timer) = (read!(d.payload.kernel_ch.channel_id), read!(d.payload.kernel_ch.p_timer));
        if !callbacks::kernel_known(thread, parent, channel, timer, |given| give(handle, given)) {
            return rare_kernel_ch(context, handle, d);
        }
    }
    SUCCESS
}

on!(
    /// KernelCh, of a foreign parent.
    rare_kernel_ch, large: true, wanted: |_d| true, |thread, _context, d| {
        let (parent, channel) = (number(read!(d.parent_obj)), read!(d.payload.kernel_ch.channel_id));
        callbacks::kernel(thread, parent, channel, read!(d.payload.kernel_ch.p_timer))
    }
);

on!(
    /// ProxyStep.
    on_proxy_step, large: true, wanted: |d| callbacks::wanted_child(number(read!(d.parent_obj)), Detail::PROXY_STEPS),
    |thread, _context, d| {
        let payload = Payload::ProxyStep { step: read!(d.payload.proxy_step.step) };
        callbacks::child(thread, number(read!(d.parent_obj)), EventKind::ProxyStep, 0, 0, payload)
    }
);

/// Makes the function of a parent that gives a record: the common case, or else another function.
macro_rules! recorded {
    ($(#[$doc:meta])* $name:ident, $kind:expr, rare: $rare:ident, |$d:ident| $payload:expr, $flags:expr, $new_id:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As `start_event`; the kind is this one.
        #[inline(never)]
        unsafe extern "C" fn $name(context: *mut c_void, handle: *mut *mut c_void, $d: *const Descriptor) -> NcclResult {
            // SAFETY: NCCL's promise; the union member read is the one that `type` names.
            unsafe {
                if let (true, Some(thread)) = (callbacks::records($kind), current()) {
                    let parent = number(read!($d.parent_obj));
                    let new_id = |thread: &mut ThreadState| $new_id(thread, |id| give(handle, id));
                    if callbacks::record_known(thread, number(context), parent, $payload, $flags, new_id) {
                        return SUCCESS;
                    }
                }
                $rare(context, handle, $d)
            }
        }
    };
}

recorded!(
    /// Group, recorded.
    recorded_group, EventKind::Group, rare: rare_group, |d| Payload::None, 0, ThreadState::new_group
);

recorded!(
    /// GroupApi, recorded.
    recorded_group_api, EventKind::GroupApi, rare: rare_group_api,
    |d| Payload::GroupApi { depth: read!(d.payload.group_api.group_depth) },
    if read!(d.payload.group_api.graph_captured) != 0 { RecordFlags::GRAPH_CAPTURED } else { 0 },
    |thread, give| callbacks::wanted_group_api(thread, read!(d.payload.group_api.group_depth), give)
);

recorded!(
    /// KernelLaunch.
    on_kernel_launch, EventKind::KernelLaunch, rare: rare_kernel_launch,
    |d| Payload::KernelLaunch { stream: number(read!(d.payload.kernel_launch.stream)) }, 0, callbacks::launch_id
);

on!(
    /// KernelLaunch, a thread's first or not recorded.
    rare_kernel_launch, large: false, wanted: |_d| true, |thread, context, d| {
        let payload = Payload::KernelLaunch { stream: number(read!(d.payload.kernel_launch.stream)) };
        callbacks::plain(thread, context, number(read!(d.parent_obj)), EventKind::KernelLaunch, payload)
    }
);

on!(
    /// ProxyOp.
    on_proxy_op, large: true,
    wanted: |d| callbacks::wanted_child(number(read!(d.parent_obj)), Detail::PROXY_OPERATIONS),
    |thread, _context, d| {
        let pid = read!(d.payload.proxy_op.pid);
        let payload = Payload::ProxyOp {
            peer: read!(d.payload.proxy_op.peer),
            send: read!(d.payload.proxy_op.is_send) != 0,
            steps: read!(d.payload.proxy_op.n_steps),
            chunk_bytes: read!(d.payload.proxy_op.chunk_size),
            pid,
        };
        let flags = if startup::is_other_process(pid) { RecordFlags::NULL_OR_FOREIGN } else { 0 };
        let channel = read!(d.payload.proxy_op.channel_id);
        callbacks::child(thread, number(read!(d.parent_obj)), EventKind::ProxyOp, channel, flags, payload)
    }
);

on!(
    /// Group, a thread's first or recorded.
    rare_group, large: false, wanted: |_d| true, |thread, context, d| {
        callbacks::plain(thread, context, number(read!(d.parent_obj)), EventKind::Group, Payload::None)
    }
);

on!(
    /// GroupApi, a thread's first or recorded.
    rare_group_api, large: false, wanted: |_d| true, |thread, context, d| {
        let depth = read!(d.payload.group_api.group_depth);
        if callbacks::records(EventKind::GroupApi) {
            let captured = read!(d.payload.group_api.graph_captured) != 0;
            callbacks::recorded_group_api(thread, context, number(read!(d.parent_obj)), depth, captured)
        } else {
            callbacks::group_api(thread, depth, |_| ())
        }
    }
);

/// CollApi.
///
/// # Safety
/// As `start_event`; the kind is this one.
#[inline(never)]
unsafe extern "C" fn on_coll_api<const API: u8>(
    context: *mut c_void,
    handle: *mut *mut c_void,
    d: *const Descriptor,
) -> NcclResult {
    // SAFETY: NCCL's promise.
    unsafe {
        let Some(thread) = current() else {
            return first_event(context, handle, d, false, on_coll_api::<API>);
        };
        let source = CollApiAt::<API>::at(d);
        if !callbacks::api_known::<_, false>(thread, number(context), source, |given| give(handle, given)) {
            return recorded_coll_api::<API>(context, handle, d);
        }
    }
    SUCCESS
}

/// CollApi, recorded.
///
/// # Safety
/// As `start_event`; the kind is this one.
#[inline(never)]
unsafe extern "C" fn recorded_coll_api<const API: u8>(
    context: *mut c_void,
    handle: *mut *mut c_void,
    d: *const Descriptor,
) -> NcclResult {
    // SAFETY: NCCL's promise.
    unsafe {
        if let Some(thread) = current() {
            let source = CollApiAt::<API>::at(d);
            if callbacks::api_known::<_, true>(thread, number(context), source, |given| give(handle, given)) {
                return SUCCESS;
            }
        }
        rare_coll_api::<API>(context, handle, d)
    }
}

on!(
    /// CollApi, whatever it takes.
    rare_coll_api<const API>, large: false, wanted: |_d| true, |thread, context, d| {
        let source = CollApiAt::<API>::at(d);
        let event = ApiEvent {
            parent: number(read!(d.parent_obj)),
            function: source.function(),
            datatype: source.datatype(),
            count: source.count(),
            root: source.root(),
            stream: source.stream(),
            captured: source.captured(),
            user_tag: source.user_tag(),
        };
        callbacks::api(thread, context, event, EventKind::CollApi)
    }
);

/// Coll.
///
/// # Safety
/// As `start_event`; the kind is this one.
#[inline(never)]
unsafe extern "C" fn on_coll<const API: u8>(
    context: *mut c_void,
    handle: *mut *mut c_void,
    d: *const Descriptor,
) -> NcclResult {
    // SAFETY: NCCL's promise.
    unsafe {
        let Some(thread) = current() else {
            return first_event(context, handle, d, false, on_coll::<API>);
        };
        if !callbacks::coll_known(thread, number(context), CollAt::<API>::at(d), |given| give(handle, given)) {
            return rare_coll::<API>(context, handle, d);
        }
    }
    SUCCESS
}

on!(
    /// Coll, whatever it takes.
    rare_coll<const API>, large: false, wanted: |_d| true, |thread, context, d| {
        let source = CollAt::<API>::at(d);
        let mut more = More::NONE;
        if API >= 7 {
            more.user_tag = read!(d.payload.coll.user_tag);
            more.symmetric = read!(d.payload.coll.is_sym_coll) != 0;
            more.variant = read!(d.payload.coll.kernel_variant);
        }
        let [function, datatype, algorithm, protocol] = source.texts();
        let [channels, warps] = source.channels_and_warps().to_le_bytes();
        let event = CollEvent {
            parent: source.parent(),
            sequence: source.sequence(),
            function,
            datatype,
            algorithm,
            protocol,
            count: source.count(),
            root: source.root(),
            channels,
            warps,
            in_place: source.in_place(),
            parent_group: number(read!(d.payload.coll.parent_group)),
            more,
            has_api: true,
        };
        callbacks::coll(thread, context, event, EventKind::Coll)
    }
);

on!(
    /// All others.
    on_other<const API>, large: LARGE_KINDS & read!(d.event_type) != 0, wanted: |_d| true, |thread, context, d| {
        start_other::<API>(thread, context, number(read!(d.parent_obj)), read!(d.event_type), d)
    }
);

/// Kinds that come from proxy or profiler threads.
const LARGE_KINDS: u64 = EventKind::ProxyOp.bit() as u64 | EventKind::KernelPhase.bit() as u64;

/// A child, if its parent's class asks for such.
#[inline(always)]
pub(super) fn maybe_child(
    thread: &mut ThreadState,
    parent: u64,
    detail: Detail,
    kind: EventKind,
    channel: u8,
    flags: u8,
    payload: Payload,
) -> u64 {
    if !callbacks::wanted_child(parent, detail) {
        return 0;
    }
    callbacks::child(thread, parent, kind, channel, flags, payload)
}

/// The rarer kinds.
///
/// # Safety
/// As `start_event`.
#[inline(never)]
unsafe fn start_other<const API: u8>(
    thread: &mut ThreadState,
    context: u64,
    parent: u64,
    event_type: u64,
    d: *const Descriptor,
) -> u64 {
    if !event_type.is_power_of_two() || event_type > u64::from(EventKind::known_mask(API)) {
        return callbacks::unknown_kind(thread);
    }
    let kind = EventKind::from_index(event_type.trailing_zeros() as u8);
    // SAFETY: NCCL's promise; the union member read is the one that `type` names, and only members of version `API`.
    unsafe {
        match kind {
            EventKind::P2p => {
                let event = P2pEvent {
                    parent,
                    function: read!(d.payload.p2p.func),
                    datatype: read!(d.payload.p2p.datatype),
                    count: read!(d.payload.p2p.count) as u64,
                    peer: read!(d.payload.p2p.peer),
                    channels: read!(d.payload.p2p.n_channels),
                    parent_group: number(read!(d.payload.p2p.parent_group)),
                    user_tag: if API >= 7 { read!(d.payload.p2p.user_tag) } else { 0 },
                    has_api: true,
                };
                callbacks::p2p(thread, context, event)
            }
            EventKind::P2pApi => {
                let event = ApiEvent {
                    parent,
                    function: read!(d.payload.p2p_api.func),
                    datatype: read!(d.payload.p2p_api.datatype),
                    count: read!(d.payload.p2p_api.count) as u64,
                    root: -1,
                    stream: number(read!(d.payload.p2p_api.stream)),
                    captured: read!(d.payload.p2p_api.graph_captured) != 0,
                    user_tag: if API >= 7 { read!(d.payload.p2p_api.user_tag) } else { 0 },
                };
                callbacks::api(thread, context, event, EventKind::P2pApi)
            }
            EventKind::ProxyCtrl => callbacks::plain(thread, context, parent, kind, Payload::None),
            EventKind::NetPlugin => {
                let payload = Payload::NetPlugin { id: read!(d.payload.net_plugin.id) };
                maybe_child(thread, parent, Detail::PHASES, kind, 0, 0, payload)
            }
            EventKind::CeColl => {
                let more = More {
                    user_tag: if API >= 7 { read!(d.payload.ce_coll.user_tag) } else { 0 },
                    strategy: read!(d.payload.ce_coll.sync_strategy),
                    batch_size: read!(d.payload.ce_coll.batch_size),
                    batches: read!(d.payload.ce_coll.num_batches),
                    ce_sequence: read!(d.payload.ce_coll.ce_seq_num),
                    stream: number(read!(d.payload.ce_coll.stream)),
                    ..More::NONE
                };
                let event = CollEvent {
                    parent,
                    sequence: read!(d.payload.ce_coll.seq_number),
                    function: read!(d.payload.ce_coll.func),
                    datatype: read!(d.payload.ce_coll.datatype),
                    algorithm: std::ptr::null(),
                    protocol: std::ptr::null(),
                    count: read!(d.payload.ce_coll.count) as u64,
                    root: read!(d.payload.ce_coll.root),
                    channels: 0,
                    warps: 0,
                    in_place: read!(d.payload.ce_coll.send_buff) == read!(d.payload.ce_coll.recv_buff).cast_const(),
                    parent_group: 0,
                    more,
                    has_api: true,
                };
                callbacks::coll(thread, context, event, EventKind::CeColl)
            }
            EventKind::CeSync => {
                let payload = Payload::CeSync {
                    complete: read!(d.payload.ce_coll_sync.is_complete) != 0,
                    ranks: read!(d.payload.ce_coll_sync.n_ranks),
                };
                maybe_child(thread, parent, Detail::PHASES, kind, 0, 0, payload)
            }
            EventKind::CeBatch => {
                let payload = Payload::CeBatch {
                    operations: read!(d.payload.ce_coll_batch.num_ops),
                    bytes: read!(d.payload.ce_coll_batch.total_bytes) as u64,
                    intra_sync: read!(d.payload.ce_coll_batch.use_intra_sync) != 0,
                };
                maybe_child(thread, parent, Detail::PHASES, kind, 0, 0, payload)
            }
            EventKind::KernelPhase => {
                let payload = Payload::KernelPhase {
                    timer: read!(d.payload.kernel_phase.p_timer),
                    phase: read!(d.payload.kernel_phase.phase_id),
                    name: callbacks::name_code(thread, read!(d.payload.kernel_phase.phase_name)),
                };
                let channel = read!(d.payload.kernel_phase.channel_id);
                maybe_child(thread, parent, Detail::PHASES, kind, channel, 0, payload)
            }
            // Handled in `start_event`.
            EventKind::Group
            | EventKind::Coll
            | EventKind::ProxyOp
            | EventKind::KernelLaunch
            | EventKind::ProxyStep
            | EventKind::KernelCh
            | EventKind::GroupApi
            | EventKind::CollApi => 0,
        }
    }
}

/// What NCCL 2.28 and most of 2.29 look for.
#[unsafe(no_mangle)]
pub static ncclProfiler_v5: v5::Profiler = v5::Profiler {
    name: NAME,
    init: Some(init::<5>),
    start_event: Some(start_event::<5, v5::Descriptor>),
    stop_event: Some(stop_event),
    record_event_state: Some(record_event_state::<v5::StateArgs>),
    finalize: Some(finalize),
    reserved: [0; 8],
};

/// What NCCL late 2.29 and 2.30 look for.
#[unsafe(no_mangle)]
pub static ncclProfiler_v6: v6::Profiler = v6::Profiler {
    name: NAME,
    init: Some(init::<6>),
    start_event: Some(start_event::<6, v6::Descriptor>),
    stop_event: Some(stop_event),
    record_event_state: Some(record_event_state::<v6::StateArgs>),
    finalize: Some(finalize),
    reserved: [0; 8],
};

/// What NCCL 2.31 and 2.32 look for.
#[unsafe(no_mangle)]
pub static ncclProfiler_v7: v7::Profiler = v7::Profiler {
    name: NAME,
    init: Some(init::<7>),
    start_event: Some(start_event::<7, Descriptor>),
    stop_event: Some(stop_event),
    record_event_state: Some(record_event_state::<v7::StateArgs>),
    finalize: Some(finalize),
    reserved: [0; 8],
};
