/* mappings.c - the heap when the process has used up its number of mappings (vm.max_map_count). */
/* SPDX-License-Identifier: MIT */
#include "limits.h"

#include <sys/mman.h>

/* Every other page readable, so that no two neighbours can be one mapping. */
static size_t exhaust(void)
{
    size_t count = 0;
    for (;; count++) {
        int protection = count % 2 == 0 ? PROT_NONE : PROT_READ;
        if (mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
        if (count > 3000000) skip_test("the number of mappings has no limit here");
    }
    must(errno == ENOMEM);
    return count;
}

/* Takes what there is. Blocks have to be whole; refusals have to be clean. */
static size_t use_what_there_is(size_t salt)
{
    enum { COUNT = 3000 };
    static unsigned char *block[COUNT];
    size_t served = 0;
    for (size_t i = 0; i < COUNT; i++) {
        size_t bytes = use_size(i % USE_BLOCKS);
        errno = 0;
        block[i] = malloc(bytes);
        if (block[i] == NULL) {
            must(errno == ENOMEM);
            continue;
        }
        use_block_fully(block[i], bytes, i + salt);
        served++;
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (block[i] == NULL) continue;
        must(use_block_holds(block[i], use_size(i % USE_BLOCKS), i + salt));
        free(block[i]);
    }
    return served;
}

int main(void)
{
    require_prairie();
    use_heap_once(1);
    struct fill warm = { NULL, 0, 0 };
    for (int i = 0; i < 40; i++) {
        void **block = malloc(1 << 20);
        must(block != NULL);
        memset(block, 1, 1 << 20);
        *block = warm.first;
        warm.first = block;
    }
    size_t mappings = exhaust();
    empty_heap(warm);
    size_t served = use_what_there_is(1);
    served += use_what_there_is(2);
    printf("mappings: %zu exhausted, then %zu of 6000 blocks served\n", mappings, served);
    /* What was freed before is there to be used without any new mapping. */
    must(served > 2000);
    walk_heap();
    return 0;
}
