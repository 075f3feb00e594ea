/* magazine.c - looking through the blocks of a magazine that comes from elsewhere.
 * SPDX-License-Identifier: MIT
 */
#include "arena.h"

#include "../base/fatal.h"
#include "../slabs/row.h"

/* Four slots for each block of the fullest magazine: one in nine finds its own taken. */
enum { TABLE_SLOTS_LOG2 = 9, TABLE_SLOTS = 1 << TABLE_SLOTS_LOG2 };
_Static_assert(MAGAZINE_BLOCKS_MAX <= UINT8_MAX && WIDE_BLOCKS_MAX <= UINT8_MAX,
               "a byte names a slot");

/* By the low half of the address: one multiplication with a constant. */
INLINE size_t slot_of(const void *block)
{
    return (uint32_t)(uintptr_t)block * 0x9e3779b1u >> (32 - TABLE_SLOTS_LOG2);
}

/* Bits that are clear in the address of each block of the class, for slabs begin where pages do. */
INLINE uintptr_t bits_below_block(unsigned class_index)
{
    size_t bytes = class_bytes[class_index];

    return min_size(bytes & (0 - bytes), page_bytes()) - 1;
}

/* Fewer are compared each with each: the table alone would take longer. */
enum { FEW_BLOCKS = 8 };

/* Returns the bits of all. */
static uintptr_t expect_few_each_once(void *const *slots, unsigned count)
{
    uintptr_t bits = 0;

    for (unsigned i = 1; i <= count; i++) {
        void *block = slots[i];

        bits |= (uintptr_t)block;
        for (unsigned j = 1; j < i; j++)
            if (unlikely(slots[j] == block) && block != NULL) fatal_address("double free", block);
    }
    return bits;
}

/* The slot is taken: the next one that is not, or one of the same NULL. */
static NOINLINE size_t pass_taken(const uint8_t *table, void *const *slots, size_t at,
                                  const void *block)
{
    for (; table[at] != 0; at = (at + 1) % TABLE_SLOTS) {
        if (likely(slots[table[at]] != block)) continue;
        if (block != NULL) fatal_address("double free", block);
        break; /* M3 */
    }
    return at;
}

INLINE uintptr_t note_block(uint8_t *table, void *const *slots, size_t number)
{
    void *block = slots[number];
    size_t at = slot_of(block);

    if (unlikely(table[at] != 0)) at = pass_taken(table, slots, at, block);
    table[at] = (uint8_t)number;
    return (uintptr_t)block;
}

/* 9 instructions for a block: 4 at a time, for compilers do not. */
static uintptr_t expect_each_once(void *const *slots, unsigned count)
{
    uint8_t table[TABLE_SLOTS] = { 0 }; /* numbers in `slots` */
    uintptr_t bits = 0;
    size_t i = 1;

    for (; i + 3 <= count; i += 4) {
        bits |= note_block(table, slots, i);
        bits |= note_block(table, slots, i + 1);
        bits |= note_block(table, slots, i + 2);
        bits |= note_block(table, slots, i + 3);
    }
    for (; i <= count; i++) bits |= note_block(table, slots, i);
    return bits;
}

/* ---- blocks in rows ---- */

/* At most ROWS_MAX rows are compared with each other. Beyond the first SHORT_ROWS_MAX they must
 * have ROW_BLOCKS_WANTED blocks on average, or it is not worth it. */
enum { ROWS_MAX = 12, ROW_BLOCKS_WANTED = 8, SHORT_ROWS_MAX = 2, ROW_BLOCKS_MIN = 3 };
struct row {
    uintptr_t low, high;
};

/* How many blocks the row has that begins there: one, or at least three. */
INLINE unsigned row_at(void *const *at, unsigned left, uintptr_t *step)
{
    *step = left >= ROW_BLOCKS_MIN ? (uintptr_t)at[1] - (uintptr_t)at[0] : 0;
    if (*step == 0 || (uintptr_t)at[2] - (uintptr_t)at[1] != *step) return 1;
    return row_blocks(at, left, *step);
}

INLINE bool is_apart(struct row row, const struct row *rows, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (row.low <= rows[i].high && rows[i].low <= row.high) return false;
    return true;
}

/* Are they a few rows of which no two overlap? Then each is there once: so lies what a program
 * frees in the order in which it took it. False: they may be, or not. *bits: of the first of each
 * row and of its step, which say what the bits of all would. */
static bool rows_are_apart(void *const *slots, unsigned count, uintptr_t *bits)
{
    struct row rows[ROWS_MAX];
    unsigned done = 0;

    for (unsigned i = 0; i < ROWS_MAX; i++) {
        void *const *at = slots + 1 + done;
        uintptr_t step, first = (uintptr_t)at[0], last;
        unsigned blocks = row_at(at, count - done, &step);

        last = (uintptr_t)at[blocks - 1];
        rows[i] = (struct row){ first < last ? first : last, first < last ? last : first };
        if (!is_apart(rows[i], rows, i)) return false;
        *bits |= first | (blocks > 1 ? step : 0);
        done += blocks;
        if (done == count) return true;
        if (i + 1 > SHORT_ROWS_MAX + done / ROW_BLOCKS_WANTED) return false;
    }
    return false;
}

/* Not worth the slabs' records of all blocks, which may be nowhere near: those are looked at when
 * they get them back. */
void magazine_expect_blocks(unsigned class_index, void *const *slots, unsigned count)
{
    uintptr_t bits = 0;

    if (count <= FEW_BLOCKS) bits = expect_few_each_once(slots, count);
    else if (!rows_are_apart(slots, count, &bits)) bits = expect_each_once(slots, count);
    if (likely((bits & bits_below_block(class_index)) == 0)) return;
    for (unsigned i = 1; i <= count; i++) arena_expect_block(class_index, slots[i]);
}
