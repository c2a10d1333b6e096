//! v1 to v4: no API events, a one-byte `type`. v1 to v3 tell a communicator's name and hash with each operation.

use std::ffi::{c_char, c_int, c_void};

use collander_abi::logger::DebugLogger;
use collander_abi::result::{NcclResult, SUCCESS};
use collander_abi::{v1, v2, v3, v4};
use collander_event::{Collective, Datatype, Detail, EventKind, Payload, RecordFlags};

use super::newer::maybe_child;
use super::{NAME, finalize, first_event, give, number, read, record_event_state, stop_event};
use crate::callbacks::{self, CollEvent, More, P2pEvent};
use crate::startup::{self, Opening};
use crate::thread_slot::current;

/// # Safety
/// NCCL's promise: valid pointers.
unsafe extern "C" fn init_short<const API: u8>(context: *mut *mut c_void, mask: *mut c_int) -> NcclResult {
    let opening = Opening { api: API, hash: 0, nodes: 0, ranks: 0, rank: -1, logger: None };
    // SAFETY: NCCL's promise, handed on.
    unsafe { give(context, startup::init(opening, std::ptr::null(), mask)) };
    SUCCESS
}

/// # Safety
/// NCCL's promise: valid pointers; `name` is NULL or NUL-terminated.
#[allow(clippy::too_many_arguments, reason = "NCCL's signature")]
unsafe extern "C" fn init_v4(
    context: *mut *mut c_void,
    mask: *mut c_int,
    name: *const c_char,
    hash: u64,
    nodes: c_int,
    ranks: c_int,
    rank: c_int,
    logger: Option<DebugLogger>,
) -> NcclResult {
    let opening = Opening { api: 4, hash, nodes, ranks, rank, logger };
    // SAFETY: NCCL's promise, handed on.
    unsafe { give(context, startup::init(opening, name, mask)) };
    SUCCESS
}

/// The kinds that lie alike in v1 to v4.
macro_rules! common_kinds {
    ($thread:ident, $d:ident, $parent:ident, $context:ident, $kind:ident) => {
        match $kind {
            EventKind::Group | EventKind::ProxyCtrl => {
                callbacks::plain($thread, $context, $parent, $kind, Payload::None)
            }
            EventKind::ProxyOp => {
                let pid = read!($d.payload.proxy_op.pid);
                let payload = Payload::ProxyOp {
                    peer: read!($d.payload.proxy_op.peer),
                    send: read!($d.payload.proxy_op.is_send) != 0,
                    steps: read!($d.payload.proxy_op.n_steps),
                    chunk_bytes: read!($d.payload.proxy_op.chunk_size),
                    pid,
                };
                let flags = if startup::is_other_process(pid) { RecordFlags::NULL_OR_FOREIGN } else { 0 };
                let channel = read!($d.payload.proxy_op.channel_id);
                maybe_child($thread, $parent, Detail::PROXY_OPERATIONS, $kind, channel, flags, payload)
            }
            EventKind::ProxyStep => {
                let payload = Payload::ProxyStep { step: read!($d.payload.proxy_step.step) };
                maybe_child($thread, $parent, Detail::PROXY_STEPS, $kind, 0, 0, payload)
            }
            _ => callbacks::unknown_kind($thread),
        }
    };
}

/// Kinds that come from user threads.
const SMALL_KINDS: u8 = (EventKind::Group.bit() | EventKind::Coll.bit() | EventKind::P2p.bit()) as u8;

/// The kind behind a one-byte `type`; None for what the version lacks.
#[inline(always)]
fn kind_of(event_type: u8, api: u8) -> Option<EventKind> {
    let known = event_type.is_power_of_two() && u32::from(event_type) & EventKind::known_mask(api) != 0;
    known.then(|| EventKind::from_index(event_type.trailing_zeros() as u8))
}

const FUNCTIONS: [&std::ffi::CStr; 8] =
    [c"Broadcast", c"Reduce", c"AllGather", c"ReduceScatter", c"AllReduce", c"SendRecv", c"Send", c"Recv"];
const DATATYPES: [&std::ffi::CStr; 12] = [
    c"ncclInt8",
    c"ncclUint8",
    c"ncclInt32",
    c"ncclUint32",
    c"ncclInt64",
    c"ncclUint64",
    c"ncclFloat16",
    c"ncclFloat32",
    c"ncclFloat64",
    c"ncclBfloat16",
    c"ncclFloat8e4m3",
    c"ncclFloat8e5m2",
];
const ALGORITHMS: [&std::ffi::CStr; 7] =
    [c"TREE", c"RING", c"COLLNET_DIRECT", c"COLLNET_CHAIN", c"NVLS", c"NVLS_TREE", c"PAT"];
const PROTOCOLS: [&std::ffi::CStr; 3] = [c"LL", c"LL128", c"SIMPLE"];

/// v1 gives small numbers where later versions give texts.
fn text(table: &[&'static std::ffi::CStr], number: u8) -> *const c_char {
    table.get(number as usize).map_or(c"Unknown".as_ptr(), |text| text.as_ptr())
}

const _: () = {
    assert!(matches!(Collective::from_v1(4), Collective::AllReduce));
    assert!(matches!(Datatype::from_v1(7), Datatype::Float32));
};

/// # Safety
/// NCCL's promise: `d` is a v1 descriptor; its texts are NULL or NUL-terminated for the call.
unsafe extern "C" fn start_v1(context: *mut c_void, handle: *mut *mut c_void, d: *mut v1::Descriptor) -> NcclResult {
    let Some(thread) = current() else {
        // SAFETY: NCCL's promise, handed on.
        return unsafe { first_event(context, handle, d, read!(d.event_type) & SMALL_KINDS == 0, start_v1) };
    };
    let context = number(context);
    // SAFETY: NCCL's promise; the union member read is the one that `type` names.
    unsafe {
        let parent = number(read!(d.parent_obj));
        let given = match kind_of(read!(d.event_type), 1) {
            Some(EventKind::Coll) => {
                let rank = read!(d.rank);
                callbacks::learn_communicator(
                    context,
                    read!(d.payload.coll.name),
                    read!(d.payload.coll.comm_hash),
                    rank,
                );
                let event = CollEvent {
                    parent,
                    sequence: read!(d.payload.coll.seq_number),
                    function: text(&FUNCTIONS, read!(d.payload.coll.func)),
                    datatype: text(&DATATYPES, read!(d.payload.coll.datatype)),
                    algorithm: text(&ALGORITHMS, read!(d.payload.coll.algo)),
                    protocol: text(&PROTOCOLS, read!(d.payload.coll.proto)),
                    count: read!(d.payload.coll.count) as u64,
                    root: read!(d.payload.coll.root),
                    channels: read!(d.payload.coll.n_max_channels),
                    warps: read!(d.payload.coll.n_warps),
                    in_place: read!(d.payload.coll.send_buff) == read!(d.payload.coll.recv_buff).cast_const(),
                    parent_group: 0,
                    more: More::NONE,
                    has_api: false,
                };
                callbacks::coll(thread, context, event, EventKind::Coll)
            }
            Some(EventKind::P2p) => {
                let rank = read!(d.rank);
                callbacks::learn_communicator(context, read!(d.payload.p2p.name), read!(d.payload.p2p.comm_hash), rank);
                let event = P2pEvent {
                    parent,
                    function: text(&FUNCTIONS, read!(d.payload.p2p.func)),
                    datatype: text(&DATATYPES, read!(d.payload.p2p.datatype)),
                    count: read!(d.payload.p2p.count) as u64,
                    peer: read!(d.payload.p2p.peer),
                    channels: 0,
                    parent_group: parent,
                    user_tag: 0,
                    has_api: false,
                };
                callbacks::p2p(thread, context, event)
            }
            Some(kind) => common_kinds!(thread, d, parent, context, kind),
            None => callbacks::unknown_kind(thread),
        };
        give(handle, given);
    }
    SUCCESS
}

macro_rules! start_named {
    ($name:ident, $module:ident, $api:literal, $doc:literal) => {
        #[doc = $doc]
        ///
        /// # Safety
        /// NCCL's promise: a descriptor of this version; its texts are NULL or NUL-terminated for the call.
        unsafe extern "C" fn $name(
            context: *mut c_void,
            handle: *mut *mut c_void,
            d: *mut $module::Descriptor,
        ) -> NcclResult {
            let Some(thread) = current() else {
                // SAFETY: NCCL's promise, handed on.
                return unsafe { first_event(context, handle, d, read!(d.event_type) & SMALL_KINDS == 0, $name) };
            };
            let context = number(context);
            // SAFETY: NCCL's promise; the union member read is the one that `type` names.
            unsafe {
                let parent = number(read!(d.parent_obj));
                let given = match kind_of(read!(d.event_type), $api) {
                    Some(EventKind::Coll) => {
                        let (name, hash) = (read!(d.payload.coll.name), read!(d.payload.coll.comm_hash));
                        callbacks::learn_communicator(context, name, hash, read!(d.rank));
                        let event = CollEvent {
                            parent,
                            sequence: read!(d.payload.coll.seq_number),
                            function: read!(d.payload.coll.func),
                            datatype: read!(d.payload.coll.datatype),
                            algorithm: read!(d.payload.coll.algo),
                            protocol: read!(d.payload.coll.proto),
                            count: read!(d.payload.coll.count) as u64,
                            root: read!(d.payload.coll.root),
                            channels: read!(d.payload.coll.n_max_channels),
                            warps: read!(d.payload.coll.n_warps),
                            in_place: read!(d.payload.coll.send_buff) == read!(d.payload.coll.recv_buff).cast_const(),
                            parent_group: 0,
                            more: More::NONE,
                            has_api: false,
                        };
                        callbacks::coll(thread, context, event, EventKind::Coll)
                    }
                    Some(EventKind::P2p) => {
                        let (name, hash) = (read!(d.payload.p2p.name), read!(d.payload.p2p.comm_hash));
                        callbacks::learn_communicator(context, name, hash, read!(d.rank));
                        let event = P2pEvent {
                            parent,
                            function: read!(d.payload.p2p.func),
                            datatype: read!(d.payload.p2p.datatype),
                            count: read!(d.payload.p2p.count) as u64,
                            peer: read!(d.payload.p2p.peer),
                            channels: 0,
                            parent_group: parent,
                            user_tag: 0,
                            has_api: false,
                        };
                        callbacks::p2p(thread, context, event)
                    }
                    Some(kind) => $name!(thread, d, parent, context, kind),
                    None => callbacks::unknown_kind(thread),
                };
                give(handle, given);
            }
            SUCCESS
        }
    };
}

macro_rules! start_v2 {
    ($thread:ident, $d:ident, $parent:ident, $context:ident, $kind:ident) => {
        common_kinds!($thread, $d, $parent, $context, $kind)
    };
}
/// v3 has kernel channels, without times.
macro_rules! start_v3 {
    ($thread:ident, $d:ident, $parent:ident, $context:ident, $kind:ident) => {
        match $kind {
            EventKind::KernelCh => maybe_child(
                $thread,
                $parent,
                Detail::CHANNELS,
                $kind,
                read!($d.payload.kernel_ch.channel_id),
                0,
                Payload::KernelCh { timer: 0 },
            ),
            EventKind::NetPlugin => {
                let payload = Payload::NetPlugin { id: read!($d.payload.net_plugin.id) };
                maybe_child($thread, $parent, Detail::PHASES, $kind, 0, 0, payload)
            }
            kind => common_kinds!($thread, $d, $parent, $context, kind),
        }
    };
}
start_named!(start_v2, v2, 2, "`startEvent` of v2.");
start_named!(start_v3, v3, 3, "`startEvent` of v3.");

/// # Safety
/// NCCL's promise: `d` is a v4 descriptor; its texts are NULL or NUL-terminated for the call.
unsafe extern "C" fn start_v4(context: *mut c_void, handle: *mut *mut c_void, d: *mut v4::Descriptor) -> NcclResult {
    let Some(thread) = current() else {
        // SAFETY: NCCL's promise, handed on.
        return unsafe { first_event(context, handle, d, read!(d.event_type) & SMALL_KINDS == 0, start_v4) };
    };
    let context = number(context);
    // SAFETY: NCCL's promise; the union member read is the one that `type` names.
    unsafe {
        let parent = number(read!(d.parent_obj));
        let given = match kind_of(read!(d.event_type), 4) {
            Some(EventKind::KernelCh) => maybe_child(
                thread,
                parent,
                Detail::CHANNELS,
                EventKind::KernelCh,
                read!(d.payload.kernel_ch.channel_id),
                0,
                Payload::KernelCh { timer: read!(d.payload.kernel_ch.p_timer) },
            ),
            Some(EventKind::Coll) => {
                let event = CollEvent {
                    parent,
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
                    parent_group: 0,
                    more: More::NONE,
                    has_api: false,
                };
                callbacks::coll(thread, context, event, EventKind::Coll)
            }
            Some(EventKind::P2p) => {
                let event = P2pEvent {
                    parent,
                    function: read!(d.payload.p2p.func),
                    datatype: read!(d.payload.p2p.datatype),
                    count: read!(d.payload.p2p.count) as u64,
                    peer: read!(d.payload.p2p.peer),
                    channels: read!(d.payload.p2p.n_channels),
                    parent_group: parent,
                    user_tag: 0,
                    has_api: false,
                };
                callbacks::p2p(thread, context, event)
            }
            Some(EventKind::NetPlugin) => {
                let payload = Payload::NetPlugin { id: read!(d.payload.net_plugin.id) };
                maybe_child(thread, parent, Detail::PHASES, EventKind::NetPlugin, 0, 0, payload)
            }
            Some(kind) => common_kinds!(thread, d, parent, context, kind),
            None => callbacks::unknown_kind(thread),
        };
        give(handle, given);
    }
    SUCCESS
}

/// What NCCL 2.23 looks for.
#[unsafe(no_mangle)]
pub static ncclProfiler_v1: v1::Profiler = v1::Profiler {
    name: NAME,
    init: Some(init_short::<1>),
    start_event: Some(start_v1),
    stop_event: Some(stop_event),
    record_event_state: Some(record_event_state::<v1::StateArgs>),
    finalize: Some(finalize),
    reserved: [0; 8],
};

/// What NCCL 2.24 and 2.25 look for.
#[unsafe(no_mangle)]
pub static ncclProfiler_v2: v2::Profiler = v2::Profiler {
    name: NAME,
    init: Some(init_short::<2>),
    start_event: Some(start_v2),
    stop_event: Some(stop_event),
    record_event_state: Some(record_event_state::<v2::StateArgs>),
    finalize: Some(finalize),
    reserved: [0; 8],
};

/// What NCCL 2.26 looks for.
#[unsafe(no_mangle)]
pub static ncclProfiler_v3: v3::Profiler = v3::Profiler {
    name: NAME,
    init: Some(init_short::<3>),
    start_event: Some(start_v3),
    stop_event: Some(stop_event),
    record_event_state: Some(record_event_state::<v3::StateArgs>),
    finalize: Some(finalize),
    reserved: [0; 8],
};

/// What NCCL 2.27 looks for.
#[unsafe(no_mangle)]
pub static ncclProfiler_v4: v4::Profiler = v4::Profiler {
    name: NAME,
    init: Some(init_v4),
    start_event: Some(start_v4),
    stop_event: Some(stop_event),
    record_event_state: Some(record_event_state::<v4::StateArgs>),
    finalize: Some(finalize),
    reserved: [0; 8],
};
