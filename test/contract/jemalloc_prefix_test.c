/* jemalloc_prefix_test.c - the library that stands beside the C library's malloc: every name with
 * its prefix, the list of size classes of a quantum of 8, variable and file of its own. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

#include <jemalloc/jemalloc.h>

#include <malloc.h>

static size_t read_size(const char *name)
{
    size_t value = 0, length = sizeof value;
    must(je_mallctl(name, &value, &length, NULL, 0) == 0);
    return value;
}

static unsigned read_unsigned(const char *name)
{
    unsigned value = 0;
    size_t length = sizeof value;
    must(je_mallctl(name, &value, &length, NULL, 0) == 0);
    return value;
}

/* The size classes that servers compute with: steps of 8 up to 64, then four to a doubling. */
static void the_size_classes_are_the_known_ones(void)
{
    size_t wanted = 8;
    char name[64];

    must(read_size("arenas.quantum") == 8);
    must(read_unsigned("arenas.nbins") == 39);
    for (unsigned bin = 0; bin < 39; bin++) {
        snprintf(name, sizeof name, "arenas.bin.%u.size", bin);
        must(read_size(name) == wanted);
        must(je_nallocx(wanted, 0) == wanted);
        if (wanted < 64) {
            wanted += 8;
        } else {
            size_t power = 64;
            while (2 * power <= wanted) power *= 2;
            wanted += power / 4;
        }
    }
}

static void slabs_tell_how_full_they_are(void)
{
    struct {
        size_t free_blocks, blocks, bytes;
    } use[3];
    void *block[3] = { je_malloc(40), je_malloc(100000), use };
    size_t length = sizeof use;

    must(je_mallctl("experimental.utilization.batch_query", use, &length, block, sizeof block)
         == 0);
    must(use[0].blocks > 1 && use[0].free_blocks < use[0].blocks);
    must(use[0].bytes == use[0].blocks * 40);
    must(use[1].blocks == 1 && use[1].free_blocks == 0 && use[1].bytes >= 100000);
    must(use[2].blocks == 0 && use[2].bytes == 0);
    length = sizeof use[0];
    must(je_mallctl("experimental.utilization.batch_query", use, &length, block, sizeof block)
         == EINVAL);
    must(je_mallctl("experimental.utilization.batch_query", NULL, NULL, block, sizeof block)
         == EINVAL);
    must(je_get_defrag_hint(use) == 0);
    je_free(block[0]);
    je_free(block[1]);
    /* Who divides finds the size of the bin. */
    for (size_t size = 8; size <= 8192; size += 8) {
        void *one = je_malloc(size);
        length = sizeof use[0];
        must(je_mallctl("experimental.utilization.batch_query", use, &length, &one, sizeof one)
             == 0);
        must(use[0].bytes == use[0].blocks * je_malloc_usable_size(one));
        je_free(one);
    }
}

static void both_allocators_serve(void)
{
    Dl_info info;
    void *ours = je_malloc(24), *theirs = malloc(24);

    must(dladdr((void *)malloc, &info) != 0);
    must(strstr(info.dli_fname, "libc") != NULL);
    must(je_malloc_usable_size(ours) == 24);
    must(malloc_usable_size(theirs) >= 24);
    je_sdallocx(ours, 24, 0);
    free(theirs);
    ours = je_aligned_alloc(64, 100);
    must((uintptr_t)ours % 64 == 0);
    ours = je_rallocx(ours, 5000, MALLOCX_ZERO);
    je_free(ours);
}

/* Run with JE_MALLOC_CONF and MALLOC_CONF that say different things. */
static void its_own_variable_is_read(void)
{
    must(getenv("JE_MALLOC_CONF") != NULL && getenv("MALLOC_CONF") != NULL);
    must(read_unsigned("opt.narenas") == 3);
}

int main(void)
{
    the_size_classes_are_the_known_ones();
    slabs_tell_how_full_they_are();
    both_allocators_serve();
    its_own_variable_is_read();
    return 0;
}
