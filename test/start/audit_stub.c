/* audit_stub.c - the smallest LD_AUDIT library: it watches every object and every binding, and
 * changes nothing. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>

/* Uses the heap of its own namespace, which is not prairie's. */
static void *kept;

unsigned la_version(unsigned version)
{
    free(kept);
    kept = malloc(100);
    return version;
}

unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    (void)map, (void)namespace, (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to,
                       unsigned *flags, const char *name)
{
    (void)index, (void)from, (void)to, (void)flags, (void)name;
    void *block = malloc(40);
    free(block);
    return symbol->st_value;
}
