/* expect: abort whole "prairie: out of memory in xmalloc, xcalloc, xrealloc or xmemalign" */
/* xmalloc_out_of_memory.c - CRIT, FAIL, one line, the end; callbacks that do not help change
 * nothing. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <prairie/reserve.h>

extern __typeof__(xmalloc) xmalloc __attribute__((weak));
extern __typeof__(limit_hard_set) limit_hard_set __attribute__((weak));
extern __typeof__(reserve_cb_register) reserve_cb_register __attribute__((weak));

static int crit, fail;

static void hear(void *unused, reserve_cnd_t condition, size_t size)
{
    (void)unused;
    must(size == 1 << 20);
    if (condition == RESERVE_CND_CRIT) crit++;
    if (condition == RESERVE_CND_FAIL && ++fail == 2) must(crit == 2);
}

static void must_have_failed(int signal)
{
    (void)signal;
    if (fail != 2) _exit(8);
}

int main(void)
{
    require_prairie();
    must(!reserve_cb_register(hear, NULL) && !reserve_cb_register(hear, &crit));
    signal(SIGABRT, must_have_failed);
    limit_hard_set(1 << 10);
    while (true) {
        void *block = malloc(1 << 20);
        if (block == NULL) break;
    }
    crit = fail = 0;
    xmalloc(1 << 20);
    missed();
}
