/* jemalloc_header_test.c - the usual header: names with je_ where they are asked for, and not
 * otherwise; and the macros that programs use in declarations of their own. */
/* SPDX-License-Identifier: MIT */
#ifdef KEEP_JE_NAMES
#define JEMALLOC_NO_DEMANGLE
#endif
#include "../blackbox/blackbox.h"

#include <jemalloc/jemalloc.h>

#ifdef KEEP_JE_NAMES
#define NAME(name) je_##name
#else
#if defined(je_malloc) || defined(je_mallctl) || defined(je_malloc_conf) || defined(je_free_sized)
#error "names with je_ are the program's own"
#endif
/* So it may have some. */
static int je_malloc(void) { return 3; }
#define NAME(name) name
#endif

#if !defined(JEMALLOC_ALIGNED) || !defined(JEMALLOC_ALLOC_SIZE) || !defined(JEMALLOC_ALLOC_SIZE2) \
    || !defined(JEMALLOC_FORMAT_ARG) || !defined(JEMALLOC_FALLTHROUGH)                            \
    || !defined(JEMALLOC_SECTION) || !defined(JEMALLOC_RESTRICT_RETURN)                           \
    || !defined(JEMALLOC_ALLOCATOR) || !defined(JEMALLOC_SYS_NOTHROW)                             \
    || !defined(JEMALLOC_CXX_THROW) || !defined(JEMALLOC_USABLE_SIZE_CONST)                       \
    || !defined(JEMALLOC_WARN_ON_USAGE) || !defined(JEMALLOC_OVERRIDE_MEMALIGN)                   \
    || !defined(JEMALLOC_OVERRIDE_VALLOC) || !defined(JEMALLOC_USE_CXX_THROW)                     \
    || !defined(JEMALLOC_HAVE_ATTR)
#error "a macro of jemalloc's header is missing"
#endif

/* An alignment in the way that jemalloc's users write it, in front and behind. */
struct JEMALLOC_ALIGNED(64) line {
    char bytes[3];
};
JEMALLOC_EXPORT JEMALLOC_ALLOCATOR JEMALLOC_RESTRICT_RETURN void JEMALLOC_NOTHROW *my_take(size_t)
    JEMALLOC_ATTR(malloc) JEMALLOC_ALLOC_SIZE(1);
void *my_take(size_t size) { return NAME(mallocx)(size, 0); }

int main(void)
{
    size_t bytes = 0, length = sizeof bytes;
    void *block = my_take(100);

    must(sizeof(struct line) == 64 && (1 << LG_SIZEOF_PTR) == sizeof(void *));
    must(ffs(8) == 4); /* of strings.h, which jemalloc's header brings along */
    must(NAME(sallocx)(block, 0) == NAME(nallocx)(100, 0));
    NAME(free_sized)(block, 100);
    must(NAME(mallctl)("arenas.page", &bytes, &length, NULL, 0) == 0 && bytes >= 4096);
#ifdef KEEP_JE_NAMES
    block = je_realloc(je_malloc(3), 5000);
    must(je_malloc_usable_size(block) >= 5000);
    je_free(block);
#else
    must(je_malloc() == 3);
#endif
    return 0;
}
