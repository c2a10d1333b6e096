//! Layout of the packed records.
//!
//! Generated from host/engine/layout/packed.toml by host/engine/tests/packed_layout.rs. Do not edit.

/// Words of a record: One collective or point-to-point operation as issued by one rank.
pub const OPERATION_WORDS: usize = 32;

/// Unique in this process.
pub(crate) const OPERATION_ID: (usize, u32) = (0, 0);

/// Index of the communicator, as `communicator-opened` gave it.
pub(crate) const OPERATION_COMMUNICATOR: (usize, u32) = (1, 0);

/// What was called.
pub(crate) const OPERATION_COLLECTIVE: (usize, u32) = (1, 32);

/// Element type.
pub(crate) const OPERATION_DATATYPE: (usize, u32) = (1, 40);

/// NCCL's choice.
pub(crate) const OPERATION_ALGORITHM: (usize, u32) = (1, 48);

/// NCCL's choice.
pub(crate) const OPERATION_PROTOCOL: (usize, u32) = (1, 56);

/// What is particular about it.
pub(crate) const OPERATION_CIRCUMSTANCES: (usize, u32) = (2, 0);

/// Which of the values that can be absent are there.
pub(crate) const OPERATION_PRESENT: (usize, u32) = (2, 32);

/// What sort of thing it is.
pub(crate) const OPERATION_KIND: (usize, u32) = (2, 48);

/// Where `duration` comes from.
pub(crate) const OPERATION_TIMING: (usize, u32) = (2, 52);

/// 0 to 47: 0 is size 0 or unknown, c is 2^(c-1) up to, not including, 2^c bytes; 47 also what is larger.
pub(crate) const OPERATION_SIZE_CLASS: (usize, u32) = (2, 56);

/// NCCL's number, per function and communicator; for P2P and replays our count.
pub(crate) const OPERATION_SEQUENCE: (usize, u32) = (3, 0);

/// As NCCL said.
pub(crate) const OPERATION_COUNT: (usize, u32) = (4, 0);

/// What `algbw` is computed from (the convention of nccl-tests).
pub(crate) const OPERATION_BYTES: (usize, u32) = (5, 0);

/// `count` × size of an element.
pub(crate) const OPERATION_RANK_BYTES: (usize, u32) = (6, 0);

/// Root of a rooted collective, peer of a P2P, else -1.
pub(crate) const OPERATION_PARTNER: (usize, u32) = (7, 0);

/// Channels announced; 0 if unknown.
pub(crate) const OPERATION_CHANNELS_USED: (usize, u32) = (7, 32);

/// Channels seen.
pub(crate) const OPERATION_CHANNELS_SEEN: (usize, u32) = (7, 48);

/// Warps announced.
pub(crate) const OPERATION_WARPS: (usize, u32) = (8, 0);

/// Members of an inferred group, else 0.
pub(crate) const OPERATION_MEMBERS: (usize, u32) = (8, 32);

/// When it was enqueued.
pub(crate) const OPERATION_ENQUEUED: (usize, u32) = (9, 0);

/// How long the enqueue took.
pub(crate) const OPERATION_ENQUEUE: (usize, u32) = (10, 0);

/// From enqueue to the first kernel, by CPU clocks.
pub(crate) const OPERATION_QUEUED: (usize, u32) = (11, 0);

/// First start to last end over all channels, by `timing`.
pub(crate) const OPERATION_DURATION: (usize, u32) = (12, 0);

/// The longest single channel, by the same source.
pub(crate) const OPERATION_LONGEST_CHANNEL: (usize, u32) = (13, 0);

/// The last sign of it.
pub(crate) const OPERATION_ENDED: (usize, u32) = (14, 0);

/// GPU stamp of the first usable start.
pub(crate) const OPERATION_GPU_START: (usize, u32) = (15, 0);

/// GPU stamp of the last usable stop.
pub(crate) const OPERATION_GPU_STOP: (usize, u32) = (16, 0);

/// Algorithm bandwidth.
pub(crate) const OPERATION_ALGBW: (usize, u32) = (17, 0);

/// Bus bandwidth.
pub(crate) const OPERATION_BUSBW: (usize, u32) = (18, 0);

/// Proxy steps: waiting for the GPU.
pub(crate) const OPERATION_WAIT_GPU: (usize, u32) = (19, 0);

/// Proxy steps: waiting for the peer's credit.
pub(crate) const OPERATION_WAIT_PEER: (usize, u32) = (20, 0);

/// Proxy steps: on the wire.
pub(crate) const OPERATION_WAIT_WIRE: (usize, u32) = (21, 0);

/// Proxy steps: flush of received data.
pub(crate) const OPERATION_WAIT_FLUSH: (usize, u32) = (22, 0);

/// Bytes that its proxies sent; 0 if steps were not observed.
pub(crate) const OPERATION_SENT: (usize, u32) = (23, 0);

/// Bytes that its proxies received; 0 if steps were not observed.
pub(crate) const OPERATION_RECEIVED: (usize, u32) = (24, 0);

/// Proxy operations seen.
pub(crate) const OPERATION_PROXY_OPERATIONS: (usize, u32) = (25, 0);

/// Proxy steps seen.
pub(crate) const OPERATION_PROXY_STEPS: (usize, u32) = (25, 32);

/// The caller's tag (profiler interface v7), 0 if none.
pub(crate) const OPERATION_USER_TAG: (usize, u32) = (26, 0);

/// The group that it was issued in; 0 if not known.
pub(crate) const OPERATION_GROUP: (usize, u32) = (27, 0);

/// Index of its first record in `children`.
pub(crate) const OPERATION_CHILDREN_FIRST: (usize, u32) = (28, 0);

/// Records of it in `children`: channels, each followed by its phases, then proxy operations, each followed by its steps.
pub(crate) const OPERATION_CHILDREN_COUNT: (usize, u32) = (28, 32);

/// Sinks that it goes to so far, a bit each.
pub(crate) const OPERATION_SINKS: (usize, u32) = (29, 0);

/// Words of a record: A channel, phase, proxy operation or proxy step of an operation. Which of the fields hold depends on `child_kind`; a time of 0 is one that never came.
pub const CHILD_WORDS: usize = 12;

/// What it is.
pub(crate) const CHILD_CHILD_KIND: (usize, u32) = (0, 0);

/// Channel, phase, proxy operation, step: NCCL's channel.
pub(crate) const CHILD_CHANNEL: (usize, u32) = (0, 8);

/// Phase: NCCL's number.
pub(crate) const CHILD_PHASE: (usize, u32) = (0, 16);

/// Proxy operation: sends, else receives.
pub(crate) const CHILD_SEND: (usize, u32) = (0, 24);

/// Proxy operation, step: the peer's rank.
pub(crate) const CHILD_PEER: (usize, u32) = (0, 32);

/// Channel, phase: GPU stamp; 0 if none.
pub(crate) const CHILD_GPU_START: (usize, u32) = (1, 0);

/// Channel, phase: GPU stamp; 0 if none.
pub(crate) const CHILD_GPU_STOP: (usize, u32) = (2, 0);

/// Channel: seen by the CPU; proxy operation, step: started.
pub(crate) const CHILD_START: (usize, u32) = (3, 0);

/// As `start`: the end.
pub(crate) const CHILD_STOP: (usize, u32) = (4, 0);

/// Proxy operation, step: moved.
pub(crate) const CHILD_BYTES: (usize, u32) = (5, 0);

/// Proxy operation: steps announced. Step: its number.
pub(crate) const CHILD_STEPS: (usize, u32) = (6, 0);

/// Proxy operation: steps that ended.
pub(crate) const CHILD_STEPS_DONE: (usize, u32) = (6, 32);

/// Proxy operation: size of a chunk.
pub(crate) const CHILD_CHUNK_BYTES: (usize, u32) = (7, 0);

/// Proxy operation: process that posted it, if another one (PXN), else 0.
pub(crate) const CHILD_FOREIGN_PROCESS: (usize, u32) = (7, 32);

/// Proxy operation: time its steps waited for the GPU. Step: began to wait for the GPU.
pub(crate) const CHILD_WAIT_GPU: (usize, u32) = (8, 0);

/// The same, for the peer's credit.
pub(crate) const CHILD_WAIT_PEER: (usize, u32) = (9, 0);

/// The same, on the wire (step: posted).
pub(crate) const CHILD_WAIT_WIRE: (usize, u32) = (10, 0);

/// The same, for the flush.
pub(crate) const CHILD_WAIT_FLUSH: (usize, u32) = (11, 0);

/// Bit of `present`.
pub(crate) const PRESENT_BYTES: u64 = 1 << 0;

/// Bit of `present`.
pub(crate) const PRESENT_RANK_BYTES: u64 = 1 << 1;

/// Bit of `present`.
pub(crate) const PRESENT_QUEUED: u64 = 1 << 2;

/// Bit of `present`.
pub(crate) const PRESENT_DURATION: u64 = 1 << 3;

/// Bit of `present`.
pub(crate) const PRESENT_LONGEST_CHANNEL: u64 = 1 << 4;

/// Bit of `present`.
pub(crate) const PRESENT_GPU_START: u64 = 1 << 5;

/// Bit of `present`.
pub(crate) const PRESENT_GPU_STOP: u64 = 1 << 6;

/// Bit of `present`.
pub(crate) const PRESENT_ALGBW: u64 = 1 << 7;

/// Bit of `present`.
pub(crate) const PRESENT_BUSBW: u64 = 1 << 8;

/// Bit of `present`.
pub(crate) const PRESENT_WAITS: u64 = 1 << 9;

/// Value of `child_kind`.
pub(crate) const CHILD_KIND_CHANNEL: u64 = 0;

/// Value of `child_kind`.
pub(crate) const CHILD_KIND_PHASE: u64 = 1;

/// Value of `child_kind`.
pub(crate) const CHILD_KIND_PROXY_OPERATION: u64 = 2;

/// Value of `child_kind`.
pub(crate) const CHILD_KIND_PROXY_STEP: u64 = 3;

/// A verdict.
pub(crate) const VERDICT_DROP: u8 = 0;

/// A verdict.
pub(crate) const VERDICT_KEEP: u8 = 1;

/// A verdict.
pub(crate) const VERDICT_ROUTE: u8 = 128;
