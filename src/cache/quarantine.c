/* quarantine.c - blocks and runs that wait, and leave at random.
 * SPDX-License-Identifier: MIT
 */
#include "quarantine.h"

static uint16_t blocks_within(size_t bytes, unsigned most, unsigned class_index)
{
    return (uint16_t)max_size(min_size(bytes / class_bytes[class_index], most), HELD_BLOCKS_MIN);
}

static size_t slots_bytes(const struct held_class *held)
{
    return ((size_t)held->ready_max + held->waiting_max) * sizeof held->slot[0];
}

/* NULL: no memory. */
static COLD struct quarantine *begin_quarantine(struct cache *cache)
{
    struct quarantine *quarantine = meta_take(sizeof *quarantine);

    if (quarantine == NULL) return NULL;
    quarantine->random = os_random();
    cache->front.quarantine = meta_number(quarantine);
    return quarantine;
}

INLINE struct quarantine *quarantine_for(struct cache *cache)
{
    struct quarantine *quarantine = quarantine_of(cache);

    return likely(quarantine != NULL) ? quarantine : begin_quarantine(cache);
}

/* False: no memory. */
static COLD bool begin_class(struct held_class *held, unsigned class_index)
{
    held->ready_max = blocks_within(READY_BYTES_MAX, READY_BLOCKS_MAX, class_index);
    held->waiting_max = blocks_within(WAITING_BYTES_MAX, WAITING_BLOCKS_MAX, class_index);
    held->slot = meta_take(slots_bytes(held));
    return held->slot != NULL;
}

/* NULL: no memory, and nothing is held. */
INLINE struct held_class *held_of(struct quarantine *quarantine, unsigned class_index)
{
    struct held_class *held = &quarantine->held[class_index];

    if (unlikely(quarantine == NULL)) return NULL;
    return likely(held->slot != NULL) || begin_class(held, class_index) ? held : NULL;
}

static void count_up(uint16_t *count) { RELAXED_STORE(*count, (uint16_t)(*count + 1)); }

/* Hooks that run may drain the cache. */
void *quarantine_take(struct cache *cache, unsigned class_index)
{
    void *block = cache_take(cache, class_index);
    struct quarantine *quarantine = quarantine_for(cache);
    struct held_class *held = held_of(quarantine, class_index);

    if (unlikely(held == NULL)) return block;
    while (block != NULL && held->ready_count < held->ready_max) {
        held->slot[held->ready_count] = block;
        count_up(&held->ready_count);
        block = magazine_take(&cache->front.magazine[class_index]);
    }
    if (held->ready_count == 0) return block;
    if (unlikely(block == NULL)) {
        block = held->slot[held->ready_count - 1];
        RELAXED_STORE(held->ready_count, (uint16_t)(held->ready_count - 1));
        if (held->ready_count == 0) return block;
    }
    return quarantine_swap(quarantine, held->slot, held->ready_count, block);
}

void *quarantine_fill(struct cache *cache, unsigned class_index, void *block)
{
    struct quarantine *quarantine = quarantine_for(cache);
    struct held_class *held = held_of(quarantine, class_index);
    void **waiting;

    if (unlikely(held == NULL)) return block;
    waiting = &held->slot[held->ready_max];
    if (held->waiting_count == held->waiting_max)
        return quarantine_swap(quarantine, waiting, held->waiting_max, block);
    waiting[held->waiting_count] = block;
    count_up(&held->waiting_count);
    return NULL;
}

void *quarantine_look(struct cache *cache, unsigned class_index)
{
    struct quarantine *quarantine = quarantine_of(cache);
    struct held_class *held = quarantine != NULL ? &quarantine->held[class_index] : NULL;

    if (held == NULL || held->waiting_count == 0) return NULL;
    held->looked_at = (held->looked_at + 1) % held->waiting_count;
    return held->slot[held->ready_max + held->looked_at];
}

/* Where purging closes pages, those of free runs are closed. */
void quarantine_return_run(uint32_t page)
{
    struct page *record = page_record(page);
    struct os_range range = { page_address(page), (size_t)record->run_pages << space.page_shift };

    if (!OS_PURGE_CLOSES && !os_unguard(range)) return; /* it is lost, but nobody's */
    page_unmark_cached(record);
    run_return_clean(page);
}

static size_t waiting_bytes; /* atomic: of all quarantines */

static size_t run_bytes(uint32_t page)
{
    return (size_t)page_record(page)->run_pages << space.page_shift;
}

static bool may_wait(uint32_t page)
{
    size_t bytes = run_bytes(page);

    if (__atomic_add_fetch(&waiting_bytes, bytes, __ATOMIC_RELAXED) <= WAITING_RUN_BYTES)
        return true;
    (void)__atomic_sub_fetch(&waiting_bytes, bytes, __ATOMIC_RELAXED);
    return false;
}

static void end_waiting(uint32_t page)
{
    (void)__atomic_sub_fetch(&waiting_bytes, run_bytes(page), __ATOMIC_RELAXED);
    quarantine_return_run(page);
}

static void count_runs(struct quarantine *quarantine, uint32_t pages, uint32_t runs)
{
    RELAXED_STORE(quarantine->run_pages, quarantine->run_pages + pages);
    RELAXED_STORE(quarantine->run_count, quarantine->run_count + runs);
}

void quarantine_put_run(struct cache *cache, uint32_t page)
{
    struct quarantine *quarantine = quarantine_for(cache);
    uint32_t *place;

    if (unlikely(quarantine == NULL) || !may_wait(page)) {
        quarantine_return_run(page);
        return;
    }
    place = &quarantine->run[quarantine->oldest_run];
    quarantine->oldest_run = (quarantine->oldest_run + 1) % WAITING_RUNS;
    if (*place != 0) {
        count_runs(quarantine, 0 - page_record(*place)->run_pages, 0 - 1u);
        end_waiting(*place);
    }
    *place = page;
    page_mark_cached(page_record(page));
    count_runs(quarantine, page_record(page)->run_pages, 1);
}

void quarantine_drain(struct cache *cache)
{
    struct quarantine *quarantine = quarantine_of(cache);

    cache->front.quarantine = 0;
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct held_class *held = &quarantine->held[class_index];

        if (held->slot == NULL) continue;
        arenas_drain(class_index, held->slot, held->ready_count);
        arenas_drain(class_index, &held->slot[held->ready_max], held->waiting_count);
        meta_give(held->slot, slots_bytes(held));
    }
    for (unsigned i = 0; i < WAITING_RUNS; i++)
        if (quarantine->run[i] != 0) end_waiting(quarantine->run[i]);
    meta_give(quarantine, sizeof *quarantine);
}
