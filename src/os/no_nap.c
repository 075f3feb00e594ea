/* no_nap.c - where nobody tells of another thread what it does: none sleeps.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

bool os_naps_are_told(void) { return false; }

bool os_nap_begin(struct os_nap *nap, uint32_t thread, const void *word)
{
    (void)nap;
    (void)thread;
    (void)word;
    return false;
}

bool os_nap_lasts(const struct os_nap *nap, struct os_range range)
{
    (void)nap;
    (void)range;
    return false;
}

void os_nap_end(struct os_nap *nap) { (void)nap; }
