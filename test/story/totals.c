/* totals.c - a thread's totals are exact after every call: through every door, in every thread, at
 * its end, and in the child of a fork. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <malloc.h>
#include <prairie/prairie.h>
#include <sys/wait.h>

static const struct prairie_thread_totals *(*totals_of)(void);
static void (*free_with_size)(void *, size_t);
static void (*delete_with_size)(void *, size_t);
static void *(*operator_new)(size_t);

static const struct prairie_thread_totals *totals; /* of the thread that looks now */
static __thread uint64_t allocated, deallocated;   /* what it must say */

static void look_at(const struct prairie_thread_totals *now)
{
    must(now->allocated == allocated);
    must(now->deallocated == deallocated);
}

static void took(const struct prairie_thread_totals *now, void *block)
{
    must(block != NULL);
    allocated += malloc_usable_size(block);
    look_at(now);
}

static void gave(const struct prairie_thread_totals *now, size_t bytes)
{
    deallocated += bytes;
    look_at(now);
}

static void free_by_door(unsigned door, void *block, size_t size)
{
    if (door % 4 == 1 && free_with_size != NULL) free_with_size(block, size);
    else if (door % 4 == 2 && delete_with_size != NULL) delete_with_size(block, size);
    else free(block);
}

static void *take_by_door(unsigned door, size_t size)
{
    void *block = NULL;

    switch (door % 6) {
    case 0: return malloc(size);
    case 1: return calloc(1, size);
    case 2: return realloc(NULL, size);
    case 3: return aligned_alloc(64, size);
    case 4: return posix_memalign(&block, 4096, size) == 0 ? block : NULL;
    default: return operator_new != NULL ? operator_new(size) : malloc(size);
    }
}

static void walk_the_doors(const struct prairie_thread_totals *now)
{
    static const size_t sizes[] = { 0,    1,    8,     16,    100,    1000,   1024,
                                    1025, 8192, 14336, 14337, 100000, 3 << 20 };

    for (unsigned door = 0; door < 24; door++) {
        for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            void *block = take_by_door(door, sizes[i]);
            size_t usable = malloc_usable_size(block);

            took(now, block);
            /* Sized frees want the size that was asked for, of a block that is as large as that
             * says. */
            free_by_door(door % 6 == 3 || door % 6 == 4 ? 0 : door, block, sizes[i]);
            gave(now, usable);
        }
    }
    free(NULL);
    if (delete_with_size != NULL) delete_with_size(NULL, 8);
    look_at(now);
}

/* Each size from each: in place, by moving, out of a class and into one. */
static void resize(const struct prairie_thread_totals *now)
{
    static const size_t sizes[] = { 10,    14,    200,   1500,  1400,    9000,
                                    14000, 20000, 19000, 90000, 5 << 20, 6 << 20 };
    unsigned count = sizeof sizes / sizeof sizes[0];

    for (unsigned i = 0; i < count * count; i++) {
        void *block = malloc(sizes[i / count]);
        size_t before = malloc_usable_size(block), after;

        took(now, block);
        block = realloc(block, sizes[i % count]);
        must(block != NULL);
        after = malloc_usable_size(block);
        if (after != before) {
            allocated += after;
            deallocated += before;
        }
        look_at(now);
        free(block);
        gave(now, after);
    }
}

/* More than magazines hold, so that they are filled, drained and traded under the count. */
static void crowd(const struct prairie_thread_totals *now)
{
    enum { BLOCKS = 20000 };
    static void *block[BLOCKS];
    long count = scaled(BLOCKS);

    for (long i = 0; i < count; i++) took(now, block[i] = malloc((size_t)i % 700));
    for (long i = 0; i < count; i++) {
        size_t usable = malloc_usable_size(block[i]);
        free(block[i]);
        gave(now, usable);
    }
}

static void refuse(const struct prairie_thread_totals *now)
{
    volatile size_t absurd = SIZE_MAX / 2;

    must(malloc(absurd) == NULL);
    must(calloc(absurd, 4) == NULL);
    must(aligned_alloc(4096, absurd) == NULL);
    look_at(now);
}

static void *other_thread(void *handed_over)
{
    const struct prairie_thread_totals *mine;
    size_t usable = malloc_usable_size(handed_over);

    free(malloc(50)); /* before it asks: not counted */
    mine = totals_of();
    must(mine != NULL && mine != totals);
    look_at(mine);
    free(handed_over);
    gave(mine, usable);
    took(mine, handed_over = malloc(300));
    walk_the_doors(mine);
    return handed_over;
}

static void live_in_threads(void)
{
    for (unsigned i = 0; i < 20; i++) {
        pthread_t thread;
        void *block = malloc(600 + i * 1000);
        size_t usable;

        allocated += malloc_usable_size(block);
        must(pthread_create(&thread, NULL, other_thread, block) == 0);
        must(pthread_join(thread, &block) == 0);
        allocated = totals->allocated; /* what pthread_create took of this thread */
        deallocated = totals->deallocated;
        usable = malloc_usable_size(block);
        free(block);
        gave(totals, usable);
    }
}

static void live_in_a_child(void)
{
    int status = 0;
    pid_t child = fork();

    must(child >= 0);
    if (child == 0) {
        allocated = totals->allocated;
        deallocated = totals->deallocated;
        walk_the_doors(totals);
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    require_prairie();
    *(void **)&totals_of = dlsym(RTLD_DEFAULT, "prairie_thread_totals");
    *(void **)&free_with_size = dlsym(RTLD_DEFAULT, "free_sized");
    *(void **)&delete_with_size = dlsym(RTLD_DEFAULT, sizeof(size_t) > 4 ? "_ZdlPvm" : "_ZdlPvj");
    *(void **)&operator_new = dlsym(RTLD_DEFAULT, sizeof(size_t) > 4 ? "_Znwm" : "_Znwj");
    must(totals_of != NULL && free_with_size != NULL && delete_with_size != NULL);

    totals = totals_of();
    must(totals != NULL && totals->allocated == 0 && totals->deallocated == 0);
    must(totals_of() == totals);
    walk_the_doors(totals);
    resize(totals);
    crowd(totals);
    refuse(totals);
    live_in_threads();
    live_in_a_child();
    look_at(totals);
    walk_heap();
    return 0;
}
