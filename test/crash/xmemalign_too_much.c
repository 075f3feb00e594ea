/* expect: abort whole "prairie: xmemalign: no alignment is as large as that" */
/* xmemalign_too_much.c - no callback could help with such an alignment: nobody is told. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <prairie/reserve.h>

extern __typeof__(xmemalign) xmemalign __attribute__((weak));
extern __typeof__(reserve_cb_register) reserve_cb_register __attribute__((weak));

static void hear(void *unused, reserve_cnd_t condition, size_t size)
{
    (void)unused, (void)condition, (void)size;
    _exit(8);
}

int main(void)
{
    require_prairie();
    must(!reserve_cb_register(hear, NULL));
    xmemalign((size_t)hidden((void *)(SIZE_MAX / 2 + 2)), 3);
    missed();
}
