/* hardened_fuzz.c - a hardened process: exact sizes, zeros, the quarantine, and no false alarm. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "cache/quarantine.h"
#include "crowd.h"
#include "heap/hardened.h"

const unsigned fuzz_bytes_max = 400;

void fuzz_one(void)
{
    oracle_start(1);
    if (!hardened_start()) return;
    while (!random_is_over()) {
        struct block *block = &crowd[random_below(CROWD)];

        switch (random_below(24)) {
        case 0: thread_flush(); break;
        case 1: (void)arenas_clear(CLEAR_ALL); break;
        case 2: (void)prairie_purge(); break;
        default: crowd_step(1 + random_below(300000));
        }
        if (block->base != NULL)
            assert_int_equal(prairie_usable_size(block->base), block->requested_bytes);
        prairie_check_all();
    }
    crowd_give_all();
    prairie_check_all();
}
