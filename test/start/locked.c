/* locked.c - all memory is locked (mlockall): giving back to the kernel fails, everything else
 * works. */
/* SPDX-License-Identifier: MIT */
#include "limits.h"

#include <malloc.h>
#include <sys/mman.h>

int main(void)
{
    require_prairie();
    use_heap_once(1);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        skip_test("memory cannot be locked here (errno %d)", errno);
    long locked_kb = resident_kb();
    /* Locking must not have filled reserved address space with pages. */
    must(locked_kb < 200 * 1024);
    use_heap_in_threads(4, 10);
    for (int round = 0; round < 3; round++) {
        unsigned char *dirty = malloc(30 << 20);
        must(dirty != NULL);
        memset(dirty, 0xa5, 30 << 20);
        free(dirty);
        malloc_trim(0);
        unsigned char *zeroed = calloc(1, 30 << 20);
        must(zeroed != NULL);
        for (size_t at = 0; at < 30 << 20; at += 64) must(zeroed[at] == 0);
        free(zeroed);
    }
    walk_heap();
    printf("locked: %ld KiB, then %ld KiB resident\n", locked_kb, resident_kb());
    return 0;
}
