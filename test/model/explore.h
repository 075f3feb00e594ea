/* explore.h - runs the library's own code in every order in which its threads can meet.
 *
 * The library is compiled with -fsanitize=thread, but instead of that sanitizer's runtime explore.c
 * stands behind the calls which the compiler puts before each access: one thread runs at a time,
 * and at each atomic access, each wait and each wake another one may go on. All orders are tried
 * in which at most so many threads are interrupted that could have gone on themselves; the switches
 * at a wait are free. Accesses to what only one thread touches are no place to switch at.
 *
 * Each order runs in a process of its own, so that all begin alike. What is not seen: orders that
 * the processor makes of one thread's accesses, but for stores that a breakage delays; and switches
 * within stretches without an atomic access, which the tests under ThreadSanitizer look at.
 *
 * A model says what the threads do and what must be true then. Its breakages weaken the library in
 * one place, and each of them must be found, or the model would prove nothing.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_TEST_MODEL_EXPLORE_H
#define PRAIRIE_TEST_MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct breakage {
    const char *what;
    void (*arm)(void); /* calls some of those below */
};

enum { MODEL_THREADS_MAX = 4, MODEL_BREAKAGES_MAX = 3 };

struct model {
    const char *name;
    unsigned threads;
    unsigned interruptions;        /* at most, in one order */
    void (*setup)(void);           /* by the first thread of the process */
    void (*warm)(unsigned thread); /* by each thread alone, before they meet; may be NULL */
    void (*body)(unsigned thread);
    void (*finish)(void); /* by the first thread, when all others are through */
    struct breakage breakages[MODEL_BREAKAGES_MAX]; /* until `what` is NULL */
};

extern const struct model lock_model, depot_model, first_use_model, decay_model, fork_model,
    background_model, sleepers_model;

/* Aborts the order: something is wrong. */
#define expect(condition)                                               \
    do {                                                                \
        if (!(condition)) explore_fail(#condition, __FILE__, __LINE__); \
    } while (0)
_Noreturn void explore_fail(const char *what, const char *file, int line);

/* A place to switch at, in the code of a model: an access to what is at the address. */
void explore_point(const void *address);

/* Accesses to this word are no places to switch at: what one thread does with it is nothing to
 * others. */
void explore_ignore(const void *word);

/* ---- breakages ---- */

/* What changes the word in one step does it in two. */
void explore_split(const void *word);
/* Stores to the word are seen by others only after the thread's next access that changes a word in
 * one step, as if they were relaxed. */
void explore_delay(const void *word);
/* Nobody is woken. */
void explore_lose_wakes(void);

#endif
