/* fill.c - the two patterns, and when they are written.
 * SPDX-License-Identifier: MIT
 */
#include "fill.h"

#include "../base/options.h"

enum { JUNK_TAKEN = 0xa5, JUNK_GIVEN = 0x5a };
/* The words of junk, as bits. */
enum { JUNK_ON_TAKE = 1, JUNK_ON_FREE = 2 };

struct filling filling;

void fill_start(void)
{
    uint64_t junk = option_value(OPTION_JUNK);

    filling.clears = option_is_set(OPTION_ZERO);
    filling.junks_taken = (junk & JUNK_ON_TAKE) != 0 && !filling.clears;
    filling.junks_given = (junk & JUNK_ON_FREE) != 0;
    filling.is_wanted = filling.clears || filling.junks_taken || filling.junks_given;
}

void *fill_taken(void *block, size_t bytes)
{
    if (block == NULL) return NULL;
    if (filling.clears) __builtin_memset(block, 0, bytes);
    if (filling.junks_taken) __builtin_memset(block, JUNK_TAKEN, bytes);
    return block;
}

void fill_given(void *block, size_t bytes)
{
    if (filling.junks_given) __builtin_memset(block, JUNK_GIVEN, bytes);
}
