/* growth.c - the first magazine of a class, larger ones, and wide ones within their budgets.
 * SPDX-License-Identifier: MIT
 */
#include "growth.h"

#include "sleepers.h"

/* ---- the first ---- */

static void **first_slots_of(struct cache *cache, unsigned class_index)
{
    const size_t slots = FIRST_CAPACITY + 1, slots_beyond = FIRST_CAPACITY_BEYOND_1024 + 1;

    if (class_index == 1) return cache->first_slots;
    if (class_index <= CLASS_OF_1024) return cache->first_slots + class_index * slots - 1;
    return cache->first_slots + (CLASS_OF_1024 + 1) * slots - 1
         + (class_index - CLASS_OF_1024 - 1) * slots_beyond;
}

static unsigned first_capacity(unsigned class_index)
{
    if (class_index == 1) return 2 * FIRST_CAPACITY;
    return class_index > CLASS_OF_1024 ? FIRST_CAPACITY_BEYOND_1024 : FIRST_CAPACITY;
}

void cache_use_first(struct cache *cache, unsigned class_index)
{
    unsigned full = magazine_capacity(class_index), first = first_capacity(class_index);
    void **slots = first_slots_of(cache, class_index);

    cache->spare[class_index].capacity = (uint16_t)(full < first ? full : first);
    cache->spare[class_index].pressure = 0;
    slots[0] = NULL; /* M1 */
    load_magazine(cache, class_index, slots, 0);
}

/* ---- how many blocks at a time ---- */

/* A thread that allocates a little of everything holds what it did not take of each fill: threads
 * are many, so small magazines are filled by bytes (200 threads of 100 KB: 151 KB each with whole
 * ones, 130 so). */
enum { FIRST_FILL_BYTES = 1024, MIDDLE_FILL_BYTES = 8192 };

/* As many as end where a cache line ends, so that two threads that fill one after the other do not
 * write to one line. */
unsigned cache_fill_count(const struct cache *cache, unsigned class_index)
{
    unsigned capacity = cache->spare[class_index].capacity, count = capacity;
    size_t size = class_bytes[class_index], factor = size & (0 - size);
    size_t bytes = capacity < MIDDLE_CAPACITY ? FIRST_FILL_BYTES : MIDDLE_FILL_BYTES;
    unsigned group = factor < LINE_BYTES ? (unsigned)(LINE_BYTES / factor) : 1;

    if (unlikely(is_wide(cache, class_index))) return cache_wide_part(cache, class_index);
    if (!is_full_size(cache, class_index) && bytes / size < capacity)
        count = (unsigned)max_size(bytes / size, 1);
    return count >= group ? count & ~(group - 1) : count;
}

void cache_drain_first(struct cache *cache, unsigned class_index, unsigned count)
{
    void **slots = cache_loaded(cache, class_index);
    unsigned left = loaded_count(cache, class_index) - count;

    arenas_drain(class_index, slots + 1, count);
    __builtin_memmove(slots + 1, slots + 1 + count, left * sizeof(void *));
    load_magazine(cache, class_index, slots, left);
}

/* ---- larger ones ---- */

/* Refills and overflows after which a class gets a larger magazine. */
enum { FIRST_PRESSURE = 6, MIDDLE_PRESSURE = 12 };

/* A magazine of another capacity, with the same blocks in it. False: no memory; it is as it was. */
static bool change_loaded(struct cache *cache, unsigned class_index, unsigned capacity)
{
    struct spare *spare = &cache->spare[class_index];
    unsigned count = loaded_count(cache, class_index), old_capacity = spare->capacity;
    void **old = cache_loaded(cache, class_index), **slots = meta_take(magazine_bytes(capacity));

    if (slots == NULL) return false;
    __builtin_memcpy(slots + 1, old + 1, count * sizeof *slots);
    spare->capacity = (uint16_t)capacity;
    load_magazine(cache, class_index, slots, count);
    if (!is_in_place(cache, old)) meta_give(old, magazine_bytes(old_capacity));
    return true;
}

void cache_enlarge_if_pressed(struct cache *cache, unsigned class_index)
{
    struct spare *spare = &cache->spare[class_index];
    bool is_first = spare->capacity < MIDDLE_CAPACITY;
    unsigned capacity = magazine_capacity(class_index), old_capacity = spare->capacity;
    unsigned filled;

    if (spare->slots != NULL || is_wide(cache, class_index)) return;
    if (++spare->pressure < FIRST_PRESSURE || is_full_size(cache, class_index)) return;
    filled = cache_fill_count(cache, class_index);
    check(filled != 0);
    /* Each time stands for a fill: together they must be more than so many magazines hold. */
    if ((spare->pressure + 1) * filled
        <= (is_first ? FIRST_PRESSURE : MIDDLE_PRESSURE) * old_capacity)
        return;
    if (is_first && capacity > MIDDLE_CAPACITY) capacity = MIDDLE_CAPACITY;
    if (!change_loaded(cache, class_index, capacity)) return;
    spare->pressure = 0;
    if (is_full_size(cache, class_index)) sleepers_expect(cache);
}

/* ---- wide ones ---- */

/* A thread that works in bursts gives away what its two magazines of a class do not hold, and wants
 * it back in the next one: a lock for every few blocks of several KiB. Such a class gets one
 * magazine with room for that, as long as the sum of those of a thread, and of all threads, stays
 * within its bounds. Who only takes, or only gives, or gives more than could be held, gets none.
 * (docs/decisions/0036). */

/* Refused wishes for a wide magazine, after which those that stand idle are taken from. */
enum { WISHES_BEFORE_NARROWER = 8 };

ptrdiff_t cached_wide_bytes;

static size_t bytes_beyond(unsigned class_index, unsigned capacity)
{
    size_t bytes = capacity * (size_t)class_bytes[class_index];
    size_t two = max_size(2 * MAGAZINE_BYTES_MAX, 4 * (size_t)class_bytes[class_index]);

    return bytes > two ? bytes - two : 0;
}

size_t cache_wide_bytes(const struct cache *cache)
{
    size_t sum = 0;

    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        sum += bytes_beyond(class_index, cache->spare[class_index].capacity);
    return sum;
}

static void give_wide_bytes(size_t bytes)
{
    if (bytes == 0) return;
    (void)__atomic_fetch_sub(&cached_wide_bytes, (ptrdiff_t)bytes, __ATOMIC_RELAXED);
}

/* Counts so many more for all threads. False: that would be too many. */
static READS_UNLOCKED bool claim_wide_bytes(size_t bytes)
{
    size_t most = CACHES_WIDE_BYTES_MAX + space.open_bytes / CACHES_WIDE_SHARE;
    ptrdiff_t claimed = __atomic_add_fetch(&cached_wide_bytes, (ptrdiff_t)bytes, __ATOMIC_RELAXED);

    if (claimed <= (ptrdiff_t)most) return true;
    give_wide_bytes(bytes);
    return false;
}

/* By what was not used of it. */
static void narrow_wide(struct cache *cache, unsigned class_index, unsigned unused)
{
    struct spare *spare = &cache->spare[class_index];
    unsigned full = magazine_capacity(class_index), capacity = spare->capacity - unused, count;
    size_t bytes = bytes_beyond(class_index, spare->capacity);

    if (capacity <= 2 * full) capacity = full;
    count = loaded_count(cache, class_index);
    if (count > unused + capacity) unused = count - capacity;
    cache_drain_first(cache, class_index, unused);
    if (!change_loaded(cache, class_index, capacity)) return;
    give_wide_bytes(bytes - bytes_beyond(class_index, capacity));
    if (capacity == full) spare->pressure = 0;
    spare->low = 0;
}

/* A class wants more than there is: the others are looked at, and lose what they did not use. */
static void narrow_idle(struct cache *cache)
{
    bool harvest = ++cache->owner.wide_wishes % WISHES_BEFORE_NARROWER == 0;

    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct spare *spare = &cache->spare[class_index];
        unsigned count;

        if (bytes_beyond(class_index, spare->capacity) == 0) continue;
        count = loaded_count(cache, class_index);
        if ((unsigned)spare->low > count) spare->low = (int8_t)count;
        if (!harvest) continue;
        if (spare->low > 0) narrow_wide(cache, class_index, (unsigned)spare->low);
        if (is_wide(cache, class_index)) spare->low = INT8_MAX;
    }
}

void cache_widen(struct cache *cache, unsigned class_index)
{
    struct spare *spare = &cache->spare[class_index];
    unsigned capacity = spare->slots != NULL ? 2u * spare->capacity : spare->capacity;
    unsigned given = spare->given, wanted = (unsigned)min_size(capacity + given, WIDE_BLOCKS_MAX);
    size_t bytes = bytes_beyond(class_index, wanted) - bytes_beyond(class_index, capacity);
    void **slots = spare->slots;

    spare->given = 0;
    if (given > WIDE_BLOCKS_MAX || wanted <= capacity) return;
    if (cache_wide_bytes(cache) + bytes > CACHE_WIDE_BYTES_MAX || !claim_wide_bytes(bytes)) {
        narrow_idle(cache);
        return;
    }
    if (!change_loaded(cache, class_index, wanted)) {
        give_wide_bytes(bytes);
        return;
    }
    if (slots != NULL) meta_give(slots, magazine_bytes(magazine_capacity(class_index)));
    spare->slots = NULL;
    spare->low = 0;
}

void cache_forget_wide(const struct cache *cache)
{
    if (RELAXED_LOAD(cached_wide_bytes) != 0) give_wide_bytes(cache_wide_bytes(cache));
}

void cache_forget_wide_of_others(const struct cache *mine)
{
    RELAXED_STORE(cached_wide_bytes, 0);
    if (mine != NULL) cache_count_wide(mine);
}

void cache_count_wide(const struct cache *cache)
{
    (void)__atomic_fetch_add(&cached_wide_bytes, (ptrdiff_t)cache_wide_bytes(cache),
                             __ATOMIC_RELAXED);
}
