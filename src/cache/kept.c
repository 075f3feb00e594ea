/* kept.c - when a thread begins to keep runs, and when it lets go of them.
 * SPDX-License-Identifier: MIT
 */
#include "kept.h"

#include "../base/options.h"

static uint64_t takes_drained; /* atomic */

uint64_t kept_takes_drained(void) { return RELAXED_LOAD(takes_drained); }

void kept_begin_soon(struct cache *cache)
{
    if (++cache->large_takes % KEPT_AFTER != 0) return;
    if (option_value(OPTION_TCACHE_MAX) < SMALL_BYTES_MAX) return;
    RELAXED_STORE(cache->kept, meta_take(sizeof *cache->kept));
}

/* All lengths: what is full of one phase's lengths makes room for the next one's. */
static void give_all_back(struct kept *kept)
{
    uint32_t runs[KEPT_LENGTH_MAX];
    unsigned count = 0;

    for (unsigned pages = 1; pages <= KEPT_LENGTH_MAX; pages++) {
        if (kept->run[pages] == 0) continue;
        page_unmark_kept(page_record(kept->run[pages]));
        runs[count++] = kept->run[pages];
        kept->run[pages] = 0;
    }
    RELAXED_STORE(kept->pages, 0);
    RELAXED_STORE(kept->count, 0);
    if (count != 0) run_return_batch(runs, count);
}

/* Of two runs of one length the one that was freed last stays: it is warm. */
uint32_t kept_exchange(struct kept *kept, uint32_t page, size_t pages)
{
    uint32_t older = kept->run[pages];

    if (unlikely(pages << plain.page_shift > KEPT_RUN_BYTES_MAX)) return page;
    page_mark_kept(page_record(page));
    if (older != 0) {
        kept->run[pages] = page;
        page_unmark_kept(page_record(older));
        return older;
    }
    if ((kept->pages + pages) << plain.page_shift > KEPT_BYTES_MAX) give_all_back(kept);
    kept->run[pages] = page;
    RELAXED_STORE(kept->pages, kept->pages + (uint32_t)pages);
    RELAXED_STORE(kept->count, kept->count + 1);
    return 0;
}

void kept_drain(struct cache *cache)
{
    struct kept *kept = cache->kept;

    if (kept == NULL) return;
    give_all_back(kept);
    (void)__atomic_fetch_add(&takes_drained, kept->takes, __ATOMIC_RELAXED);
    RELAXED_STORE(kept->takes, 0);
}

READS_UNLOCKED struct kept_numbers kept_numbers(const struct cache *cache)
{
    const struct kept *kept = RELAXED_LOAD(cache->kept);

    if (kept == NULL) return (struct kept_numbers){ 0, 0, 0 };
    return (struct kept_numbers){ RELAXED_LOAD(kept->pages), RELAXED_LOAD(kept->count),
                                  RELAXED_LOAD(kept->takes) };
}

void kept_check(const struct cache *cache)
{
    const struct kept *kept = cache->kept;
    size_t sum = 0, count = 0;

    if (kept == NULL) return;
    for (unsigned pages = 1; pages <= KEPT_LENGTH_MAX; pages++) {
        uint32_t page = kept->run[pages];

        if (page == 0) continue;
        require(page_record(page)->state == PAGE_LARGE && page_is_kept(page_record(page))); /* E1 */
        require(page_record(page)->run_pages == pages);                                     /* E1 */
        sum += pages;
        count++;
    }
    require(kept->pages == sum && kept->count == count); /* E2 */
    require(sum << plain.page_shift <= KEPT_BYTES_MAX);  /* E2 */
}
