/* locked.c - memory is locked, and little of it may be (ulimit -l), by a program without rights. */
/* SPDX-License-Identifier: MIT */
/* usage: locked future KIB     what is mapped from now on is locked: KIB more are allowed
 *        locked all MIB        all is, under a limit of MIB of address space */
#include "../start/limits.h"

#include <malloc.h>
#include <sys/mman.h>

enum { KIB = 1024, MIB = 1 << 20, NOBODY = 65534, BLOCKS = 3000 };

/* Who may lock as much as it likes has no limit. */
static void become_nobody(void)
{
    if (geteuid() == 0)
        must(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

/* NULL with ENOMEM is an answer. Returns how many were served. */
static size_t use_what_there_is(size_t salt)
{
    static unsigned char *block[BLOCKS];
    size_t served = 0;

    for (size_t i = 0; i < BLOCKS; i++) {
        size_t bytes = use_size(i % USE_BLOCKS);
        errno = 0;
        block[i] = i % 2 == 0 ? malloc(bytes) : calloc(1, bytes);
        if (block[i] == NULL) {
            must(errno == ENOMEM);
            continue;
        }
        use_block_fully(block[i], bytes, i + salt);
        served++;
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (block[i] == NULL) continue;
        must(use_block_holds(block[i], use_size(i % USE_BLOCKS), i + salt));
        free(block[i]);
    }
    malloc_trim(0);
    return served;
}

/* A mapping of its own is refused; what was reserved before serves as well. */
static void ask_for_much(void)
{
    errno = 0;
    char *block = malloc((size_t)64 << 30);
    if (block == NULL) must(errno == ENOMEM);
    else block[0] = block[((size_t)64 << 30) - 1] = 1;
    free(block);
    errno = 0;
    must(malloc((size_t)100 << 40) == NULL && errno == ENOMEM);
}

static void ask_for_nothing(void)
{
    void *block[200];

    for (int i = 0; i < 200; i++) {
        block[i] = i % 2 == 0 ? malloc(0) : calloc(0, 8);
        must(block[i] != NULL);
        for (int other = 0; other < i; other++) must(block[i] != block[other]);
    }
    for (int i = 0; i < 200; i++) free(block[i]);
}

static void lock_future(size_t kib)
{
    limit(RLIMIT_MEMLOCK, kib * KIB);
    use_heap_once(1);
    become_nobody();
    if (mlockall(MCL_FUTURE) != 0) skip_test("memory cannot be locked here (errno %d)", errno);
    size_t first = use_what_there_is(1);
    ask_for_nothing();
    if (sizeof(void *) == 8) ask_for_much();
    size_t second = use_what_there_is(2);
    printf("locked: %zu, then %zu of %d blocks served\n", first, second, BLOCKS);
    must(first > BLOCKS / 3 && second >= first - first / 8);
    must(munlockall() == 0);
    use_heap_once(3);
    use_heap_in_threads(2, 3);
}

static void lock_all(size_t limit_bytes)
{
    become_nobody();
    use_heap_once(1);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        skip_test("memory cannot be locked here (errno %d)", errno);
    ask_for_nothing();
    fill_and_refill(limit_bytes / 2, limit_bytes);
    size_t first = use_what_there_is(1), second = use_what_there_is(2);
    must(first > BLOCKS / 4 && second >= first - first / 8);
    use_heap_once(2);
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc >= 2);
    if (strcmp(argv[1], "future") == 0) {
        lock_future(strtoul(argv[2], NULL, 10));
    } else if (strcmp(argv[1], "all") == 0) {
        size_t bytes = strtoul(argv[2], NULL, 10) * MIB;
        struct rlimit lock = { bytes, bytes };

        if (setrlimit(RLIMIT_MEMLOCK, &lock) != 0)
            skip_test("so much cannot be allowed (errno %d)", errno);
        limit(RLIMIT_AS, bytes);
        start_again(argv, "live");
    } else {
        struct rlimit now;

        must(getrlimit(RLIMIT_AS, &now) == 0);
        lock_all((size_t)now.rlim_cur);
    }
    walk_heap();
    return 0;
}
