/* cache.c - a cache that grows until memory runs short, and then drops what was used least lately. */
/* SPDX-License-Identifier: MIT */
/*
 * An example for docs/reserve.md, and what `make run-reserve` measures. Workers look keys up; what is not
 * there is made and kept. Nobody says how large the cache may become: it drops entries when prairie tells
 * that memory is short, and only then.
 *
 *      cache [--seconds N] [--workers N] [--deaf]
 *
 * --deaf registers no callback. On another allocator it is deaf, too. A line on the standard output every
 * 50 ms: seconds, resident KiB, requests served so far, entries, LOW and CRIT heard so far.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <prairie/reserve.h>

/* The program runs on other allocators, too. */
extern __typeof__(reserve_cb_register) reserve_cb_register __attribute__((weak));

enum { BUCKETS = 1 << 17, KEYS = 1 << 20, VALUE_BYTES_MIN = 100, VALUE_BYTES_MAX = 4000 };
enum { SAMPLE_MS = 50, WORKERS_MAX = 64 };

struct entry {
    struct entry *next;            /* in its bucket */
    struct entry *newer, *older;   /* in the order of use */
    uint32_t key, bytes;
    char value[];
};

static struct {
    pthread_mutex_t lock;
    struct entry *bucket[BUCKETS];
    struct entry *newest, *oldest;
    size_t entries;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_ulong served, heard_low, heard_crit;
static atomic_bool over;

/* ---- the cache; its lock is held ---- */

static void unlink_from_order(struct entry *entry)
{
    if (entry->newer != NULL) entry->newer->older = entry->older;
    else cache.newest = entry->older;
    if (entry->older != NULL) entry->older->newer = entry->newer;
    else cache.oldest = entry->newer;
}

static void make_newest(struct entry *entry)
{
    entry->newer = NULL;
    entry->older = cache.newest;
    if (cache.newest != NULL) cache.newest->newer = entry;
    else cache.oldest = entry;
    cache.newest = entry;
}

static struct entry *find(uint32_t key)
{
    struct entry *entry = cache.bucket[key % BUCKETS];

    while (entry != NULL && entry->key != key) entry = entry->next;
    return entry;
}

static void insert(struct entry *entry)
{
    entry->next = cache.bucket[entry->key % BUCKETS];
    cache.bucket[entry->key % BUCKETS] = entry;
    make_newest(entry);
    cache.entries++;
}

static void drop_oldest(void)
{
    struct entry *entry = cache.oldest, **link = &cache.bucket[entry->key % BUCKETS];

    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    unlink_from_order(entry);
    cache.entries--;
    free(entry);
}

/* ---- memory is short ---- */

/* Called in the middle of an allocation: no worker allocates while it holds the lock, so it can be taken. */
static void drop_entries(void *unused, reserve_cnd_t condition, size_t size)
{
    size_t drop;

    (void)unused, (void)size;
    if (condition == RESERVE_CND_FAIL) return;
    atomic_fetch_add(condition == RESERVE_CND_LOW ? &heard_low : &heard_crit, 1);
    pthread_mutex_lock(&cache.lock);
    drop = cache.entries / (condition == RESERVE_CND_LOW ? 8 : 2);
    while (drop-- > 0) drop_oldest();
    pthread_mutex_unlock(&cache.lock);
}

/* ---- workers ---- */

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Some keys are asked for much more often than others. */
static uint32_t some_key(uint64_t *state)
{
    uint32_t most = (uint32_t)random_next(state) % KEYS + 1;

    return (uint32_t)random_next(state) % most;
}

static struct entry *make_entry(uint32_t key, uint64_t *state)
{
    uint32_t bytes = VALUE_BYTES_MIN + (uint32_t)random_next(state) % (VALUE_BYTES_MAX - VALUE_BYTES_MIN);
    struct entry *entry = malloc(sizeof *entry + bytes);

    if (entry == NULL) {
        fprintf(stderr, "cache: out of memory after %lu requests\n", atomic_load(&served));
        exit(1);
    }
    entry->key = key;
    entry->bytes = bytes;
    memset(entry->value, (int)key, bytes);
    return entry;
}

static void serve(uint32_t key, uint64_t *state)
{
    struct entry *entry, *made = NULL;

    pthread_mutex_lock(&cache.lock);
    entry = find(key);
    if (entry != NULL) {
        unlink_from_order(entry);
        make_newest(entry);
    }
    pthread_mutex_unlock(&cache.lock);
    if (entry != NULL) return;

    made = make_entry(key, state);
    pthread_mutex_lock(&cache.lock);
    if (find(key) == NULL) {
        insert(made);
        made = NULL;
    }
    pthread_mutex_unlock(&cache.lock);
    free(made);
}

static void *work(void *number)
{
    uint64_t state = (uint64_t)(uintptr_t)number * 0x9e3779b97f4a7c15 + 1;

    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        serve(some_key(&state), &state);
        atomic_fetch_add_explicit(&served, 1, memory_order_relaxed);
    }
    return NULL;
}

/* ---- samples ---- */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long resident_kib(void)
{
    char text[128] = "";
    long all = 0, resident = 0;
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) > 0) (void)sscanf(text, "%ld %ld", &all, &resident);
    close(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void sample(double since_s)
{
    size_t entries;

    pthread_mutex_lock(&cache.lock);
    entries = cache.entries;
    pthread_mutex_unlock(&cache.lock);
    dprintf(STDOUT_FILENO, "%.3f %ld %lu %zu %lu %lu\n", now_s() - since_s, resident_kib(),
            atomic_load(&served), entries, atomic_load(&heard_low), atomic_load(&heard_crit));
}

int main(int argc, char **argv)
{
    bool deaf = false;
    double seconds = 10, start = now_s();
    unsigned workers = 2;
    pthread_t thread[WORKERS_MAX];

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--deaf") == 0) deaf = true;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "--workers") == 0 && i + 1 < argc) workers = (unsigned)atoi(argv[++i]);
        else return fprintf(stderr, "usage: cache [--seconds N] [--workers N] [--deaf]\n"), 2;
    }
    if (workers < 1 || workers > WORKERS_MAX)
        return fprintf(stderr, "cache: 1 to %d workers\n", WORKERS_MAX), 2;
    if (!deaf && reserve_cb_register != NULL && reserve_cb_register(drop_entries, NULL))
        fprintf(stderr, "cache: nobody will tell it when memory is short\n");

    for (uintptr_t i = 0; i < workers; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(i + 1)) != 0) return 1;
    while (now_s() - start < seconds) {
        struct timespec pause = { 0, SAMPLE_MS * 1000000 };
        sample(start);
        nanosleep(&pause, NULL);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < workers; i++) pthread_join(thread[i], NULL);
    sample(start);
    return 0;
}
