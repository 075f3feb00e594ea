/* ways.c - the tables of allocating and freeing functions, and the choice among those that exist.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ways.h"

#include "allocator.h"

#include <errno.h>

static void *take_malloc(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return malloc(bytes);
}

static void *take_calloc(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return calloc(1, bytes);
}

/* Elements of 8 bytes where the size allows it, so that both factors matter. */
static void *take_calloc_array(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return bytes % 8 == 0 ? calloc(bytes / 8, 8) : calloc(bytes, 1);
}

static void *take_realloc(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return realloc(NULL, bytes);
}

static void *take_aligned_alloc(size_t bytes, size_t align_bytes)
{
    return aligned_alloc(align_bytes, bytes);
}

static void *take_memalign(size_t bytes, size_t align_bytes)
{
    return memalign(align_bytes, bytes);
}

static void *take_posix_memalign(size_t bytes, size_t align_bytes)
{
    void *untouched = (void *)&take_posix_memalign, *block = untouched;
    size_t least = align_bytes < sizeof(void *) ? sizeof(void *) : align_bytes;
    int error = posix_memalign(&block, least, bytes);
    if (error == 0) return block;
    if (block != untouched) violation("posix_memalign failed and changed the pointer");
    errno = error;
    return NULL;
}

static void give_free(const struct block *block) { free(block->base); }

static void *take_reallocarray(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return bytes % 4 == 0 ? reallocarray(NULL, bytes / 4, 4) : reallocarray(NULL, 1, bytes);
}

static void *take_valloc(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return valloc(bytes);
}

static void *take_pvalloc(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return pvalloc(bytes);
}

static void *take_new(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return _Znwm(bytes);
}

static void *take_new_nothrow(size_t bytes, size_t align_bytes)
{
    (void)align_bytes;
    return _ZnwmRKSt9nothrow_t(bytes, &(char){ 0 });
}

static void *take_new_aligned(size_t bytes, size_t align_bytes)
{
    return _ZnwmSt11align_val_tRKSt9nothrow_t(bytes, align_bytes, &(char){ 0 });
}

static void give_free_sized(const struct block *block)
{
    free_sized(block->base, block->requested_bytes);
}

static void give_free_aligned_sized(const struct block *block)
{
    free_aligned_sized(block->base, block->align_bytes, block->requested_bytes);
}

static void give_cfree(const struct block *block) { cfree(block->base); }

static void give_delete(const struct block *block) { _ZdlPv(block->base); }

static void give_delete_sized(const struct block *block)
{
    _ZdlPvm(block->base, block->requested_bytes);
}

static void give_delete_sized_aligned(const struct block *block)
{
    _ZdlPvmSt11align_val_t(block->base, block->requested_bytes, block->align_bytes);
}

static struct way_in ways_in[] = {
    { "malloc", 44, KIND_C, .take = take_malloc },
    { "calloc", 8, KIND_C, .zeroed = true, .take = take_calloc },
    { "calloc of an array", 6, KIND_C, .zeroed = true, .take = take_calloc_array },
    { "realloc of NULL", 6, KIND_C, .take = take_realloc },
    { "aligned_alloc", 5, KIND_C_ALIGNED, .take = take_aligned_alloc },
    { "memalign", 3, KIND_C_ALIGNED, .take = take_memalign },
    { "posix_memalign", 5, KIND_C_ALIGNED, .take = take_posix_memalign },
    { "reallocarray of NULL", 4, KIND_C, .take = take_reallocarray },
    { "valloc", 1, KIND_C_ALIGNED, .page_aligned = true, .take = take_valloc },
    { "pvalloc", 1, KIND_C_PAGES, .page_aligned = true, .never_zero_bytes = true,
      .take = take_pvalloc },
    { "operator new", 5, KIND_CXX, .take = take_new },
    { "operator new, nothrow", 4, KIND_CXX, .take = take_new_nothrow },
    { "operator new, aligned, nothrow", 4, KIND_CXX_ALIGNED, .take = take_new_aligned },
};

static struct way_out ways_out[] = {
    { "free", 20, KIND_C | KIND_C_ALIGNED | KIND_C_PAGES, give_free },
    { "free_sized", 10, KIND_C, give_free_sized },
    { "free_aligned_sized", 10, KIND_C_ALIGNED, give_free_aligned_sized },
    { "cfree", 1, KIND_C, give_cfree },
    { "operator delete", 5, KIND_CXX, give_delete },
    { "sized operator delete", 5, KIND_CXX, give_delete_sized },
    { "sized operator delete, aligned", 5, KIND_CXX_ALIGNED, give_delete_sized_aligned },
};

enum {
    WAYS_IN = sizeof ways_in / sizeof *ways_in,
    WAYS_OUT = sizeof ways_out / sizeof *ways_out,
};

/* The ways that take or give so are never chosen. */
static void leave_out(const void *take_or_give)
{
    for (unsigned i = 0; i < WAYS_IN; i++)
        if ((const void *)ways_in[i].take == take_or_give) ways_in[i].weight = 0;
    for (unsigned i = 0; i < WAYS_OUT; i++)
        if ((const void *)ways_out[i].give == take_or_give) ways_out[i].weight = 0;
}

static void leave_out_absent(const void *symbol, const void *take_or_give)
{
    if (symbol == NULL) leave_out(take_or_give);
}

void ways_start(bool refusals_allowed)
{
    leave_out_absent((const void *)free_sized, (const void *)give_free_sized);
    leave_out_absent((const void *)free_aligned_sized, (const void *)give_free_aligned_sized);
    leave_out_absent((const void *)cfree, (const void *)give_cfree);
    leave_out_absent((const void *)valloc, (const void *)take_valloc);
    leave_out_absent((const void *)pvalloc, (const void *)take_pvalloc);

    /* An operator new needs its operators delete, or its blocks could not be given back. */
    const void *deletes = _ZdlPv != NULL && _ZdlPvm != NULL ? (const void *)_Znwm : NULL;
    leave_out_absent(deletes, (const void *)take_new);
    leave_out_absent(deletes, (const void *)take_new_nothrow);
    leave_out_absent((const void *)_ZdlPvmSt11align_val_t, (const void *)take_new_aligned);
    if (refusals_allowed) leave_out((const void *)take_new); /* it throws, or aborts */
}

const struct way_in *choose_way_in(uint64_t random)
{
    unsigned total = 0, i = 0;
    for (unsigned j = 0; j < WAYS_IN; j++) total += ways_in[j].weight;
    for (uint64_t left = random % total; left >= ways_in[i].weight; i++) left -= ways_in[i].weight;
    return &ways_in[i];
}

const struct way_out *choose_way_out(uint64_t random, unsigned kind)
{
    unsigned total = 0, i = 0;
    for (unsigned j = 0; j < WAYS_OUT; j++)
        if (ways_out[j].kinds & kind) total += ways_out[j].weight;
    for (uint64_t left = random % total;; i++) {
        if (!(ways_out[i].kinds & kind)) continue;
        if (left < ways_out[i].weight) return &ways_out[i];
        left -= ways_out[i].weight;
    }
}
