/* early_copies_library.c - a function whose resolver copies: it runs while the loader relocates
 * this library, which is before it relocates one that is preloaded. */
/* SPDX-License-Identifier: MIT */
#include <stddef.h>

extern void *memcpy(void *to, const void *from, size_t bytes);
extern void *memmove(void *to, const void *from, size_t bytes);
extern void *memset(void *to, int value, size_t bytes);
extern char *strcpy(char *to, const char *from);
extern char *strncat(char *to, const char *from, size_t most);

static char copy[300], text[40];

static int sum(void)
{
    int all = 0;
    for (size_t i = 0; i < sizeof copy; i++) all += copy[i];
    return all + text[3];
}

static int (*resolve(void))(void)
{
    static char from[200];
    memset(from, 1, sizeof from);
    memcpy(copy, from, 100);
    memcpy(copy + 100, from, sizeof from);
    memmove(copy + 1, copy, 200);
    memmove(copy, copy + 1, 200);
    strcpy(text, "ab");
    strncat(text, "cdef", 2);
    return sum;
}

static int resolved_sum(void) __attribute__((ifunc("resolve")));

/* Among data, so that the loader needs the address. */
int (*volatile early_sum)(void) = resolved_sum;
