/* watch.c - calls that are seen: one by one, or a window of them at a time.
 * SPDX-License-Identifier: MIT
 */
#include "watch.h"

_Static_assert(offsetof(struct watch, behind) == offsetof(struct cache, behind),
               "all that a slot may point at begin alike");
_Static_assert(offsetof(struct watch, put) == PLACES_FOR_FREES * sizeof(void *)
                   && PLACES_FOR_FREES + 2 * CLASS_COUNT <= 256,
               "frees find their magazines");

/* A window is small, so that a block that is freed is soon taken again, while the processor's caches have it;
 * and large enough that a slow call is rare (docs/decisions/0014). */
enum { WINDOW_BYTES = 16 * KiB, WINDOW_BLOCKS_MIN = 4 };

static uint8_t blocks_of_window[CLASS_COUNT]; /* constant after watches_start */

void watches_start(void)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        unsigned blocks = WINDOW_BYTES / class_bytes[class_index];

        if (blocks < WINDOW_BLOCKS_MIN) blocks = WINDOW_BLOCKS_MIN;
        if (blocks > WINDOW_BLOCKS_MAX) blocks = WINDOW_BLOCKS_MAX;
        blocks_of_window[class_index] = (uint8_t)blocks;
    }
}

static unsigned window_blocks(unsigned class_index) { return blocks_of_window[class_index]; }

/* Two windows, each with an empty bottom slot. M1 */
static size_t windows_bytes(unsigned class_index)
{
    return 2 * magazine_bytes(window_blocks(class_index));
}

/* The bottoms of the two windows. W3 */
static void **put_bottom(const struct watch *watch, unsigned class_index)
{
    return watch->put[class_index].limit - window_blocks(class_index);
}

static void **take_bottom(const struct watch *watch, unsigned class_index)
{
    return watch->magazine[class_index].limit - window_blocks(class_index);
}

static bool has_windows(const struct watch *watch, unsigned class_index)
{
    return watch->magazine[class_index].limit != &watch->nothing;
}

static void no_windows(struct watch *watch, unsigned class_index)
{
    watch->magazine[class_index] = (struct magazine){ &watch->nothing, &watch->nothing };
    watch->put[class_index] = watch->magazine[class_index];
}

/* When a class is first used. False: no memory; its calls take the slow way, one by one. */
static NOINLINE bool open_windows(struct watch *watch, unsigned class_index)
{
    unsigned blocks = window_blocks(class_index);
    void **slots = meta_take(windows_bytes(class_index));

    if (slots == NULL) return false;
    slots[0] = slots[blocks + 1] = NULL; /* M1 */
    watch->magazine[class_index] = (struct magazine){ slots, slots + blocks };
    slots += blocks + 1;
    watch->put[class_index] = (struct magazine){ slots, slots + blocks };
    return true;
}

static bool gets_windows(struct watch *watch, unsigned class_index)
{
    return likely(has_windows(watch, class_index)) || open_windows(watch, class_index);
}

struct watch *watch_begin(struct cache *behind, bool metered)
{
    struct watch *watch = meta_take(sizeof *watch);

    if (watch == NULL) return NULL;
    watch->behind = behind;
    for (unsigned class_index = 0; class_index < CLASS_COUNT; class_index++)
        no_windows(watch, class_index);
    watch->exact = !metered;
    if (!metered) return watch;
    watch->meter = meta_take(sizeof *watch->meter);
    if (watch->meter == NULL) {
        meta_give(watch, sizeof *watch);
        return NULL;
    }
    meter_init(watch->meter);
    return watch;
}

/* The blocks up to `top` go to the cache behind. Returns how many. */
static unsigned empty_window(struct watch *watch, unsigned class_index, void **bottom, void **top)
{
    unsigned count = (unsigned)(top - bottom);

    cache_put_some(watch->behind, class_index, bottom + 1, count);
    return count;
}

static void flush_class(struct watch *watch, unsigned class_index)
{
    void **taking = take_bottom(watch, class_index), **putting = put_bottom(watch, class_index);

    meter_pass_back(watch->meter, class_index,
                    empty_window(watch, class_index, taking, watch->magazine[class_index].top));
    (void)empty_window(watch, class_index, putting, watch->put[class_index].top);
    watch->magazine[class_index].top = taking;
    watch->put[class_index].top = putting;
}

void watch_flush(struct watch *watch)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        if (has_windows(watch, class_index)) flush_class(watch, class_index);
}

static void close_windows(struct watch *watch)
{
    watch_flush(watch);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        void **taking = take_bottom(watch, class_index), **putting = put_bottom(watch, class_index);

        if (!has_windows(watch, class_index)) continue;
        no_windows(watch, class_index);
        meta_give(taking < putting ? taking : putting, windows_bytes(class_index));
    }
}

void watch_make_exact(struct watch *watch)
{
    if (watch->exact) return;
    close_windows(watch);
    watch->exact = true;
    watch->allocated = 0; /* sampled and large blocks were counted already */
    watch->deallocated = 0;
}

void watch_end(struct watch *watch)
{
    close_windows(watch);
    if (watch->meter != NULL) meta_give(watch->meter, sizeof *watch->meter);
    meta_give(watch, sizeof *watch);
}

READS_UNLOCKED unsigned watch_held(const struct watch *watch, unsigned class_index)
{
    const struct magazine *window[] = { &watch->magazine[class_index], &watch->put[class_index] };
    size_t room = window_blocks(class_index), blocks = 0;

    for (unsigned i = 0; i < ARRAY_COUNT(window); i++) {
        size_t left = (size_t)(RELAXED_LOAD(window[i]->limit) - RELAXED_LOAD(window[i]->top));

        if (has_windows(watch, class_index) && left <= room) blocks += room - left;
    }
    return (unsigned)blocks;
}

/* ---- taking ---- */

/* M3: takes NULLs off the top. Returns how many blocks there are. */
static unsigned drop_nulls(struct magazine *magazine, void **bottom)
{
    while (magazine->top != bottom && *magazine->top == NULL) magazine->top--;
    return (unsigned)(magazine->top - bottom);
}

bool watch_block_is_due(struct watch *watch, unsigned class_index)
{
    if (watch->meter == NULL) return false;
    if (likely(has_windows(watch, class_index))) {
        void **bottom = take_bottom(watch, class_index), **top = watch->magazine[class_index].top;
        unsigned left = drop_nulls(&watch->magazine[class_index], bottom);

        meter_pass_back(watch->meter, class_index, (unsigned)(top - bottom) - left);
        if (left > 0) return false;
    }
    return meter_block_is_due(watch->meter, class_index);
}

bool watch_large_is_due(struct watch *watch, size_t bytes)
{
    return watch->meter != NULL && meter_large_is_due(watch->meter, bytes);
}

/* One block, without windows. */
static void *take_alone(struct watch *watch, unsigned class_index)
{
    void *block = magazine_take(&watch->behind->magazine[class_index]);

    if (unlikely(block == NULL)) {
        if (!cache_refill(watch->behind, class_index)) return NULL;
        block = magazine_take(&watch->behind->magazine[class_index]);
    }
    if (watch->meter != NULL) (void)meter_pass(watch->meter, class_index, 1);
    watch->allocated += class_bytes[class_index];
    return block;
}

/* The windows change places. */
static void turn_windows(struct watch *watch, unsigned class_index)
{
    struct magazine taking = watch->magazine[class_index];

    watch->magazine[class_index] = watch->put[class_index];
    watch->put[class_index] = taking;
}

/* With few blocks on their way round, a slow call would come after few. */
static bool is_half_a_window(unsigned class_index, size_t blocks)
{
    return 2 * blocks >= window_blocks(class_index);
}

/* NULLs among the blocks pass like them, and are passed back by the call that drops them. */
void *watch_turn(struct watch *watch, unsigned class_index)
{
    size_t freed;

    if (unlikely(!has_windows(watch, class_index))
        || watch->magazine[class_index].top != take_bottom(watch, class_index))
        return NULL;
    freed = (size_t)(watch->put[class_index].top - put_bottom(watch, class_index));
    if (!is_half_a_window(class_index, freed)
        || !meter_passes(watch->meter, class_index, (unsigned)freed))
        return NULL;
    turn_windows(watch, class_index);
    return magazine_take(&watch->magazine[class_index]);
}

/* The blocks that were freed last are taken first; when a sample is due before they are used up, as many as
 * may pass move over. */
static void refill_from_freed(struct watch *watch, unsigned class_index, unsigned freed)
{
    struct magazine *taking = &watch->magazine[class_index], *putting = &watch->put[class_index];
    unsigned passed = meter_pass(watch->meter, class_index, freed);

    if (likely(passed == freed)) {
        turn_windows(watch, class_index);
        return;
    }
    putting->top -= passed;
    __builtin_memcpy(taking->top + 1, putting->top + 1, passed * sizeof(void *));
    taking->top += passed;
}

static bool refill_from_behind(struct watch *watch, unsigned class_index, unsigned wanted)
{
    struct magazine *taking = &watch->magazine[class_index];
    unsigned passed = meter_pass(watch->meter, class_index, wanted);
    unsigned taken = cache_take_some(watch->behind, class_index, taking->top + 1, passed);

    taking->top += taken;
    meter_pass_back(watch->meter, class_index, passed - taken);
    return taken > 0;
}

void *watch_take(struct watch *watch, unsigned class_index)
{
    void *block;

    if (watch->exact || unlikely(!gets_windows(watch, class_index)))
        return take_alone(watch, class_index);
    while ((block = magazine_take(&watch->magazine[class_index])) == NULL) {
        unsigned freed = drop_nulls(&watch->put[class_index], put_bottom(watch, class_index));
        unsigned most = window_blocks(class_index);

        (void)drop_nulls(&watch->magazine[class_index], take_bottom(watch, class_index));
        if (!is_half_a_window(class_index, freed)
            && refill_from_behind(watch, class_index, most - freed))
            continue;
        if (freed == 0) return NULL;
        refill_from_freed(watch, class_index, freed);
    }
    return block;
}

/* ---- putting ---- */

/* The half that was freed last makes room: it lies on top, and the cache behind gives it out first. */
static void halve_freed(struct watch *watch, unsigned class_index)
{
    struct magazine *putting = &watch->put[class_index];
    void **bottom = put_bottom(watch, class_index);
    void **middle = bottom + (putting->top - bottom) / 2;

    (void)empty_window(watch, class_index, middle, putting->top);
    putting->top = middle;
}

void watch_put(struct watch *watch, unsigned class_index, void *block)
{
    if (watch->exact || unlikely(!gets_windows(watch, class_index))) {
        watch->deallocated += class_bytes[class_index];
        if (unlikely(!magazine_put(&watch->behind->magazine[class_index], block)))
            cache_overflow(watch->behind, class_index, block);
        return;
    }
    if (magazine_put(&watch->put[class_index], block)) return;
    halve_freed(watch, class_index);
    (void)magazine_put(&watch->put[class_index], block);
}
