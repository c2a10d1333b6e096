//! Bits of the kinds of events (mask and `type`) and numbers of the states.

macro_rules! constants {
    ($type:ty: $($(#[doc = $doc:literal])+ $name:ident = $value:expr;)+) => {
        $($(#[doc = $doc])+ pub const $name: $type = $value;)+
    };
}

constants! { u64:
    /// Group of tasks of a launch plan.
    GROUP = 1 << 0;
    /// Collective.
    COLL = 1 << 1;
    /// Send or receive.
    P2P = 1 << 2;
    /// Network operation of a channel.
    PROXY_OP = 1 << 3;
    /// Step of a network operation.
    PROXY_STEP = 1 << 4;
    /// Proxy thread's own activity.
    PROXY_CTRL = 1 << 5;
    /// Channel of a kernel (v3 and later).
    KERNEL_CH = 1 << 6;
    /// Network plugin (v3 and later).
    NET_PLUGIN = 1 << 7;
    /// User-level group (v5 and later).
    GROUP_API = 1 << 8;
    /// User's call of a collective (v5 and later).
    COLL_API = 1 << 9;
    /// User's call of a send or receive (v5 and later).
    P2P_API = 1 << 10;
    /// Kernel launch (v5 and later).
    KERNEL_LAUNCH = 1 << 11;
    /// Copy-engine collective (v6 and later).
    CE_COLL = 1 << 12;
    /// Synchronisation of a copy-engine collective (v6 and later).
    CE_SYNC = 1 << 13;
    /// Batch of a copy-engine collective (v6 and later).
    CE_BATCH = 1 << 14;
    /// Phase of a symmetric kernel (v7).
    KERNEL_PHASE = 1 << 15;
}

constants! { core::ffi::c_int:
    /// ProxyOp, v1 to v3.
    STATE_PROXY_OP_SEND_POSTED = 0;
    /// ProxyOp, v1 to v3.
    STATE_PROXY_OP_SEND_REM_FIFO_WAIT = 1;
    /// ProxyOp, v1 to v3.
    STATE_PROXY_OP_SEND_TRANSMITTED = 2;
    /// ProxyOp, v1 to v3.
    STATE_PROXY_OP_SEND_DONE = 3;
    /// ProxyOp, v1 to v3.
    STATE_PROXY_OP_RECV_POSTED = 4;
    /// ProxyOp, v1 to v3.
    STATE_PROXY_OP_RECV_RECEIVED = 5;
    /// ProxyOp, v1 to v3.
    STATE_PROXY_OP_RECV_TRANSMITTED = 6;
    /// ProxyOp, v1 to v3.
    STATE_PROXY_OP_RECV_DONE = 7;
    /// ProxyStep, send: waits for the GPU.
    STATE_PROXY_STEP_SEND_GPU_WAIT = 8;
    /// ProxyStep, send: on the wire; its size counts.
    STATE_PROXY_STEP_SEND_WAIT = 9;
    /// ProxyStep, receive: waits for the peer.
    STATE_PROXY_STEP_RECV_WAIT = 10;
    /// ProxyStep, receive: waits for the flush; its size counts.
    STATE_PROXY_STEP_RECV_FLUSH_WAIT = 11;
    /// ProxyStep, receive: waits for the GPU; its size counts.
    STATE_PROXY_STEP_RECV_GPU_WAIT = 12;
    /// ProxyCtrl.
    STATE_PROXY_CTRL_IDLE = 13;
    /// ProxyCtrl.
    STATE_PROXY_CTRL_ACTIVE = 14;
    /// ProxyCtrl.
    STATE_PROXY_CTRL_SLEEP = 15;
    /// ProxyCtrl.
    STATE_PROXY_CTRL_WAKEUP = 16;
    /// ProxyCtrl.
    STATE_PROXY_CTRL_APPEND = 17;
    /// ProxyCtrl: its argument counts.
    STATE_PROXY_CTRL_APPEND_END = 18;
    /// ProxyOp is in progress (v4 and later); the arguments hold nothing.
    STATE_PROXY_OP_IN_PROGRESS = 19;
    /// ProxyStep, send: waits for the peer's credit (v4 and later).
    STATE_PROXY_STEP_SEND_PEER_WAIT = 20;
    /// NetPlugin update.
    STATE_NET_PLUGIN_UPDATE = 21;
    /// KernelCh ended (v4 and later); the GPU timer.
    STATE_KERNEL_CH_STOP = 22;
    /// `ncclGroupStart` returned (v5 and later); no arguments.
    STATE_GROUP_START_API_STOP = 23;
    /// `ncclGroupEnd` began (v5 and later); no arguments.
    STATE_GROUP_END_API_START = 24;
    /// First of three start and complete pairs of the copy engine (v6 and later).
    STATE_CE_FIRST = 25;
    /// Last of them.
    STATE_CE_LAST = 30;
    /// KernelPhase ended (v7); the GPU timer.
    STATE_KERNEL_PHASE_STOP = 31;
}
