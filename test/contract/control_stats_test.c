/* control_stats_test.c - statistics add up, follow the epoch, and agree with the kernel. */
/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <pthread.h>
#include <signal.h>

enum { BLOCKS = 20000, BURST_MIB = 200 };

static void *blocks[BLOCKS];

static void take_blocks(size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = call.malloc(bytes);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, bytes);
    }
}

static void *take_one(size_t bytes)
{
    take_blocks(1, bytes);
    return blocks[0];
}

static void give_blocks(size_t count)
{
    for (size_t i = 0; i < count; i++) call.free(blocks[i]);
}

static size_t arena_size(unsigned arena, const char *leaf)
{
    char name[100];

    snprintf(name, sizeof name, "stats.arenas.%u.%s", arena, leaf);
    return read_size(name);
}

static bool is_made(unsigned arena)
{
    char name[64];

    snprintf(name, sizeof name, "arena.%u.initialized", arena);
    return read_flag(name);
}

static size_t sum_over_arenas(const char *leaf)
{
    size_t sum = 0;

    for (unsigned i = 0; i < read_unsigned("arenas.narenas"); i++)
        if (is_made(i)) sum += arena_size(i, leaf);
    return sum;
}

/* ---- one number after the other ---- */

static void sums_are_in_order(const struct check *check)
{
    for (size_t bytes = 8; bytes <= 1 << 20; bytes *= 4) {
        size_t count = ((size_t)64 << 20) / bytes;
        if (count > BLOCKS) count = BLOCKS;
        take_blocks(count, bytes);
        for (unsigned pass = 0; pass < 2; pass++) {
            new_epoch();
            size_t allocated = read_size("stats.allocated"), active = read_size("stats.active");
            size_t resident = read_size("stats.resident"), mapped = read_size("stats.mapped");
            assert_true(allocated <= active && active <= resident && resident <= mapped);
            if (pass == 0) {
                assert_true(allocated >= count * bytes);
                give_blocks(count);
            }
        }
    }
    (void)check;
}

static void allocated_is_exact(const struct check *check)
{
    size_t before, bytes;

    take_blocks(100, check->bytes);
    give_blocks(100);
    new_epoch();
    before = read_size("stats.allocated");
    take_blocks(1000, check->bytes);
    bytes = call.malloc_usable_size(blocks[0]) * 1000;
    new_epoch();
    assert_int_equal(read_size("stats.allocated") - before, bytes);
    give_blocks(1000);
    new_epoch();
    assert_int_equal(read_size("stats.allocated"), before);
}

static void arenas_add_up(const struct check *check)
{
    static const char *const leaves[] = {
        "pactive",        "pdirty",          "mapped",
        "resident",       "retained",        "base",
        "tcache_bytes",   "small.allocated", "large.allocated",
        "small.nmalloc",  "small.ndalloc",   "large.nmalloc",
        "bins.3.curregs", "bins.3.curslabs", "bins.3.nonfull_slabs",
        "dirty_purged",
    };

    (void)check;
    take_blocks(BLOCKS, 48);
    new_epoch();
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
        assert_int_equal(sum_over_arenas(leaves[i]), arena_size(4096, leaves[i]));
    assert_int_equal(arena_size(4096, "small.allocated") + arena_size(4096, "large.allocated"),
                     read_size("stats.allocated"));
    assert_int_equal(arena_size(4096, "pactive") * read_size("arenas.page"),
                     read_size("stats.active"));
    assert_int_equal(arena_size(4096, "resident"), read_size("stats.resident"));
    assert_int_equal(arena_size(4096, "mapped"), read_size("stats.mapped"));
    give_blocks(BLOCKS);
}

static unsigned bin_of(size_t bytes)
{
    for (unsigned i = 0; i < read_unsigned("arenas.nbins"); i++) {
        char name[64];
        snprintf(name, sizeof name, "arenas.bin.%u.size", i);
        if (read_size(name) >= bytes) return i;
    }
    fail();
    return 0;
}

static size_t bin_number(unsigned bin, const char *leaf)
{
    char name[64];

    snprintf(name, sizeof name, "bins.%u.%s", bin, leaf);
    return arena_size(4096, name);
}

/* What servers compute fragmentation from. */
static void bins_count_blocks_and_slabs(const struct check *check)
{
    unsigned bin = bin_of(check->bytes);
    size_t regs, slabs, taken, given;
    char name[64];

    new_epoch();
    regs = bin_number(bin, "curregs");
    taken = bin_number(bin, "nmalloc");
    given = bin_number(bin, "ndalloc");
    take_blocks(5000, check->bytes);
    new_epoch();
    assert_int_equal(bin_number(bin, "curregs") - regs, 5000);
    assert_true(bin_number(bin, "nmalloc") >= taken);
    assert_true(bin_number(bin, "nmalloc") - bin_number(bin, "ndalloc") >= regs + 5000);
    snprintf(name, sizeof name, "arenas.bin.%u.nregs", bin);
    slabs = bin_number(bin, "curslabs");
    assert_true(slabs * read_unsigned(name) >= bin_number(bin, "curregs"));
    assert_true(bin_number(bin, "nslabs") >= slabs);
    /* Every other one: the slabs stay, and are not full. */
    for (size_t i = 0; i < 5000; i += 2) call.free(blocks[i]);
    assert_int_equal(mallctl("thread.idle", NULL, NULL, NULL, 0), 0);
    assert_int_equal(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    new_epoch();
    assert_int_equal(bin_number(bin, "curregs") - regs, 2500);
    assert_true(bin_number(bin, "nonfull_slabs") * 4 >= slabs * 3);
    assert_true(bin_number(bin, "ndalloc") >= given + 2000);
    for (size_t i = 1; i < 5000; i += 2) call.free(blocks[i]);
}

static void large_blocks_are_counted(const struct check *check)
{
    size_t taken, given;

    (void)check;
    new_epoch();
    taken = arena_size(4096, "large.nmalloc");
    given = arena_size(4096, "large.ndalloc");
    take_blocks(10, 1 << 20);
    new_epoch();
    assert_int_equal(arena_size(4096, "large.nmalloc") - taken, 10);
    give_blocks(10);
    new_epoch();
    assert_int_equal(arena_size(4096, "large.ndalloc") - given, 10);
}

/* ---- runs by length ---- */

static size_t length_number(const char *kind, unsigned step, const char *leaf)
{
    char name[64];

    snprintf(name, sizeof name, "%s.%u.%s", kind, step, leaf);
    return arena_size(0, name);
}

static unsigned step_of_large(size_t bytes)
{
    for (unsigned i = 0; i < read_unsigned("arenas.nlextents"); i++) {
        char name[64];
        snprintf(name, sizeof name, "arenas.lextent.%u.size", i);
        if (read_size(name) >= bytes) return i;
    }
    fail();
    return 0;
}

static void large_blocks_are_counted_by_length(const struct check *check)
{
    unsigned step = step_of_large(call.malloc_usable_size(take_one(check->bytes))), all = 0;
    size_t before;

    give_blocks(1);
    new_epoch();
    before = length_number("lextents", step, "curlextents");
    take_blocks(7, check->bytes);
    assert_int_equal(length_number("lextents", step, "curlextents"), before);
    new_epoch();
    assert_int_equal(length_number("lextents", step, "curlextents"), before + 7);
    for (unsigned i = 0; i < read_unsigned("arenas.nlextents"); i++)
        all += (unsigned)length_number("lextents", i, "curlextents");
    assert_int_equal(all, arena_size(0, "large.nmalloc") - arena_size(0, "large.ndalloc"));
    give_blocks(7);
    new_epoch();
    assert_int_equal(length_number("lextents", step, "curlextents"), before);
}

static size_t sum_of_steps(const char *leaf)
{
    size_t sum = 0;

    for (unsigned i = 0; i < read_unsigned("arenas.nlextents") + 3; i++)
        sum += length_number("extents", i, leaf);
    return sum;
}

/* Free runs of every length add up to the free pages. Arenas hold some ready for slabs, which are
 * dirty, too. */
static void free_runs_are_counted_by_length(const struct check *check)
{
    size_t between; /* beside free runs: pages between blocks, of slabs that earlier checks left */

    (void)check;
    assert_int_equal(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    new_epoch();
    between = arena_size(0, "retained") - sum_of_steps("retained_bytes");
    take_blocks(200, 100000);
    for (unsigned i = 0; i < 200; i += 2) call.free(blocks[i]);
    new_epoch();
    assert_true(sum_of_steps("dirty_bytes") >= 5000000);
    assert_true(sum_of_steps("dirty_bytes") <= arena_size(0, "pdirty") * read_size("arenas.page"));
    assert_true(sum_of_steps("ndirty") >= 50);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(length_number("extents", i, "dirty_bytes"),
                         (i + 1) * read_size("arenas.page")
                             * length_number("extents", i, "ndirty"));
    assert_int_equal(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    new_epoch();
    assert_int_equal(sum_of_steps("dirty_bytes"), 0);
    assert_int_equal(sum_of_steps("ndirty"), 0);
    assert_int_equal(sum_of_steps("retained_bytes"), arena_size(0, "retained") - between);
    assert_true(sum_of_steps("nretained") >= 50);
    assert_int_equal(sum_of_steps("nmuzzy") + sum_of_steps("muzzy_bytes"), 0);
    for (unsigned i = 1; i < 200; i += 2) call.free(blocks[i]);
}

static void locks_are_counted(const struct check *check)
{
    size_t threads, samples;

    (void)check;
    new_epoch();
    threads = arena_size(0, "mutexes.tcache_list.num_ops");
    samples = read_size("stats.mutexes.prof.num_ops");
    new_epoch(); /* looks at all threads, and at no samples */
    assert_true(arena_size(0, "mutexes.tcache_list.num_ops") > threads);
    assert_int_equal(read_size("stats.mutexes.prof.num_ops"), samples);
    (void)read_size("stats.mutexes.background_thread.num_ops");
}

static struct {
    uint32_t stands, may_go, goes, may_ask, enough; /* atomic */
} contest;

static void set(uint32_t *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }

static void wait_for(const uint32_t *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) sleep_ms(1);
}

/* Wherever the thread is just now; nearly always it has the lock of the snapshot. */
static void stand_still(int signal)
{
    (void)signal;
    set(&contest.stands);
    wait_for(&contest.may_go);
    set(&contest.goes);
}

static void *ask_again_and_again(void *unused)
{
    while (!__atomic_load_n(&contest.enough, __ATOMIC_ACQUIRE)) new_epoch();
    return unused;
}

static void *ask_once(void *unused)
{
    wait_for(&contest.may_ask);
    new_epoch();
    return unused;
}

/* A thread asks while another one stands still in the middle of its question. Threads are made when
 * nobody stands still: that allocates. */
static void contend(pthread_t holder)
{
    pthread_t other;

    memset(&contest, 0, sizeof contest);
    assert_int_equal(pthread_create(&other, NULL, ask_once, NULL), 0);
    assert_int_equal(pthread_kill(holder, SIGUSR1), 0);
    wait_for(&contest.stands);
    set(&contest.may_ask);
    sleep_ms(20);
    set(&contest.may_go);
    wait_for(&contest.goes);
    pthread_join(other, NULL);
}

/* What was counted can be forgotten. */
static void waiting_for_locks_is_told(const struct check *check)
{
    enum { WAITERS = 2, ROUNDS_MAX = 1000 };
    struct sigaction action = { .sa_handler = stand_still, .sa_flags = SA_RESTART };
    pthread_t holder;
    uint64_t waits = 0, longest, sum; /* ns of a busy machine do not fit in 32 bits */
    unsigned threads_most = 0;
    size_t length = sizeof threads_most;

    (void)check;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_create(&holder, NULL, ask_again_and_again, NULL), 0);
    for (unsigned round = 0; round < ROUNDS_MAX && waits == 0; round++) {
        contend(holder);
        new_epoch();
        waits = read_number("stats.mutexes.ctl.num_wait", sizeof waits);
    }
    set(&contest.enough);
    pthread_join(holder, NULL);
    /* Until now it could wait once more between two of these. */
    new_epoch();
    waits = read_number("stats.mutexes.ctl.num_wait", sizeof waits);
    assert_true(waits > 0);
    longest = read_number("stats.mutexes.ctl.max_wait_time", sizeof longest);
    sum = read_number("stats.mutexes.ctl.total_wait_time", sizeof sum);
    assert_true(longest > 0 && longest <= sum && sum <= longest * waits);
    assert_int_equal(mallctl("stats.mutexes.ctl.max_num_thds", &threads_most, &length, NULL, 0), 0);
    /* Who was woken and holds the lock is one of those who sleep until it says otherwise. */
    assert_true(threads_most >= 1 && threads_most <= WAITERS);
    assert_int_equal(mallctl("stats.mutexes.reset", NULL, NULL, NULL, 0), 0);
    new_epoch();
    assert_int_equal(read_size("stats.mutexes.ctl.total_wait_time"), 0);
    assert_true(read_size("stats.mutexes.ctl.num_ops") < 10);
    assert_true(arena_size(4096, "mutexes.extents_dirty.num_ops") < 10);
}

/* ---- the epoch ---- */

static void numbers_stay_until_the_next_epoch(const struct check *check)
{
    size_t before;
    uint64_t epoch;

    (void)check;
    new_epoch();
    epoch = read_number("epoch", 8);
    before = read_size("stats.allocated");
    take_blocks(100, 1 << 20);
    assert_int_equal(read_size("stats.allocated"), before);
    assert_int_equal(read_number("epoch", 8), epoch);
    new_epoch();
    assert_int_equal(read_number("epoch", 8), epoch + 1);
    assert_true(read_size("stats.allocated") >= before + ((size_t)100 << 20));
    give_blocks(100);
}

/* ---- the kernel ---- */

static size_t kernel_anonymous(void) { return (size_t)status_kb("RssAnon:") * 1024; }

static void resident_is_what_the_kernel_says(const struct check *check)
{
    size_t count = ((size_t)BURST_MIB << 20) / check->bytes, ours, others, ours_before;
    double share;
    void **many = call.malloc(count * sizeof *many);

    memset(many, 0, count * sizeof *many);
    /* Pages that went back before their slab was closed count as dirty until they are purged. */
    assert_int_equal(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    new_epoch();
    ours_before = read_size("stats.resident");
    others = kernel_anonymous() > ours_before ? kernel_anonymous() - ours_before : 0;
    for (size_t i = 0; i < count; i++) {
        many[i] = call.malloc(check->bytes);
        memset(many[i], 1, call.malloc_usable_size(many[i]));
    }
    new_epoch();
    ours = read_size("stats.resident");
    share = (double)ours / (double)(kernel_anonymous() - others);
    print_message("full: ours %zu MiB, the kernel's %zu MiB, others %zu KiB\n", ours >> 20,
                  kernel_anonymous() >> 20, others >> 10);
    assert_true(share > 0.95 && share < 1.05);
    for (size_t i = 0; i < count; i++)
        if (i % 4 != 0) call.free(many[i]);
    assert_int_equal(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    new_epoch();
    ours = read_size("stats.resident");
    share = (double)ours / (double)(kernel_anonymous() - others);
    print_message("a quarter: ours %zu MiB, the kernel's %zu MiB\n", ours >> 20,
                  kernel_anonymous() >> 20);
    assert_true(share > 0.95 && share < 1.05);
    for (size_t i = 0; i < count; i += 4) call.free(many[i]);
    call.free(many);
}

static void purging_gives_pages_back(const struct check *check)
{
    size_t purged, retained;

    (void)check;
    take_blocks(100, 1 << 20);
    new_epoch();
    purged = arena_size(4096, "dirty_purged");
    retained = read_size("stats.retained");
    give_blocks(100);
    assert_int_equal(mallctl("arena.0.purge", NULL, NULL, NULL, 0), 0);
    new_epoch();
    assert_int_equal(arena_size(4096, "pdirty"), 0);
    assert_true(arena_size(4096, "dirty_purged") > purged);
    assert_true(read_size("stats.retained") >= retained + ((size_t)90 << 20));
}

/* ---- while others go on ---- */

static uint32_t stop; /* atomic */

static void *churn(void *seed)
{
    uint64_t state = (uintptr_t)seed;

    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        void *held[64];
        for (int i = 0; i < 64; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            held[i] = call.malloc((state >> 33) % 20000 + 1);
        }
        for (int i = 0; i < 64; i++) call.free(held[i]);
    }
    return NULL;
}

static void count_bytes(void *context, const char *text) { *(size_t *)context += strlen(text); }

static void order_holds_while_others_go_on(const struct check *check)
{
    pthread_t threads[3];
    size_t written = 0;

    (void)check;
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 300; i++) {
        new_epoch();
        assert_true(read_size("stats.allocated") <= read_size("stats.active"));
        assert_true(read_size("stats.active") <= read_size("stats.resident"));
        assert_true(read_size("stats.resident") <= read_size("stats.mapped"));
        assert_true(arena_size(4096, "small.ndalloc") <= arena_size(4096, "small.nmalloc"));
        if (i % 50 == 0) malloc_stats_print(count_bytes, &written, i % 100 == 0 ? "J" : NULL);
    }
    assert_true(written > 50000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

/* ---- other numbers ---- */

static void reallocs_to_zero_are_counted(const struct check *check)
{
    size_t before;

    (void)check;
    new_epoch();
    before = read_size("stats.zero_reallocs");
    assert_null(call.realloc(call.malloc(10), 0));
    new_epoch();
    assert_int_equal(read_size("stats.zero_reallocs"), before + 1);
}

/* The writer of the text may ask something itself, and allocate. */
static void ask_meanwhile(void *context, const char *text)
{
    void *block = call.malloc(strlen(text) + 1);

    *(size_t *)context += strlen(text);
    (void)read_size("stats.allocated");
    new_epoch();
    call.free(block);
}

static void the_writer_may_call_us(const struct check *check)
{
    size_t written = 0;

    (void)check;
    malloc_stats_print(ask_meanwhile, &written, NULL);
    malloc_stats_print(ask_meanwhile, &written, "J");
    assert_true(written > 10000);
}

extern void (*malloc_message)(void *, const char *) __attribute__((weak));

static size_t heard; /* bytes */

static void hear(void *context, const char *text)
{
    (void)context;
    heard += strlen(text);
}

static void messages_go_where_the_program_wants(const struct check *check)
{
    (void)check;
    malloc_message = hear;
    malloc_stats_print(NULL, NULL, NULL);
    malloc_message = NULL;
    assert_true(heard > 5000);
}

int main(void)
{
    static const size_t sizes[] = { 8, 16, 100, 1000, 5000, 14336, 20000, 100000, 1 << 20 };

    checks_begin();
    ADD(sums_are_in_order);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_add((struct check){ .run = allocated_is_exact, .bytes = sizes[i] },
                  "allocated is exact: %zu", sizes[i]);
        if (sizes[i] <= 14336)
            check_add((struct check){ .run = bins_count_blocks_and_slabs, .bytes = sizes[i] },
                      "bins count blocks and slabs: %zu", sizes[i]);
    }
    ADD(arenas_add_up);
    ADD(large_blocks_are_counted);
    for (size_t bytes = 20000; bytes <= 10000000; bytes *= 5)
        check_add((struct check){ .run = large_blocks_are_counted_by_length, .bytes = bytes },
                  "large blocks are counted by length: %zu", bytes);
    ADD(free_runs_are_counted_by_length);
    ADD(locks_are_counted);
    ADD(waiting_for_locks_is_told);
    ADD(numbers_stay_until_the_next_epoch);
    for (size_t i = 0; i < 3; i++)
        check_add((struct check){ .run = resident_is_what_the_kernel_says,
                                  .bytes = (size_t[]){ 64, 3000, 100000 }[i] },
                  "resident is what the kernel says: %zu", (size_t[]){ 64, 3000, 100000 }[i]);
    ADD(purging_gives_pages_back);
    ADD(order_holds_while_others_go_on);
    ADD(reallocs_to_zero_are_counted);
    ADD(the_writer_may_call_us);
    ADD(messages_go_where_the_program_wants);
    return checks_run("control_stats");
}
