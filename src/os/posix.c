/* posix.c - what POSIX gives, the same above every kernel, the unit tests' too.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

#include <errno.h>
#include <pthread.h>

struct os_interlude os_interlude_begins(void)
{
    struct os_interlude before = { errno, PTHREAD_CANCEL_ENABLE };

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.cancel);
    return before;
}

void os_interlude_ends(struct os_interlude before)
{
    (void)pthread_setcancelstate(before.cancel, NULL);
    errno = before.error;
}
