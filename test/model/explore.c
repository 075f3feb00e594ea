/* explore.c - the threads of a model, one at a time, and the search through their orders.
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "explore.h"

#include "kernel/fake.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHOICES_MAX = 1 << 16,
    WORDS_MAX = 1 << 14, /* that several threads touch, as far as is known */
    DELAYED_MAX = 4,
    ORDER_SECONDS = 60,
    ORDERS_AT_RANDOM = 64
};

struct choice {
    uint8_t count, chosen; /* of those who could go on; 0: who ran before, where it could */
};

/* A word, and which threads have read and written it. */
struct word {
    uintptr_t address;
    uint8_t readers, writers;
};

/* Shared between the searcher and its children. */
static struct {
    struct choice trace[CHOICES_MAX];
    uint32_t trace_length;
    uint8_t prefix[CHOICES_MAX]; /* what is to be chosen first */
    uint32_t prefix_length;
    uint64_t random; /* not 0: what is chosen after the prefix, rather than always the first */
    struct word words[WORDS_MAX];  /* as this search has seen them so far */
    struct word places[WORDS_MAX]; /* as they were when it began: where threads switch */
    uint64_t points;
    char said[512];
} * shared;

enum thread_state { THREAD_READY, THREAD_WAITS, THREAD_JOINS, THREAD_ENDED };

struct thread {
    pthread_t thread;
    sem_t turn;
    enum thread_state state;
    const uint32_t *word; /* that it waits for */
    const void *delayed_word[DELAYED_MAX];
    uint64_t delayed_value[DELAYED_MAX];
    unsigned delayed_bytes[DELAYED_MAX], delayed;
};

static const struct model *model;
static struct thread threads[MODEL_THREADS_MAX + 1]; /* the last one: a background thread */
static unsigned thread_count;
static bool exploring;
static unsigned interruptions;
static sem_t all_through;
static void *(*background)(void *);
static __thread int self = -1;

static const void *split_word, *delayed_word, *ignored_word;
static bool wakes_are_lost;

void explore_split(const void *word) { split_word = word; }
void explore_ignore(const void *word) { ignored_word = word; }
void explore_delay(const void *word) { delayed_word = word; }
void explore_lose_wakes(void) { wakes_are_lost = true; }

/* ---- who goes on ---- */

_Noreturn void explore_fail(const char *what, const char *file, int line)
{
    snprintf(shared->said, sizeof shared->said, "%s:%d: %s", file, line, what);
    _exit(1);
}

static _Noreturn void nobody_can_go_on(void)
{
    explore_fail("all threads wait", __FILE__, __LINE__);
}

static uint64_t random_number(void)
{
    shared->random ^= shared->random << 13;
    shared->random ^= shared->random >> 7;
    shared->random ^= shared->random << 17;
    return shared->random;
}

static unsigned choose(unsigned count)
{
    uint32_t at = shared->trace_length;
    unsigned chosen = 0;

    if (count < 2) return 0;
    if (at == CHOICES_MAX) explore_fail("too many switches", __FILE__, __LINE__);
    if (at < shared->prefix_length) chosen = shared->prefix[at];
    else if (shared->random != 0 && random_number() % 8 == 0)
        chosen = (unsigned)(random_number() % count);
    if (chosen >= count) chosen = 0;
    shared->trace[at] = (struct choice){ (uint8_t)count, (uint8_t)chosen };
    shared->trace_length++;
    return chosen;
}

/* The thread that goes on: perhaps the one that runs, if it can. */
static unsigned choose_thread(bool can_go_on)
{
    unsigned able[MODEL_THREADS_MAX + 1], count = 0, chosen;

    if (can_go_on) able[count++] = (unsigned)self;
    for (unsigned i = 0; i < thread_count; i++)
        if ((int)i != self && threads[i].state == THREAD_READY) able[count++] = i;
    if (count == 0) nobody_can_go_on();
    if (can_go_on && interruptions == model->interruptions) count = 1;
    chosen = choose(count);
    if (can_go_on && chosen != 0) interruptions++;
    return able[chosen];
}

static void hand_to(unsigned next)
{
    if ((int)next == self) return;
    sem_post(&threads[next].turn);
    while (sem_wait(&threads[self].turn) != 0) {}
}

/* ---- words ---- */

static struct word *word_of(struct word *words, const void *address)
{
    uintptr_t key = (uintptr_t)address >> 2;
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 40) % WORDS_MAX;

    while (words[at].address != 0 && words[at].address != key) at = (at + 1) % WORDS_MAX;
    words[at].address = key;
    return &words[at];
}

static bool is_shared(const struct word *word)
{
    uint8_t all = word->readers | word->writers;

    return word->writers != 0 && (all & (all - 1)) != 0;
}

static void point(const void *address, bool writes)
{
    struct word *word;

    if (!exploring || self < 0 || address == ignored_word) return;
    word = word_of(shared->words, address);
    if (writes) word->writers |= (uint8_t)(1 << self);
    else word->readers |= (uint8_t)(1 << self);
    if (!is_shared(word_of(shared->places, address))) return;
    shared->points++;
    hand_to(choose_thread(true));
}

void explore_point(const void *address) { point(address, true); }

/* ---- what a breakage delays ---- */

/* Before it is seen, others may do what they do. */
static void let_stores_out(void)
{
    struct thread *thread;

    if (self < 0) return;
    thread = &threads[self];
    if (thread->delayed > 0) point(thread->delayed_word[0], true);
    for (unsigned i = 0; i < thread->delayed; i++)
        memcpy((void *)(uintptr_t)thread->delayed_word[i], &thread->delayed_value[i],
               thread->delayed_bytes[i]);
    thread->delayed = 0;
}

static bool delay_store(const volatile void *word, uint64_t value, unsigned bytes)
{
    struct thread *thread;

    if (!exploring || self < 0 || word != delayed_word) return false;
    thread = &threads[self];
    if (thread->delayed == DELAYED_MAX) let_stores_out();
    thread->delayed_word[thread->delayed] = (const void *)(uintptr_t)word;
    thread->delayed_value[thread->delayed] = value;
    thread->delayed_bytes[thread->delayed++] = bytes;
    return true;
}

static bool own_store(const volatile void *word, uint64_t *value)
{
    const struct thread *thread;

    if (!exploring || self < 0) return false;
    thread = &threads[self];
    for (unsigned i = thread->delayed; i > 0; i--)
        if (thread->delayed_word[i - 1] == word) {
            *value = thread->delayed_value[i - 1];
            return true;
        }
    return false;
}

/* ---- what the compiler calls ---- */

#define address_of(word) ((const void *)(uintptr_t)(word))

#define ATOMIC_LOAD_AND_STORE(bits, type)                                         \
    type __tsan_atomic##bits##_load(const volatile type *word, int order);        \
    type __tsan_atomic##bits##_load(const volatile type *word, int order)         \
    {                                                                             \
        uint64_t value;                                                           \
        (void)order;                                                              \
        point(address_of(word), false);                                           \
        if (own_store(word, &value)) return (type)value;                          \
        return __atomic_load_n(word, __ATOMIC_SEQ_CST);                           \
    }                                                                             \
    void __tsan_atomic##bits##_store(volatile type *word, type value, int order); \
    void __tsan_atomic##bits##_store(volatile type *word, type value, int order)  \
    {                                                                             \
        (void)order;                                                              \
        point(address_of(word), true);                                            \
        if (!delay_store(word, (uint64_t)value, sizeof value))                    \
            __atomic_store_n(word, value, __ATOMIC_SEQ_CST);                      \
    }

/* `operation` makes the new value of `old` and `value`. */
#define ATOMIC_CHANGE(bits, type, name, operation)                                 \
    type __tsan_atomic##bits##_##name(volatile type *word, type value, int order); \
    type __tsan_atomic##bits##_##name(volatile type *word, type value, int order)  \
    {                                                                              \
        type old;                                                                  \
        (void)order;                                                               \
        let_stores_out();                                                          \
        point(address_of(word), true);                                             \
        old = *word;                                                               \
        if (address_of(word) == split_word) point(address_of(word), true);         \
        *word = (type)(operation);                                                 \
        return old;                                                                \
    }

#define ATOMIC_COMPARE(bits, type, name)                                                    \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *word, type *expected,  \
                                                      type wanted, int order, int failure); \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *word, type *expected,  \
                                                      type wanted, int order, int failure)  \
    {                                                                                       \
        type old;                                                                           \
        (void)order, (void)failure;                                                         \
        let_stores_out();                                                                   \
        point(address_of(word), true);                                                      \
        old = *word;                                                                        \
        if (old != *expected) {                                                             \
            *expected = old;                                                                \
            return 0;                                                                       \
        }                                                                                   \
        if (address_of(word) == split_word) point(address_of(word), true);                  \
        *word = wanted;                                                                     \
        return 1;                                                                           \
    }

#define ATOMIC_ALL(bits, type)                        \
    ATOMIC_LOAD_AND_STORE(bits, type)                 \
    ATOMIC_CHANGE(bits, type, exchange, value)        \
    ATOMIC_CHANGE(bits, type, fetch_add, old + value) \
    ATOMIC_CHANGE(bits, type, fetch_sub, old - value) \
    ATOMIC_CHANGE(bits, type, fetch_and, old &value)  \
    ATOMIC_CHANGE(bits, type, fetch_or, old | value)  \
    ATOMIC_CHANGE(bits, type, fetch_xor, old ^ value) \
    ATOMIC_COMPARE(bits, type, strong)                \
    ATOMIC_COMPARE(bits, type, weak)

ATOMIC_ALL(8, uint8_t)
ATOMIC_ALL(16, uint16_t)
ATOMIC_ALL(32, uint32_t)
ATOMIC_ALL(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    let_stores_out();
}

/* Other accesses are no places to switch at. */
#define UNWATCHED(name, parameters) \
    void __tsan_##name parameters;  \
    void __tsan_##name parameters {}
UNWATCHED(init, (void))
UNWATCHED(func_entry, (void *unused __attribute__((unused))))
UNWATCHED(func_exit, (void *unused __attribute__((unused))))
UNWATCHED(atomic_signal_fence, (int unused __attribute__((unused))))
#define UNWATCHED_OF(bytes)                                                   \
    UNWATCHED(read##bytes, (void *unused __attribute__((unused))))            \
    UNWATCHED(write##bytes, (void *unused __attribute__((unused))))           \
    UNWATCHED(unaligned_read##bytes, (void *unused __attribute__((unused))))  \
    UNWATCHED(unaligned_write##bytes, (void *unused __attribute__((unused)))) \
    UNWATCHED(volatile_read##bytes, (void *unused __attribute__((unused))))   \
    UNWATCHED(volatile_write##bytes, (void *unused __attribute__((unused))))
UNWATCHED_OF(1)
UNWATCHED_OF(2)
UNWATCHED_OF(4)
UNWATCHED_OF(8)
UNWATCHED_OF(16)
UNWATCHED(read_range, (void *unused __attribute__((unused)), size_t bytes __attribute__((unused))))
UNWATCHED(write_range, (void *unused __attribute__((unused)), size_t bytes __attribute__((unused))))

/* ---- what the fake kernel's functions are replaced by (--wrap) ---- */

void __wrap_port_wait(const uint32_t *word, uint32_t expected);
void __wrap_port_wait(const uint32_t *word, uint32_t expected)
{
    let_stores_out();
    if (*word != expected) return;
    if (!exploring || self < 0) nobody_can_go_on();
    threads[self].state = THREAD_WAITS;
    threads[self].word = word;
    hand_to(choose_thread(false));
}

void __wrap_port_wake(uint32_t *word, int count);
void __wrap_port_wake(uint32_t *word, int count)
{
    let_stores_out();
    if (wakes_are_lost) return;
    for (unsigned i = 0; i < thread_count && count > 0; i++) {
        if (threads[i].state != THREAD_WAITS || threads[i].word != word) continue;
        threads[i].state = THREAD_READY;
        count--;
    }
}

/* Time passes; whoever can go on may do so first. */
void __wrap_os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms);
void __wrap_os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    let_stores_out();
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) return;
    if (exploring && self >= 0) hand_to(choose_thread(true));
    fake_clock_ms(duration_ms);
}

static void *run_background(void *unused);
static void let_end(struct thread *thread);

bool __wrap_os_thread_start(void *(*body)(void *));
bool __wrap_os_thread_start(void *(*body)(void *))
{
    struct thread *made = &threads[model->threads];

    if (!exploring || (thread_count > model->threads && made->state != THREAD_ENDED)) return false;
    if (thread_count > model->threads) let_end(made);
    background = body;
    made->state = THREAD_READY;
    thread_count = model->threads + 1;
    return pthread_create(&made->thread, NULL, run_background, NULL) == 0;
}

/* Until the background thread has ended. */
void __wrap_os_thread_wait(uint64_t most_ms);
void __wrap_os_thread_wait(uint64_t most_ms)
{
    (void)most_ms;
    let_stores_out();
    if (!exploring || self < 0 || thread_count == model->threads) return;
    if (threads[model->threads].state == THREAD_ENDED) return;
    threads[self].state = THREAD_JOINS;
    hand_to(choose_thread(false));
}

/* ---- one order ---- */

/* What the library does at the end of a thread it does when all are through, one after the
 * other. */
static void end_of_thread(void)
{
    struct thread *own = &threads[self];
    unsigned left = 0;

    let_stores_out();
    threads[self].state = THREAD_ENDED;
    for (unsigned i = 0; i < thread_count; i++) {
        if (threads[i].state == THREAD_JOINS && (unsigned)self == model->threads)
            threads[i].state = THREAD_READY;
        left += threads[i].state != THREAD_ENDED;
    }
    if (left == 0) {
        exploring = false;
        sem_post(&all_through);
    } else {
        sem_post(&threads[choose_thread(false)].turn);
    }
    self = -1;
    while (sem_wait(&own->turn) != 0) {}
}

static void let_end(struct thread *thread)
{
    sem_post(&thread->turn);
    pthread_join(thread->thread, NULL);
}

static void *run_background(void *unused)
{
    self = (int)model->threads;
    while (sem_wait(&threads[self].turn) != 0) {}
    (void)background(unused);
    end_of_thread();
    return NULL;
}

static sem_t is_warm;

static void *run_thread(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;

    if (model->warm != NULL) model->warm(thread);
    sem_post(&is_warm);
    self = (int)thread;
    while (sem_wait(&threads[self].turn) != 0) {}
    model->body(thread);
    end_of_thread();
    return NULL;
}

/* In the child of a fork there is nobody to switch to. */
pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    pid_t child = __real_fork();

    if (child == 0 && exploring) {
        exploring = false;
        alarm(ORDER_SECONDS / 2);
    }
    return child;
}

static void abort_was_called(int signal)
{
    (void)signal;
    snprintf(shared->said, sizeof shared->said, "%.400s", fake_error_text());
    _exit(1);
}

static void live(const struct breakage *breakage)
{
    signal(SIGABRT, abort_was_called);
    fake_cores(1); /* takers of locks do not spin */
    sem_init(&all_through, 0, 0);
    sem_init(&is_warm, 0, 0);
    for (unsigned i = 0; i <= MODEL_THREADS_MAX; i++) sem_init(&threads[i].turn, 0, 0);
    model->setup();
    thread_count = model->threads;
    for (unsigned i = 0; i < model->threads; i++) {
        if (pthread_create(&threads[i].thread, NULL, run_thread, (void *)(uintptr_t)i) != 0)
            explore_fail("no thread", __FILE__, __LINE__);
        while (sem_wait(&is_warm) != 0) {}
    }
    if (breakage != NULL) breakage->arm();
    exploring = true;
    sem_post(&threads[choose_thread(false)].turn);
    while (sem_wait(&all_through) != 0) {}
    split_word = delayed_word = NULL;
    for (unsigned i = 0; i < thread_count; i++) let_end(&threads[i]);
    model->finish();
}

/* False: something is wrong in this order. */
static bool run_order(const struct breakage *breakage)
{
    int status = 0;
    pid_t child;

    shared->trace_length = 0;
    shared->said[0] = '\0';
    fflush(NULL);
    child = fork();
    if (child == 0) {
        struct rlimit none = { 0, 0 };
        (void)setrlimit(RLIMIT_CORE, &none);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(3);
        alarm(ORDER_SECONDS);
        live(breakage);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        perror("fork");
        exit(2);
    }
    if (WIFSIGNALED(status) && shared->said[0] == '\0')
        snprintf(shared->said, sizeof shared->said, "signal %d", WTERMSIG(status));
    return status == 0;
}

/* ---- all orders ---- */

/* The next prefix in the order of a depth-first search. False: there is none. */
static bool next_prefix(void)
{
    uint32_t length = shared->trace_length;

    while (length > 0 && shared->trace[length - 1].chosen + 1 >= shared->trace[length - 1].count)
        length--;
    if (length == 0) return false;
    for (uint32_t i = 0; i < length; i++) shared->prefix[i] = shared->trace[i].chosen;
    shared->prefix[length - 1]++;
    shared->prefix_length = length;
    return true;
}

static unsigned count_shared(const struct word *words)
{
    unsigned count = 0;

    for (unsigned i = 0; i < WORDS_MAX; i++) count += is_shared(&words[i]);
    return count;
}

/* Random orders tell which words threads share, before those are the places to switch at. False:
 * one of them went wrong. */
static bool look_for_words(const struct breakage *breakage, uint64_t *orders)
{
    for (unsigned i = 1; i <= ORDERS_AT_RANDOM; i++) {
        memcpy(shared->places, shared->words, sizeof shared->places);
        shared->prefix_length = 0;
        shared->random = i * 0x9e3779b97f4a7c15u;
        ++*orders;
        if (!run_order(breakage)) return false;
    }
    shared->random = 0;
    return true;
}

/* Every order, as long as no more words turn out to be shared. */
static bool search(const struct breakage *breakage, uint64_t orders_max, uint64_t *orders)
{
    unsigned known;

    if (!look_for_words(breakage, orders)) return false;
    do {
        memcpy(shared->places, shared->words, sizeof shared->places);
        known = count_shared(shared->places);
        shared->prefix_length = 0;
        do {
            ++*orders;
            if (!run_order(breakage)) return false;
        } while (next_prefix() && *orders < orders_max);
    } while (count_shared(shared->words) > known && *orders < orders_max);
    return true;
}

/* The order that went wrong: the switches in it, as the third argument takes them. */
static void print_order(void)
{
    printf("    again: model %s 0 ", model->name);
    for (uint32_t i = 0; i < shared->trace_length; i++)
        if (shared->trace[i].chosen != 0) printf("%u:%u,", i, shared->trace[i].chosen);
    printf("\n");
}

/* What is not broken is right only where no order was left out. */
static bool explore(const struct breakage *breakage, uint64_t orders_max)
{
    uint64_t orders = 0;
    bool right;

    memset(shared, 0, sizeof *shared);
    right = search(breakage, orders_max, &orders);
    printf("%s%s%s: %llu orders%s, %u shared words, %llu places passed: %s%s\n", model->name,
           breakage != NULL ? ", " : "", breakage != NULL ? breakage->what : "",
           (unsigned long long)orders, orders >= orders_max ? " (not all)" : "",
           count_shared(shared->places), (unsigned long long)shared->points,
           right ? "right in all of them" : "wrong: ", right ? "" : shared->said);
    if (!right && breakage == NULL) print_order();
    fflush(stdout);
    return right && orders < orders_max;
}

/* One order, in this very process, for a debugger; the words are those that random orders share. */
static int repeat(const char *order)
{
    uint64_t orders = 0;

    memset(shared, 0, sizeof *shared);
    (void)look_for_words(NULL, &orders);
    memcpy(shared->places, shared->words, sizeof shared->places);
    for (char *at = (char *)(uintptr_t)order; *at != '\0'; at += *at == ',') {
        unsigned long index = strtoul(at, &at, 10);
        if (*at != ':' || index >= CHOICES_MAX) return 2;
        shared->prefix[index] = (uint8_t)strtoul(at + 1, &at, 10);
        shared->prefix_length = (uint32_t)index + 1;
    }
    shared->trace_length = 0;
    live(NULL);
    return 0;
}

static const struct model *const models[] = { &lock_model,    &depot_model, &first_use_model,
                                              &decay_model,   &fork_model,  &background_model,
                                              &sleepers_model };

/* One core does: threads take turns, and a switch is cheaper then. */
static void stay_on_this_core(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)sched_getcpu(), &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    uint64_t orders_max = argc > 2 ? strtoull(argv[2], NULL, 0) : 200000;
    int failed = 0, explored = 0;

    setenv("CMOCKA_TEST_ABORT", "1", 1);
    stay_on_this_core();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < sizeof models / sizeof models[0]; i++) {
        model = models[i];
        if (argc > 1 && strcmp(argv[1], model->name) != 0) continue;
        explored++;
        if (argc > 3) return repeat(argv[3]);
        failed |= !explore(NULL, orders_max);
        for (unsigned b = 0; b < MODEL_BREAKAGES_MAX && model->breakages[b].what != NULL; b++)
            failed |= explore(&model->breakages[b], orders_max);
    }
    if (explored == 0) fprintf(stderr, "there is no model %s\n", argv[1]);
    return explored == 0 ? 2 : failed;
}
