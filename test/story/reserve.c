/* reserve.c - a cache of many threads inside a limit of address space: it drops entries, and is
 * never refused. */
/* SPDX-License-Identifier: MIT */
/*
 * usage: reserve MIB [without]
 *
 * Threads add blocks of all sizes to a cache that knows no bound but LOW and CRIT. Some of them ask
 * with xmalloc, which would end the process. `without` registers nobody and keeps no reserve: then
 * requests must be refused, which proves that the limit is one.
 */
#include "../blackbox/blackbox.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <prairie/reserve.h>

extern __typeof__(xmalloc) xmalloc __attribute__((weak));
extern __typeof__(reserve_cb_register) reserve_cb_register __attribute__((weak));
extern __typeof__(reserve_cb_unregister) reserve_cb_unregister __attribute__((weak));
extern __typeof__(reserve_min_set) reserve_min_set __attribute__((weak));
extern __typeof__(reserve_min_get) reserve_min_get __attribute__((weak));
extern __typeof__(reserve_cur_get) reserve_cur_get __attribute__((weak));

enum { THREADS = 4, SHARDS = 3, ENTRIES_MAX = 1 << 18, RESERVE_BYTES = 2 << 20 };
enum { LATEST_MS = 20000 };

struct entry {
    uint32_t bytes, seed;
    unsigned char contents[];
};

/* Each shard is dropped by a callback of its own. */
static struct shard {
    pthread_mutex_t lock;
    struct entry **entry; /* a ring; the oldest at first */
    size_t first, count;
    atomic_ulong low, crit;
} shards[SHARDS];

static atomic_ulong refused, added, passing_calls;
/* Holes for blocks that are long for the heap are a matter of luck. */
static size_t largest_bytes;
static atomic_bool begun, over;
/* Other threads may have held a shard's lock when the child was made. */
static atomic_bool is_child;

static void drop_oldest(struct shard *shard)
{
    struct entry *entry = shard->entry[shard->first];

    shard->first = (shard->first + 1) % ENTRIES_MAX;
    shard->count--;
    for (size_t i = 0; i < entry->bytes; i += 509)
        if (entry->contents[i] != (unsigned char)(entry->seed + i)) give_up("an entry changed");
    free(entry);
}

static void drop(void *context, reserve_cnd_t condition, size_t size)
{
    struct shard *shard = context;
    size_t count;

    must(size > 0 && condition != RESERVE_CND_FAIL);
    if (atomic_load(&is_child)) return;
    atomic_fetch_add(condition == RESERVE_CND_LOW ? &shard->low : &shard->crit, 1);
    pthread_mutex_lock(&shard->lock);
    for (count = shard->count / 4; count > 0; count--) drop_oldest(shard);
    pthread_mutex_unlock(&shard->lock);
    free(malloc(100)); /* callbacks may allocate */
}

/* Comes and goes all the time. */
static void pass_by(void *context, reserve_cnd_t condition, size_t size)
{
    (void)condition, (void)size;
    atomic_fetch_add(&passing_calls, 1);
    if (((uintptr_t)context & 3) == 0) (void)reserve_cb_unregister(pass_by, context);
}

static size_t some_size(uint64_t *state)
{
    switch (random_next(state) % 16) {
    case 0: return random_between(state, 20000, largest_bytes);
    case 1: return random_between(state, 4000, 20000);
    default: return random_between(state, 1, 3000);
    }
}

static void add_entry(struct shard *shard, uint64_t *state, bool insists)
{
    size_t bytes = some_size(state);
    struct entry *entry = insists ? xmalloc(sizeof *entry + bytes) : malloc(sizeof *entry + bytes);

    if (entry == NULL) {
        must(errno == ENOMEM);
        atomic_fetch_add(&refused, 1);
        return;
    }
    entry->bytes = (uint32_t)bytes;
    entry->seed = (uint32_t)random_next(state);
    for (size_t i = 0; i < bytes; i += 509) entry->contents[i] = (unsigned char)(entry->seed + i);
    pthread_mutex_lock(&shard->lock);
    must(shard->count < ENTRIES_MAX);
    shard->entry[(shard->first + shard->count++) % ENTRIES_MAX] = entry;
    pthread_mutex_unlock(&shard->lock);
    atomic_fetch_add(&added, 1);
}

static void *fill(void *number)
{
    uint64_t state = (uintptr_t)number + 1;
    bool insists = xmalloc != NULL && ((uintptr_t)number & 1) != 0;

    while (!atomic_load(&begun)) sleep_ms(1); /* stacks need address space, too */
    while (!atomic_load(&over)) add_entry(&shards[random_next(&state) % SHARDS], &state, insists);
    return NULL;
}

static void *come_and_go(void *unused)
{
    for (uintptr_t i = 1; !atomic_load(&over); i++) {
        must(!reserve_cb_register(pass_by, (void *)i));
        sleep_ms(2);
        (void)reserve_cb_unregister(pass_by, (void *)i);
    }
    return unused;
}

/* A child in the middle of it has a heap that works, and a reserve of its own. */
static void fork_a_child(void)
{
    pid_t child = fork();
    int status;

    must(child >= 0);
    if (child == 0) {
        atomic_store(&is_child, true);
        alarm(patience(60));
        for (int i = 0; i < 1000; i++) free(malloc(1000));
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
}

/* On a busy machine it takes longer until memory runs short. */
static bool all_were_told(void)
{
    for (int i = 0; i < SHARDS; i++)
        if (shards[i].low + shards[i].crit == 0) return false;
    return true;
}

static void live(bool listens)
{
    pthread_t thread[THREADS], passer;
    pthread_attr_t small;
    double end_ms = now_ms() + (double)scaled(2000);

    for (int i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&shards[i].lock, NULL);
        shards[i].entry = calloc(ENTRIES_MAX, sizeof(struct entry *));
        must(shards[i].entry != NULL);
        if (listens) must(!reserve_cb_register(drop, &shards[i]));
    }
    if (listens) must(!reserve_min_set(RESERVE_BYTES));
    must(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 256 << 10) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], &small, fill, (void *)(listens ? i : 0)) == 0);
    if (listens) must(pthread_create(&passer, &small, come_and_go, NULL) == 0);
    atomic_store(&begun, true);
    while (now_ms() < end_ms
           || (now_ms() < end_ms + LATEST_MS && !(listens ? all_were_told() : refused > 0))) {
        sleep_ms(100);
        if (listens) fork_a_child();
    }
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    if (listens) pthread_join(passer, NULL);
}

static void check_life(bool listens)
{
    unsigned long low = 0, crit = 0;

    for (int i = 0; i < SHARDS; i++) {
        low += shards[i].low;
        crit += shards[i].crit;
        must(!listens || shards[i].low + shards[i].crit > 0);
        while (shards[i].count > 0) drop_oldest(&shards[i]);
        if (listens) must(!reserve_cb_unregister(drop, &shards[i]));
    }
    printf("%lu entries added, %lu refused, LOW %lu, CRIT %lu, %lu calls to who passed by\n", added,
           refused, low, crit, passing_calls);
    must(listens ? refused == 0 : refused > 0);
    if (!listens) return;
    for (int i = 0; i < 200 && reserve_cur_get() < reserve_min_get(); i++) {
        sleep_ms(10);
        free(malloc(100000));
    }
    must(reserve_cur_get() == RESERVE_BYTES); /* memory has returned */
}

int main(int argc, char **argv)
{
    struct rlimit limit = { 0, RLIM_INFINITY };
    bool listens = argc < 3;

    require_prairie();
    must(argc >= 2);
    if (getenv("RESERVE_LIMITED") == NULL) { /* the layout of the heap depends on the limit */
        limit.rlim_cur = (rlim_t)atol(argv[1]) << 20;
        must(setrlimit(RLIMIT_AS, &limit) == 0);
        setenv("RESERVE_LIMITED", "1", 1);
        execv("/proc/self/exe", argv);
        give_up("execv: errno %d", errno);
    }
    must(reserve_cb_register != NULL);
    largest_bytes = (size_t)atol(argv[1]) * 800;
    live(listens);
    check_life(listens);
    walk_heap();
    return 0;
}
