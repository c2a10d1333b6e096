// A profiler plugin for tests: exports v1 to v7, counts calls by kind, and notes what NCCL would never do.
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS (1 << 21)
enum { UNUSED, OPEN, STOPPED };

typedef void (*logger_t)(int, unsigned long, const char*, int, const char*, ...);

int recorder_mask = 0xffdf;          // what init asks for
unsigned recorder_null_kinds = 0;    // kinds that get a NULL handle
_Atomic uint64_t recorder_kinds[16]; // starts by kind
// init, start, state, stop, finalize, calls after stop, other violations, late loads
_Atomic uint64_t recorder_calls[8];
_Atomic uint64_t recorder_last_coll_count, recorder_timers;
static _Atomic uint8_t states[EVENTS], kinds[EVENTS];
static _Atomic uint64_t next_event = 1;
static _Atomic int live;
static int* mask_pointer;

void recorder_set_live_mask(int mask) { if (mask_pointer) __atomic_store_n(mask_pointer, mask, __ATOMIC_RELAXED); }
static void wrong(void) { recorder_calls[6]++; }

static int known(const char* text) {
  static const char* names[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv", "AlltoAll"};
  if (!text) return 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) if (!strcmp(text, names[i])) return 1;
  return 0;
}

static int begin(void** context, int* mask, logger_t log) {
  recorder_calls[0]++; live++;
  *context = (void*)0x1000; mask_pointer = mask;
  __atomic_store_n(mask, recorder_mask, __ATOMIC_RELAXED);
  if (log) log(3, 0x4000, __FILE__, __LINE__, "%s", "recorder is here");
  return 0;
}
static int init13(void** c, int* m) { return begin(c, m, NULL); }
static int init4(void** c, int* m, const char* name, uint64_t hash, int nodes, int ranks, int rank, logger_t log) {
  (void)name; (void)hash; if (rank < 0 || rank >= ranks || nodes < 1) wrong(); return begin(c, m, log);
}
static int init57(void** c, uint64_t id, int* m, const char* name, int nodes, int ranks, int rank, logger_t log) {
  (void)name; (void)id; if (rank < 0 || rank >= ranks || nodes < 1) wrong(); return begin(c, m, log);
}

static int start(int api, void* context, void** handle, const char* d) {
  uint64_t type = api <= 4 ? *(const uint8_t*)d : *(const uint64_t*)d;
  uint64_t parent = *(const uint64_t*)(d + 8);
  recorder_calls[1]++;
  if (context != (void*)0x1000 || live < 1) wrong();
  if (__builtin_popcountll(type) != 1 || type >> 16) { wrong(); return 3; }
  int kind = __builtin_ctzll(type);
  recorder_kinds[kind]++;
  if (parent && (parent >= next_event || states[parent] == UNUSED)) { wrong(); parent = 0; }
  if (kind == 1) {
    size_t func = api <= 3 ? 48 : 32, count = api <= 3 ? 72 : 56;
    if (api == 1 ? *(const uint8_t*)(d + func) > 4 : !known(*(const char* const*)(d + func))) wrong();
    recorder_last_coll_count = *(const uint64_t*)(d + count);
    if (parent && kinds[parent] != (api <= 4 ? 0 : 9)) wrong();
    if (api >= 5) { uint64_t group = *(const uint64_t*)(d + 104); if (group && kinds[group] != 0) wrong(); }
  }
  if (kind == 6 && api >= 4) recorder_timers += *(const uint64_t*)(d + 32);
  if (kind == 4 && parent && kinds[parent] != 3) wrong();
  if (recorder_null_kinds >> kind & 1) { *handle = NULL; return 0; }
  uint64_t id = next_event++;
  if (id >= EVENTS) abort();
  kinds[id] = kind; states[id] = OPEN; *handle = (void*)id;
  return 0;
}
static int valid(void* handle) { uint64_t id = (uint64_t)handle; return id && id < EVENTS && states[id] != UNUSED; }
static int stop(void* handle) {
  recorder_calls[3]++;
  if (!valid(handle)) { wrong(); return 0; }
  if (states[(uint64_t)handle] == STOPPED) recorder_calls[5]++;
  states[(uint64_t)handle] = STOPPED;
  return 0;
}
static int state(int api, void* handle, int number, void* args) {
  recorder_calls[2]++;
  if (!valid(handle)) { wrong(); return 0; }
  if (states[(uint64_t)handle] == STOPPED) recorder_calls[5]++;
  if ((number == 22 && (api < 4 || !args)) || ((number == 23 || number == 24) && args)) wrong();
  if (number == 22 && kinds[(uint64_t)handle] == 6 && args) recorder_timers += *(uint64_t*)args;
  return 0;
}
static int finalize(void* context) { recorder_calls[4]++; if (context != (void*)0x1000 || --live < 0) wrong(); return 0; }

#define VERSION(N, INIT)                                                                          \
  static int start##N(void* c, void** h, const char* d) { return start(N, c, h, d); }             \
  static int state##N(void* h, int s, void* a) { return state(N, h, s, a); }                      \
  struct { const char* name; void *init, *start, *stop, *state, *finalize, *pad[8]; } ncclProfiler_v##N = \
      {"recorder", INIT, start##N, stop, state##N, finalize, {0}};
VERSION(1, init13) VERSION(2, init13) VERSION(3, init13) VERSION(4, init4)
VERSION(5, init57) VERSION(6, init57) VERSION(7, init57)
