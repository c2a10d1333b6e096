/*
 * One rank of a job: AllReduce of four sizes, each repeated, checked. Uses libnccl and the CUDA driver by their documented
 * functions, loaded by name, so that it compiles without either.
 * usage: all_reduce LIBNCCL RANKS RANK ID_FILE      exit code: 0 done, 1 wrong, 77 no GPU or no NCCL
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char bytes[128];
} unique_id;
enum { FLOAT32 = 7, SUM = 0, REPEATS = 20, SKIP = 77 };

static void *load(const char *name) {
    void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "skipped: %s\n", dlerror());
        exit(SKIP);
    }
    return library;
}

static void *find(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return symbol;
}

static void check(int result, const char *what) {
    if (result) {
        fprintf(stderr, "%s: error %d\n", what, result);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "usage: all_reduce LIBNCCL RANKS RANK ID_FILE\n"), 2;
    int ranks = atoi(argv[2]), rank = atoi(argv[3]);
    void *cuda = load("libcuda.so.1"), *nccl = load(argv[1]);
    int (*init)(unsigned) = find(cuda, "cuInit");
    int (*retain)(void **, int) = find(cuda, "cuDevicePrimaryCtxRetain");
    int (*set_current)(void *) = find(cuda, "cuCtxSetCurrent");
    int (*allocate)(uint64_t *, size_t) = find(cuda, "cuMemAlloc_v2");
    int (*to_device)(uint64_t, const void *, size_t) = find(cuda, "cuMemcpyHtoD_v2");
    int (*to_host)(void *, uint64_t, size_t) = find(cuda, "cuMemcpyDtoH_v2");
    int (*stream_create)(void **, unsigned) = find(cuda, "cuStreamCreate");
    int (*stream_wait)(void *) = find(cuda, "cuStreamSynchronize");
    int (*get_id)(unique_id *) = find(nccl, "ncclGetUniqueId");
    int (*comm_init)(void **, int, unique_id, int) = find(nccl, "ncclCommInitRank");
    int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *) = find(nccl, "ncclAllReduce");
    int (*comm_destroy)(void *) = find(nccl, "ncclCommDestroy");

    void *context, *stream, *comm;
    if (init(0)) return fprintf(stderr, "skipped: no GPU\n"), SKIP;
    check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(set_current(context), "cuCtxSetCurrent");
    check(stream_create(&stream, 1), "cuStreamCreate");

    unique_id id;
    if (rank == 0) {
        char fresh[4096];
        snprintf(fresh, sizeof fresh, "%s.new", argv[4]);
        check(get_id(&id), "ncclGetUniqueId");
        FILE *file = fopen(fresh, "wb");
        if (!file || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) || rename(fresh, argv[4])) {
            return perror(argv[4]), 1;
        }
    } else {
        FILE *file = NULL;
        for (int tries = 0; tries < 300 && !(file = fopen(argv[4], "rb")); tries++) usleep(100000);
        if (!file || fread(&id, sizeof id, 1, file) != 1) return fprintf(stderr, "no id from rank 0\n"), 1;
        fclose(file);
    }
    check(comm_init(&comm, ranks, id, rank), "ncclCommInitRank");

    static const size_t counts[] = {2, 1 << 10, 1 << 18, 1 << 24};
    size_t most = 1 << 24;
    float *host = malloc(most * sizeof *host);
    uint64_t device;
    check(allocate(&device, most * sizeof *host), "cuMemAlloc");
    for (size_t size = 0; size < sizeof counts / sizeof *counts; size++) {
        size_t count = counts[size];
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            for (size_t i = 0; i < count; i++) host[i] = (float)(rank + 1);
            check(to_device(device, host, count * sizeof *host), "cuMemcpyHtoD");
            void *buffer = (void *)(uintptr_t)device;
            check(all_reduce(buffer, buffer, count, FLOAT32, SUM, comm, stream), "ncclAllReduce");
            check(stream_wait(stream), "cuStreamSynchronize");
            check(to_host(host, device, count * sizeof *host), "cuMemcpyDtoH");
            float expected = (float)(ranks * (ranks + 1) / 2);
            if (host[0] != expected || host[count - 1] != expected) return fprintf(stderr, "wrong sum\n"), 1;
        }
    }
    check(comm_destroy(comm), "ncclCommDestroy");
    printf("rank %d: %zu operations\n", rank, REPEATS * (sizeof counts / sizeof *counts));
    return 0;
}
