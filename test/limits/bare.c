/* bare.c - a program that starts where there is neither /proc nor /sys. */
/* SPDX-License-Identifier: MIT */
/* usage: bare MIB: takes both away, and starts itself again under a limit of address space; 0:
 * none. */
#include "../start/limits.h"

#include <sched.h>
#include <sys/mount.h>

enum { MIB = 1 << 20 };

/* A name space of its own, so that nobody else misses them. */
static void take_away(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        skip_test("no name space of one's own (errno %d)", errno);
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || mount("tmpfs", "/sys", "tmpfs", 0, NULL) != 0
        || mount("tmpfs", "/proc", "tmpfs", 0, NULL) != 0)
        skip_test("nothing can be mounted (errno %d)", errno);
}

/* Long enough for the background thread to look. */
static void leave_much_free(void)
{
    struct fill fill = { NULL, 0, 0 };

    for (unsigned i = 0; i < 24; i++) {
        void **block = malloc(MIB);
        must(block != NULL);
        memset(block, 1, MIB);
        *block = fill.first;
        fill.first = block;
    }
    empty_heap(fill);
    sleep_ms(700);
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    if (strncmp(argv[1], "live", 4) != 0) {
        char *words[] = { argv[0], (char *)"live-with-limit", NULL };
        size_t mib = strtoul(argv[1], NULL, 10);

        must(argv[0][0] == '/');
        take_away();
        must(access("/proc/self", F_OK) != 0 && access("/sys/kernel", F_OK) != 0);
        if (mib != 0) limit(RLIMIT_AS, mib * MIB);
        else words[1] = (char *)"live";
        execv(argv[0], words);
        give_up("execv: errno %d", errno);
    }
    use_heap_once(1);
    if (strcmp(argv[1], "live") == 0) {
        use_heap_in_threads(4, 10);
        leave_much_free();
        use_heap_in_threads(4, 3);
    } else {
        struct rlimit now;

        must(getrlimit(RLIMIT_AS, &now) == 0);
        fill_and_refill((size_t)now.rlim_cur / 2, (size_t)now.rlim_cur);
    }
    use_heap_once(2);
    walk_heap();
    return 0;
}
