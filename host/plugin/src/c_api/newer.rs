//! v5, v6 and v7: API events, an 8-byte `type`, `init` with the communicator's id second.
//!
//! What v5 and v6 have lies where v7 has it (asserted below), so one function reads all three, member by member; what only
//! v7 has is read only if the version is 7.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use collander_abi::logger::DebugLogger;
use collander_abi::result::{NcclResult, SUCCESS};
use collander_abi::v7::Descriptor;
use collander_abi::{v5, v6, v7};
use collander_event::{Detail, EventKind, Payload, RecordFlags};

use super::{NAME, finalize, first_event, give, number, read, record_event_state, stop_event};
use crate::callbacks::{self, ApiEvent, CollEvent, More, P2pEvent};
use crate::startup::{self, Opening};
use crate::thread_slot::{ThreadState, current};

macro_rules! same_place {
    ($($member:ident . $field:ident),+ $(,)?) => {
        $(
            assert!(offset_of!(v5::Descriptor, payload.$member.$field) == offset_of!(Descriptor, payload.$member.$field));
            assert!(offset_of!(v6::Descriptor, payload.$member.$field) == offset_of!(Descriptor, payload.$member.$field));
        )+
    };
}

const _: () = {
    assert!(offset_of!(v5::Descriptor, event_type) == offset_of!(Descriptor, event_type));
    assert!(offset_of!(v5::Descriptor, parent_obj) == offset_of!(Descriptor, parent_obj));
    assert!(offset_of!(v6::Descriptor, event_type) == offset_of!(Descriptor, event_type));
    assert!(offset_of!(v6::Descriptor, parent_obj) == offset_of!(Descriptor, parent_obj));
    same_place!(
        group_api.graph_captured,
        group_api.group_depth,
        coll_api.func,
        coll_api.count,
        coll_api.datatype,
        coll_api.root,
        coll_api.stream,
        coll_api.graph_captured,
        p2p_api.func,
        p2p_api.count,
        p2p_api.datatype,
        p2p_api.stream,
        p2p_api.graph_captured,
        kernel_launch.stream,
        coll.seq_number,
        coll.func,
        coll.send_buff,
        coll.recv_buff,
        coll.count,
        coll.root,
        coll.datatype,
        coll.n_channels,
        coll.n_warps,
        coll.algo,
        coll.proto,
        coll.parent_group,
        p2p.func,
        p2p.datatype,
        p2p.count,
        p2p.peer,
        p2p.n_channels,
        p2p.parent_group,
        proxy_op.pid,
        proxy_op.channel_id,
        proxy_op.peer,
        proxy_op.n_steps,
        proxy_op.chunk_size,
        proxy_op.is_send,
        proxy_step.step,
        kernel_ch.channel_id,
        kernel_ch.p_timer,
        net_plugin.id,
    );
    assert!(offset_of!(v6::Descriptor, payload.ce_coll.stream) == offset_of!(Descriptor, payload.ce_coll.stream));
    assert!(
        offset_of!(v6::Descriptor, payload.ce_coll.sync_strategy)
            == offset_of!(Descriptor, payload.ce_coll.sync_strategy)
    );
    assert!(
        offset_of!(v6::Descriptor, payload.ce_coll_sync.n_ranks)
            == offset_of!(Descriptor, payload.ce_coll_sync.n_ranks)
    );
    assert!(
        offset_of!(v6::Descriptor, payload.ce_coll_batch.total_bytes)
            == offset_of!(Descriptor, payload.ce_coll_batch.total_bytes)
    );
};

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

/// `startEvent`: a jump to the function of the kind, so that each kind saves only the registers it needs.
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
        match read!(d.event_type) {
            KERNEL_CH => on_kernel_ch(context, handle, d),
            PROXY_STEP => on_proxy_step(context, handle, d),
            COLL => on_coll::<API>(context, handle, d),
            GROUP => on_group(context, handle, d),
            COLL_API => on_coll_api::<API>(context, handle, d),
            GROUP_API => on_group_api(context, handle, d),
            _ => on_other::<API>(context, handle, d),
        }
    }
}

const KERNEL_CH: u64 = EventKind::KernelCh.bit() as u64;
const PROXY_STEP: u64 = EventKind::ProxyStep.bit() as u64;
const COLL: u64 = EventKind::Coll.bit() as u64;
const GROUP: u64 = EventKind::Group.bit() as u64;
const COLL_API: u64 = EventKind::CollApi.bit() as u64;
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
                    return first_event($large, context, handle, $d, $name $(::<$api>)?);
                };
                let $context = number(context);
                let given = $body;
                give(handle, given);
            }
            SUCCESS
        }
    };
}

on!(
    /// KernelCh.
    on_kernel_ch, large: true, wanted: |d| callbacks::wanted_child(number(read!(d.parent_obj)), Detail::CHANNELS),
    |thread, _context, d| {
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

on!(
    /// Group.
    on_group, large: false, wanted: |_d| true, |thread, context, d| {
        callbacks::plain(thread, context, number(read!(d.parent_obj)), EventKind::Group, Payload::None)
    }
);

on!(
    /// GroupApi.
    on_group_api, large: false, wanted: |_d| true, |thread, context, d| {
        let captured = read!(d.payload.group_api.graph_captured) != 0;
        let (parent, depth) = (number(read!(d.parent_obj)), read!(d.payload.group_api.group_depth));
        callbacks::group_api(thread, context, parent, depth, captured)
    }
);

on!(
    /// CollApi.
    on_coll_api<const API>, large: false, wanted: |_d| true, |thread, context, d| {
        let event = ApiEvent {
            parent: number(read!(d.parent_obj)),
            function: read!(d.payload.coll_api.func),
            datatype: read!(d.payload.coll_api.datatype),
            count: read!(d.payload.coll_api.count) as u64,
            root: read!(d.payload.coll_api.root),
            stream: number(read!(d.payload.coll_api.stream)),
            captured: read!(d.payload.coll_api.graph_captured) != 0,
            user_tag: if API >= 7 { read!(d.payload.coll_api.user_tag) } else { 0 },
        };
        callbacks::api(thread, context, event, EventKind::CollApi)
    }
);

on!(
    /// Coll.
    on_coll<const API>, large: false, wanted: |_d| true, |thread, context, d| {
        let mut more = More::NONE;
        if API >= 7 {
            more.user_tag = read!(d.payload.coll.user_tag);
            more.symmetric = read!(d.payload.coll.is_sym_coll) != 0;
            more.variant = read!(d.payload.coll.kernel_variant);
        }
        let event = CollEvent {
            parent: number(read!(d.parent_obj)),
            sequence: read!(d.payload.coll.seq_number),
            function: read!(d.payload.coll.func),
            datatype: read!(d.payload.coll.datatype),
            algorithm: read!(d.payload.coll.algo),
            protocol: read!(d.payload.coll.proto),
            count: read!(d.payload.coll.count) as u64,
            root: read!(d.payload.coll.root),
            channels: read!(d.payload.coll.n_channels),
            warps: read!(d.payload.coll.n_warps),
            in_place: read!(d.payload.coll.send_buff) == read!(d.payload.coll.recv_buff).cast_const(),
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
            EventKind::KernelLaunch => {
                let payload = Payload::KernelLaunch { stream: number(read!(d.payload.kernel_launch.stream)) };
                callbacks::plain(thread, context, parent, kind, payload)
            }
            EventKind::ProxyCtrl => callbacks::plain(thread, context, parent, kind, Payload::None),
            EventKind::ProxyOp => {
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
                maybe_child(thread, parent, Detail::PROXY_OPERATIONS, kind, channel, flags, payload)
            }
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
