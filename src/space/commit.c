/* commit.c - sums what is taken.
 * SPDX-License-Identifier: MIT
 */
#include "commit.h"

#include "../base/constants.h"
#include "page_map.h"

struct commit commit = { .limit_bytes = SIZE_MAX };

void commit_add_heap(const size_t *open_pages, const size_t *clean_pages)
{
    check(commit.heap_count < PAGE_HEAPS);
    commit.pages[commit.heap_count] = (struct commit_pages){ open_pages, clean_pages };
    __atomic_store_n(&commit.heap_count, commit.heap_count + 1, __ATOMIC_RELEASE);
}

/* Pages that were opened and never leased are address space, and so are their records. */
READS_UNLOCKED size_t commit_taken_bytes(void)
{
    return bytes_with_records(commit_taken_pages()) + RELAXED_LOAD(commit.vast_bytes)
         + RELAXED_LOAD(commit.vast_coming) + RELAXED_LOAD(commit.guarded_bytes)
         + RELAXED_LOAD(commit.record_bytes);
}
