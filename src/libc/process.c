/* process.c - before main and after it.
 * SPDX-License-Identifier: MIT
 */
#include "../control/conf.h"
#include "../heap/misuse.h"

/* When the environment is there. */
__attribute__((constructor)) static void prepare_process(void) { conf_start(); }

/* After main, exit handlers and the destructors of whoever was loaded after us. */
__attribute__((destructor)) static void end_process(void) { misuse_check_end(); }
