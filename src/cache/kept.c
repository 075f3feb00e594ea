/* kept.c - when a thread begins to keep runs, and when it lets go of them.
 * SPDX-License-Identifier: MIT
 */
#include "kept.h"

static uint64_t takes_drained; /* atomic */

uint64_t kept_takes_drained(void) { return RELAXED_LOAD(takes_drained); }

static uint32_t room_pages_max(void) { return (uint32_t)(KEPT_BYTES_MAX >> plain.page_shift); }

void kept_begin_soon(struct cache *cache)
{
    struct kept *kept;

    if (++cache->large_takes % KEPT_AFTER != 0) return;
    if (cache->class_max < CLASS_COUNT - 1) return;
    kept = meta_take(sizeof *kept);
    if (kept == NULL) return;
    kept->room_pages = room_pages_max();
    RELAXED_STORE(cache->kept, kept);
}

/* All lengths: what is full of one phase's lengths makes room for the next one's. */
static void give_all_back(struct kept *kept)
{
    uint32_t runs[KEPT_LENGTH_MAX];
    unsigned count = 0;

    for (unsigned pages = 1; pages <= KEPT_LENGTH_MAX; pages++) {
        if (kept->run[pages].block == NULL) continue;
        page_unmark_kept(page_record(kept->run[pages].page));
        runs[count++] = kept->run[pages].page;
        RELAXED_STORE(kept->run[pages].block, NULL);
    }
    RELAXED_STORE(kept->room_pages, room_pages_max());
    if (count != 0) run_return_batch(runs, count);
}

/* The run of that length, which goes back to the keeper; 0: there is none, and all others went back. */
static uint32_t make_room(struct kept *kept, uint32_t pages)
{
    uint32_t older = kept->run[pages].page;

    if (kept->run[pages].block == NULL) {
        give_all_back(kept);
        return 0;
    }
    page_unmark_kept(page_record(older));
    RELAXED_STORE(kept->room_pages, kept->room_pages + pages);
    return older;
}

/* Of two runs of one length the one that was freed last stays: it is warm. */
uint32_t kept_replace(struct kept *kept, uint32_t page, char *block, uint32_t pages)
{
    uint32_t older;

    if (pages > room_pages_max()) return page;
    older = make_room(kept, pages);
    kept_store(kept, page, block, pages);
    return older;
}

void kept_drain(struct cache *cache)
{
    struct kept *kept = cache->kept;

    if (kept == NULL) return;
    give_all_back(kept);
    (void)__atomic_fetch_add(&takes_drained, kept->takes, __ATOMIC_RELAXED);
    RELAXED_STORE(kept->takes, 0);
}

READS_UNLOCKED void kept_add_numbers(const struct cache *cache, struct kept_numbers *sum)
{
    const struct kept *kept = RELAXED_LOAD(cache->kept);

    if (kept == NULL) return;
    sum->pages += room_pages_max() - RELAXED_LOAD(kept->room_pages);
    sum->takes += RELAXED_LOAD(kept->takes);
    for (unsigned pages = 1; pages <= KEPT_LENGTH_MAX; pages++)
        sum->count += RELAXED_LOAD(kept->run[pages].block) != NULL;
}

void kept_check(const struct cache *cache)
{
    const struct kept *kept = cache->kept;
    size_t sum = 0;

    if (kept == NULL) return;
    for (unsigned pages = 1; pages <= KEPT_LENGTH_MAX; pages++) {
        const struct page *record = page_record(kept->run[pages].page);

        if (kept->run[pages].block == NULL) continue;
        require(page_is_kept(record) && record->run_pages == pages);            /* E1 */
        require(page_address(kept->run[pages].page) == kept->run[pages].block); /* E1 */
        sum += pages;
    }
    require(kept->room_pages + sum == room_pages_max()); /* E2 */
}
