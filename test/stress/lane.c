/* lane.c - the random steps of one lane: allocate, free, resize, look, hand over, and odd requests.
 * SPDX-License-Identifier: MIT
 *
 * Choices depend on the random stream and on sizes, never on addresses or time, so that a run of
 * one lane repeats exactly. */
#define _GNU_SOURCE
#include "lane.h"

#include "allocator.h"
#include "sizes.h"
#include "ways.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum { ERRNO_SENTINEL = 12345 };

struct world world;

static bool sabotage_now(const struct lane *lane, enum sabotage kind)
{
    return world.sabotage == kind && lane->index == 0 && lane->step >= world.sabotage_step;
}

static void count_live(size_t more, size_t less)
{
    atomic_fetch_add_explicit(&world.live_bytes, more - less, memory_order_relaxed);
}

static bool no_room(const struct lane *lane, size_t bytes)
{
    size_t live = atomic_load_explicit(&world.live_bytes, memory_order_relaxed);
    return lane->count == LANE_BLOCKS_MAX || live + bytes > world.live_bytes_max;
}

/* NULL is an answer only where refusals are allowed, and then with ENOMEM. */
static void check_refusal(struct lane *lane, size_t bytes)
{
    if (errno != ENOMEM)
        violation("a request of %zu bytes was refused with errno %d", bytes, errno);
    if (!world.refusals_allowed) violation("a request of %zu bytes was refused", bytes);
    lane->refusals++;
}

/* A new or resized block, whose usable size is known, enters the books: claimed over its whole
 * usable size, then stamped. */
static void admit(struct lane *lane, struct block *block)
{
    oracle_claim(block);
    bool whole = random_below(&lane->random, 4) == 0;
    block->stamped_bytes = whole ? block->usable_bytes : block->requested_bytes;
    oracle_stamp(block, lane->index);
    count_live(block->requested_bytes, 0);
}

static void sabotage_new_block(const struct lane *lane, struct block *block, bool zeroed)
{
    if (sabotage_now(lane, SABOTAGE_OVERLAP) && !zeroed && lane->count > 0
        && lane->blocks[0].requested_bytes >= 32) {
        block->base = lane->blocks[0].base + 16;
        block->usable_bytes = block->requested_bytes = block->align_bytes = 16;
    }
    if (sabotage_now(lane, SABOTAGE_MISALIGN) && !zeroed && block->requested_bytes >= 16)
        block->base += 8; /* shorter ones are aligned to 8 bytes */
    if (sabotage_now(lane, SABOTAGE_DIRTY) && zeroed && block->requested_bytes > 0)
        block->base[block->requested_bytes - 1] = 1;
    if (sabotage_now(lane, SABOTAGE_REFUSE)) {
        block->base = NULL;
        errno = ENOMEM;
    }
}

static void allocate(struct lane *lane)
{
    const struct way_in *way = choose_way_in(random_next(&lane->random));
    struct block block = { .kind = way->kind };
    block.requested_bytes = random_size(lane);
    if (way->never_zero_bytes && block.requested_bytes == 0) block.requested_bytes = 1;
    if (way->kind & (KIND_C_ALIGNED | KIND_C_PAGES | KIND_CXX_ALIGNED))
        block.align_bytes = way->page_aligned ? system_page_bytes() : random_align(lane);
    if (no_room(lane, block.requested_bytes + block.align_bytes)) return;

    whereabouts.action = way->name;
    lane->operations++;
    errno = 0;
    block.base = way->take(block.requested_bytes, block.align_bytes);
    if (block.base != NULL) block.usable_bytes = malloc_usable_size(block.base);
    sabotage_new_block(lane, &block, way->zeroed);
    if (block.base == NULL) {
        check_refusal(lane, block.requested_bytes);
        return;
    }
    if (way->zeroed) oracle_verify_zero(&block);
    admit(lane, &block);
    lane->blocks[lane->count++] = block;
}

/* A block leaves the books and goes back, through one of the functions that may take it. */
static void discharge(struct lane *lane, const struct block *block)
{
    const struct way_out *way = choose_way_out(random_next(&lane->random), block->kind);
    whereabouts.action = way->name;
    oracle_verify(block, block->stamped_bytes, "before free");
    oracle_release(block);
    count_live(0, block->requested_bytes);
    lane->operations++;
    errno = ERRNO_SENTINEL;
    way->give(block);
    if (sabotage_now(lane, SABOTAGE_ERRNO)) errno = ENOMEM;
    if (errno != ERRNO_SENTINEL) violation("%s changed errno to %d", way->name, errno);
}

/* Takes the block out of the lane by the free habit of its phase. */
static struct block remove_block(struct lane *lane)
{
    unsigned victim = random_below(&lane->random, lane->count);
    if (lane->phase.frees == FREE_OLDEST) victim %= 1 + lane->count / 64;
    if (lane->phase.frees == FREE_NEWEST) victim = lane->count - 1;
    struct block block = lane->blocks[victim];
    lane->blocks[victim] = lane->blocks[--lane->count];
    return block;
}

static void release_one(struct lane *lane)
{
    if (lane->count == 0) return;
    struct block block = remove_block(lane);
    discharge(lane, &block);
}

/* A resized block keeps the smaller of its old and new contents, wherever it goes. A refused resize
 * leaves the block as it was. */
static void resize(struct lane *lane)
{
    if (lane->count == 0) return;
    struct block *block = &lane->blocks[random_below(&lane->random, lane->count)];
    if (!(block->kind & (KIND_C | KIND_C_ALIGNED | KIND_C_PAGES))) return;
    size_t bytes = random_resize(lane, block->requested_bytes);
    if (no_room(lane, bytes) && bytes > block->requested_bytes) return;

    whereabouts.action = "realloc";
    struct block before = *block;
    oracle_verify(block, block->stamped_bytes, "before realloc");
    oracle_release(block);
    lane->operations++;
    errno = 0;
    unsigned char *base = realloc(before.base, bytes);
    if (base == NULL) {
        check_refusal(lane, bytes);
        oracle_claim(block);
        oracle_verify(block, block->stamped_bytes, "after a refused realloc");
        return;
    }
    count_live(0, before.requested_bytes);
    size_t kept = bytes < before.requested_bytes ? bytes : before.requested_bytes;
    *block = (struct block){ .base = base, .requested_bytes = bytes, .kind = KIND_C };
    block->usable_bytes = malloc_usable_size(base);
    if (sabotage_now(lane, SABOTAGE_FORGET) && kept > 0) base[kept - 1] ^= 1;
    struct block moved = *block;
    moved.stamp = before.stamp;
    oracle_verify(&moved, kept, "after realloc");
    admit(lane, block);
}

static void look(struct lane *lane)
{
    if (lane->count == 0) return;
    const struct block *block = &lane->blocks[random_below(&lane->random, lane->count)];
    whereabouts.action = "looking";
    lane->operations++;
    size_t usable = malloc_usable_size(block->base);
    if (usable != block->usable_bytes)
        violation("the usable size of %p changed from %zu to %zu", (void *)block->base,
                  block->usable_bytes, usable);
    if (sabotage_now(lane, SABOTAGE_SCRIBBLE) && block->requested_bytes > 0) block->base[0] ^= 0x80;
    oracle_verify(block, block->stamped_bytes, "while live");
}

static void lock_box(struct box *box)
{
    while (atomic_flag_test_and_set_explicit(&box->lock, memory_order_acquire)) sched_yield();
}

static void unlock_box(struct box *box)
{
    atomic_flag_clear_explicit(&box->lock, memory_order_release);
}

static void hand_over(struct lane *lane)
{
    if (world.lane_count == 1) return;
    unsigned steps = 1 + random_below(&lane->random, world.lane_count - 1);
    struct box *box = &world.lanes[(lane->index + steps) % world.lane_count].box;
    unsigned wanted = 1 + random_below(&lane->random, HANDOVER_MAX);

    lock_box(box);
    while (wanted-- > 0 && lane->count > 0 && box->count < BOX_BLOCKS_MAX)
        box->blocks[box->count++] = remove_block(lane);
    unlock_box(box);
}

/* Two of three blocks that arrive are freed at once, the others are kept. */
static void receive(struct lane *lane)
{
    struct block arrived[BOX_BLOCKS_MAX];
    lock_box(&lane->box);
    unsigned count = lane->box.count;
    memcpy(arrived, lane->box.blocks, count * sizeof *arrived);
    lane->box.count = 0;
    unlock_box(&lane->box);

    for (unsigned i = 0; i < count; i++) {
        bool keep = random_below(&lane->random, 3) == 0 && lane->count < LANE_BLOCKS_MAX;
        if (keep) lane->blocks[lane->count++] = arrived[i];
        else discharge(lane, &arrived[i]);
    }
}

static void expect_refusal(const void *block, const char *what)
{
    if (block != NULL) violation("%s answered %p", what, block);
    if (errno != ENOMEM) violation("%s was refused with errno %d", what, errno);
    errno = 0;
}

/* Requests that must be refused, and calls that must do nothing. */
static void odd_requests(struct lane *lane)
{
    volatile size_t absurd = (size_t)-1 - random_below(&lane->random, 1 << 20);
    whereabouts.action = "an absurd request";
    lane->operations += 6;
    errno = 0;
    expect_refusal(malloc(absurd), "malloc of an absurd size");
    expect_refusal(calloc(absurd / 8, 9), "calloc whose product overflows");
    expect_refusal(memalign(4096, absurd), "memalign of an absurd size");
    if (lane->count > 0 && lane->blocks[0].kind & (KIND_C | KIND_C_ALIGNED | KIND_C_PAGES)) {
        expect_refusal(realloc(lane->blocks[0].base, absurd), "realloc to an absurd size");
        oracle_verify(&lane->blocks[0], lane->blocks[0].stamped_bytes, "after an absurd realloc");
    }
    free(NULL);
    if (malloc_usable_size(NULL) != 0) violation("malloc_usable_size(NULL) is not 0");
}

static void release_all(struct lane *lane)
{
    while (lane->count > 0) release_one(lane);
}

static void begin_phase(struct lane *lane)
{
    static const unsigned char grow[] = { 20, 35, 45, 50, 50, 55, 65, 80, 95 };
    struct phase *phase = &lane->phase;
    phase->sizes = (enum size_habit)random_below(&lane->random, SIZES_LARGE + 1);
    phase->frees = (enum free_habit)random_below(&lane->random, FREE_NEWEST + 1);
    phase->grow_percent = grow[random_below(&lane->random, sizeof grow)];
    phase->one_size_bytes = random_log_bytes(&lane->random, 1, 16384);
    bool heavy = phase->sizes >= SIZES_MEDIUM;
    phase->steps_left = random_log_bytes(&lane->random, 16, heavy ? 1024 : 32768);
    if (random_below(&lane->random, 16) == 0) release_all(lane);
}

void lane_open(struct lane *lane, unsigned index)
{
    lane->index = index;
    lane->random = world.seed * 2862933555777941757ull + 3037000493ull * (index + 1);
    for (unsigned i = 0; i < 8; i++) random_next(&lane->random);
    lane->blocks = oracle_memory(LANE_BLOCKS_MAX * sizeof *lane->blocks);
    atomic_flag_clear(&lane->box.lock);
}

void lane_step(struct lane *lane)
{
    whereabouts = (struct whereabouts){ .lane = lane->index, .step = lane->step };
    if (lane->phase.steps_left == 0) begin_phase(lane);
    lane->phase.steps_left--;

    unsigned choice = random_below(&lane->random, 1000);
    if (choice < 700) {
        bool grow = random_below(&lane->random, 100) < lane->phase.grow_percent;
        if (grow && !no_room(lane, 0)) allocate(lane);
        else release_one(lane);
    } else if (choice < 830) {
        resize(lane);
    } else if (choice < 860) {
        hand_over(lane);
    } else if (choice < 900) {
        if (world.lane_count > 1) receive(lane);
    } else if (choice < 998) {
        look(lane);
    } else {
        odd_requests(lane);
    }
    lane->step++;
}

void lane_close(struct lane *lane)
{
    whereabouts = (struct whereabouts){ .lane = lane->index, .step = lane->step };
    release_all(lane);
    receive(lane);
    release_all(lane);
}
