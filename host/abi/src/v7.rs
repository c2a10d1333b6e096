//! Version 7: NCCL 2.31 and 2.32. Kernel phases and user tags are new.

use core::ffi::{c_char, c_int, c_void};
use core::mem::{offset_of, size_of};

use crate::logger::DebugLogger;
use crate::result::NcclResult;

/// A user-level group, `ncclGroupStart` to `ncclGroupEnd`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GroupApi {
    /// C `bool`: captured into a CUDA graph.
    pub graph_captured: u8,
    /// Depth of nesting, from 1.
    pub group_depth: c_int,
}

/// A call of a collective by the user.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollApi {
    /// Function.
    pub func: *const c_char,
    /// Elements, of the user's datatype.
    pub count: usize,
    /// User's datatype.
    pub datatype: *const c_char,
    /// Root rank.
    pub root: c_int,
    /// CUDA stream.
    pub stream: *mut c_void,
    /// C `bool`: captured into a CUDA graph.
    pub graph_captured: u8,
    /// User's tag, 0 if none.
    pub user_tag: u64,
}

/// A call of a send or receive by the user.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct P2pApi {
    /// Function.
    pub func: *const c_char,
    /// Elements, of the user's datatype.
    pub count: usize,
    /// User's datatype.
    pub datatype: *const c_char,
    /// CUDA stream.
    pub stream: *mut c_void,
    /// C `bool`: captured into a CUDA graph.
    pub graph_captured: u8,
    /// User's tag, 0 if none.
    pub user_tag: u64,
}

/// A kernel launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelLaunch {
    /// CUDA stream.
    pub stream: *mut c_void,
}

/// A collective as enqueued.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Coll {
    /// Count per communicator and function, from 0.
    pub seq_number: u64,
    /// Function.
    pub func: *const c_char,
    /// Send buffer.
    pub send_buff: *const c_void,
    /// Receive buffer.
    pub recv_buff: *mut c_void,
    /// Elements.
    pub count: usize,
    /// Root rank.
    pub root: c_int,
    /// Datatype.
    pub datatype: *const c_char,
    /// Channels (0 also stands for 256).
    pub n_channels: u8,
    /// Warps a channel.
    pub n_warps: u8,
    /// Algorithm.
    pub algo: *const c_char,
    /// Protocol.
    pub proto: *const c_char,
    /// Handle of the Group event.
    pub parent_group: *mut c_void,
    /// Name of the kernel variant, NULL if none.
    pub kernel_variant: *const c_char,
    /// C `bool`: symmetric kernel.
    pub is_sym_coll: u8,
    /// User's tag, 0 if none.
    pub user_tag: u64,
}

/// A send or receive as enqueued.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct P2p {
    /// Function.
    pub func: *const c_char,
    /// Buffer.
    pub buff: *mut c_void,
    /// Datatype.
    pub datatype: *const c_char,
    /// Elements.
    pub count: usize,
    /// Peer rank.
    pub peer: c_int,
    /// Channels (0 also stands for 256).
    pub n_channels: u8,
    /// Handle of the Group event.
    pub parent_group: *mut c_void,
    /// User's tag, 0 if none.
    pub user_tag: u64,
}

/// A network operation of one channel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProxyOp {
    /// Process that owns the parent event.
    pub pid: c_int,
    /// Channel.
    pub channel_id: u8,
    /// Peer rank.
    pub peer: c_int,
    /// Steps.
    pub n_steps: c_int,
    /// Bytes of a chunk.
    pub chunk_size: c_int,
    /// 1 send, 0 receive.
    pub is_send: c_int,
}

/// One step of a network operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProxyStep {
    /// Number of the step.
    pub step: c_int,
}

/// One channel of a kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelCh {
    /// Channel.
    pub channel_id: u8,
    /// GPU timer at the start, its own units.
    pub p_timer: u64,
}

/// An event of the network plugin.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NetPlugin {
    /// Type and version of the plugin's event.
    pub id: i64,
    /// Pointer to the plugin's descriptor.
    pub data: *mut c_void,
}

/// A collective done by the copy engine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CeColl {
    /// Count per communicator and function, from 0.
    pub seq_number: u64,
    /// Function.
    pub func: *const c_char,
    /// Send buffer.
    pub send_buff: *const c_void,
    /// Receive buffer.
    pub recv_buff: *mut c_void,
    /// Elements.
    pub count: usize,
    /// Root rank.
    pub root: c_int,
    /// Datatype.
    pub datatype: *const c_char,
    /// How ranks synchronise.
    pub sync_strategy: *const c_char,
    /// C `bool`: synchronises within batches.
    pub intra_batch_sync: u8,
    /// Operations a batch.
    pub batch_size: u32,
    /// Batches.
    pub num_batches: u32,
    /// Copy engine's own sequence number.
    pub ce_seq_num: u32,
    /// CUDA stream.
    pub stream: *mut c_void,
    /// User's tag, 0 if none.
    pub user_tag: u64,
}

/// A synchronisation of a copy-engine collective.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CeSync {
    /// C `bool`: the completing synchronisation.
    pub is_complete: u8,
    /// Ranks that take part.
    pub n_ranks: c_int,
}

/// A batch of copies of a copy-engine collective.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CeBatch {
    /// Copies in the batch.
    pub num_ops: c_int,
    /// Bytes of the batch.
    pub total_bytes: usize,
    /// C `bool`: synchronises within the batch.
    pub use_intra_sync: u8,
}

/// A phase of a symmetric kernel on one channel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelPhase {
    /// Channel.
    pub channel_id: u8,
    /// Number of the phase.
    pub phase_id: u8,
    /// Name of the phase.
    pub phase_name: *const c_char,
    /// GPU timer, its own units.
    pub p_timer: u64,
}

/// What belongs to the kind of event.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Payload {
    /// GroupApi.
    pub group_api: GroupApi,
    /// CollApi.
    pub coll_api: CollApi,
    /// P2pApi.
    pub p2p_api: P2pApi,
    /// KernelLaunch.
    pub kernel_launch: KernelLaunch,
    /// Coll.
    pub coll: Coll,
    /// P2p.
    pub p2p: P2p,
    /// ProxyOp.
    pub proxy_op: ProxyOp,
    /// ProxyStep.
    pub proxy_step: ProxyStep,
    /// KernelCh.
    pub kernel_ch: KernelCh,
    /// NetPlugin.
    pub net_plugin: NetPlugin,
    /// CeColl.
    pub ce_coll: CeColl,
    /// CeSync.
    pub ce_coll_sync: CeSync,
    /// CeBatch.
    pub ce_coll_batch: CeBatch,
    /// KernelPhase.
    pub kernel_phase: KernelPhase,
}

impl core::fmt::Debug for Payload {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Payload")
    }
}

/// What `startEvent` is told about an event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Kind, one bit (`type` in C).
    pub event_type: u64,
    /// Handle of the parent, NULL if there is none; can belong to another process.
    pub parent_obj: *mut c_void,
    /// Rank in the communicator; 0 on many kinds whatever the rank.
    pub rank: c_int,
    /// What belongs to the kind.
    pub payload: Payload,
}

/// Arguments of the states of ProxyStep.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProxyStepArgs {
    /// Bytes of the step; meaningful in few states.
    pub trans_size: usize,
}

/// Arguments of the states of ProxyCtrl.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProxyCtrlArgs {
    /// Proxy operations appended.
    pub appended_proxy_ops: c_int,
}

/// Arguments of the states of NetPlugin.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NetPluginArgs {
    /// Pointer to the plugin's own data.
    pub data: *mut c_void,
}

/// Arguments of the stop states of KernelCh and KernelPhase.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelChArgs {
    /// GPU timer at the stop, its own units.
    pub p_timer: u64,
}

/// What `recordEventState` is told about a state.
#[repr(C)]
#[derive(Clone, Copy)]
pub union StateArgs {
    /// Arguments of the states of ProxyStep.
    pub proxy_step: ProxyStepArgs,
    /// Arguments of the states of ProxyCtrl.
    pub proxy_ctrl: ProxyCtrlArgs,
    /// Arguments of the states of NetPlugin.
    pub net_plugin: NetPluginArgs,
    /// Arguments of the stop states of KernelCh and KernelPhase.
    pub kernel_ch: KernelChArgs,
}

impl core::fmt::Debug for StateArgs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("StateArgs")
    }
}

/// `init`: a communicator opens. The mask pointer stays valid for the life of the process.
pub type Init = unsafe extern "C" fn(
    context: *mut *mut c_void,
    comm_id: u64,
    mask: *mut c_int,
    comm_name: *const c_char,
    n_nodes: c_int,
    n_ranks: c_int,
    rank: c_int,
    logger: Option<DebugLogger>,
) -> NcclResult;
/// `startEvent`. The descriptor and its strings live only for the call.
pub type StartEvent =
    unsafe extern "C" fn(context: *mut c_void, handle: *mut *mut c_void, descriptor: *mut Descriptor) -> NcclResult;
/// `stopEvent`.
pub type StopEvent = unsafe extern "C" fn(handle: *mut c_void) -> NcclResult;
/// `recordEventState`. The arguments may be NULL.
pub type RecordEventState = unsafe extern "C" fn(handle: *mut c_void, state: c_int, args: *mut StateArgs) -> NcclResult;
/// `finalize`: a communicator closes.
pub type Finalize = unsafe extern "C" fn(context: *mut c_void) -> NcclResult;

/// What a library exports as `ncclProfiler_v7`.
#[repr(C)]
#[derive(Debug)]
pub struct Profiler {
    /// Name of the plugin.
    pub name: *const c_char,
    /// A communicator opens.
    pub init: Option<Init>,
    /// An event starts.
    pub start_event: Option<StartEvent>,
    /// An event stops.
    pub stop_event: Option<StopEvent>,
    /// An event changes its state.
    pub record_event_state: Option<RecordEventState>,
    /// A communicator closes.
    pub finalize: Option<Finalize>,
    /// Zero: a reader of a longer variant finds NULL. Not part of NCCL's struct: never read it of another library.
    pub reserved: [usize; 8],
}

// SAFETY: `name` points to bytes that nobody changes for the life of the library; all else is plain data.
unsafe impl Sync for Profiler {}

// The layout, byte for byte, on 64-bit Linux.
const _: () = {
    assert!(offset_of!(Descriptor, event_type) == 0);
    assert!(size_of::<u64>() == 8);
    assert!(offset_of!(Descriptor, parent_obj) == 8);
    assert!(offset_of!(Descriptor, rank) == 16);
    assert!(offset_of!(Descriptor, payload) == 24);
    assert!(size_of::<Descriptor>() == 136);
    assert!(offset_of!(Descriptor, payload.group_api.graph_captured) == 24);
    assert!(offset_of!(Descriptor, payload.group_api.group_depth) == 28);
    assert!(offset_of!(Descriptor, payload.coll_api.func) == 24);
    assert!(offset_of!(Descriptor, payload.coll_api.count) == 32);
    assert!(offset_of!(Descriptor, payload.coll_api.datatype) == 40);
    assert!(offset_of!(Descriptor, payload.coll_api.root) == 48);
    assert!(offset_of!(Descriptor, payload.coll_api.stream) == 56);
    assert!(offset_of!(Descriptor, payload.coll_api.graph_captured) == 64);
    assert!(offset_of!(Descriptor, payload.coll_api.user_tag) == 72);
    assert!(offset_of!(Descriptor, payload.p2p_api.func) == 24);
    assert!(offset_of!(Descriptor, payload.p2p_api.count) == 32);
    assert!(offset_of!(Descriptor, payload.p2p_api.datatype) == 40);
    assert!(offset_of!(Descriptor, payload.p2p_api.stream) == 48);
    assert!(offset_of!(Descriptor, payload.p2p_api.graph_captured) == 56);
    assert!(offset_of!(Descriptor, payload.p2p_api.user_tag) == 64);
    assert!(offset_of!(Descriptor, payload.kernel_launch.stream) == 24);
    assert!(offset_of!(Descriptor, payload.coll.seq_number) == 24);
    assert!(offset_of!(Descriptor, payload.coll.func) == 32);
    assert!(offset_of!(Descriptor, payload.coll.send_buff) == 40);
    assert!(offset_of!(Descriptor, payload.coll.recv_buff) == 48);
    assert!(offset_of!(Descriptor, payload.coll.count) == 56);
    assert!(offset_of!(Descriptor, payload.coll.root) == 64);
    assert!(offset_of!(Descriptor, payload.coll.datatype) == 72);
    assert!(offset_of!(Descriptor, payload.coll.n_channels) == 80);
    assert!(offset_of!(Descriptor, payload.coll.n_warps) == 81);
    assert!(offset_of!(Descriptor, payload.coll.algo) == 88);
    assert!(offset_of!(Descriptor, payload.coll.proto) == 96);
    assert!(offset_of!(Descriptor, payload.coll.parent_group) == 104);
    assert!(offset_of!(Descriptor, payload.coll.kernel_variant) == 112);
    assert!(offset_of!(Descriptor, payload.coll.is_sym_coll) == 120);
    assert!(offset_of!(Descriptor, payload.coll.user_tag) == 128);
    assert!(offset_of!(Descriptor, payload.p2p.func) == 24);
    assert!(offset_of!(Descriptor, payload.p2p.buff) == 32);
    assert!(offset_of!(Descriptor, payload.p2p.datatype) == 40);
    assert!(offset_of!(Descriptor, payload.p2p.count) == 48);
    assert!(offset_of!(Descriptor, payload.p2p.peer) == 56);
    assert!(offset_of!(Descriptor, payload.p2p.n_channels) == 60);
    assert!(offset_of!(Descriptor, payload.p2p.parent_group) == 64);
    assert!(offset_of!(Descriptor, payload.p2p.user_tag) == 72);
    assert!(offset_of!(Descriptor, payload.proxy_op.pid) == 24);
    assert!(offset_of!(Descriptor, payload.proxy_op.channel_id) == 28);
    assert!(offset_of!(Descriptor, payload.proxy_op.peer) == 32);
    assert!(offset_of!(Descriptor, payload.proxy_op.n_steps) == 36);
    assert!(offset_of!(Descriptor, payload.proxy_op.chunk_size) == 40);
    assert!(offset_of!(Descriptor, payload.proxy_op.is_send) == 44);
    assert!(offset_of!(Descriptor, payload.proxy_step.step) == 24);
    assert!(offset_of!(Descriptor, payload.kernel_ch.channel_id) == 24);
    assert!(offset_of!(Descriptor, payload.kernel_ch.p_timer) == 32);
    assert!(offset_of!(Descriptor, payload.net_plugin.id) == 24);
    assert!(offset_of!(Descriptor, payload.net_plugin.data) == 32);
    assert!(offset_of!(Descriptor, payload.ce_coll.seq_number) == 24);
    assert!(offset_of!(Descriptor, payload.ce_coll.func) == 32);
    assert!(offset_of!(Descriptor, payload.ce_coll.send_buff) == 40);
    assert!(offset_of!(Descriptor, payload.ce_coll.recv_buff) == 48);
    assert!(offset_of!(Descriptor, payload.ce_coll.count) == 56);
    assert!(offset_of!(Descriptor, payload.ce_coll.root) == 64);
    assert!(offset_of!(Descriptor, payload.ce_coll.datatype) == 72);
    assert!(offset_of!(Descriptor, payload.ce_coll.sync_strategy) == 80);
    assert!(offset_of!(Descriptor, payload.ce_coll.intra_batch_sync) == 88);
    assert!(offset_of!(Descriptor, payload.ce_coll.batch_size) == 92);
    assert!(offset_of!(Descriptor, payload.ce_coll.num_batches) == 96);
    assert!(offset_of!(Descriptor, payload.ce_coll.ce_seq_num) == 100);
    assert!(offset_of!(Descriptor, payload.ce_coll.stream) == 104);
    assert!(offset_of!(Descriptor, payload.ce_coll.user_tag) == 112);
    assert!(offset_of!(Descriptor, payload.ce_coll_sync.is_complete) == 24);
    assert!(offset_of!(Descriptor, payload.ce_coll_sync.n_ranks) == 28);
    assert!(offset_of!(Descriptor, payload.ce_coll_batch.num_ops) == 24);
    assert!(offset_of!(Descriptor, payload.ce_coll_batch.total_bytes) == 32);
    assert!(offset_of!(Descriptor, payload.ce_coll_batch.use_intra_sync) == 40);
    assert!(offset_of!(Descriptor, payload.kernel_phase.channel_id) == 24);
    assert!(offset_of!(Descriptor, payload.kernel_phase.phase_id) == 25);
    assert!(offset_of!(Descriptor, payload.kernel_phase.phase_name) == 32);
    assert!(offset_of!(Descriptor, payload.kernel_phase.p_timer) == 40);
    assert!(offset_of!(StateArgs, proxy_step.trans_size) == 0);
    assert!(offset_of!(StateArgs, proxy_ctrl.appended_proxy_ops) == 0);
    assert!(offset_of!(StateArgs, net_plugin.data) == 0);
    assert!(offset_of!(StateArgs, kernel_ch.p_timer) == 0);
    assert!(size_of::<StateArgs>() == 8);
    assert!(offset_of!(Profiler, name) == 0);
    assert!(offset_of!(Profiler, init) == 8);
    assert!(offset_of!(Profiler, start_event) == 16);
    assert!(offset_of!(Profiler, stop_event) == 24);
    assert!(offset_of!(Profiler, record_event_state) == 32);
    assert!(offset_of!(Profiler, finalize) == 40);
    assert!(size_of::<Profiler>() == 112);
};
