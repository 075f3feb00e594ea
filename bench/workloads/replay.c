/* replay.c - repeats a recorded trace of allocations, thread by thread.
 * SPDX-License-Identifier: MIT
 *
 * Idea: trace-driven comparison as in Zorn and Grunwald, Johnstone, and the C library's own
 * trace_run. Threads run freely; one waits only before it frees or resizes a block that another
 * thread has not stored yet. A trace does not tell which bytes a program wrote: here one word in
 * every 64 bytes of blocks up to a page, and one in every page of larger ones. */
#define _GNU_SOURCE
#include "sizes.h"
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SPINS_BEFORE_YIELD = 100, YIELDS_BEFORE_SLEEP = 10, SLEEP_NS = 20000, LINE = 64 };

struct shape {
    const char *file; /* below the folder `traces` beside the executable; NULL: an argument */
    unsigned times;
};

/* A slot of the trace. Everything but the generation belongs to the thread whose turn it is. */
struct place {
    void *block;
    uint32_t bytes;              /* UINT32_MAX for more */
    _Atomic uint32_t generation; /* release after storing, acquire before another thread's use */
};

#define NOT_PLAYING UINT64_MAX

struct player {
    uint64_t *chunk; /* offsets in the file */
    uint32_t chunks, next_chunk, thread;
    uint32_t at, count; /* in the events of the present chunk */
    uint64_t sum, events;
    _Atomic uint64_t clock; /* written by itself, and by its starter before; NOT_PLAYING apart */
    uint32_t slot_end;      /* one above the highest slot it used */
    unsigned char bytes[TRACE_CHUNK_BYTES_MAX];
};

static int trace_file;
static struct place *places;
static struct player *players;
static uint32_t player_count;
static pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static unsigned playing;

static void *play(void *argument);

static bool next_chunk(struct player *player)
{
    struct trace_head head;
    if (player->next_chunk == player->chunks) return false;
    off_t at = (off_t)player->chunk[player->next_chunk++];
    if (pread(trace_file, &head, sizeof head, at) != sizeof head
        || pread(trace_file, player->bytes, head.count, at + (off_t)sizeof head) != head.count)
        stop("cannot read the trace: %s", strerror(errno));
    player->at = 0;
    player->count = head.count;
    return true;
}

static uint64_t next_number(struct player *player)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && player->at < player->count; shift += 7) {
        unsigned char byte = player->bytes[player->at++];
        number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return number;
    }
    stop("the trace is damaged: a number without an end in thread %u", player->thread);
}

static struct place *place_of(struct player *player, uint64_t slot)
{
    if (slot >= TRACE_SLOTS_MAX) stop("the trace is damaged: slot %llu", (unsigned long long)slot);
    if (slot >= player->slot_end) player->slot_end = (uint32_t)slot + 1;
    return &places[slot];
}

/* The suites judge by processor time, so that waiting must cost little of it. */
static void wait_a_little(unsigned waits)
{
    static const struct timespec nap = { 0, SLEEP_NS };
    if (waits < SPINS_BEFORE_YIELD) return;
    if (waits < SPINS_BEFORE_YIELD + YIELDS_BEFORE_SLEEP) sched_yield();
    else nanosleep(&nap, NULL);
}

static void await(struct place *place, uint64_t generation)
{
    for (unsigned waits = 0;
         atomic_load_explicit(&place->generation, memory_order_acquire) != generation; waits++)
        wait_a_little(waits);
}

static void store(struct player *player, struct place *place, void *block, uint64_t bytes)
{
    uint64_t value = (uint64_t)player->thread << 40 ^ player->events * 0x9E3779B97F4A7C15ull;
    block_write(need(block), bytes, bytes <= PAGE ? LINE : PAGE, value);
    place->block = block;
    place->bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    atomic_fetch_add_explicit(&place->generation, 1, memory_order_release);
}

static uint64_t read_back(const struct place *place)
{
    return place->bytes >= sizeof(uint64_t) ? block_word(place->block) : place->bytes;
}

static void allocate(struct player *player, enum trace_event event, struct place *place,
                     const uint64_t *number)
{
    uint64_t bytes = number[1];
    void *block = NULL;
    if (place->block != NULL) stop("the trace is damaged: a slot is taken twice");
    if (event == TRACE_MALLOC) {
        block = malloc(bytes);
    } else if (event == TRACE_CALLOC) {
        block = calloc(1, bytes);
        if (block != NULL && bytes >= sizeof(uint64_t) && block_word(block) != 0)
            stop("calloc returned a block that is not zero");
    } else if (number[2] >= 48 || posix_memalign(&block, (size_t)1 << number[2], bytes) != 0) {
        block = NULL;
    }
    store(player, place, block, bytes);
}

static void resize(struct player *player, struct place *place, uint64_t bytes)
{
    uint64_t before = read_back(place);
    bool keeps_word = place->bytes >= sizeof before && bytes >= sizeof before;
    void *block = need(realloc(place->block, bytes));
    if (keeps_word && block_word(block) != before) stop("realloc lost what the block held");
    player->sum += before;
    store(player, place, block, bytes);
}

static void release(struct player *player, struct place *place)
{
    if (place->block == NULL) stop("the trace is damaged: a slot is freed twice");
    player->sum += read_back(place);
    free(place->block);
    place->block = NULL;
}

static uint64_t slowest_clock(void)
{
    uint64_t least = NOT_PLAYING;
    for (uint32_t i = 0; i < player_count; i++) {
        uint64_t clock = atomic_load_explicit(&players[i].clock, memory_order_relaxed);
        if (clock < least) least = clock;
    }
    return least;
}

/* Whoever has the oldest event to come never waits here, so that nothing waits for ever. */
static void keep_time(struct player *player, uint64_t clock)
{
    atomic_store_explicit(&player->clock, clock, memory_order_relaxed);
    for (unsigned waits = 0; slowest_clock() + 1 < clock; waits++) wait_a_little(waits);
}

static void start_player(const struct player *starter, uint64_t thread)
{
    pthread_t started;
    if (thread >= player_count) return; /* it never did anything */
    if (thread == 0 || players[thread].events != 0)
        stop("the trace is damaged: a thread starts twice");
    atomic_store(&players[thread].clock, atomic_load(&starter->clock));
    pthread_mutex_lock(&ended_lock);
    playing++;
    pthread_mutex_unlock(&ended_lock);
    if (pthread_create(&started, NULL, play, &players[thread]) != 0) stop("cannot start a thread");
    pthread_detach(started);
}

static void play_event(struct player *player)
{
    enum trace_event event = player->bytes[player->at++];
    uint64_t number[3] = { 0 };
    if (event >= TRACE_EVENTS) stop("the trace is damaged: event %u", event);
    for (unsigned i = 0; i < trace_numbers[event]; i++) number[i] = next_number(player);
    player->events++;
    if (event == TRACE_START) {
        start_player(player, number[0]);
        return;
    }
    if (event == TRACE_CLOCK) {
        keep_time(player, number[0]);
        return;
    }
    struct place *place = place_of(player, number[0]);
    if (event == TRACE_FREE_OTHER || event == TRACE_REALLOC_OTHER) await(place, number[1]);
    if (event == TRACE_FREE || event == TRACE_FREE_OTHER) release(player, place);
    else if (event == TRACE_REALLOC) resize(player, place, number[1]);
    else if (event == TRACE_REALLOC_OTHER) resize(player, place, number[2]);
    else allocate(player, event, place, number);
}

static void *play(void *argument)
{
    struct player *player = argument;
    while (next_chunk(player))
        while (player->at < player->count) play_event(player);
    atomic_store(&player->clock, NOT_PLAYING);
    if (player->thread == 0) return NULL;
    pthread_mutex_lock(&ended_lock);
    playing--;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&ended_lock);
    return NULL;
}

/* Walks over the heads of the chunks twice: to count them, and to note where they are. */
static void index_chunks(const char *path, bool count_only)
{
    struct trace_head head;
    ssize_t bytes;
    off_t end = lseek(trace_file, 0, SEEK_END);
    for (off_t at = TRACE_MAGIC_BYTES; at < end; at += (off_t)(sizeof head + head.count)) {
        bytes = pread(trace_file, &head, sizeof head, at);
        if (bytes != sizeof head || head.count > TRACE_CHUNK_BYTES_MAX
            || head.thread >= TRACE_THREADS_MAX || at + (off_t)(sizeof head + head.count) > end)
            stop("%s is damaged at byte %lld", path, (long long)at);
        if (count_only) {
            if (head.thread >= player_count) player_count = head.thread + 1;
            continue;
        }
        struct player *player = &players[head.thread];
        if (player->chunk == NULL) /* room for all, touched as needed */
            player->chunk = own_memory((size_t)(end / (off_t)sizeof head) * sizeof *player->chunk);
        player->chunk[player->chunks++] = (uint64_t)at;
    }
}

static void open_trace(const char *path)
{
    char magic[TRACE_MAGIC_BYTES];
    trace_file = open(path, O_RDONLY | O_CLOEXEC);
    if (trace_file < 0) stop("cannot open the trace %s: %s", path, strerror(errno));
    if (read(trace_file, magic, sizeof magic) != sizeof magic
        || memcmp(magic, TRACE_MAGIC, sizeof magic) != 0)
        stop("%s is not a trace", path);
    index_chunks(path, true);
    if (player_count == 0) stop("%s has no events", path);
    players = own_memory(player_count * sizeof *players);
    index_chunks(path, false);
    places = mmap(NULL, TRACE_SLOTS_MAX * sizeof *places, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (places == MAP_FAILED) stop("no address space for the trace's slots");
}

static struct outcome play_once(void)
{
    struct outcome outcome = { 0, 0 };
    uint32_t slot_end = 0;
    for (uint32_t i = 0; i < player_count; i++) {
        players[i].thread = i;
        players[i].next_chunk = 0;
        players[i].sum = players[i].events = 0;
        players[i].clock = i == 0 ? 0 : NOT_PLAYING;
    }
    play(&players[0]);
    pthread_mutex_lock(&ended_lock);
    while (playing > 0) pthread_cond_wait(&ended, &ended_lock);
    pthread_mutex_unlock(&ended_lock);
    for (uint32_t i = 0; i < player_count; i++) {
        outcome.checksum += players[i].sum;
        outcome.operations += players[i].events;
        if (players[i].slot_end > slot_end) slot_end = players[i].slot_end;
    }
    for (uint32_t i = 0; i < slot_end; i++) {
        if (places[i].block != NULL) {
            outcome.checksum += read_back(&places[i]);
            free(places[i].block);
        }
        places[i] = (struct place){ 0 };
    }
    return outcome;
}

static const char *trace_path(const struct job *job, char *room, size_t room_bytes)
{
    const struct shape *shape = job->workload->shape;
    if (shape->file == NULL) return job->arguments[0];
    ssize_t count = readlink("/proc/self/exe", room, room_bytes - 1);
    if (count <= 0) stop("cannot find the executable");
    room[count] = '\0';
    char *name = strrchr(room, '/') + 1;
    if ((size_t)(name - room) + strlen(shape->file) + sizeof "traces/" > room_bytes)
        stop("the path of the executable is too long");
    strcpy(stpcpy(name, "traces/"), shape->file);
    return room;
}

static struct outcome run_replay(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    struct outcome total = { 0, 0 };
    char room[4096], *end = NULL;
    unsigned long times = shape->times;
    bool takes_file = shape->file == NULL;
    if (takes_file && job->argument_count == 3 && strcmp(job->arguments[1], "--times") == 0)
        times = strtoul(job->arguments[2], &end, 10);
    if ((takes_file && job->argument_count != 1 && end == NULL) || times == 0
        || (end != NULL && *end != '\0'))
        stop("usage: replay FILE [--times COUNT] [--scale PERCENT]");
    open_trace(trace_path(job, room, sizeof room));
    for (uint64_t pass = scaled(job, times); pass > 0; pass--) {
        struct outcome once = play_once();
        total.checksum = total.checksum * 3 + once.checksum;
        total.operations += once.operations;
    }
    return total;
}

static const struct shape any = { NULL, 1 };
static const struct shape requests = { "requests.trace", 60 };
static const struct shape document = { "document.trace", 12 };
static const struct shape pipeline = { "pipeline.trace", 40 };
static const struct shape python = { "python.trace", 12 };
static const struct shape crew = { "python-threads.trace", 16 };
static const struct shape perl = { "perl.trace", 12 };
static const struct shape sqlite = { "sqlite.trace", 200 };
static const struct shape compiler = { "compiler.trace", 9 };

#define IDEA "trace-driven runs of Zorn, Grunwald and Johnstone"
#define RECORDED(name, program) \
    "setup = [\"bench/workloads/record.sh\", \"" name "\"]\nneeds = [\"" program "\"]\n"

static const struct workload workloads[] = {
    { "replay", "traces", "a trace from a file", IDEA, 1, &any, run_replay, SUITE_NONE, NULL,
      "FILE [--times COUNT]" },
    { "trace-requests", "traces",
      "made-up trace: a server's requests, sessions that stay for a while", IDEA, 1, &requests,
      run_replay, SUITE_TIMED, NULL, NULL },
    { "trace-document", "traces",
      "made-up trace: a document is loaded, edited for long, and closed", IDEA, 1, &document,
      run_replay, SUITE_TIMED, NULL, NULL },
    { "trace-pipeline", "traces",
      "made-up trace: three threads read, work and write; blocks die in the last", IDEA, 3,
      &pipeline, run_replay, SUITE_TIMED, NULL, NULL },
    { "trace-python", "traces", "recorded: python3 with dictionaries, json, regular expressions",
      IDEA, 1, &python, run_replay, SUITE_TIMED, RECORDED("python", "python3"), NULL },
    { "trace-crew", "traces", "recorded: python3 with four threads and queues between them", IDEA,
      4, &crew, run_replay, SUITE_TIMED, RECORDED("python-threads", "python3"), NULL },
    { "trace-perl", "traces", "recorded: perl with hashes, sorting and text", IDEA, 1, &perl,
      run_replay, SUITE_TIMED, RECORDED("perl", "perl"), NULL },
    { "trace-sqlite", "traces", "recorded: sqlite3 in memory, inserts, an index, joins and updates",
      IDEA, 1, &sqlite, run_replay, SUITE_TIMED, RECORDED("sqlite", "sqlite3"), NULL },
    { "trace-compiler", "traces", "recorded: g++ compiles a file with std containers", IDEA, 1,
      &compiler, run_replay, SUITE_TIMED, RECORDED("compiler", "g++"), NULL },
};

const struct workload_list replay_list = { workloads, sizeof workloads / sizeof *workloads };
