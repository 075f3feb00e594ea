/* message.c - a program that is linked with prairie.dll sets its variable malloc_message. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

#include <jemalloc/jemalloc.h>

static size_t told;

static void count(void *context, const char *text)
{
    (void)context;
    told += strlen(text);
}

int main(void)
{
    void *seen;

    malloc_message = count;
    must(prairie_function("malloc_message") != NULL);
    memcpy(&seen, (void *)(uintptr_t)prairie_function("malloc_message"), sizeof seen);
    must(seen == (void *)(uintptr_t)count);
    malloc_stats_print(NULL, NULL, NULL);
    must(told > 1000);
    return 0;
}
