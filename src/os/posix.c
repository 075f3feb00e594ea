/* posix.c - what POSIX gives, the same above every kernel, the unit tests' too.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

#include <errno.h>
#include <pthread.h>

enum { READER_WAITS_MAX = 1000 };

static bool nobody_reads; /* atomic: since something was written last, a wait was in vain */

bool os_reader_wait(unsigned *waits)
{
    if (RELAXED_LOAD(nobody_reads)) return false;
    if (++*waits >= READER_WAITS_MAX) RELAXED_STORE(nobody_reads, true);
    else os_pause(1);
    return *waits < READER_WAITS_MAX;
}

void os_reader_reads(void)
{
    if (RELAXED_LOAD(nobody_reads)) RELAXED_STORE(nobody_reads, false);
}

struct os_callout os_callout_begin(void)
{
    struct os_callout before = { errno, PTHREAD_CANCEL_ENABLE };

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.cancel);
    return before;
}

void os_callout_end(struct os_callout before)
{
    (void)pthread_setcancelstate(before.cancel, NULL);
    errno = before.error;
}
