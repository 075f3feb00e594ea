/* no_guards.c - a hardened process where the kernel has no guards for pages (before Linux 6.13). */
/* SPDX-License-Identifier: MIT */
/* usage: no_guards: refuses them, and starts itself again. */
#include "limits.h"
#include "../blackbox/filter.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { MADV_INSTALL_GUARDS = 102, MADV_REMOVE_GUARDS = 103 };
enum { LARGE = 100000, PAGE = 4096, BLOCKS = 4000, ROUNDS = 8 };
enum { MAPPINGS_MORE_MAX = 2 * 512 + 256 };

static void refuse_guards(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_INSTALL_GUARDS, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_REMOVE_GUARDS, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
    };

    filter_calls(filter, sizeof filter / sizeof filter[0]);
}

/* Does who touches it end by a fault? */
static bool is_closed(volatile char *address)
{
    int status;
    pid_t child = fork();

    must(child >= 0);
    if (child == 0) {
        *address = 1;
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static long mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    long lines = 0;
    int byte;

    must(file != NULL);
    while ((byte = fgetc(file)) != EOF) lines += byte == '\n';
    (void)fclose(file);
    return lines;
}

static void expect_guards(void)
{
    char *block = malloc(LARGE), *other;

    must(block != NULL);
    memset(block, 1, LARGE);
    must(!is_closed(block + LARGE - 1));
    must(is_closed(block + (LARGE / PAGE + 1) * PAGE));
    block = realloc(block, 3 * LARGE);
    must(block != NULL && block[LARGE - 1] == 1);
    must(is_closed(block + (3 * LARGE / PAGE + 1) * PAGE));
    memset(block, 1, 3 * LARGE);
    free(block);
    must(is_closed(block));
    other = malloc(3 * LARGE);
    must(other != NULL && other != block);
    for (size_t i = 0; i < 3 * LARGE; i++) must(other[i] == 0);
    free(other);
}

static void expect_few_mappings(void)
{
    static char *blocks[BLOCKS];
    long before = mappings(), most = 0, after = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(20000 + i % 7 * PAGE);
            must(blocks[i] != NULL && blocks[i][0] == 0 && blocks[i][19999] == 0);
            blocks[i][0] = blocks[i][19999] = 1;
        }
        if (mappings() > most) most = mappings();
        for (size_t i = 0; i < BLOCKS; i++) free(blocks[(i * 77 + round) % BLOCKS]);
        sleep_ms(50);
        if (round == 0) after = mappings();
    }
    printf("%ld mappings, then up to %ld; %ld after one round, %ld in the end\n", before, most,
           after, mappings());
    must(most > before && most <= before + MAPPINGS_MORE_MAX);
    must(mappings() < after + 100); /* they become one again */
}

int main(int argc, char **argv)
{
    char *words[] = { argv[0], (char *)"live", NULL };

    require_prairie();
    if (argc == 1) {
        refuse_guards();
        execv(argv[0], words);
        give_up("execv: errno %d", errno);
    }
    expect_guards();
    expect_few_mappings();
    use_heap_once(1);
    use_heap_in_threads(4, 3);
    walk_heap();
    return 0;
}
