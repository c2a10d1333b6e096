/* Views of the packed records.
 * Generated from host/engine/layout/packed.toml by host/engine/tests/packed_layout.rs. Do not edit. */
#ifndef COLLANDER_PACKED_H
#define COLLANDER_PACKED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum collander_algorithm {
  COLLANDER_ALGORITHM_UNKNOWN = 0,
  COLLANDER_ALGORITHM_TREE = 1,
  COLLANDER_ALGORITHM_RING = 2,
  COLLANDER_ALGORITHM_COLLNET_DIRECT = 3,
  COLLANDER_ALGORITHM_COLLNET_CHAIN = 4,
  COLLANDER_ALGORITHM_NVLS = 5,
  COLLANDER_ALGORITHM_NVLS_TREE = 6,
  COLLANDER_ALGORITHM_PAT = 7,
  COLLANDER_ALGORITHM_SYMMETRIC = 8,
  COLLANDER_ALGORITHM_COPY_ENGINE = 9,
};

enum collander_child_kind {
  COLLANDER_CHILD_KIND_CHANNEL = 0,
  COLLANDER_CHILD_KIND_PHASE = 1,
  COLLANDER_CHILD_KIND_PROXY_OPERATION = 2,
  COLLANDER_CHILD_KIND_PROXY_STEP = 3,
};

enum collander_collective {
  COLLANDER_COLLECTIVE_UNKNOWN = 0,
  COLLANDER_COLLECTIVE_ALL_REDUCE = 1,
  COLLANDER_COLLECTIVE_ALL_GATHER = 2,
  COLLANDER_COLLECTIVE_REDUCE_SCATTER = 3,
  COLLANDER_COLLECTIVE_BROADCAST = 4,
  COLLANDER_COLLECTIVE_REDUCE = 5,
  COLLANDER_COLLECTIVE_ALL_TO_ALL = 6,
  COLLANDER_COLLECTIVE_GATHER = 7,
  COLLANDER_COLLECTIVE_SCATTER = 8,
  COLLANDER_COLLECTIVE_SEND = 9,
  COLLANDER_COLLECTIVE_RECV = 10,
  COLLANDER_COLLECTIVE_SEND_RECV = 11,
  COLLANDER_COLLECTIVE_ALL_GATHER_V = 12,
  COLLANDER_COLLECTIVE_PUT_SIGNAL = 13,
  COLLANDER_COLLECTIVE_SIGNAL = 14,
  COLLANDER_COLLECTIVE_WAIT_SIGNAL = 15,
};

enum collander_datatype {
  COLLANDER_DATATYPE_UNKNOWN = 0,
  COLLANDER_DATATYPE_INT8 = 1,
  COLLANDER_DATATYPE_UINT8 = 2,
  COLLANDER_DATATYPE_INT32 = 3,
  COLLANDER_DATATYPE_UINT32 = 4,
  COLLANDER_DATATYPE_INT64 = 5,
  COLLANDER_DATATYPE_UINT64 = 6,
  COLLANDER_DATATYPE_FLOAT16 = 7,
  COLLANDER_DATATYPE_FLOAT32 = 8,
  COLLANDER_DATATYPE_FLOAT64 = 9,
  COLLANDER_DATATYPE_BFLOAT16 = 10,
  COLLANDER_DATATYPE_FLOAT8_E4M3 = 11,
  COLLANDER_DATATYPE_FLOAT8_E5M2 = 12,
};

enum collander_kind {
  COLLANDER_KIND_COLLECTIVE = 0,
  COLLANDER_KIND_POINT_TO_POINT = 1,
  COLLANDER_KIND_COPY_ENGINE = 2,
  COLLANDER_KIND_API = 3,
  COLLANDER_KIND_INFERRED_GROUP = 4,
};

enum collander_protocol {
  COLLANDER_PROTOCOL_UNKNOWN = 0,
  COLLANDER_PROTOCOL_LL = 1,
  COLLANDER_PROTOCOL_LL128 = 2,
  COLLANDER_PROTOCOL_SIMPLE = 3,
};

enum collander_timing {
  COLLANDER_TIMING_GPU = 0,
  COLLANDER_TIMING_GPU_SOME_CHANNELS = 1,
  COLLANDER_TIMING_KERNEL_CPU = 2,
  COLLANDER_TIMING_PROXY_CPU = 3,
  COLLANDER_TIMING_ENQUEUE_ONLY = 4,
  COLLANDER_TIMING_UNOBSERVABLE = 5,
};

enum collander_circumstances {
  COLLANDER_CIRCUMSTANCES_GRAPH = 1u << 0,
  COLLANDER_CIRCUMSTANCES_REPLAY = 1u << 1,
  COLLANDER_CIRCUMSTANCES_INFERRED = 1u << 2,
  COLLANDER_CIRCUMSTANCES_OTHER_PROCESS = 1u << 3,
  COLLANDER_CIRCUMSTANCES_ABORTED = 1u << 4,
  COLLANDER_CIRCUMSTANCES_TIMED_OUT = 1u << 5,
  COLLANDER_CIRCUMSTANCES_CHANNELS_MISSING = 1u << 6,
  COLLANDER_CIRCUMSTANCES_TIMER_MISMATCH = 1u << 7,
  COLLANDER_CIRCUMSTANCES_IN_PLACE = 1u << 8,
  COLLANDER_CIRCUMSTANCES_SYMMETRIC = 1u << 9,
  COLLANDER_CIRCUMSTANCES_SUPERSEDED = 1u << 10,
  COLLANDER_CIRCUMSTANCES_EVICTED = 1u << 11,
  COLLANDER_CIRCUMSTANCES_NEVER_STOPPED = 1u << 12,
  COLLANDER_CIRCUMSTANCES_TIMER_TICKS_10NS = 1u << 13,
  COLLANDER_CIRCUMSTANCES_SELF_TRANSFER = 1u << 14,
  COLLANDER_CIRCUMSTANCES_IN_INFERRED_GROUP = 1u << 15,
};

enum collander_present {
  COLLANDER_PRESENT_BYTES = 1u << 0,
  COLLANDER_PRESENT_RANK_BYTES = 1u << 1,
  COLLANDER_PRESENT_QUEUED = 1u << 2,
  COLLANDER_PRESENT_DURATION = 1u << 3,
  COLLANDER_PRESENT_LONGEST_CHANNEL = 1u << 4,
  COLLANDER_PRESENT_GPU_START = 1u << 5,
  COLLANDER_PRESENT_GPU_STOP = 1u << 6,
  COLLANDER_PRESENT_ALGBW = 1u << 7,
  COLLANDER_PRESENT_BUSBW = 1u << 8,
  COLLANDER_PRESENT_WAITS = 1u << 9,
};

/* One collective or point-to-point operation as issued by one rank. */
#define COLLANDER_OPERATION_WORDS 32
typedef struct collander_operation {
  uint64_t words[COLLANDER_OPERATION_WORDS];
} collander_operation_t;
/* Unique in this process. */
static inline uint64_t collander_operation_id(const collander_operation_t *r) {
  return (uint64_t)r->words[0];
}
/* Index of the communicator, as `communicator-opened` gave it. */
static inline uint32_t collander_operation_communicator(const collander_operation_t *r) {
  return (uint32_t)(r->words[1] & 0xffffffffu);
}
/* What was called. */
static inline enum collander_collective collander_operation_collective(const collander_operation_t *r) {
  return (enum collander_collective)((r->words[1] >> 32) & 0xffu);
}
/* Element type. */
static inline enum collander_datatype collander_operation_datatype(const collander_operation_t *r) {
  return (enum collander_datatype)((r->words[1] >> 40) & 0xffu);
}
/* NCCL's choice. */
static inline enum collander_algorithm collander_operation_algorithm(const collander_operation_t *r) {
  return (enum collander_algorithm)((r->words[1] >> 48) & 0xffu);
}
/* NCCL's choice. */
static inline enum collander_protocol collander_operation_protocol(const collander_operation_t *r) {
  return (enum collander_protocol)((r->words[1] >> 56) & 0xffu);
}
/* What is particular about it. */
static inline uint32_t collander_operation_circumstances(const collander_operation_t *r) {
  return (uint32_t)(r->words[2] & 0xffffffffu);
}
/* Which of the values that can be absent are there. */
static inline uint32_t collander_operation_present(const collander_operation_t *r) {
  return (uint32_t)((r->words[2] >> 32) & 0xffffu);
}
/* What sort of thing it is. */
static inline enum collander_kind collander_operation_kind(const collander_operation_t *r) {
  return (enum collander_kind)((r->words[2] >> 48) & 0xfu);
}
/* Where `duration` comes from. */
static inline enum collander_timing collander_operation_timing(const collander_operation_t *r) {
  return (enum collander_timing)((r->words[2] >> 52) & 0xfu);
}
/* 0 to 47: 0 is size 0 or unknown, c is 2^(c-1) up to, not including, 2^c bytes; 47 also what is larger. */
static inline uint8_t collander_operation_size_class(const collander_operation_t *r) {
  return (uint8_t)((r->words[2] >> 56) & 0xffu);
}
/* NCCL's number, per function and communicator; for P2P and replays our count. */
static inline uint64_t collander_operation_sequence(const collander_operation_t *r) {
  return (uint64_t)r->words[3];
}
/* As NCCL said. Unit: elements. */
static inline uint64_t collander_operation_count(const collander_operation_t *r) {
  return (uint64_t)r->words[4];
}
/* What `algbw` is computed from (the convention of nccl-tests). Unit: bytes. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_bytes(const collander_operation_t *r) {
  return (uint64_t)r->words[5];
}
static inline bool collander_operation_has_bytes(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_BYTES) != 0;
}
/* `count` × size of an element. Unit: bytes. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_rank_bytes(const collander_operation_t *r) {
  return (uint64_t)r->words[6];
}
static inline bool collander_operation_has_rank_bytes(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_RANK_BYTES) != 0;
}
/* Root of a rooted collective, peer of a P2P, else -1. */
static inline int32_t collander_operation_partner(const collander_operation_t *r) {
  return (int32_t)(r->words[7] & 0xffffffffu);
}
/* Channels announced; 0 if unknown. */
static inline uint16_t collander_operation_channels_used(const collander_operation_t *r) {
  return (uint16_t)((r->words[7] >> 32) & 0xffffu);
}
/* Channels seen. */
static inline uint16_t collander_operation_channels_seen(const collander_operation_t *r) {
  return (uint16_t)((r->words[7] >> 48) & 0xffffu);
}
/* Warps announced. */
static inline uint8_t collander_operation_warps(const collander_operation_t *r) {
  return (uint8_t)(r->words[8] & 0xffu);
}
/* Members of an inferred group, else 0. */
static inline uint32_t collander_operation_members(const collander_operation_t *r) {
  return (uint32_t)((r->words[8] >> 32) & 0xffffffffu);
}
/* When it was enqueued. Unit: Unix ns. */
static inline uint64_t collander_operation_enqueued(const collander_operation_t *r) {
  return (uint64_t)r->words[9];
}
/* How long the enqueue took. Unit: ns. */
static inline uint64_t collander_operation_enqueue(const collander_operation_t *r) {
  return (uint64_t)r->words[10];
}
/* From enqueue to the first kernel, by CPU clocks. Unit: ns. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_queued(const collander_operation_t *r) {
  return (uint64_t)r->words[11];
}
static inline bool collander_operation_has_queued(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_QUEUED) != 0;
}
/* First start to last end over all channels, by `timing`. Unit: ns. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_duration(const collander_operation_t *r) {
  return (uint64_t)r->words[12];
}
static inline bool collander_operation_has_duration(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_DURATION) != 0;
}
/* The longest single channel, by the same source. Unit: ns. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_longest_channel(const collander_operation_t *r) {
  return (uint64_t)r->words[13];
}
static inline bool collander_operation_has_longest_channel(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_LONGEST_CHANNEL) != 0;
}
/* The last sign of it. Unit: Unix ns. */
static inline uint64_t collander_operation_ended(const collander_operation_t *r) {
  return (uint64_t)r->words[14];
}
/* GPU stamp of the first usable start. Unit: GPU's. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_gpu_start(const collander_operation_t *r) {
  return (uint64_t)r->words[15];
}
static inline bool collander_operation_has_gpu_start(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_GPU_START) != 0;
}
/* GPU stamp of the last usable stop. Unit: GPU's. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_gpu_stop(const collander_operation_t *r) {
  return (uint64_t)r->words[16];
}
static inline bool collander_operation_has_gpu_stop(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_GPU_STOP) != 0;
}
/* Algorithm bandwidth. Unit: GB/s (1e9). 0 if it is not known: see the function `…_has_…`. */
static inline double collander_operation_algbw(const collander_operation_t *r) {
  double v;
  memcpy(&v, &r->words[17], sizeof v);
  return v;
}
static inline bool collander_operation_has_algbw(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_ALGBW) != 0;
}
/* Bus bandwidth. Unit: GB/s (1e9). 0 if it is not known: see the function `…_has_…`. */
static inline double collander_operation_busbw(const collander_operation_t *r) {
  double v;
  memcpy(&v, &r->words[18], sizeof v);
  return v;
}
static inline bool collander_operation_has_busbw(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_BUSBW) != 0;
}
/* Proxy steps: waiting for the GPU. Unit: ns. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_wait_gpu(const collander_operation_t *r) {
  return (uint64_t)r->words[19];
}
static inline bool collander_operation_has_wait_gpu(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_WAITS) != 0;
}
/* Proxy steps: waiting for the peer's credit. Unit: ns. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_wait_peer(const collander_operation_t *r) {
  return (uint64_t)r->words[20];
}
static inline bool collander_operation_has_wait_peer(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_WAITS) != 0;
}
/* Proxy steps: on the wire. Unit: ns. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_wait_wire(const collander_operation_t *r) {
  return (uint64_t)r->words[21];
}
static inline bool collander_operation_has_wait_wire(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_WAITS) != 0;
}
/* Proxy steps: flush of received data. Unit: ns. 0 if it is not known: see the function `…_has_…`. */
static inline uint64_t collander_operation_wait_flush(const collander_operation_t *r) {
  return (uint64_t)r->words[22];
}
static inline bool collander_operation_has_wait_flush(const collander_operation_t *r) {
  return (collander_operation_present(r) & COLLANDER_PRESENT_WAITS) != 0;
}
/* Bytes that its proxies sent; 0 if steps were not observed. Unit: bytes. */
static inline uint64_t collander_operation_sent(const collander_operation_t *r) {
  return (uint64_t)r->words[23];
}
/* Bytes that its proxies received; 0 if steps were not observed. Unit: bytes. */
static inline uint64_t collander_operation_received(const collander_operation_t *r) {
  return (uint64_t)r->words[24];
}
/* Proxy operations seen. */
static inline uint32_t collander_operation_proxy_operations(const collander_operation_t *r) {
  return (uint32_t)(r->words[25] & 0xffffffffu);
}
/* Proxy steps seen. */
static inline uint32_t collander_operation_proxy_steps(const collander_operation_t *r) {
  return (uint32_t)((r->words[25] >> 32) & 0xffffffffu);
}
/* The caller's tag (profiler interface v7), 0 if none. */
static inline uint64_t collander_operation_user_tag(const collander_operation_t *r) {
  return (uint64_t)r->words[26];
}
/* The group that it was issued in; 0 if not known. */
static inline uint64_t collander_operation_group(const collander_operation_t *r) {
  return (uint64_t)r->words[27];
}
/* Index of its first record in `children`. */
static inline uint32_t collander_operation_children_first(const collander_operation_t *r) {
  return (uint32_t)(r->words[28] & 0xffffffffu);
}
/* Records of it in `children`: channels, each followed by its phases, then proxy operations, each followed by its steps. */
static inline uint32_t collander_operation_children_count(const collander_operation_t *r) {
  return (uint32_t)((r->words[28] >> 32) & 0xffffffffu);
}
/* Sinks that it goes to so far, a bit each. */
static inline uint32_t collander_operation_sinks(const collander_operation_t *r) {
  return (uint32_t)(r->words[29] & 0xffffffffu);
}

/* A channel, phase, proxy operation or proxy step of an operation. Which of the fields hold depends on `child_kind`; a time of 0 is one that never came. */
#define COLLANDER_CHILD_WORDS 12
typedef struct collander_child {
  uint64_t words[COLLANDER_CHILD_WORDS];
} collander_child_t;
/* What it is. */
static inline enum collander_child_kind collander_child_child_kind(const collander_child_t *r) {
  return (enum collander_child_kind)(r->words[0] & 0xffu);
}
/* Channel, phase, proxy operation, step: NCCL's channel. */
static inline uint8_t collander_child_channel(const collander_child_t *r) {
  return (uint8_t)((r->words[0] >> 8) & 0xffu);
}
/* Phase: NCCL's number. */
static inline uint8_t collander_child_phase(const collander_child_t *r) {
  return (uint8_t)((r->words[0] >> 16) & 0xffu);
}
/* Proxy operation: sends, else receives. */
static inline bool collander_child_send(const collander_child_t *r) {
  return (bool)((r->words[0] >> 24) & 0x1u);
}
/* Proxy operation, step: the peer's rank. */
static inline int32_t collander_child_peer(const collander_child_t *r) {
  return (int32_t)((r->words[0] >> 32) & 0xffffffffu);
}
/* Channel, phase: GPU stamp; 0 if none. Unit: GPU's. */
static inline uint64_t collander_child_gpu_start(const collander_child_t *r) {
  return (uint64_t)r->words[1];
}
/* Channel, phase: GPU stamp; 0 if none. Unit: GPU's. */
static inline uint64_t collander_child_gpu_stop(const collander_child_t *r) {
  return (uint64_t)r->words[2];
}
/* Channel: seen by the CPU; proxy operation, step: started. Unit: Unix ns. */
static inline uint64_t collander_child_start(const collander_child_t *r) {
  return (uint64_t)r->words[3];
}
/* As `start`: the end. Unit: Unix ns. */
static inline uint64_t collander_child_stop(const collander_child_t *r) {
  return (uint64_t)r->words[4];
}
/* Proxy operation, step: moved. Unit: bytes. */
static inline uint64_t collander_child_bytes(const collander_child_t *r) {
  return (uint64_t)r->words[5];
}
/* Proxy operation: steps announced. Step: its number. */
static inline uint32_t collander_child_steps(const collander_child_t *r) {
  return (uint32_t)(r->words[6] & 0xffffffffu);
}
/* Proxy operation: steps that ended. */
static inline uint32_t collander_child_steps_done(const collander_child_t *r) {
  return (uint32_t)((r->words[6] >> 32) & 0xffffffffu);
}
/* Proxy operation: size of a chunk. Unit: bytes. */
static inline uint32_t collander_child_chunk_bytes(const collander_child_t *r) {
  return (uint32_t)(r->words[7] & 0xffffffffu);
}
/* Proxy operation: process that posted it, if another one (PXN), else 0. */
static inline int32_t collander_child_foreign_process(const collander_child_t *r) {
  return (int32_t)((r->words[7] >> 32) & 0xffffffffu);
}
/* Proxy operation: time its steps waited for the GPU. Step: began to wait for the GPU. Unit: ns; step: Unix ns. */
static inline uint64_t collander_child_wait_gpu(const collander_child_t *r) {
  return (uint64_t)r->words[8];
}
/* The same, for the peer's credit. Unit: ns; step: Unix ns. */
static inline uint64_t collander_child_wait_peer(const collander_child_t *r) {
  return (uint64_t)r->words[9];
}
/* The same, on the wire (step: posted). Unit: ns; step: Unix ns. */
static inline uint64_t collander_child_wait_wire(const collander_child_t *r) {
  return (uint64_t)r->words[10];
}
/* The same, for the flush. Unit: ns; step: Unix ns. */
static inline uint64_t collander_child_wait_flush(const collander_child_t *r) {
  return (uint64_t)r->words[11];
}

#define COLLANDER_VERDICT_DROP 0
#define COLLANDER_VERDICT_KEEP 1
#define COLLANDER_VERDICT_ROUTE 128

#endif
