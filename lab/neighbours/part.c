/* part.c - one of a hundred libraries: compiled a hundred times, with another NUMBER each.
 * SPDX-License-Identifier: MIT
 *
 * What libraries do before main is entered: a table that grows while entries are registered, names
 * that are copied, and buffers that are given back. What is kept stays until the process ends. */
#include <stdlib.h>
#include <string.h>

#ifndef NUMBER
#define NUMBER 1 /* for who reads this file alone */
#endif

#define JOIN(first, second) first##second
#define NAME(number) JOIN(part_, number)

unsigned NAME(NUMBER)(void);

enum { ENTRIES = 24 };

static char **entries;
static unsigned entry_count;

static void add_entry(unsigned index)
{
    size_t bytes = 9 + (NUMBER * 7 + index * 13) % 55;
    char *scratch = malloc(4 * bytes), *name = malloc(bytes);

    if (scratch == NULL || name == NULL) abort();
    memset(scratch, 'a' + (int)(index % 26), bytes - 1);
    scratch[bytes - 1] = '\0';
    memcpy(name, scratch, bytes);
    free(scratch);
    if (entry_count % 4 == 0) entries = realloc(entries, (entry_count + 4) * sizeof *entries);
    if (entries == NULL) abort();
    entries[entry_count++] = name;
}

static void __attribute__((constructor)) fill_table(void)
{
    for (unsigned index = 0; index < ENTRIES; index++) add_entry(index);
}

/* A sum over what the constructor left, so that all of it is needed. */
unsigned NAME(NUMBER)(void)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < entry_count; i++) sum = sum * 31 + (unsigned)strlen(entries[i]);
    return sum;
}
