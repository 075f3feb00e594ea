/* zone_test.c - the zone of macOS, used as the system and its tools use it.
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include "registry.h"

#include "arenas/arena_set.h"
#include "base/constants.h"
#include "base/options.h"
#include "darwin/zone.h"
#include "heap/hardened.h"
#include "heap/heap.h"
#include "prairie/prairie.h"
#include "unit/unit.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#undef check /* zones have a function of that name */

enum { MANY = 20000 };

static malloc_zone_t *ours(void) { return &prairie_zone.zone; }

static void install(void)
{
    option_set(OPTION_GUARD_SAMPLE, 0); /* macOS has no guarded blocks */
    zone_install();
}

/* ---- the first zone ---- */

static void test_it_becomes_the_first(void **state)
{
    (void)state;
    install();
    assert_int_equal(registry_place(ours()), 0);
    assert_true(registry_place(&system_zone) > 0);
    assert_true(registry_place(&purgeable_zone) > registry_place(&system_zone));
    assert_int_equal(registry_count(), 3);
    install();
    assert_int_equal(registry_count(), 3);
}

static void test_blocks_taken_before_go_back_to_their_zone(void **state)
{
    void *early[100], *late;

    (void)state;
    for (unsigned i = 0; i < 100; i++) early[i] = registry_malloc(i * 10);
    assert_int_equal(system_live(), 100);
    install();
    late = registry_malloc(100);
    assert_int_equal(system_live(), 100);
    assert_ptr_equal(malloc_zone_from_ptr(late), ours());
    early[0] = registry_realloc(early[0], 5000);
    assert_ptr_equal(malloc_zone_from_ptr(early[0]), &system_zone);
    for (unsigned i = 0; i < 100; i++) registry_free(early[i]);
    registry_free(late);
    assert_int_equal(system_live(), 0);
}

/* ---- sizes ---- */

static void test_size_is_0_for_all_but_the_first_byte(void **state)
{
    static const size_t sizes[] = { 1, 48, 1000, 14000, 20000, 1 << 20 };
    int here = 0;

    (void)state;
    install();
    assert_int_equal(ours()->size(ours(), NULL), 0);
    assert_int_equal(ours()->size(ours(), &here), 0);
    assert_int_equal(ours()->size(ours(), &prairie_zone), 0);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *block = ours()->malloc(ours(), sizes[i]);
        size_t size = ours()->size(ours(), block);

        assert_true(size >= sizes[i]);
        assert_int_equal(size, ours()->introspect->good_size(ours(), sizes[i]));
        assert_int_equal(ours()->size(ours(), block + size / 2), 0);
        assert_int_equal(ours()->size(ours(), block + size - 1), 0);
        assert_true(ours()->claimed_address(ours(), block + size / 2));
        ours()->free(ours(), block);
    }
    assert_false(ours()->claimed_address(ours(), &here));
}

/* Every address of a hardened slab may be asked about, and those of large blocks. */
static void test_size_is_0_for_all_but_the_first_byte_of_hardened_blocks(void **state)
{
    static const size_t sizes[] = { 1, 48, 1000, 14000, 100000 };

    (void)state;
    assert_true(hardened_start());
    install();
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *block = ours()->malloc(ours(), sizes[i]);

        assert_int_equal(ours()->size(ours(), block), sizes[i]);
        for (unsigned step = 1; step < 64; step++)
            assert_int_equal(ours()->size(ours(), block + step * sizes[i] / 64 + 1), 0);
        ours()->free(ours(), block);
        assert_int_equal(ours()->size(ours(), block), 0);
    }
}

/* It is nobody's then: whoever asks all zones is told so. */
static void test_where_a_vast_block_was_is_no_block(void **state)
{
    size_t size = VAST_BYTES_MIN;
    char *block;

    (void)state;
    install();
    block = registry_malloc(size);
    assert_non_null(block);
    assert_int_equal(malloc_size(block), size);
    assert_ptr_equal(malloc_zone_from_ptr(block), ours());
    assert_int_equal(malloc_size(block + size / 2), 0);
    registry_free(block);
    assert_int_equal(malloc_size(block), 0);
    assert_null(malloc_zone_from_ptr(block));
    assert_int_equal(malloc_size(block + size / 2), 0);
}

/* Callers add to it, or divide by it. */
static void test_good_size_is_never_less_than_the_size(void **state)
{
    size_t size = 1;

    (void)state;
    install();
    for (unsigned bit = 0; bit < 8 * sizeof size; bit++) {
        size = (size_t)1 << bit;
        assert_true(ours()->introspect->good_size(ours(), size) >= size);
        assert_true(ours()->introspect->good_size(ours(), size + size / 8 * 7) >= size);
    }
    assert_true(ours()->introspect->good_size(ours(), 0) > 0);
    assert_int_equal(ours()->introspect->good_size(ours(), SIZE_MAX), SIZE_MAX);
}

/* ---- every way to a block ---- */

/* A block that was written to and lies ready to be taken again. */
static void leave_garbage(size_t size)
{
    void *block = ours()->malloc(ours(), size);

    memset(block, 0xa5, size);
    ours()->free(ours(), block);
}

static void test_every_way_to_take_a_block(void **state)
{
    malloc_zone_t *zone = ours();
    char *block;

    (void)state;
    install();
    leave_garbage(200);
    block = zone->calloc(zone, 2, 100);
    assert_true(all_bytes_are(block, 0, 200));
    assert_null(zone->calloc(zone, SIZE_MAX / 2, 3));
    block = zone->realloc(zone, block, 3000);
    assert_true(all_bytes_are(block, 0, 200));
    block = zone->realloc(zone, block, 0); /* not NULL: the smallest block */
    assert_non_null(block);
    zone->free(zone, block);
    block = zone->valloc(zone, 10);
    assert_int_equal((uintptr_t)block % 4096, 0);
    zone->free(zone, block);
    for (size_t align = sizeof(void *); align <= 1 << 20; align *= 2) {
        block = zone->memalign(zone, align, 100);
        assert_int_equal((uintptr_t)block % align, 0);
        assert_true(zone->size(zone, block) >= 100);
        zone->free_definite_size(zone, block, 100);
    }
    zone->free(zone, NULL);
}

static void test_options_and_types(void **state)
{
    malloc_zone_t *zone = ours();
    char *block;

    (void)state;
    install();
    leave_garbage(200);
    block = zone->malloc_with_options(zone, 1, 200, MALLOC_ZONE_MALLOC_OPTION_CLEAR);
    assert_true(all_bytes_are(block, 0, 200));
    zone->free(zone, block);
    assert_null(zone->malloc_with_options(zone, 24, 200, MALLOC_ZONE_MALLOC_OPTION_CLEAR));
    block = zone->malloc_with_options(zone, 256, 200, 0);
    assert_int_equal((uintptr_t)block % 256, 0);
    zone->free(zone, block);
    block = zone->malloc_type_malloc(zone, 30, 77);
    block = zone->malloc_type_realloc(zone, block, 300, 77);
    zone->free(zone, block);
    leave_garbage(64);
    block = zone->malloc_type_calloc(zone, 8, 8, 77);
    assert_true(all_bytes_are(block, 0, 64));
    zone->free(zone, block);
    block = zone->malloc_type_memalign(zone, 4096, 1, 77);
    assert_int_equal((uintptr_t)block % 4096, 0);
    zone->free(zone, block);
    leave_garbage(64);
    block = zone->malloc_type_malloc_with_options(zone, 64, 64, MALLOC_ZONE_MALLOC_OPTION_CLEAR, 7);
    assert_int_equal((uintptr_t)block % 64, 0);
    assert_true(all_bytes_are(block, 0, 64));
    zone->free(zone, block);
}

/* Pages that are fresh read as zero already. */
static void test_what_is_cleared_is_not_touched(void **state)
{
    enum { BYTES = 64 << 20, PAGES = BYTES / 4096 };
    static unsigned char is_there[PAGES];
    char *block;
    unsigned there = 0;

    (void)state;
    install();
    block = ours()->malloc_with_options(ours(), 4096, BYTES, MALLOC_ZONE_MALLOC_OPTION_CLEAR);
    assert_non_null(block);
    assert_int_equal(mincore(block, BYTES, is_there), 0);
    for (unsigned i = 0; i < PAGES; i++) there += is_there[i] & 1;
    assert_true(there < PAGES / 16);
    assert_true(all_bytes_are(block, 0, BYTES));
    ours()->free(ours(), block);
}

static void test_batches(void **state)
{
    void *blocks[500];
    malloc_statistics_t before, after;

    (void)state;
    install();
    ours()->introspect->statistics(ours(), &before);
    assert_int_equal(ours()->batch_malloc(ours(), 40, blocks, 500), 500);
    ours()->introspect->statistics(ours(), &after);
    assert_int_equal(after.blocks_in_use, before.blocks_in_use + 500);
    ours()->batch_free(ours(), blocks, 500);
    ours()->introspect->statistics(ours(), &after);
    assert_int_equal(after.blocks_in_use, before.blocks_in_use);
    assert_int_equal(ours()->batch_malloc(ours(), SIZE_MAX / 2, blocks, 3), 0);
}

/* ---- enumeration ---- */

struct seen {
    uintptr_t address[MANY * 2];
    size_t bytes[MANY * 2], count, own_bytes, region_bytes;
};

static void note_ranges(task_t task, void *context, unsigned type, vm_range_t *ranges,
                        unsigned count)
{
    struct seen *seen = context;

    (void)task;
    for (unsigned i = 0; i < count; i++) {
        if (type == MALLOC_ADMIN_REGION_RANGE_TYPE) seen->own_bytes += ranges[i].size;
        if (type == MALLOC_PTR_REGION_RANGE_TYPE) seen->region_bytes += ranges[i].size;
        if (type != MALLOC_PTR_IN_USE_RANGE_TYPE || seen->count == MANY * 2) continue;
        seen->address[seen->count] = ranges[i].address;
        seen->bytes[seen->count++] = ranges[i].size;
    }
}

static void *block_of[MANY];
static struct seen seen;

static size_t size_of(unsigned i) { return i % 100 == 0 ? 20000 + i : 1 + i * 7 % 2000; }

static void *take_many(void *unused)
{
    (void)unused;
    for (unsigned i = 1; i < MANY; i += 2) block_of[i] = ours()->malloc(ours(), size_of(i));
    for (unsigned i = 1; i < MANY; i += 6) {
        ours()->free(ours(), block_of[i]); /* what this thread caches is not in use */
        block_of[i] = NULL;
    }
    return NULL;
}

/* Blocks of two threads, of which many are free again, in magazines and in slabs. */
static void fill_heap(void)
{
    pthread_t thread;

    /* A background thread would move blocks between lists, and who counts them waits for nobody. */
    option_set(OPTION_BACKGROUND_THREAD, 0);
    for (unsigned i = 0; i < MANY; i += 2) block_of[i] = ours()->malloc(ours(), size_of(i));
    assert_int_equal(pthread_create(&thread, NULL, take_many, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < MANY; i += 3) {
        ours()->free(ours(), block_of[i]);
        block_of[i] = NULL;
    }
}

static int by_address(const void *one, const void *other)
{
    uintptr_t a = *(const uintptr_t *)one, b = *(const uintptr_t *)other;

    return a < b ? -1 : a > b;
}

/* Just what fill_heap left, no more and no less. */
static void expect_just_these(void)
{
    static uintptr_t held[MANY];
    size_t count = 0;

    for (unsigned i = 0; i < MANY; i++)
        if (block_of[i] != NULL) held[count++] = (uintptr_t)block_of[i];
    assert_int_equal(seen.count, count);
    qsort(held, count, sizeof held[0], by_address);
    qsort(seen.address, count, sizeof seen.address[0], by_address);
    for (size_t i = 0; i < count; i++) assert_int_equal(seen.address[i], held[i]);
}

static kern_return_t enumerate(task_t task, memory_reader_t reader)
{
    memset(&seen, 0, sizeof seen);
    return ours()->introspect->enumerator(task, &seen,
                                          MALLOC_PTR_IN_USE_RANGE_TYPE
                                              | MALLOC_PTR_REGION_RANGE_TYPE
                                              | MALLOC_ADMIN_REGION_RANGE_TYPE,
                                          (vm_address_t)ours(), reader, note_ranges);
}

static void test_enumerator_sees_every_block_in_use_and_no_other(void **state)
{
    (void)state;
    install();
    fill_heap();
    assert_int_equal(enumerate(mach_task_self(), NULL), KERN_SUCCESS);
    expect_just_these();
    for (size_t i = 0; i < seen.count; i++)
        assert_int_equal(ours()->size(ours(), (void *)seen.address[i]) != 0, 1);
    assert_true(seen.own_bytes > 0);
    assert_true(seen.region_bytes > 0);
}

static void test_enumerator_leaves_out_what_a_hardened_process_holds_back(void **state)
{
    (void)state;
    assert_true(hardened_start());
    install();
    fill_heap();
    assert_int_equal(enumerate(mach_task_self(), NULL), KERN_SUCCESS);
    expect_just_these();
}

/* What is in use is part of what there is. */
static void test_a_vast_block_has_a_region(void **state)
{
    void *block;

    (void)state;
    install();
    block = ours()->malloc(ours(), VAST_BYTES_MIN);
    assert_non_null(block);
    assert_int_equal(enumerate(mach_task_self(), NULL), KERN_SUCCESS);
    assert_true(seen.region_bytes >= VAST_BYTES_MIN);
    ours()->free(ours(), block);
}

static pid_t other_task;
static unsigned reads_left; /* 0: as many as are wanted */

/* As a tool's: a copy out of another process, which is gone with the next call. */
static kern_return_t read_other(task_t task, vm_address_t address, vm_size_t bytes, void **local)
{
    static void *copy;
    struct iovec here, there = { (void *)address, bytes };

    (void)task;
    if (reads_left != 0 && --reads_left == 0) return KERN_FAILURE;
    free(copy);
    copy = malloc(bytes);
    here = (struct iovec){ copy, bytes };
    *local = copy;
    return process_vm_readv(other_task, &here, 1, &there, 1, 0) == (ssize_t)bytes ? KERN_SUCCESS
                                                                                  : KERN_FAILURE;
}

/* The child does nothing more but wait: its heap is as ours was, while ours goes on. It says so
 * first, for what it has to do after a fork moves blocks between lists, which nobody may read then. */
static void begin_other_task(void)
{
    int waits[2];
    char said;

    assert_int_equal(pipe(waits), 0);
    other_task = registry_fork();
    if (other_task == 0) {
        if (write(waits[1], "", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(waits[1]);
    assert_int_equal(read(waits[0], &said, 1), 1);
    close(waits[0]);
}

static void end_other_task(void)
{
    kill(other_task, SIGKILL);
    (void)waitpid(other_task, NULL, 0);
}

static void test_another_process_is_enumerated_through_a_reader(void **state)
{
    malloc_statistics_t there;

    (void)state;
    install();
    fill_heap();
    begin_other_task();
    for (unsigned i = 0; i < 1000; i++) (void)ours()->malloc(ours(), 64);
    assert_int_equal(enumerate((task_t)other_task, read_other), KERN_SUCCESS);
    expect_just_these();
    ours()->introspect->task_statistics((task_t)other_task, (vm_address_t)ours(), read_other,
                                        &there);
    assert_int_equal(there.blocks_in_use, seen.count);
    end_other_task();
}

/* The heap's locks, of which another thread may hold one for long, are not waited for. */
static void test_statistics_are_those_of_the_ranges_and_stop_nobody(void **state)
{
    malloc_statistics_t counted, walked;

    (void)state;
    install();
    fill_heap();
    lock_take(&control_lock);
    ours()->introspect->statistics(ours(), &counted);
    lock_give(&control_lock);
    ours()->introspect->task_statistics(mach_task_self(), (vm_address_t)ours(), NULL, &walked);
    assert_int_equal(counted.blocks_in_use, walked.blocks_in_use);
    assert_int_equal(counted.size_in_use, walked.size_in_use);
    assert_true(counted.size_allocated <= walked.size_allocated); /* pages of nobody's */
    assert_true(walked.size_allocated - counted.size_allocated < MiB);
    assert_int_equal(counted.max_size_in_use, counted.size_allocated);
}

static void test_a_read_that_fails_ends_the_enumeration(void **state)
{
    kern_return_t result = KERN_FAILURE;
    unsigned tries = 0;

    (void)state;
    install();
    fill_heap();
    begin_other_task();
    while (result != KERN_SUCCESS && tries < 300) {
        reads_left = ++tries + 1;
        result = enumerate((task_t)other_task, read_other);
    }
    assert_int_equal(result, KERN_FAILURE);
    reads_left = 0;
    assert_int_equal(enumerate((task_t)other_task, read_other), KERN_SUCCESS);
    end_other_task();
}

static void test_another_version_is_not_read(void **state)
{
    (void)state;
    install();
    prairie_zone.roots.layout++;
    assert_int_equal(enumerate(mach_task_self(), NULL), KERN_FAILURE);
    assert_int_equal(seen.count, 0);
}

/* ---- locks and forks ---- */

static int worker_ends; /* atomic */
static uint64_t worker_rounds;

static void *work(void *unused)
{
    void *blocks[200] = { NULL };

    (void)unused;
    for (unsigned i = 0; !__atomic_load_n(&worker_ends, __ATOMIC_RELAXED); i++) {
        ours()->free(ours(), blocks[i % 200]);
        blocks[i % 200] = ours()->malloc(ours(), 1 + i * 37 % 40000);
        __atomic_fetch_add(&worker_rounds, 1, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < 200; i++) ours()->free(ours(), blocks[i]);
    return NULL;
}

static void test_locked_zone_is_said_to_be(void **state)
{
    pthread_t thread;

    (void)state;
    install();
    ours()->free(ours(), ours()->malloc(ours(), 1));
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    while (__atomic_load_n(&worker_rounds, __ATOMIC_RELAXED) < 1000) {}
    ours()->introspect->force_lock(ours());
    assert_true(ours()->introspect->zone_locked(ours()));
    ours()->introspect->force_unlock(ours());
    __atomic_store_n(&worker_ends, 1, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(ours()->introspect->zone_locked(ours()));
    lock_take(&arenas[0]->lock);
    assert_true(ours()->introspect->zone_locked(ours()));
    lock_give(&arenas[0]->lock);
}

static void test_forks_while_others_allocate(void **state)
{
    pthread_t thread[3];

    (void)state;
    install();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, work, NULL), 0);
    for (unsigned round = 0; round < 50; round++) {
        int status = -1;
        pid_t child = registry_fork();

        if (child == 0) {
            for (unsigned i = 0; i < 1000; i++) registry_free(registry_malloc(1 + i * 97 % 60000));
            _exit(ours()->introspect->check(ours()) ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&worker_ends, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_true(ours()->introspect->check(ours()));
}

/* ---- the rest ---- */

static void test_pressure_gives_back_what_is_free(void **state)
{
    char *block;

    (void)state;
    install();
    block = registry_malloc(10 << 20);
    memset(block, 1, 10 << 20);
    registry_free(block);
    (void)malloc_zone_pressure_relief(NULL, 0);
    block = registry_malloc(10 << 20);
    memset(block, 1, 10 << 20);
    (void)prairie_purge();
    registry_free(block);
    for (unsigned i = 0; i < MANY; i++) block_of[i] = registry_malloc(500);
    for (unsigned i = 0; i < MANY; i++) registry_free(block_of[i]);
    assert_true(malloc_zone_pressure_relief(ours(), 0) > 0);
    assert_int_equal(malloc_zone_pressure_relief(ours(), 0), 0);
}

static char printed[200];

static void print_into(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(printed, sizeof printed, format, arguments);
    va_end(arguments);
}

static void test_questions_of_tools(void **state)
{
    malloc_introspection_t *questions = ours()->introspect;

    (void)state;
    install();
    registry_free(registry_malloc(100));
    assert_true(questions->check(ours()));
    questions->log(ours(), NULL);
    assert_false(questions->enable_discharge_checking(ours()));
    questions->disable_discharge_checking(ours());
    questions->discharge(ours(), NULL);
    questions->print_task(mach_task_self(), 0, (vm_address_t)ours(), NULL, print_into);
    assert_non_null(strstr(printed, "zone prairie: "));
    assert_int_equal(ours()->version, 16);
    assert_string_equal(ours()->zone_name, "prairie");
    ours()->destroy(ours());
    assert_non_null(registry_malloc(10));
}

UNIT_MAIN(UNIT_TEST(test_it_becomes_the_first),
          UNIT_TEST(test_blocks_taken_before_go_back_to_their_zone),
          UNIT_TEST(test_size_is_0_for_all_but_the_first_byte),
          UNIT_TEST(test_size_is_0_for_all_but_the_first_byte_of_hardened_blocks),
          UNIT_TEST(test_good_size_is_never_less_than_the_size),
          UNIT_TEST(test_where_a_vast_block_was_is_no_block),
          UNIT_TEST(test_enumerator_leaves_out_what_a_hardened_process_holds_back),
          UNIT_TEST(test_a_vast_block_has_a_region), UNIT_TEST(test_every_way_to_take_a_block),
          UNIT_TEST(test_options_and_types), UNIT_TEST(test_what_is_cleared_is_not_touched),
          UNIT_TEST(test_batches), UNIT_TEST(test_enumerator_sees_every_block_in_use_and_no_other),
          UNIT_TEST(test_another_process_is_enumerated_through_a_reader),
          UNIT_TEST(test_statistics_are_those_of_the_ranges_and_stop_nobody),
          UNIT_TEST(test_a_read_that_fails_ends_the_enumeration),
          UNIT_TEST(test_another_version_is_not_read), UNIT_TEST(test_locked_zone_is_said_to_be),
          UNIT_TEST(test_forks_while_others_allocate),
          UNIT_TEST(test_pressure_gives_back_what_is_free), UNIT_TEST(test_questions_of_tools))
