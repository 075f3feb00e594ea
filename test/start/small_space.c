/* small_space.c - a program that starts under a small limit of address space (ulimit -v) or
 * data (ulimit -d). */
/* SPDX-License-Identifier: MIT */
/* usage: small_space as|data MIB: sets the limit and starts itself again under it. */
#include "limits.h"

enum { MIB = 1 << 20 };

int main(int argc, char **argv)
{
    require_prairie();
    if (argc == 3) {
        size_t limit_bytes = strtoul(argv[2], NULL, 10) * MIB;
        char text[32];
        snprintf(text, sizeof text, "%s%s", strcmp(argv[1], "as") == 0 ? "a" : "d", argv[2]);
        limit(strcmp(argv[1], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA, limit_bytes);
        start_again(argv, text);
    }
    must(argc == 2);
    size_t limit_bytes = strtoul(argv[1] + 1, NULL, 10) * MIB;
    /* The default stack of 8 MiB would not leave room for two threads; the C library keeps
     * these for later. */
    pthread_attr_t attributes;
    must(pthread_attr_init(&attributes) == 0
         && pthread_attr_setstacksize(&attributes, 128 * 1024) == 0);
    must(pthread_setattr_default_np(&attributes) == 0);
    use_heap_once(1);
    if (limit_bytes >= 64 * MIB) use_heap_in_threads(2, 2);
    /* The program, the libraries and stacks take their part; the rest is for the heap. */
    size_t mapped = (size_t)status_kb("VmSize:") * 1024;
    printf("limit %zu MiB, mapped at the start %zu MiB\n", limit_bytes / MIB, mapped / MIB);
    fill_and_refill(limit_bytes / 2, limit_bytes);
    use_heap_once(2);
    if (limit_bytes >= 64 * MIB) use_heap_in_threads(2, 2);
    walk_heap();
    return 0;
}
