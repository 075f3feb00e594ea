/* overcommit.c - a program whose kernel promises no memory that it has not got. */
/* SPDX-License-Identifier: MIT */
/* Started with vm.overcommit_memory=2; reserved address space is no promise, opened memory is. */
#include "../start/limits.h"

#include <sys/wait.h>

enum { KIB = 1024 };

/* A number of /proc/meminfo, in bytes. */
static size_t meminfo(const char *label)
{
    char text[4096] = { 0 };
    int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    const char *at;

    must(file >= 0 && read(file, text, sizeof text - 1) > 0);
    close(file);
    at = strstr(text, label);
    must(at != NULL);
    return strtoul(at + strlen(label), NULL, 10) * KIB;
}

static size_t left_bytes(void) { return meminfo("CommitLimit:") - meminfo("Committed_AS:"); }

/* Of the same, while the heap is empty: what it has opened stays promised. */
static size_t left_at_start;

static bool is_strict(void)
{
    char mode = 0;
    int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);

    must(file >= 0 && read(file, &mode, 1) == 1);
    close(file);
    return mode == '2';
}

/* A child needs as much again, should it write; refused or not, both go on. */
static void fork_and_use(void)
{
    int status = 0;
    pid_t child = fork();

    if (child < 0) {
        must(errno == ENOMEM);
        return;
    }
    if (child == 0) {
        use_heap_once(5);
        walk_heap();
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    require_prairie();
    if (!is_strict()) skip_test("vm.overcommit_memory is not 2");
    left_at_start = left_bytes();
    use_heap_once(1);
    use_heap_in_threads(2, 3);
    fork_and_use();
    printf("overcommit: %zu MiB were left, %zu are\n", left_at_start >> 20, left_bytes() >> 20);
    fill_and_refill(left_at_start / 3, left_at_start + left_at_start / 8);
    /* Full, and then empty: a child and threads can have what was freed. */
    struct fill fill = fill_heap(5000, left_at_start + left_at_start / 8);
    fork_and_use();
    empty_heap(fill);
    use_heap_in_threads(2, 3);
    fork_and_use();
    use_heap_once(2);
    walk_heap();
    return 0;
}
