/* sparse_threads_test.c - walks over sparse slabs beside threads that take from them and give
 * back. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "arenas/sparse.h"

#include "unit.h"

#include <pthread.h>

enum { THREADS = 3, BLOCKS = 120, ROUNDS = 3000, ROUNDS_MAX = 100 * ROUNDS, BYTES = 5000 };

static uint32_t at_work, has_gone; /* atomic: threads that are; whether a page of theirs went */

/* Each finds in its blocks what it wrote. */
static void *take_and_give(void *number)
{
    unsigned char value = (unsigned char)(uintptr_t)number, *blocks[BLOCKS] = { NULL };
    uint64_t chance = value;

    for (unsigned round = 0; round < ROUNDS || (round < ROUNDS_MAX && !RELAXED_LOAD(has_gone));
         round++) {
        unsigned at;

        chance = chance * 6364136223846793005u + 1442695040888963407u;
        at = (unsigned)(chance >> 33) % BLOCKS;
        if (blocks[at] == NULL) {
            blocks[at] = prairie_malloc(BYTES);
            assert_non_null(blocks[at]);
            memset(blocks[at], value, BYTES);
        } else {
            assert_true(all_bytes_are(blocks[at], value, BYTES));
            prairie_free(blocks[at]);
            blocks[at] = NULL;
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
    (void)__atomic_sub_fetch(&at_work, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* As the background thread does, but without a pause. */
static void *look_again_and_again(void *unused)
{
    while (__atomic_load_n(&at_work, __ATOMIC_ACQUIRE) != 0) (void)sparse_look(NULL, true);
    return unused;
}

static void walks_take_no_page_that_a_block_lies_on(void **state)
{
    pthread_t thread[THREADS], looker;

    (void)state;
    prairie_free(prairie_malloc(1));
    at_work = THREADS;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, (void *)(i + 1)), 0);
    assert_int_equal(pthread_create(&looker, NULL, look_again_and_again, NULL), 0);
    while (__atomic_load_n(&at_work, __ATOMIC_ACQUIRE) != 0)
        if (sparse_purge_all() != 0) RELAXED_STORE(has_gone, 1u);
    for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(pthread_join(looker, NULL), 0);
    assert_true(has_gone);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(walks_take_no_page_that_a_block_lies_on))
