/*
 * How fast a case can be: the same work in C, without a language around it. See ours.ts, timing.ts
 * and ours_cases.ts, which it follows call by call.
 *
 *   write     flock pair, length 0, the prepared payload, zeros where the last one stood, length
 *   read      a look at the slot by memcmp; if it changed, a copy and a bare decode, no lock
 *   decode    a bare decode: keys in their order, values into an array, no checks beyond bounds
 *
 * Usage: limit CASE SLOT-FILE PUBLICATIONS RANKS ROUND-MS WARM-UP-MS
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { VERSIONS = 16, HEADER = 12, SLOT = 16384, VALUES = 48, MOMENTS = 17 };

static long ranks, stride;
static int fd = -1;
static uint8_t *slots;              /* the mapped slot file, behind its header */
static const uint8_t *publications; /* the prepared ones */
static uint8_t *seen;               /* what was read last, stride bytes for each rank */
static double (*values)[VALUES];    /* what it meant */
static double moments[SLOT];        /* values of the one key that may have many */
static double clock_cost;
static volatile double sink;

static const uint8_t *publication(long version, long rank) {
  return publications + (version * ranks + rank) * stride;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* --- a bare decode of MessagePack */

static const char *const KEYS[] = {
    "timestamp", "dp_rank", "num_running_reqs", "num_waiting_reqs", "num_waiting_uncached_tokens",
    "num_used_tokens", "num_total_tokens", "num_active_tokens", "num_prealloc_ready_tokens",
    "max_total_num_tokens", "max_running_requests", "token_usage", "gen_throughput",
    "cache_hit_rate", "utilization", "total_prefill_uncached_tokens", "total_prefill_busy_us",
    "decode_moments", "memory", "speculative", "lora", "disaggregation", "queues"};
static const int PLACES[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                             12, 13, 14, 15, 16, 17, 18, 22, 24, 27, 35};
enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS };
static size_t key_lengths[KEY_COUNT];

static uint64_t big_endian(const uint8_t *at, int count) {
  uint64_t value = 0;
  for (int n = 0; n < count; n++) value = value << 8 | at[n];
  return value;
}

static const uint8_t *decode_value(const uint8_t *at, double *out) {
  uint8_t tag = *at++;
  if (tag < 0x80) return *out = tag, at;
  if (tag >= 0xe0) return *out = (int8_t)tag, at;
  if (tag >= 0xa0 && tag < 0xc0) return *out = tag & 31, at + (tag & 31);
  if (tag >= 0x90 && tag < 0xa0) {
    for (int n = tag & 15; n > 0; n--) at = decode_value(at, out++);
    return at;
  }
  uint64_t bits;
  switch (tag) {
    case 0xdc:
      bits = big_endian(at, 2);
      for (at += 2; bits > 0; bits--) at = decode_value(at, out++);
      return at;
    case 0xcb:
      bits = __builtin_bswap64(*(const uint64_t *)at);
      memcpy(out, &bits, 8);
      return at + 8;
    case 0xcc: return *out = *at, at + 1;
    case 0xcd: return *out = (double)big_endian(at, 2), at + 2;
    case 0xce: return *out = (double)big_endian(at, 4), at + 4;
    case 0xcf: return *out = (double)big_endian(at, 8), at + 8;
    default: abort();
  }
}

static void decode(const uint8_t *at, double *out) {
  int count;
  if (*at == 0xde) count = (int)big_endian(at + 1, 2), at += 3;
  else count = *at++ & 15;
  memset(out, 0, VALUES * sizeof *out);
  for (int key = 0; count > 0; count--, key++) {
    size_t length = *at++ & 31;
    while (key < KEY_COUNT && (length != key_lengths[key] || memcmp(at, KEYS[key], length) != 0)) {
      key++;
    }
    if (key == KEY_COUNT) abort();
    at = decode_value(at + length, PLACES[key] == MOMENTS ? moments : out + PLACES[key]);
  }
}

/* --- the cases */

static void write_one(long step) {
  static uint32_t filled = SLOT;
  const uint8_t *image = publication(step % VERSIONS, ranks >> 1);
  uint8_t *slot = slots + (ranks >> 1) * SLOT;
  uint32_t length, zero = 0;
  memcpy(&length, image, 4);
  if (flock(fd, LOCK_EX) != 0) abort();
  memcpy(slot, &zero, 4);
  __asm__ volatile("" ::: "memory");
  memcpy(slot + 4, image + 4, length);
  if (4 + length < filled) memset(slot + 4 + length, 0, filled - 4 - length);
  __asm__ volatile("" ::: "memory");
  memcpy(slot, &length, 4);
  filled = 4 + length;
  flock(fd, LOCK_UN);
}

static void read_slot(long rank) {
  const uint8_t *slot = slots + rank * SLOT;
  uint8_t *last = seen + rank * stride;
  uint32_t length;
  memcpy(&length, last, 4);
  if (memcmp(slot, last, 4 + length) == 0) return;
  memcpy(&length, slot, 4);
  memcpy(last, slot, 4 + length);
  decode(last + 4, values[rank]);
}

static void read_one(long step) { read_slot(step % ranks); }

static void read_all(long step) {
  (void)step;
  for (long rank = 0; rank < ranks; rank++) read_slot(rank);
}

static void poke_one(long step) {
  long rank = step % ranks;
  memcpy(slots + rank * SLOT, publication((step / ranks + 1) % VERSIONS, rank), stride);
}

static void poke_all(long step) {
  for (long rank = 0; rank < ranks; rank++) {
    memcpy(slots + rank * SLOT, publication((step + 1) % VERSIONS, rank), stride);
  }
}

static void decode_one(long step) {
  long rank = step % ranks;
  decode(publication(step / ranks % VERSIONS, rank) + 4, values[rank]);
  sink = values[rank][5];
}

/* --- timing */

static long steps;

static double timed(void (*prepare)(long), void (*call)(long), long calls) {
  double total = 0, begin;
  if (prepare == NULL) {
    begin = now();
    for (long n = 0; n < calls; n++) call(steps++);
    return now() - begin;
  }
  for (long n = 0; n < calls; n++, steps++) {
    prepare(steps);
    begin = now();
    call(steps);
    total += now() - begin;
  }
  return total - clock_cost * (double)calls;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double clock_cost_now(void) {
  double costs[301];
  for (int batch = 0; batch < 301; batch++) {
    double total = 0;
    for (int n = 0; n < 300; n++) {
      double begin = now();
      total += now() - begin;
    }
    costs[batch] = total / 300;
  }
  qsort(costs, 301, sizeof *costs, ascending);
  return costs[150];
}

static void map_slots(const char *path) {
  fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) perror(path), exit(1);
  size_t size = HEADER + (size_t)ranks * SLOT;
  uint8_t *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) perror(path), exit(1);
  slots = mapped + HEADER;
}

static void load_publications(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) perror(path), exit(1);
  struct stat found;
  if (fstat(file, &found) != 0) perror(path), exit(1);
  stride = (long)found.st_size / (VERSIONS * ranks);
  void *mapped = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  if (mapped == MAP_FAILED) perror(path), exit(1);
  publications = mapped;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*prepare)(long), (*call)(long);
  } cases[] = {
      {"write", NULL, write_one},
      {"read-changed", poke_one, read_one},
      {"read-unchanged", NULL, read_one},
      {"read-all-changed", poke_all, read_all},
      {"read-all-unchanged", NULL, read_all},
      {"decode", NULL, decode_one},
  };
  if (argc != 7) return 2;
  ranks = atol(argv[4]);
  double round_ns = atof(argv[5]) * 1e6, warm_ns = atof(argv[6]) * 1e6;
  for (int key = 0; key < KEY_COUNT; key++) key_lengths[key] = strlen(KEYS[key]);
  if (strcmp(argv[2], "-") != 0) map_slots(argv[2]);
  load_publications(argv[3]);
  seen = calloc((size_t)ranks, (size_t)stride);
  values = calloc((size_t)ranks, sizeof *values);
  if (seen == NULL || values == NULL) return 1;
  clock_cost = clock_cost_now();
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    if (strcmp(cases[n].name, argv[1]) != 0) continue;
    long calls = 16;
    double end = now() + warm_ns, per_call = 1e18;
    while (now() < end || (double)calls * per_call < round_ns / 2) {
      double begin = now();
      timed(cases[n].prepare, cases[n].call, calls);
      per_call = (now() - begin) / (double)calls;
      double wanted = round_ns / per_call;
      calls = wanted < (double)calls * 2 ? (long)wanted + 1 : calls * 2;
      if (calls < 16) calls = 16;
    }
    printf("{\"calls\": %ld}\n", calls);
    fflush(stdout);
    for (char line[64]; fgets(line, sizeof line, stdin) != NULL;) {
      printf("{\"ns\": %.3f}\n", timed(cases[n].prepare, cases[n].call, calls) / (double)calls);
      fflush(stdout);
    }
    return 0;
  }
  return 2;
}
