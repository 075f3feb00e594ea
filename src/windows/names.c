/* names.c - what a program that is linked with prairie calls by the C library's names, and what
 * happens before its main.
 *
 * Those names lead here straight away; everybody else in the process is served by their import
 * tables, as those names would be (imports.c).
 * SPDX-License-Identifier: MIT
 */
#include "names.h"

#include "imports.h"

#include "../control/conf.h"
#include "../heap/doors.h"

void *malloc(size_t size) ALIAS_OF(prairie_malloc);
void *calloc(size_t count, size_t size) ALIAS_OF(prairie_calloc);
void *realloc(void *block, size_t size) ALIAS_OF(prairie_realloc);
void free(void *block) ALIAS_OF(prairie_free);

/* The library's entry and the program's constructor may both come here, one after the other. */
void windows_start(void)
{
    static bool started;

    if (started) return;
    started = true;
    conf_start();
    imports_take_over();
}

__attribute__((constructor)) static void prepare_process(void) { windows_start(); }
