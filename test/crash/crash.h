/* crash.h - what the misuse programs share: pointers the compiler cannot follow, and crowds of
 * frees. */
/* SPDX-License-Identifier: MIT */
/*
 * Each program commits one misuse. Its first line says what must happen, for crash_run.py to
 * judge:
 *
 *   expect: abort "words"     killed by SIGABRT after one line on stderr that begins with the words
 *   expect: abort whole "words"   the same, and the words are all of the line; others end with an
 *                             address
 *   expect: abort silent      killed by SIGABRT without a word
 *   expect: ok                exit code 0 without a word
 *   flavours: checking        only where every free is checked at the call; or a list of flavours
 *   arguments: a b c          run once with each as argv[1]
 *
 * The plain flavour learns of a small block's misuse when the magazine that holds it is drained
 * into the slabs, so programs for it free a crowd of blocks of the same size afterwards and then
 * have all caches drained. double_free_later.c does without the latter.
 */
#ifndef PRAIRIE_TEST_CRASH_H
#define PRAIRIE_TEST_CRASH_H

#include "../blackbox/blackbox.h"
#include "../blackbox/hidden.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>

enum { CROWD_COUNT = 20000 };

static void *crowd_block[CROWD_COUNT];

/* A small block is resized after it was freed, and six more after it. */
SHARED void resize_freed(size_t bytes)
{
    void *block = malloc(bytes), *later[6];
    for (int i = 0; i < 6; i++) later[i] = malloc(bytes);
    free(block);
    for (int i = 0; i < 6; i++) free(later[i]);
    void *moved = realloc(hidden(block), 2 * bytes);
    must(moved != NULL);
}

/* Taken before the misuse, so that no block is handed out twice in between. */
SHARED void crowd_take(size_t bytes)
{
    for (int i = 0; i < CROWD_COUNT; i++) {
        crowd_block[i] = malloc(bytes);
        must(crowd_block[i] != NULL);
    }
}

SHARED void crowd_free(void)
{
    for (int i = 0; i < CROWD_COUNT; i++) free(crowd_block[i]);
}

SHARED void crowd_drain(void)
{
    crowd_free();
    malloc_trim(0);
}

SHARED size_t number_argument(int argc, char **argv)
{
    must(argc == 2);
    return (size_t)strtoull(argv[1], NULL, 0);
}

/* The end of a program whose misuse nobody noticed. */
SHARED __attribute__((noreturn)) void missed(void) { _exit(9); }

#endif
