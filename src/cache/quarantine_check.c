/* quarantine_check.c - walks what waits in a quarantine, and compares it with what it says of that.
 * SPDX-License-Identifier: MIT
 */
#include "quarantine.h"

static void check_waiting_block(const char *block, unsigned class_index)
{
    const struct slab *slab = slab_of(block, class_index);

    require(slab != NULL);                                                    /* Q1 */
    require((slab->hidden & (SLAB_HARDENED | SLAB_MANUAL)) == SLAB_HARDENED); /* Q1 */
    require(slab_offset_is_block(&slab_shape[class_index],
                                 (uintptr_t)block - (uintptr_t)slab->base)); /* Q1 */
}

static void check_held_class(const struct held_class *held, unsigned class_index)
{
    unsigned places = held->waiting != NULL ? held->waiting_max : 0, count = 0;

    require(held->waiting == NULL || (places >= WAITING_BLOCKS_MIN && is_power_of_two(places)));
    for (uint64_t order = held->order; order != 0; order >>= 8)
        require((order & 0xff) - 1 < places);
    for (unsigned i = 0; i < places; i++) {
        if (held->waiting[i] == NULL) continue;
        check_waiting_block(held->waiting[i], class_index);
        for (unsigned k = 0; k < i; k++) require(held->waiting[k] != held->waiting[i]); /* Q1 */
        count++;
    }
    require(count == held->waiting_count); /* Q1 */
}

/* What the program has written there is its own misuse, and is told as such. */
static void check_zeros(const void *bytes, size_t count)
{
    const uint64_t *word = bytes;

    for (size_t i = 0; i < count / sizeof *word; i++)
        if (word[i] != 0) fatal_address("write after free", bytes);
}

/* The last page is nobody's, and may be guarded. */
static void check_waiting_run(uint32_t page, uint32_t open_pages)
{
    const struct page *record = page_record(page), *last;
    size_t data_pages;

    require(page_is_cached(record) && record->run_pages > 1); /* Q2 */
    data_pages = record->run_pages - 1;
    last = record + data_pages;
    require(open_pages == 0 || open_pages == record->run_pages); /* Q3 */
    require(last->bin.next == 0);
    require(last->bin.previous == 0 || (open_pages != 0 && last->bin.previous == RUN_GUARDED));
    if (open_pages != 0) check_zeros(page_address(page), data_pages << space.page_shift); /* Q3 */
}

void quarantine_check(const struct cache *cache)
{
    const struct quarantine *quarantine = quarantine_of(cache);
    size_t pages = 0, open_pages = 0;
    unsigned count = 0;

    if (quarantine == NULL) return;
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        check_held_class(&quarantine->held[class_index], class_index);
    for (unsigned i = 0; i < WAITING_RUNS; i++) {
        uint32_t page = quarantine->run[i];

        open_pages += quarantine->open_pages[i];
        require(page != 0 || quarantine->open_pages[i] == 0); /* Q3 */
        if (page == 0) continue;
        check_waiting_run(page, quarantine->open_pages[i]);
        for (unsigned k = 0; k < i; k++) require(quarantine->run[k] != page); /* Q2 */
        pages += page_record(page)->run_pages;
        count++;
    }
    require(count == quarantine->run_count && pages == quarantine->run_pages); /* Q2 */
    require(open_pages == quarantine->all_open_pages);                         /* Q3 */
    require(quarantine->oldest_run < WAITING_RUNS);
}
