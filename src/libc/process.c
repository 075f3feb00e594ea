/* process.c - before main and after it.
 * SPDX-License-Identifier: MIT
 */
#include "../heap/doors.h"
#include "../heap/hardened.h"
#include "../heap/heap.h"
#include "../heap/shortage.h"
#include "../space/sealed.h"

#include "../control/conf.h"

/* Before main, when the environment is there: the options, what they ask for, and our place among
 * the program's fork handlers. */
__attribute__((constructor)) static void prepare_process(void)
{
    bool started;

    conf_read();
    started = heap_attach() != NULL; /* registers for fork before main does */
    shortage_apply_options();
    if (hardening.is_on && started) sealed_begin();
}

/* After main, exit handlers and the destructors of whoever was loaded after us. */
__attribute__((destructor)) static void end_process(void) { misuse_check_end(); }
