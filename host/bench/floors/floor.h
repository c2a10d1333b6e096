/* What the floors need of NCCL's interface, version 6. The Rust side, with every offset asserted, is host/abi. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { GROUP = 1 << 0, COLL = 1 << 1, PROXY_CTRL = 1 << 5, KERNEL_CH = 1 << 6, NET_PLUGIN = 1 << 7 };
enum { GROUP_API = 1 << 8, COLL_API = 1 << 9, P2P_API = 1 << 10, KERNEL_LAUNCH = 1 << 11 };
enum { ALL_BUT_RARE = 0xfff & ~(NET_PLUGIN | PROXY_CTRL), STATE_KERNEL_CH_STOP = 22 };

/* Every kind's payload starts at byte 24; of Coll the floors read three members, of the others the first words. */
struct descriptor {
    uint64_t type;
    void *parent;
    int rank;
    union {
        uint64_t words[11];
        struct {
            uint64_t sequence;
            const char *function;
            const void *send;
            void *receive;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
            void *parent_group;
        } coll;
    } payload;
};
_Static_assert(offsetof(struct descriptor, payload) == 24, "payload");
_Static_assert(offsetof(struct descriptor, payload.coll.algorithm) == 88, "algorithm");
_Static_assert(sizeof(struct descriptor) == 112, "descriptor");

union state_args {
    uint64_t word;
};

struct profiler {
    const char *name;
    int (*init)(void **context, uint64_t comm, int *mask, const char *name, int nodes, int ranks, int rank, void *logger);
    int (*start)(void *context, void **handle, struct descriptor *descriptor);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, union state_args *args);
    int (*finalize)(void *context);
    void *padding[2];
};

/* The mask to ask for: FLOOR_MASK, so that a floor gets exactly the calls that the library beside it gets. */
static inline int floor_mask(void) {
    const char *text = getenv("FLOOR_MASK");
    if (!text) text = getenv("NULL_MASK");
    return text ? (int)strtol(text, NULL, 0) : ALL_BUT_RARE;
}
