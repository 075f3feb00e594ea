/* libc_info.c - the C library's questions about its allocator, answered with prairie's numbers.
 *
 * Compiled with the headers of glibc only: musl has none of these functions.
 * SPDX-License-Identifier: MIT
 */
#include "../view/stats.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>

/* Not below 0: what hooks supplied is not opened, and other threads go on while all is counted. */
static size_t less(size_t a, size_t b) { return a > b ? a - b : 0; }

/* In the terms of mallinfo: the arena is everything opened, ordinary blocks are in use or free, and
 * large blocks stand in for mmapped ones. */
PUBLIC struct mallinfo2 mallinfo2(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    struct mallinfo2 info = { 0 };

    (void)prairie_stats_read(&stats); /* refuses a struct of another length only */
    info.arena = less(stats.mapped, stats.large_allocated);
    info.uordblks = less(stats.allocated, stats.large_allocated);
    info.fordblks = less(info.arena, info.uordblks);
    info.hblks = stats.large_count;
    info.hblkhd = stats.large_allocated;
    info.fsmblks = stats.cached;
    info.keepcost = stats.dirty;
    info.usmblks = stats.mapped;
    return info;
}

/* The same members in the same order, as int. */
PUBLIC struct mallinfo mallinfo(void)
{
    enum { MEMBERS = sizeof(struct mallinfo) / sizeof(int) };
    union {
        struct mallinfo2 info;
        size_t member[MEMBERS];
    } wide = { mallinfo2() };
    union {
        struct mallinfo info;
        int member[MEMBERS];
    } narrow;

    for (unsigned i = 0; i < MEMBERS; i++)
        narrow.member[i] = (int)min_size(wide.member[i], INT32_MAX);
    return narrow.info;
}

PUBLIC void malloc_stats(void) { prairie_stats_print(); }

/* `pad` bytes may stay; prairie gives back all it can. 1 when something went back. */
PUBLIC int malloc_trim(size_t pad)
{
    (void)pad;
    return prairie_purge() > 0;
}

/* All is accepted; prairie tunes itself. The C library answers 1 for parameters that it does not know,
 * too: mallopt(3) has that among its bugs, and programs may ask for what another version knows. */
PUBLIC int mallopt(int parameter, int value)
{
    (void)parameter;
    (void)value;
    return 1;
}

/* The C library's format, version 1; one heap. */
PUBLIC int malloc_info(int options, FILE *stream)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    if (options != 0) {
        errno = EINVAL;
        return -1;
    }
    (void)prairie_stats_read(&stats);
    fprintf(stream,
            "<malloc version=\"1\">\n"
            "<heap nr=\"0\">\n<sizes>\n</sizes>\n"
            "<total type=\"fast\" count=\"0\" size=\"%zu\"/>\n"
            "<total type=\"rest\" count=\"0\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n<aspace type=\"mprotect\" size=\"%zu\"/>\n"
            "</heap>\n",
            stats.cached, stats.dirty, stats.mapped, stats.mapped, stats.mapped, stats.mapped);
    fprintf(stream,
            "<total type=\"fast\" count=\"0\" size=\"%zu\"/>\n"
            "<total type=\"rest\" count=\"0\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%llu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n<aspace type=\"mprotect\" size=\"%zu\"/>\n"
            "</malloc>\n",
            stats.cached, stats.dirty, (unsigned long long)stats.large_count, stats.large_allocated,
            stats.mapped, stats.mapped, stats.mapped, stats.mapped);
    return ferror(stream) ? -1 : 0;
}
