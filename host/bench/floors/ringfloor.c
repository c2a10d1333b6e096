/*
 * The floor of a library that records: time stamp + one 64-byte record into a bounded single-producer ring, on every
 * callback. A drain thread empties the rings every 500 microseconds and looks at nothing but one word of each record.
 * With -DLEAN: no record for parents (groups, API calls, launches), and a kernel channel's stop is merged into its state.
 * It has no clock calibration, no interning, no plan, no guard, and serves one communicator: a floor, not a profiler.
 */
#define _POSIX_C_SOURCE 200809L
#include "floor.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 1 << 16, THREADS = 64 };

struct record {
    uint64_t word[8];
} __attribute__((aligned(64)));

struct ring {
    /* The producer's. */
    _Atomic uint32_t head __attribute__((aligned(64)));
    uint32_t tail_seen;
    uint64_t next_id, dropped;
    /* The drain's. */
    _Atomic uint32_t tail __attribute__((aligned(64)));
    struct record slot[SLOTS];
};

static struct ring *_Atomic rings[THREADS];
static _Atomic int ring_count;
static _Atomic int stopping;
static pthread_t drain_thread;
static _Thread_local struct ring *mine __attribute__((tls_model("initial-exec")));

static inline uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
#error "no time stamp known for this architecture"
#endif
}

static __attribute__((noinline)) struct ring *open_ring(void) {
    int index = atomic_fetch_add(&ring_count, 1);
    if (index >= THREADS) abort();
    struct ring *ring = aligned_alloc(4096, (sizeof(struct ring) + 4095) / 4096 * 4096);
    if (!ring) abort();
    memset(ring, 0, sizeof *ring); /* touch every page before the first record */
    ring->next_id = (uint64_t)(index + 1) << 48;
    atomic_store(&rings[index], ring);
    return mine = ring;
}

/* This thread's ring and its next free slot; NULL if the drain is too far behind. */
static inline struct record *claim(struct ring **of) {
    struct ring *ring = mine;
    if (__builtin_expect(!ring, 0)) ring = open_ring();
    *of = ring;
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (__builtin_expect(head - ring->tail_seen >= SLOTS, 0)) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head - ring->tail_seen >= SLOTS) {
            ring->dropped++;
            return NULL;
        }
    }
    return &ring->slot[head % SLOTS];
}

static inline void publish(struct ring *ring) {
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

static void *drain(void *unused) {
    (void)unused;
    const struct timespec period = {0, 500000};
    uint64_t seen = 0, dropped = 0;
    for (;;) {
        int last = atomic_load(&stopping);
        uint64_t before = seen;
        for (int i = 0; i < atomic_load(&ring_count) && i < THREADS; i++) {
            struct ring *ring = atomic_load(&rings[i]);
            if (!ring) continue;
            uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
            uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
            __asm__ volatile("" ::"r"(ring->slot[tail % SLOTS].word[0]));
            seen += head - tail;
            atomic_store_explicit(&ring->tail, head, memory_order_release);
        }
        if (seen != before) continue;
        if (last) break;
        nanosleep(&period, NULL);
    }
    for (int i = 0; i < atomic_load(&ring_count) && i < THREADS; i++) dropped += atomic_load(&rings[i])->dropped;
    if (dropped) fprintf(stderr, "ringfloor: %lu of %lu records dropped\n", dropped, dropped + seen);
    return NULL;
}

static int init(void **context, uint64_t comm, int *mask, const char *name, int nodes, int ranks, int rank, void *logger) {
    (void)comm, (void)name, (void)nodes, (void)ranks, (void)rank, (void)logger;
    *context = (void *)1;
    *mask = floor_mask();
    return pthread_create(&drain_thread, NULL, drain, NULL) ? 3 : 0;
}

#ifdef LEAN
enum { UNRECORDED_PARENTS = GROUP | GROUP_API | COLL_API | P2P_API | KERNEL_LAUNCH };
enum { NOT_RECORDED = 1, MERGED_STOP = 2, ID_SHIFT = 2 };
#endif

static int start(void *context, void **handle, struct descriptor *descriptor) {
    (void)context;
#ifdef LEAN
    if (descriptor->type & UNRECORDED_PARENTS) {
        *handle = (void *)(16 | NOT_RECORDED);
        return 0;
    }
#endif
    struct ring *ring;
    struct record *record = claim(&ring);
    if (__builtin_expect(!record, 0)) {
        *handle = (void *)16;
        return 0;
    }
    uint64_t id = ++ring->next_id;
#ifdef LEAN
    id = id << ID_SHIFT | (descriptor->type == KERNEL_CH ? MERGED_STOP : 0);
#endif
    record->word[0] = ticks();
    record->word[1] = id;
    record->word[2] = (uint64_t)descriptor->parent;
    record->word[3] = descriptor->type << 8;
    if (descriptor->type == COLL) {
        record->word[4] = descriptor->payload.coll.sequence;
        record->word[5] = descriptor->payload.coll.count;
        record->word[6] = (uint64_t)descriptor->payload.coll.function;
        record->word[7] = (uint64_t)descriptor->payload.coll.algorithm;
    } else {
        record->word[4] = descriptor->payload.words[0];
        record->word[5] = descriptor->payload.words[1];
        record->word[6] = descriptor->payload.words[2];
        record->word[7] = 0;
    }
    publish(ring);
    *handle = (void *)id;
    return 0;
}

static int stop(void *handle) {
#ifdef LEAN
    if ((uintptr_t)handle & (NOT_RECORDED | MERGED_STOP)) return 0;
#endif
    struct ring *ring;
    struct record *record = claim(&ring);
    if (__builtin_expect(!record, 0)) return 0;
    record->word[0] = ticks();
    record->word[1] = (uint64_t)handle;
    record->word[3] = 1;
    publish(ring);
    return 0;
}

static int state(void *handle, int state, union state_args *args) {
#ifdef LEAN
    if ((uintptr_t)handle & NOT_RECORDED) return 0;
#endif
    struct ring *ring;
    struct record *record = claim(&ring);
    if (__builtin_expect(!record, 0)) return 0;
    record->word[0] = ticks();
    record->word[1] = (uint64_t)handle;
    record->word[3] = 2 | (uint64_t)state << 8;
    record->word[4] = args ? args->word : 0;
    publish(ring);
    return 0;
}

static int finalize(void *context) {
    (void)context;
    atomic_store(&stopping, 1);
    pthread_join(drain_thread, NULL);
    return 0;
}

#ifdef LEAN
#define NAME "ringfloor-lean"
#else
#define NAME "ringfloor"
#endif
__attribute__((visibility("default"))) struct profiler ncclProfiler_v6 = {NAME, init, start, stop, state, finalize, {0}};
