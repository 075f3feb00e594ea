/* posix.c - what POSIX gives, the same above every kernel, the unit tests' too.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

#include <errno.h>
#include <pthread.h>

int os_cancel_forbid(void)
{
    int state = PTHREAD_CANCEL_ENABLE;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

void os_cancel_restore(int state) { (void)pthread_setcancelstate(state, NULL); }

int os_errno(void) { return errno; }
void os_errno_restore(int error) { errno = error; }
