/* no_fault.c - where faults are not watched: guarded blocks are not given out there.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

uint32_t os_thread_id(void) { return 0; }

bool os_watch_faults(bool (*watcher)(const struct os_fault *fault))
{
    (void)watcher;
    return false;
}
