/* model.c - the cores of the model, their lines, and what is counted.
 * SPDX-License-Identifier: MIT
 */
#include "model.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_SHIFT = 6, LINES = 1 << 22, CODES = 1 << 12, PLACES = 32, LOCKS = 16 };

struct line {
    uintptr_t number; /* 0: none */
    uint64_t readers; /* a bit for each core that has it */
    uint64_t until;   /* on its way to a core up to then, by that core's clock */
    int8_t writer;    /* the only one that has it, and wrote; -1: none */
    uint8_t words;    /* that were touched since it last moved */
};

struct count {
    uint64_t accesses, moved, shared, claimed, lost, falsely;
};

struct lock_count {
    const char *name;
    uint64_t taken, waited, held_cycles, held_most, waited_cycles;
};

struct core {
    pthread_t thread;
    sem_t turn;
    uint64_t clock, done, wait_from;
    const uint32_t *waits_for; /* since wait_from, if that is not 0 */
    const uint32_t *sleeps_on;
    bool is_over;
};

/* A lock that somebody holds. */
struct held {
    const uint32_t *word;
    uint64_t since;
};

static struct {
    struct model_costs costs;
    struct model_user user;
    void (*body)(unsigned core);
    struct core core[CORES_MAX];
    unsigned cores, begun;
    bool counts;
    uint64_t horizon, begin_clock, end_clock;
    struct count all;
    struct {
        uintptr_t code;
        struct count count;
    } code[CODES];
    struct {
        const char *name;
        struct count count;
    } place[PLACES];
    struct lock_count lock[LOCKS];
    struct held held[CORES_MAX * 8];
} model;
static struct line *lines;
static sem_t all_are_over;
static __thread int self = -1;

static void fail(const char *what)
{
    fprintf(stderr, "scale: %s\n", what);
    exit(1);
}

uint64_t model_cycles(void) { return self < 0 ? 0 : model.core[self].clock; }
unsigned model_core(void) { return self < 0 ? 0 : (unsigned)self; }

/* ---- whose turn it is ---- */

static int earliest(void)
{
    int least = -1;

    for (unsigned i = 0; i < model.cores; i++) {
        const struct core *core = &model.core[i];

        if (core->is_over || core->sleeps_on != NULL) continue;
        if (least < 0 || core->clock < model.core[least].clock) least = (int)i;
    }
    return least;
}

/* Up to where the one that runs next may go before another one is earlier. */
static void set_horizon(int next)
{
    uint64_t others = UINT64_MAX - model.costs.slice;

    for (unsigned i = 0; i < model.cores; i++) {
        const struct core *core = &model.core[i];

        if ((int)i != next && !core->is_over && core->sleeps_on == NULL && core->clock < others)
            others = core->clock;
    }
    model.horizon = others + model.costs.slice;
}

static void wait_for_turn(struct core *core)
{
    while (sem_wait(&core->turn) != 0)
        if (errno != EINTR) fail("no turn");
}

static void hand_over(void)
{
    struct core *own = &model.core[self];
    int next = earliest();

    if (next < 0) {
        if (!own->is_over) fail("all cores sleep");
        sem_post(&all_are_over);
        return;
    }
    set_horizon(next);
    if (next == self) return;
    sem_post(&model.core[next].turn);
    if (!own->is_over) wait_for_turn(own);
}

/* ---- lines ---- */

static struct line *line_of(uintptr_t number)
{
    size_t at = (size_t)(number * 0x9e3779b97f4a7c15u >> 40) % LINES;

    for (size_t tries = 0; tries < LINES; tries++, at = (at + 1) % LINES) {
        if (lines[at].number == number) return &lines[at];
        if (lines[at].number == 0) {
            lines[at] = (struct line){ .number = number, .writer = -1 };
            return &lines[at];
        }
    }
    fail("too many lines");
    return NULL;
}

static struct count *count_of_code(uintptr_t code)
{
    size_t at = (size_t)(code * 0x9e3779b97f4a7c15u >> 40) % CODES;

    for (size_t tries = 0; tries < CODES; tries++, at = (at + 1) % CODES)
        if (model.code[at].code == code || model.code[at].code == 0) {
            model.code[at].code = code;
            return &model.code[at].count;
        }
    fail("too many places of code");
    return NULL;
}

/* What the user looks at, to answer, is no step of the model. */
static const char *place_of(uintptr_t address)
{
    int own = self;
    const char *name;

    self = -1;
    name = model.user.place_of(address);
    self = own;
    return name;
}

static const char *lock_of(const uint32_t *word)
{
    int own = self;
    const char *name;

    self = -1;
    name = model.user.lock_of(word);
    self = own;
    return name;
}

static struct count *count_of_place(uintptr_t address)
{
    const char *name = place_of(address);

    for (unsigned i = 0; i < PLACES; i++)
        if (model.place[i].name == name || model.place[i].name == NULL) {
            model.place[i].name = name;
            return &model.place[i].count;
        }
    fail("too many places");
    return NULL;
}

static void add(struct count *to, const struct count *one)
{
    to->accesses += one->accesses;
    to->moved += one->moved;
    to->shared += one->shared;
    to->claimed += one->claimed;
    to->lost += one->lost;
    to->falsely += one->falsely;
}

/* What becomes of the line, and what that counts. */
static struct count touch(struct line *line, uint8_t words, bool writes)
{
    uint64_t own = UINT64_C(1) << self, others = line->readers & ~own;
    struct count one = { .accesses = 1 };
    bool is_here = (line->readers & own) != 0, was_touched = (line->words & words) != 0;

    if (writes ? line->writer == self : is_here) {
        line->words |= words;
        return one;
    }
    if (!writes) {
        if (line->writer >= 0) one.moved = 1;
        else if (others != 0) one.shared = 1;
        line->readers |= own;
        line->writer = -1;
    } else {
        if (others != 0) {
            if (is_here) one.claimed = 1;
            else one.moved = 1;
            one.lost = (uint64_t)__builtin_popcountll(others);
        }
        line->readers = own;
        line->writer = (int8_t)self;
    }
    one.falsely = (one.moved | one.claimed) != 0 && !was_touched;
    line->words = one.moved != 0 || one.lost != 0 ? words : (uint8_t)(line->words | words);
    return one;
}

/* What is only read comes to several cores at once; all else to one after the other. */
static void fetch(struct line *line, const struct count *one)
{
    struct core *core = &model.core[self];

    if (core->clock < line->until) core->clock = line->until;
    core->clock += one->moved * model.costs.moved + one->shared * model.costs.shared
                 + one->claimed * model.costs.claimed;
    if (one->shared == 0) line->until = core->clock;
}

static void access_line(uintptr_t address, unsigned bytes, bool writes, uintptr_t code)
{
    unsigned first = (unsigned)(address & 63) / 8,
             last = (unsigned)((address & 63) + bytes - 1) / 8;
    uint8_t words = (uint8_t)((0xffu << first) & (0xffu >> (7 - last)));
    struct line *line = line_of(address >> LINE_SHIFT);
    struct count one = touch(line, words, writes);

    if ((one.moved | one.shared | one.claimed) != 0) fetch(line, &one);
    if (!model.counts) return;
    add(&model.all, &one);
    add(count_of_code(code), &one);
    if ((one.moved | one.shared | one.claimed) != 0) add(count_of_place(address), &one);
}

static void reach(const volatile void *at, size_t bytes, bool writes, const void *code)
{
    uintptr_t address = (uintptr_t)at, end = address + bytes;

    if (self < 0 || bytes == 0) return;
    model.core[self].clock += model.costs.access;
    while (address < end) {
        uintptr_t next = (address | 63) + 1;

        access_line(address, (unsigned)((next < end ? next : end) - address), writes,
                    (uintptr_t)code);
        address = next;
    }
    if (model.core[self].clock > model.horizon) hand_over();
}

/* ---- locks ---- */

static struct lock_count *lock_count_of(const char *name)
{
    for (unsigned i = 0; i < LOCKS; i++)
        if (model.lock[i].name == name || model.lock[i].name == NULL) {
            model.lock[i].name = name;
            return &model.lock[i];
        }
    fail("too many kinds of locks");
    return NULL;
}

static struct held *held_of(const uint32_t *word)
{
    for (unsigned i = 0; i < sizeof model.held / sizeof model.held[0]; i++)
        if (model.held[i].word == word) return &model.held[i];
    return NULL;
}

/* A word of 32 bits went from one value to another. */
static void changed(const uint32_t *word, uint32_t old, uint32_t now)
{
    struct core *core = &model.core[self];
    struct lock_count *count;
    struct held *held;
    const char *name;

    if (!model.counts || (old == 0) == (now == 0)) return;
    name = lock_of(word);
    if (name == NULL) return;
    count = lock_count_of(name);
    held = held_of(old == 0 ? NULL : word);
    if (held == NULL) {
        if (old == 0) fail("too many locks are held");
        return; /* taken before counting began */
    }
    if (old == 0) {
        *held = (struct held){ word, core->clock };
        count->taken++;
        if (core->wait_from != 0 && core->waits_for == word) {
            count->waited++;
            count->waited_cycles += core->clock - core->wait_from;
        }
        core->wait_from = 0;
    } else {
        uint64_t cycles = core->clock - held->since;

        count->held_cycles += cycles;
        if (cycles > count->held_most) count->held_most = cycles;
        held->word = NULL;
    }
}

/* A lock was found held. */
static void refused(const uint32_t *word)
{
    struct core *core = &model.core[self];

    if (lock_of(word) == NULL) return;
    if (core->wait_from == 0 || core->waits_for != word) core->wait_from = core->clock;
    core->waits_for = word;
    core->clock += model.costs.pause;
}

void __wrap_port_wait(const uint32_t *word, uint32_t expected);
void __wrap_port_wait(const uint32_t *word, uint32_t expected)
{
    if (self < 0 || *word != expected) return;
    model.core[self].sleeps_on = word;
    hand_over();
}

void __wrap_port_wake(uint32_t *word, int count);
void __wrap_port_wake(uint32_t *word, int count)
{
    uint64_t from;

    if (self < 0) return;
    from = model.core[self].clock + model.costs.woken;
    for (unsigned i = 0; i < model.cores && count > 0; i++) {
        struct core *core = &model.core[i];

        if (core->sleeps_on != word) continue;
        core->sleeps_on = NULL;
        if (core->clock < from) core->clock = from;
        count--;
    }
    set_horizon(self);
}

/* ---- what the compiler calls ---- */

#define HERE __builtin_return_address(0)
#define PLAIN(name, bytes, writes) \
    void __tsan_##name(void *at);  \
    void __tsan_##name(void *at) { reach(at, bytes, writes, HERE); }
#define PLAIN_OF(bytes)                        \
    PLAIN(read##bytes, bytes, false)           \
    PLAIN(write##bytes, bytes, true)           \
    PLAIN(unaligned_read##bytes, bytes, false) \
    PLAIN(unaligned_write##bytes, bytes, true) \
    PLAIN(volatile_read##bytes, bytes, false)  \
    PLAIN(volatile_write##bytes, bytes, true)
PLAIN_OF(1)
PLAIN_OF(2)
PLAIN_OF(4)
PLAIN_OF(8)
PLAIN_OF(16)

void __tsan_read_range(void *at, size_t bytes);
void __tsan_read_range(void *at, size_t bytes) { reach(at, bytes, false, HERE); }
void __tsan_write_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes) { reach(at, bytes, true, HERE); }

#define NOTHING(name, parameters)  \
    void __tsan_##name parameters; \
    void __tsan_##name parameters {}
NOTHING(init, (void))
NOTHING(func_entry, (void *unused __attribute__((unused))))
NOTHING(func_exit, (void *unused __attribute__((unused))))
NOTHING(atomic_signal_fence, (int unused __attribute__((unused))))
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    if (self >= 0) model.core[self].clock += model.costs.atomic;
}

#define ATOMIC_LOAD_AND_STORE(bits, type)                                                      \
    type __tsan_atomic##bits##_load(const volatile type *word, int order);                     \
    type __tsan_atomic##bits##_load(const volatile type *word, int order)                      \
    {                                                                                          \
        (void)order;                                                                           \
        reach(word, sizeof *word, false, HERE);                                                \
        if (bits == 32 && self >= 0 && *word != 0) refused((const uint32_t *)(uintptr_t)word); \
        return *word;                                                                          \
    }                                                                                          \
    void __tsan_atomic##bits##_store(volatile type *word, type value, int order);              \
    void __tsan_atomic##bits##_store(volatile type *word, type value, int order)               \
    {                                                                                          \
        type old;                                                                              \
        (void)order;                                                                           \
        reach(word, sizeof *word, true, HERE);                                                 \
        old = *word;                                                                           \
        *word = value;                                                                         \
        if (bits == 32 && self >= 0)                                                           \
            changed((const uint32_t *)(uintptr_t)word, (uint32_t)old, (uint32_t)value);        \
    }

/* `operation` makes the new value of `old` and `value`. */
#define ATOMIC_CHANGE(bits, type, name, operation)                                      \
    type __tsan_atomic##bits##_##name(volatile type *word, type value, int order);      \
    type __tsan_atomic##bits##_##name(volatile type *word, type value, int order)       \
    {                                                                                   \
        type old;                                                                       \
        (void)order;                                                                    \
        if (self >= 0) model.core[self].clock += model.costs.atomic;                    \
        reach(word, sizeof *word, true, HERE);                                          \
        old = *word;                                                                    \
        *word = (type)(operation);                                                      \
        if (bits == 32 && self >= 0)                                                    \
            changed((const uint32_t *)(uintptr_t)word, (uint32_t)old, (uint32_t)*word); \
        return old;                                                                     \
    }

#define ATOMIC_COMPARE(bits, type, name)                                                    \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *word, type *expected,  \
                                                      type wanted, int order, int failure); \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *word, type *expected,  \
                                                      type wanted, int order, int failure)  \
    {                                                                                       \
        type old;                                                                           \
        (void)order, (void)failure;                                                         \
        if (self >= 0) model.core[self].clock += model.costs.atomic;                        \
        reach(word, sizeof *word, true, HERE);                                              \
        old = *word;                                                                        \
        if (old != *expected) {                                                             \
            *expected = old;                                                                \
            if (bits == 32 && self >= 0) refused((const uint32_t *)(uintptr_t)word);        \
            return 0;                                                                       \
        }                                                                                   \
        *word = wanted;                                                                     \
        if (bits == 32 && self >= 0)                                                        \
            changed((const uint32_t *)(uintptr_t)word, (uint32_t)old, (uint32_t)wanted);    \
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

/* Calls that the compiler does not tell of (--wrap). */
void *__real_memset(void *to, int byte, size_t bytes);
void *__wrap_memset(void *to, int byte, size_t bytes);
void *__wrap_memset(void *to, int byte, size_t bytes)
{
    reach(to, bytes, true, HERE);
    return __real_memset(to, byte, bytes);
}
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    reach(from, bytes, false, HERE);
    reach(to, bytes, true, HERE);
    return __real_memcpy(to, from, bytes);
}
void *__real_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    reach(from, bytes, false, HERE);
    reach(to, bytes, true, HERE);
    return __real_memmove(to, from, bytes);
}

/* ---- a run ---- */

void model_begin(void)
{
    struct core *core = &model.core[self];
    static const uint32_t all_are_here;

    if (++model.begun < model.cores) {
        core->sleeps_on = &all_are_here;
        hand_over();
        return;
    }
    model.counts = true;
    for (unsigned i = 0; i < model.cores; i++)
        if (model.core[i].clock > model.begin_clock) model.begin_clock = model.core[i].clock;
    for (unsigned i = 0; i < model.cores; i++) {
        model.core[i].clock = model.begin_clock;
        model.core[i].sleeps_on = NULL;
        model.core[i].wait_from = 0;
    }
    set_horizon(self);
}

void model_rest(uint32_t cycles)
{
    model.core[self].clock += cycles;
    if (model.core[self].clock > model.horizon) hand_over();
}

void model_done(uint64_t operations)
{
    if (model.counts) model.core[self].done += operations;
}

static void *run_core(void *number)
{
    struct core *core = &model.core[(uintptr_t)number];

    wait_for_turn(core);
    self = (int)(uintptr_t)number;
    model.body((unsigned)self);
    if (model.counts) model.end_clock = core->clock;
    model.counts = false;
    core->is_over = true;
    hand_over();
    for (;;) (void)pause(); /* what ends with a thread is no step of the model */
    return NULL;
}

void model_run(unsigned cores, const struct model_costs *costs, const struct model_user *user,
               void (*body)(unsigned core))
{
    lines = calloc(LINES, sizeof *lines);
    if (lines == NULL || cores == 0 || cores > CORES_MAX) fail("no memory, or too many cores");
    model.costs = *costs;
    model.user = *user;
    model.body = body;
    model.cores = cores;
    if (sem_init(&all_are_over, 0, 0) != 0) fail("no semaphore");
    for (unsigned i = 0; i < cores; i++) {
        if (sem_init(&model.core[i].turn, 0, 0) != 0
            || pthread_create(&model.core[i].thread, NULL, run_core, (void *)(uintptr_t)i) != 0)
            fail("no thread");
    }
    set_horizon(0);
    sem_post(&model.core[0].turn);
    while (sem_wait(&all_are_over) != 0) {}
}

/* ---- what was counted ---- */

static void print_count(const struct count *count)
{
    printf("{\"accesses\": %lu, \"moved\": %lu, \"shared\": %lu, \"claimed\": %lu, \"lost\": %lu, "
           "\"false\": %lu}",
           count->accesses, count->moved, count->shared, count->claimed, count->lost,
           count->falsely);
}

void model_print(const void *code)
{
    uint64_t done = 0, cycles = model.end_clock - model.begin_clock;
    const char *comma = "";

    for (unsigned i = 0; i < model.cores; i++) done += model.core[i].done;
    printf("{\"cores\": %u, \"operations\": %lu, \"cycles\": %lu, \"all\": ", model.cores, done,
           cycles);
    print_count(&model.all);
    printf(", \"places\": {");
    for (unsigned i = 0; i < PLACES && model.place[i].name != NULL; i++, comma = ", ") {
        printf("%s\"%s\": ", comma, model.place[i].name);
        print_count(&model.place[i].count);
    }
    printf("}, \"code\": {");
    comma = "";
    for (unsigned i = 0; i < CODES; i++) {
        if (model.code[i].code == 0) continue;
        printf("%s\"%ld\": ", comma, (long)(model.code[i].code - (uintptr_t)code));
        print_count(&model.code[i].count);
        comma = ", ";
    }
    printf("}, \"locks\": {");
    comma = "";
    for (unsigned i = 0; i < LOCKS && model.lock[i].name != NULL; i++, comma = ", ")
        printf(
            "%s\"%s\": {\"taken\": %lu, \"waited\": %lu, \"held_cycles\": %lu, \"held_most\": %lu, "
            "\"waited_cycles\": %lu}",
            comma, model.lock[i].name, model.lock[i].taken, model.lock[i].waited,
            model.lock[i].held_cycles, model.lock[i].held_most, model.lock[i].waited_cycles);
    printf("}}\n");
}
