/* commit.c - sums what is taken.
 * SPDX-License-Identifier: MIT
 */
#include "commit.h"

#include "../base/constants.h"
#include "page_map.h"

struct commit commit = { .limit_bytes = SIZE_MAX };

void commit_add_heap(const size_t *clean_pages)
{
    check(commit.heap_count < PAGE_HEAP_MAX);
    commit.clean_pages[commit.heap_count] = clean_pages;
    __atomic_store_n(&commit.heap_count, commit.heap_count + 1, __ATOMIC_RELEASE);
}

/* Pages that were opened and never leased are address space, and so are their records. */
READS_UNLOCKED size_t commit_used_bytes(void)
{
    unsigned count = __atomic_load_n(&commit.heap_count, __ATOMIC_ACQUIRE);
    size_t open_pages = space.open_bytes >> space.page_shift, clean_pages = 0, taken_pages;

    for (unsigned i = 0; i < count; i++) clean_pages += *commit.clean_pages[i];
    taken_pages = open_pages - min_size(clean_pages, open_pages);
    return bytes_with_records(taken_pages) + RELAXED_LOAD(commit.vast_bytes)
         + RELAXED_LOAD(commit.vast_coming) + RELAXED_LOAD(commit.guarded_bytes)
         + RELAXED_LOAD(commit.record_bytes);
}
