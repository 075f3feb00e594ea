/* darwin_owner.c - whose a block is that is not prairie's: another zone's.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

#include <malloc/malloc.h>

/* Every zone is asked, ours first: of an address in none of its pages it says no without asking
 * here. */
bool os_other_free(void *block)
{
    malloc_zone_t *zone = malloc_zone_from_ptr(block);

    if (zone != NULL) malloc_zone_free(zone, block);
    return zone != NULL;
}

size_t os_other_bytes(const void *block)
{
    malloc_zone_t *zone = malloc_zone_from_ptr(block);

    return zone != NULL ? zone->size(zone, block) : SIZE_MAX;
}
