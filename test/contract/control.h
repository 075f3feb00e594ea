/* control.h - the three functions of the control tree, and short ways to read with them. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_CONTRACT_CONTROL_H
#define PRAIRIE_TEST_CONTRACT_CONTROL_H

#include "checks.h"

#include <string.h>

#define ADD(check_function) check_add((struct check){ .run = check_function }, #check_function)

extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
extern int mallctlnametomib(const char *, size_t *, size_t *) __attribute__((weak));
extern int mallctlbymib(const size_t *, size_t, void *, size_t *, void *, size_t)
    __attribute__((weak));
extern void malloc_stats_print(void (*)(void *, const char *), void *, const char *)
    __attribute__((weak));

static inline uint64_t read_number(const char *name, size_t bytes)
{
    union {
        uint8_t one;
        uint32_t four;
        uint64_t eight;
    } value = { .eight = 0 };
    size_t length = bytes;
    int error = mallctl(name, &value, &length, NULL, 0);

    if (error != 0) print_message("%s: %s\n", name, strerror(error));
    assert_int_equal(error, 0);
    return bytes == 1 ? value.one : bytes == 4 ? value.four : value.eight;
}

/* A size, or a count, which has 8 bytes everywhere. */
static inline size_t read_size(const char *name)
{
    uint64_t count = 0;
    size_t length = sizeof count;

    if (mallctl(name, &count, &length, NULL, 0) == 0) return (size_t)count;
    return (size_t)read_number(name, sizeof(size_t));
}
static inline unsigned read_unsigned(const char *name)
{
    return (unsigned)read_number(name, sizeof(unsigned));
}
static inline bool read_flag(const char *name) { return read_number(name, 1) != 0; }

static inline const char *read_text(const char *name)
{
    return (const char *)(uintptr_t)read_number(name, sizeof(char *));
}

static inline void new_epoch(void)
{
    uint64_t any = 1;

    assert_int_equal(mallctl("epoch", NULL, NULL, &any, sizeof any), 0);
}

#endif
