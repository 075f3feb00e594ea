/* slab.c - opening, filling from, and closing slabs.
 * SPDX-License-Identifier: MIT
 */
#include "slab.h"

#include "row.h"

struct slab_shape slab_shape[CLASS_COUNT] SEALED;

/* Fewer blocks side by side are put one by one. */
enum { NEIGHBOURS_MIN = 8 };

/* The shortest run that is long enough to be worth a record, holds a few blocks, and wastes at most
 * a 64th of itself; blocks of m * 2^k bytes always find one within m pages times a power of two. */
static size_t span_bytes(size_t block_bytes)
{
    size_t page = page_bytes();
    size_t wanted = min_size(SLAB_BLOCKS_WANTED * block_bytes, SLAB_BYTES_WANTED_MAX);
    size_t least =
        round_up(max_size(max_size(SLAB_BYTES_MIN, wanted), SLAB_BLOCKS_MIN * block_bytes), page);
    size_t bytes = least;

    while (bytes % block_bytes > bytes / 64) bytes += page;
    check(bytes / block_bytes <= UINT16_MAX);
    return bytes;
}

void slabs_start(void)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct slab_shape *shape = &slab_shape[class_index];
        size_t block_bytes = class_bytes[class_index];
        size_t bytes = span_bytes(block_bytes);
        size_t words;

        shape->bytes = (uint32_t)bytes;
        shape->block_bytes = (uint16_t)block_bytes;
        shape->block_count = (uint16_t)(bytes / block_bytes);
        shape->span_bytes = (uint32_t)(bytes / block_bytes * block_bytes);
        shape->reciprocal = (uint32_t)((((uint64_t)1 << 32) + block_bytes - 1) / block_bytes);
        words = ((size_t)shape->block_count + 63) / 64;
        shape->word_count = (uint16_t)words;
        shape->record_bytes = (uint16_t)round_up(
            sizeof(struct slab) + words * sizeof(uint64_t) * (CHECKED ? 2 : 1), META_UNIT_BYTES);
    }
}

static void mark_pages(const struct slab *slab, uint32_t number, uint8_t class_at, size_t bytes)
{
    struct page *record = page_record(slab->page);

    for (size_t i = 0; i < bytes >> space.page_shift; i++) {
        record[i].slab = number;
        record[i].class_at = class_at;
    }
    if (likely(!slab->hidden)) class_map_set(slab->base, bytes, class_at);
}

void slab_open(struct slab *slab, unsigned class_index, uint16_t arena, uint32_t page)
{
    const struct slab_shape *shape = &slab_shape[class_index];
    unsigned whole = shape->block_count / 64;

    slab->page = page;
    slab->base = page_address(page);
    slab->block_count = shape->block_count;
    slab->arena = arena;
    slab->class_index = (uint8_t)class_index;
    for (unsigned word = 0; word < whole; word++) slab->free[word] = ~(uint64_t)0;
    if (whole < shape->word_count) slab->free[whole] = bits_below(shape->block_count % 64);
    slab->free_count = shape->block_count;
    slab->hint = 0;
    slab->purged = 0;
    mark_pages(slab, slab_number(slab), offset_of_class(class_index), shape->bytes);
}

void slab_reset(struct slab *slab)
{
    slab->free_count = slab->block_count;
    if (CHECKED) {
        unsigned words = slab_shape[slab->class_index].word_count;

        __builtin_memset(&slab->free[words], 0, words * sizeof slab->free[0]);
    }
}

void slab_close(struct slab *slab)
{
    check(slab->free_count == slab->block_count);
    mark_pages(slab, 0, 0, slab_shape[slab->class_index].bytes);
}

/* Blocks that lie side by side: no bits to search. */
static void **take_neighbours(void **end, char *first, size_t block_bytes, unsigned count)
{
    for (; count >= 4; count -= 4) {
        end[-1] = first;
        end[-2] = first + block_bytes;
        end[-3] = first + 2 * block_bytes;
        end[-4] = first + 3 * block_bytes;
        first += 4 * block_bytes;
        end -= 4;
    }
    for (; count > 0; count--) {
        *--end = first;
        first += block_bytes;
    }
    return end;
}

unsigned slab_fill(struct slab *slab, void **end, unsigned wanted)
{
    size_t block_bytes = slab_shape[slab->class_index].block_bytes;
    unsigned target = wanted < slab->free_count ? wanted : slab->free_count;
    void **last = end - target;
    unsigned word = slab->hint;

    while (end != last) {
        uint64_t bits = slab->free[word];
        char *base = slab->base + (size_t)word * 64 * block_bytes;

        if (bits != 0 && bits_are_neighbours(bits)) {
            unsigned lowest = lowest_bit(bits), count = highest_bit(bits) - lowest + 1;
            if (count > (size_t)(end - last)) count = (unsigned)(end - last);
            end = take_neighbours(end, base + lowest * block_bytes, block_bytes, count);
            bits &= ~(bits_below(count) << lowest);
        } else {
            for (; bits != 0 && end != last; bits &= bits - 1)
                *--end = base + lowest_bit(bits) * block_bytes;
        }
        slab->free[word] = bits;
        word += bits == 0;
    }
    slab->hint = (uint16_t)word;
    slab->purged = 0;
    slab->free_count = (uint16_t)(slab->free_count - target);
    return target;
}

/* ---- blocks that lie side by side ---- */

/* Marks blocks free that lie side by side. False: one of them is free already, and none was
 * marked. */
static bool set_free(uint64_t *words, unsigned first, unsigned count)
{
    unsigned word = first / 64, last = (first + count - 1) / 64;
    uint64_t head = bits_from(first % 64), tail = bits_below((first + count - 1) % 64 + 1), found;

    if (word == last) {
        found = words[word] & head & tail;
        words[word] |= found == 0 ? head & tail : 0;
        return found == 0;
    }
    found = (words[word] & head) | (words[last] & tail);
    for (unsigned i = word + 1; i < last; i++) found |= words[i];
    if (found != 0) return false;
    words[word] |= head;
    for (unsigned i = word + 1; i < last; i++) words[i] = ~(uint64_t)0;
    words[last] |= tail;
    return true;
}

/* Marks blocks free that lie side by side from *at on, upwards or downwards; `index` is the number
 * of the first. Many are freed in the order of their addresses, and this costs a quarter of looking
 * each of them up. Returns how many; 0: they do not, or one of them is free already: putting them
 * one by one tells which. */
static unsigned put_neighbours(struct slab *slab, uintptr_t block_bytes, unsigned index,
                               void *const *at, unsigned left)
{
    uintptr_t step = (uintptr_t)at[1] - (uintptr_t)at[0];
    bool up = step == block_bytes;
    unsigned most = up ? slab->block_count - index : index + 1, count, first;

    if (!up && step != 0 - block_bytes) return 0;
    count = row_blocks(at, most < left ? most : left, step);
    first = up ? index : index + 1 - count;
    if (!set_free(slab->free, first, count)) return 0;
    if (first / 64 < slab->hint) slab->hint = (uint16_t)(first / 64);
    return count;
}

/* Whether that is worth a try. */
INLINE bool may_be_neighbours(uintptr_t block_bytes, void *const *at, unsigned left)
{
    uintptr_t distance;

    if (left < NEIGHBOURS_MIN) return false;
    distance = (uintptr_t)at[NEIGHBOURS_MIN - 1] - (uintptr_t)at[0];
    return distance == (NEIGHBOURS_MIN - 1) * block_bytes
        || distance == 0 - (NEIGHBOURS_MIN - 1) * block_bytes;
}

/* ---- putting ---- */

/* The word of the last block stays in a register until another one is wanted. */
static unsigned put_each(struct slab *slab, const struct slab_shape *shape, void *const *blocks,
                         void *const *end, enum slab_fault *fault)
{
    const uintptr_t base = (uintptr_t)slab->base;
    uint64_t *const words = slab->free;
    void *const *at = blocks;
    uint64_t quotient = slab_quotient(shape, (uintptr_t)*at - base);
    unsigned word = slab_quotient_word(quotient), lowest = slab->hint;
    uint64_t bits = words[word];

    if (word < lowest) lowest = word;
    for (;;) {
        uintptr_t offset;

        if (unlikely(!slab_quotient_is_block(shape, quotient))) {
            *fault = SLAB_FAULT_INTERIOR;
            break;
        }
        if (unlikely(bit_test_and_set(&bits, slab_quotient_index(quotient)))) {
            *fault = SLAB_FAULT_TWICE;
            break;
        }
        if (++at == end) break;
        offset = (uintptr_t)*at - base;
        if (offset >= shape->span_bytes) break;
        quotient = slab_quotient(shape, offset);
        if (slab_quotient_word(quotient) == word) continue;
        words[word] = bits;
        word = slab_quotient_word(quotient);
        bits = words[word];
        if (word < lowest) lowest = word;
    }
    words[word] = bits;
    slab->hint = (uint16_t)lowest;
    return (unsigned)(at - blocks);
}

unsigned slab_put(struct slab *slab, void *const *blocks, unsigned count, enum slab_fault *fault)
{
    const struct slab_shape shape = slab_shape[slab->class_index];
    uintptr_t offset = (uintptr_t)blocks[0] - (uintptr_t)slab->base;
    uint64_t quotient = slab_quotient(&shape, offset);
    unsigned put = 0;

    *fault = unlikely(offset >= shape.span_bytes) ? SLAB_FAULT_INTERIOR : SLAB_FAULT_NONE;
    if (*fault != SLAB_FAULT_NONE) return 0;
    if (may_be_neighbours(shape.block_bytes, blocks, count)
        && slab_quotient_is_block(&shape, quotient))
        put = put_neighbours(slab, shape.block_bytes, slab_quotient_index(quotient), blocks, count);
    if (put == 0) put = put_each(slab, &shape, blocks, blocks + count, fault);
    slab->free_count = (uint16_t)(slab->free_count + put);
    return put;
}

/* ---- pages without a block ---- */

static bool blocks_are_free(const struct slab *slab, unsigned first, unsigned last)
{
    for (unsigned word = first / 64; word <= last / 64; word++) {
        uint64_t wanted = word == first / 64 ? bits_from(first % 64) : ~(uint64_t)0;

        if (word == last / 64) wanted &= bits_below(last % 64 + 1);
        if ((slab->free[word] & wanted) != wanted) return false;
    }
    return true;
}

/* Nobody who holds a block has a part of that page. */
static bool page_is_nobodys(const struct slab *slab, size_t page)
{
    const struct slab_shape *shape = &slab_shape[slab->class_index];
    uintptr_t start = page << space.page_shift;
    unsigned first = slab_quotient_index(slab_quotient(shape, start));
    unsigned last = slab_quotient_index(slab_quotient(shape, start + page_bytes() - 1));

    return blocks_are_free(slab, first, last < slab->block_count ? last : slab->block_count - 1u);
}

static bool page_is_unused(const struct slab *slab, size_t page)
{
    return (slab->purged >> page & 1) == 0 && page_is_nobodys(slab, page);
}

size_t slab_unused_pages(const struct slab *slab, size_t *first)
{
    size_t end = slab_pages(slab->class_index), page = *first;

    while (page < end && !page_is_unused(slab, page)) page++;
    *first = page;
    while (page < end && page_is_unused(slab, page)) page++;
    return page - *first;
}

void slab_mark_purged(struct slab *slab, size_t first, size_t pages)
{
    slab->purged |= (uint16_t)((bits_below((unsigned)pages) << first) & (SLAB_IDLE - 1u));
}

void slab_check(const struct slab *slab)
{
    const struct slab_shape *shape = &slab_shape[slab->class_index];
    unsigned set = 0;

    require(slab->block_count == shape->block_count);
    for (unsigned word = 0; word < shape->word_count; word++) {
        set += bit_count(slab->free[word]);
        require(word >= slab->hint || slab->free[word] == 0); /* S4 */
    }
    require(set == slab->free_count); /* S1 */
    if (slab->block_count % 64 != 0)
        require((slab->free[shape->word_count - 1] & bits_from(slab->block_count % 64))
                == 0); /* S2 */
    for (size_t page = 0; page < slab_pages(slab->class_index); page++)
        require((slab->purged >> page & 1) == 0 || page_is_nobodys(slab, page)); /* S5 */
    require(page_record(slab->page)->slab == slab_number(slab));
    require(slab->base == page_address(slab->page));
}
