//! One AllReduce as NCCL would report it: which calls, in which order, on which thread, by the library's mask now.

use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, without_provenance, without_provenance_mut};

use collander_abi::event_kind as kind;
use collander_abi::v7::{
    Coll, CollApi, Descriptor, GroupApi, KernelCh, KernelChArgs, KernelLaunch, Payload, ProxyOp, ProxyStep,
    ProxyStepArgs, StateArgs,
};

use crate::category::{Category, through};
use crate::clock;
use crate::meter::Meter;
use crate::plugin::Plugin;

/// Most channels that can be asked for.
pub const MAX_CHANNELS: usize = 64;
/// Steps of one proxy operation that are under way at once, NCCL's NCCL_STEPS.
const STEPS_IN_FLIGHT: usize = 8;
const CHUNK_BYTES: usize = 512 << 10;

// A type is called if any bit of its row is on: parents come unasked.
const PROXY_STEP_ROW: u64 = kind::PROXY_STEP | kind::NET_PLUGIN;
const PROXY_OP_ROW: u64 = kind::PROXY_OP | PROXY_STEP_ROW;
const KERNEL_CH_ROW: u64 = kind::KERNEL_CH | kind::KERNEL_PHASE;
const COLL_ROW: u64 = kind::COLL | PROXY_OP_ROW | KERNEL_CH_ROW;
const GROUP_ROW: u64 = kind::GROUP | kind::P2P | COLL_ROW;
const COPY_ENGINE: u64 = kind::CE_COLL | kind::CE_SYNC | kind::CE_BATCH;
const COLL_API_ROW: u64 = kind::COLL_API | COLL_ROW | COPY_ENGINE;
const GROUP_API_ROW: u64 = 0xffff & !kind::PROXY_CTRL;

/// What each collective looks like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Channels of the kernel, 1 to [`MAX_CHANNELS`].
    pub channels: usize,
    /// Whether there is a network: one send operation a channel.
    pub proxy: bool,
    /// Steps of a proxy operation.
    pub steps: usize,
    /// Elements, of 4 bytes.
    pub count: usize,
}

/// What the user's thread hands to the proxy thread.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Handle of the Coll event, maybe NULL.
    pub coll: *mut c_void,
    /// The mask that holds for this collective: frozen when it was issued.
    pub mask: u64,
    /// Its number, from 0.
    pub number: u64,
}

fn descriptor(event_type: u64, parent_obj: *mut c_void, payload: Payload) -> Descriptor {
    // SAFETY: all zero is a valid descriptor: NULL pointers and zero numbers.
    let mut descriptor: Descriptor = unsafe { std::mem::zeroed() };
    descriptor.event_type = event_type;
    descriptor.parent_obj = parent_obj;
    descriptor.payload = payload;
    descriptor
}

macro_rules! start {
    ($plugin:ident, $meter:ident, $category:ident, $through:ident, $descriptor:expr) => {{
        let (mut handle, mut descriptor) = (null_mut(), $descriptor);
        $meter.call::<TIMED>(Category::$category, || {
            // SAFETY: handle and descriptor live for the call; the function is the open library's.
            unsafe { through::$through($plugin.start, $plugin.context, &raw mut handle, &raw mut descriptor) };
        });
        $meter.null_handles[Category::$category as usize] += u64::from(handle.is_null());
        handle
    }};
}

macro_rules! stop {
    ($plugin:ident, $meter:ident, $category:ident, $through:ident, $handle:expr) => {{
        let handle: *mut c_void = $handle;
        if !handle.is_null() {
            $meter.call::<TIMED>(Category::$category, || {
                // SAFETY: the open library gave the handle.
                unsafe { through::$through($plugin.stop, handle) };
            });
        }
    }};
}

macro_rules! state {
    ($plugin:ident, $meter:ident, $category:ident, $through:ident, $handle:expr, $state:expr, $args:expr) => {{
        let handle: *mut c_void = $handle;
        if !handle.is_null() {
            let (state, args): (c_int, *mut StateArgs) = ($state, $args);
            $meter.call::<TIMED>(Category::$category, || {
                // SAFETY: the open library gave the handle; the arguments are NULL or live for the call.
                unsafe { through::$through($plugin.state, handle, state, args) };
            });
        }
    }};
}

/// The user's thread: group and API events, the collective, and the hand-over to the proxy thread while it is open.
#[inline(never)]
pub fn enqueue<const TIMED: bool>(
    plugin: &Plugin,
    shape: &Shape,
    meter: &mut Meter,
    number: u64,
    hand_over: impl FnOnce(Work),
) {
    let mask = plugin.mask();
    let has_api = plugin.version >= 5;
    let stream = without_provenance_mut(0x1234_0000);
    let (mut group_api, mut coll_api, mut group, mut coll) = (null_mut(), null_mut(), null_mut(), null_mut());
    if has_api && mask & GROUP_API_ROW != 0 {
        let payload = Payload { group_api: GroupApi { graph_captured: 0, group_depth: 1 } };
        group_api =
            start!(plugin, meter, GroupApiStart, group_api_start, descriptor(kind::GROUP_API, null_mut(), payload));
        state!(plugin, meter, GroupApiState, group_api_state, group_api, kind::STATE_GROUP_START_API_STOP, null_mut());
    }
    if has_api && mask & COLL_API_ROW != 0 {
        let api = CollApi {
            func: c"AllReduce".as_ptr(),
            count: shape.count,
            datatype: c"ncclFloat32".as_ptr(),
            root: 0,
            stream,
            graph_captured: 0,
            user_tag: 0,
        };
        let payload = Payload { coll_api: api };
        coll_api = start!(plugin, meter, CollApiStart, coll_api_start, descriptor(kind::COLL_API, group_api, payload));
        stop!(plugin, meter, CollApiStop, coll_api_stop, coll_api);
    }
    state!(plugin, meter, GroupApiState, group_api_state, group_api, kind::STATE_GROUP_END_API_START, null_mut());
    if has_api && mask & kind::KERNEL_LAUNCH != 0 {
        let payload = Payload { kernel_launch: KernelLaunch { stream } };
        let launch = descriptor(kind::KERNEL_LAUNCH, group_api, payload);
        let launch = start!(plugin, meter, KernelLaunchStart, kernel_launch_start, launch);
        stop!(plugin, meter, KernelLaunchStop, kernel_launch_stop, launch);
    }
    if mask & GROUP_ROW != 0 {
        // SAFETY: all zero is a valid payload: a group has none.
        let payload = unsafe { std::mem::zeroed() };
        group = start!(plugin, meter, GroupStart, group_start, descriptor(kind::GROUP, null_mut(), payload));
    }
    if mask & COLL_ROW != 0 {
        let task = Coll {
            seq_number: number,
            func: c"AllReduce".as_ptr(),
            send_buff: without_provenance(0x7f00_0000_0000),
            recv_buff: without_provenance_mut(0x7f10_0000_0000),
            count: shape.count,
            root: 0,
            datatype: c"ncclFloat32".as_ptr(),
            n_channels: shape.channels as u8,
            n_warps: 16,
            algo: c"RING".as_ptr(),
            proto: c"SIMPLE".as_ptr(),
            parent_group: if has_api { group } else { null_mut() },
            kernel_variant: std::ptr::null(),
            is_sym_coll: 0,
            user_tag: 0,
        };
        let parent = if has_api { coll_api } else { group };
        coll = start!(plugin, meter, CollStart, coll_start, descriptor(kind::COLL, parent, Payload { coll: task }));
    }
    hand_over(Work { coll, mask, number });
    stop!(plugin, meter, CollStop, coll_stop, coll);
    stop!(plugin, meter, GroupStop, group_stop, group);
    stop!(plugin, meter, GroupApiStop, group_api_stop, group_api);
}

/// Handles of the proxy thread's events; one for all its collectives, so that nothing is allocated while timing.
#[derive(Debug)]
pub struct ProxyEvents {
    kernels: [*mut c_void; MAX_CHANNELS],
    operations: [*mut c_void; MAX_CHANNELS],
    steps: [[*mut c_void; STEPS_IN_FLIGHT]; MAX_CHANNELS],
}

impl Default for ProxyEvents {
    fn default() -> Self {
        Self {
            kernels: [null_mut(); MAX_CHANNELS],
            operations: [null_mut(); MAX_CHANNELS],
            steps: [[null_mut(); STEPS_IN_FLIGHT]; MAX_CHANNELS],
        }
    }
}

/// The proxy thread: kernel channels start, the network operations run, kernel channels stop.
#[inline(never)]
pub fn progress<const TIMED: bool>(
    plugin: &Plugin,
    shape: &Shape,
    meter: &mut Meter,
    events: &mut ProxyEvents,
    work: Work,
) {
    let gpu_start = clock::unix_ns();
    let channels = shape.channels;
    meter.collective::<TIMED>(|meter| {
        for channel in 0..channels {
            events.kernels[channel] = null_mut();
            if work.mask & KERNEL_CH_ROW != 0 {
                let kernel = KernelCh { channel_id: channel as u8, p_timer: gpu_start + channel as u64 * 100 };
                let payload = Payload { kernel_ch: kernel };
                events.kernels[channel] = start!(
                    plugin,
                    meter,
                    KernelChStart,
                    kernel_ch_start,
                    descriptor(kind::KERNEL_CH, work.coll, payload)
                );
            }
        }
        if shape.proxy && work.mask & PROXY_OP_ROW != 0 {
            network::<TIMED>(plugin, shape, meter, events, work);
        }
        for channel in 0..channels {
            let p_timer = gpu_start + 30_000 + channel as u64 * 100;
            let mut args = StateArgs { kernel_ch: KernelChArgs { p_timer } };
            let kernel = events.kernels[channel];
            state!(plugin, meter, KernelChState, kernel_ch_state, kernel, kind::STATE_KERNEL_CH_STOP, &raw mut args);
            stop!(plugin, meter, KernelChStop, kernel_ch_stop, kernel);
        }
    });
}

/// One send operation a channel; its steps overlap: one starts, one goes to the wire, one is done, in each round.
fn network<const TIMED: bool>(plugin: &Plugin, shape: &Shape, meter: &mut Meter, events: &mut ProxyEvents, work: Work) {
    let pid = std::process::id() as c_int;
    for channel in 0..shape.channels {
        let operation = ProxyOp {
            pid,
            channel_id: channel as u8,
            peer: 1,
            n_steps: shape.steps as c_int,
            chunk_size: CHUNK_BYTES as c_int,
            is_send: 1,
        };
        let payload = Payload { proxy_op: operation };
        let handle =
            start!(plugin, meter, ProxyOpStart, proxy_op_start, descriptor(kind::PROXY_OP, work.coll, payload));
        let mut args = StateArgs { proxy_step: ProxyStepArgs { trans_size: 0 } };
        state!(plugin, meter, ProxyOpState, proxy_op_state, handle, kind::STATE_PROXY_OP_IN_PROGRESS, &raw mut args);
        events.operations[channel] = handle;
    }
    for round in 0..shape.steps + 2 {
        for channel in 0..shape.channels {
            let mut args = StateArgs { proxy_step: ProxyStepArgs { trans_size: 0 } };
            if round < shape.steps {
                let mut step = null_mut();
                if work.mask & PROXY_STEP_ROW != 0 {
                    let payload = Payload { proxy_step: ProxyStep { step: round as c_int } };
                    let operation = events.operations[channel];
                    let started = descriptor(kind::PROXY_STEP, operation, payload);
                    step = start!(plugin, meter, ProxyStepStart, proxy_step_start, started);
                }
                events.steps[channel][round % STEPS_IN_FLIGHT] = step;
                let waiting = kind::STATE_PROXY_STEP_SEND_GPU_WAIT;
                state!(plugin, meter, ProxyStepState, proxy_step_state, step, waiting, &raw mut args);
            }
            if (1..=shape.steps).contains(&round) {
                let step = events.steps[channel][(round - 1) % STEPS_IN_FLIGHT];
                let credit = kind::STATE_PROXY_STEP_SEND_PEER_WAIT;
                state!(plugin, meter, ProxyStepState, proxy_step_state, step, credit, &raw mut args);
                args.proxy_step = ProxyStepArgs { trans_size: CHUNK_BYTES };
                let wire = kind::STATE_PROXY_STEP_SEND_WAIT;
                state!(plugin, meter, ProxyStepState, proxy_step_state, step, wire, &raw mut args);
            }
            if round >= 2 {
                let done = events.steps[channel][(round - 2) % STEPS_IN_FLIGHT];
                stop!(plugin, meter, ProxyStepStop, proxy_step_stop, done);
            }
        }
    }
    for channel in 0..shape.channels {
        stop!(plugin, meter, ProxyOpStop, proxy_op_stop, events.operations[channel]);
    }
}
