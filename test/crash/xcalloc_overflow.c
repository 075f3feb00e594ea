/* expect: abort whole "prairie: xcalloc: count times size overflows" */
/* xcalloc_overflow.c - no callback could help a product that does not fit: nobody is told. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <prairie/reserve.h>

extern __typeof__(xcalloc) xcalloc __attribute__((weak));
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
    xcalloc((size_t)hidden((void *)(SIZE_MAX / 2)), 3);
    missed();
}
