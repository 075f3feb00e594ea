/* free_errno.c - errno after free is errno before, also when the kernel refuses what free asks of
 * it. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <sys/mman.h>

enum { SENTINEL = 4711, BLOCKS = 64 };

static size_t use_up_mappings(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 1 << 18, split = 0;
    unsigned char *room =
        mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(room != MAP_FAILED);
    for (size_t i = 1; i < pages; i += 2, split++)
        if (mprotect(room + i * page, page, PROT_READ) != 0) break;
    return split;
}

static void *give_block(void *block)
{
    errno = SENTINEL;
    free(block);
    must(errno == SENTINEL);
    return NULL;
}

int main(void)
{
    require_prairie();
    void *block[BLOCKS], *of_thread[BLOCKS];
    pthread_t thread;
    for (int i = 0; i < BLOCKS; i++) {
        size_t bytes = (size_t)1 << (i % 25);
        block[i] = malloc(bytes);
        of_thread[i] = malloc(bytes);
        must(block[i] != NULL && of_thread[i] != NULL);
        memset(block[i], 1, bytes);
    }
    must(pthread_create(&thread, NULL, give_block, of_thread[0]) == 0);
    must(pthread_join(thread, NULL) == 0);
    size_t split = use_up_mappings();
    if (split > 1 << 17) skip_test("this kernel allows more mappings than the test makes");
    for (int i = 0; i < BLOCKS; i++) (void)give_block(block[i]);
    for (int i = 1; i < BLOCKS; i++) (void)give_block(of_thread[i]);
    (void)give_block(NULL);
    walk_heap();
    printf("free_errno: kept, with %zu pieces of mapping used up\n", split);
    return 0;
}
