/* owner.c - says which loaded object owns each malloc function, and proves that they work together.
 * SPDX-License-Identifier: MIT
 *
 * Run by dev/peers with a peer preloaded. One line for each function, `own NAME FILE`, the file
 * being the one that the loader chose; then threads allocate, resize, hand blocks to one another
 * and free them, reading back what they wrote. The last line is `ok THREADS threads BLOCKS blocks`.
 * Exit status 1 and a line on standard error say what went wrong.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 20000, SLOTS = 256 };

void *_Znwm(size_t bytes); /* operator new */
void _ZdlPv(void *block);  /* operator delete */

struct block {
    unsigned char *bytes;
    size_t size_bytes;
};

/* Blocks wait here for whichever thread comes by next, so most are freed by another thread. */
static _Atomic(struct block *) slots[SLOTS];
static atomic_size_t block_count;

static void fail(const char *what)
{
    fprintf(stderr, "owner: %s\n", what);
    exit(1);
}

static void say_owner(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    if (address == NULL || dladdr(address, &info) == 0) fail(name);
    printf("own %s %s\n", name, info.dli_fname);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static unsigned char pattern(size_t size_bytes) { return (unsigned char)(size_bytes * 7 + 1); }

static void *resized(size_t size_bytes)
{
    size_t first_bytes = size_bytes / 2 + 1;
    unsigned char *made = malloc(first_bytes);
    if (made == NULL) return NULL;
    memset(made, 0xa5, first_bytes);
    made = realloc(made, size_bytes);
    size_t kept_bytes = first_bytes < size_bytes ? first_bytes : size_bytes;
    for (size_t i = 0; made != NULL && i < kept_bytes; i++) {
        if (made[i] != 0xa5) fail("realloc lost what was in the block");
    }
    return made;
}

static void *zeroed(size_t size_bytes)
{
    unsigned char *made = calloc(1, size_bytes);
    for (size_t i = 0; made != NULL && i < size_bytes; i++) {
        if (made[i] != 0) fail("calloc is not zero");
    }
    return made;
}

static void *aligned(unsigned way, size_t align_bytes, size_t size_bytes)
{
    void *made = NULL;
    switch (way % 3) {
    case 0: made = aligned_alloc(align_bytes, size_bytes); break;
    case 1: made = memalign(align_bytes, size_bytes); break;
    default:
        if (posix_memalign(&made, align_bytes, size_bytes) != 0) made = NULL;
    }
    if ((uintptr_t)made % align_bytes != 0) {
        fprintf(stderr, "owner: %zu bytes are not aligned to %zu\n", size_bytes, align_bytes);
        exit(1);
    }
    return made;
}

static void *make_bytes(unsigned way, size_t size_bytes)
{
    void *made;
    switch (way % 6) {
    case 0: made = malloc(size_bytes); break;
    case 1: made = zeroed(size_bytes); break;
    case 2: made = resized(size_bytes); break;
    default: made = aligned(way, (size_t)16 << way / 6 % 9, size_bytes);
    }
    if (made == NULL) fail("no memory");
    if (malloc_usable_size(made) < size_bytes) fail("malloc_usable_size is less than was asked");
    return made;
}

static struct block *make_block(uint32_t *state)
{
    struct block *block = _Znwm(sizeof *block);
    unsigned way = next_random(state);
    block->size_bytes = 1 + next_random(state) % (way % 64 == 0 ? 200000 : 600);
    block->bytes = make_bytes(way, block->size_bytes);
    memset(block->bytes, pattern(block->size_bytes), block->size_bytes);
    atomic_fetch_add(&block_count, 1);
    return block;
}

static void drop_block(struct block *block)
{
    if (block == NULL) return;
    for (size_t i = 0; i < block->size_bytes; i++) {
        if (block->bytes[i] != pattern(block->size_bytes)) fail("a block changed");
    }
    free(block->bytes);
    _ZdlPv(block);
}

static void *work(void *seed)
{
    uint32_t state = (uint32_t)(uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        struct block *made = make_block(&state);
        drop_block(atomic_exchange(&slots[next_random(&state) % SLOTS], made));
    }
    return NULL;
}

int main(void)
{
    static const char *const names[] = {
        "malloc",        "free",           "calloc",   "realloc",
        "aligned_alloc", "posix_memalign", "memalign", "malloc_usable_size",
        "_Znwm",         "_ZdlPv",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) say_owner(names[i]);

    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)) != 0) fail("no thread");
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) drop_block(slots[i]);
    if (block_count != (size_t)THREADS * ROUNDS) fail("blocks are missing");
    printf("ok %d threads %zu blocks\n", THREADS, (size_t)block_count);
    return 0;
}
