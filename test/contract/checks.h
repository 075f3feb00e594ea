/* checks.h - a growing table of named checks, the doors they go through, and the sizes they try. */
/* SPDX-License-Identifier: MIT */
/*
 * Each program of this folder fills the table with check_add and ends with checks_run, which hands
 * every row to cmocka as a test of its own name. All calls go through pointers found with dlsym,
 * so that the compiler can neither remove nor foresee a call, and symbols the C library lacks can
 * be tried too.
 */
#ifndef PRAIRIE_TEST_CHECKS_H
#define PRAIRIE_TEST_CHECKS_H

#include "../blackbox/blackbox.h"

#include <setjmp.h>

#ifdef __cplusplus
extern "C" {
#endif

#include <cmocka.h>

/* One that no call sets by itself: errno must still hold it after every success. */
enum { SENTINEL = 0x5eed };

/* A call with absurd arguments has to answer within this many ms of the processor. */
#ifndef ABSURD_MS_MAX
#define ABSURD_MS_MAX 10.0
#endif

enum { KIB = 1024, MIB = 1024 * 1024 };

/* A way to ask for memory, all in one shape: NULL with errno set on refusal. */
struct door {
    const char *name;
    void *(*take)(size_t bytes);
    size_t align_bytes; /* promised for every size */
    bool is_zeroed;
};

/* A way to give memory back. `bytes` and `align_bytes` are those of the request. */
struct exit_door {
    const char *name;
    const char *symbol;
    void (*give)(void *block, size_t align_bytes, size_t bytes);
};

struct check {
    char name[120];
    void (*run)(const struct check *check);
    const struct door *door;
    const struct exit_door *exit_door;
    size_t bytes;
    size_t align_bytes;
    size_t other;
    const char *text;
    const void *data; /* what the program that adds it knows */
};

/* The functions themselves; a member is NULL when nobody in the process exports the symbol. */
struct calls {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*reallocarray)(void *, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void (*cfree)(void *);
    void (*free_sized)(void *, size_t);
    void (*free_aligned_sized)(void *, size_t, size_t);
    size_t (*malloc_usable_size)(void *);
};
extern struct calls call;

extern const struct door doors[];
extern const size_t door_count;
extern const struct exit_door exit_doors[];
extern const size_t exit_door_count;

struct sizes {
    size_t bytes[512];
    size_t count;
};

void sizes_add(struct sizes *sizes, size_t bytes);
/* The size classes of small classes: 8, 16, 32, 48 .. 128, then four per doubling up to 14 KiB. */
struct sizes sizes_of_classes(void);
/* Every limit at which an ordinary request could go wrong, from 0 to 64 MiB: all must be served. */
struct sizes sizes_at_limits(void);
/* From 128 MiB to 2^47: may be served or refused, but properly. */
struct sizes sizes_doubtful(void);
/* PTRDIFF_MAX - 1 to SIZE_MAX, sampled with `seed`: must be refused. */
struct sizes sizes_absurd(uint64_t seed);

/* Fetches the functions and proves who serves them. Call first. */
void checks_begin(void);
__attribute__((format(printf, 2, 3))) void check_add(struct check check, const char *format, ...);
/* Runs the table; the exit code for main. */
int checks_run(const char *group);

/* What the processor has worked for this thread: a busy machine makes no call slower by it. */
double processor_ms(void);
/* Is this a flavour with the option `hardened` on? */
bool flavour_is_hardened(void);

/* Alignment that a request of `bytes` may rely on: 16 from 16 bytes up, else 8. */
size_t align_promised(size_t bytes);
bool is_aligned(const void *block, size_t align_bytes);
/* Writes and reads the first and last byte of each page. */
void touch_ends(void *block, size_t bytes);
void touch_pages(void *block, size_t bytes);
/* A refusal: NULL, ENOMEM. */
void expect_refused(void *block);

#ifdef __cplusplus
}
#endif

#endif
