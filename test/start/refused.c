/* refused.c - system calls that a sandbox refuses: prairie starts without them and goes on
 * without them. */
/* SPDX-License-Identifier: MIT */
/*
 * usage: refused exec CALL=ERROR...    refuse the calls, then start this program anew under the
 * filter
 *        refused now CALL=ERROR...     refuse them in the middle of the run
 *        refused soon CALL=ERROR...    refuse them when the heap is still small
 *
 * The error KILL: the call ends the process. PRAIRIE_CONF has the options without which it is made.
 *
 * A seccomp filter cannot be taken off again, which is why each combination is a process of its
 * own. rseq can only be refused from the start: the C library ends a process whose threads differ
 * in it.
 */
#include "limits.h"
#include "../blackbox/filter.h"

#include <linux/audit.h>
#include <sys/syscall.h>

static const struct {
    const char *name;
    int number;
} calls[] = {
    { "rseq", SYS_rseq },
    { "getrandom", SYS_getrandom },
    { "membarrier", SYS_membarrier },
    { "openat", SYS_openat },
    { "madvise", SYS_madvise },
    { "mremap", SYS_mremap },
    { "munmap", SYS_munmap },
    { "mprotect", SYS_mprotect },
    { "getcpu", SYS_getcpu },
    { "prctl", SYS_prctl },
    { "sched_getaffinity", SYS_sched_getaffinity },
    { "clone3", SYS_clone3 },
    { "timer_create", SYS_timer_create },
    { "set_robust_list", SYS_set_robust_list },
    { "sysinfo", SYS_sysinfo },
    { "prlimit64", SYS_prlimit64 },
    { "rt_sigaction", SYS_rt_sigaction },
    { "gettid", SYS_gettid },
    { "capget", SYS_capget },
};

static const struct {
    const char *name;
    int number;
} errors[] = {
    { "ENOSYS", ENOSYS }, { "EPERM", EPERM },   { "ENOENT", ENOENT }, { "ENOMEM", ENOMEM },
    { "EAGAIN", EAGAIN }, { "EINVAL", EINVAL }, { "EACCES", EACCES },
};

static int number_of(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strlen(calls[i].name) == length && strncmp(calls[i].name, name, length) == 0)
            return calls[i].number;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strlen(errors[i].name) == length && strncmp(errors[i].name, name, length) == 0)
            return errors[i].number;
    give_up("unknown name: %s", name);
}

static unsigned answer_for(const char *error)
{
    if (strcmp(error, "KILL") == 0) return SECCOMP_RET_KILL_PROCESS;
    return SECCOMP_RET_ERRNO | (unsigned)number_of(error, strlen(error));
}

/* Three fixed instructions load the call's number; two for each refused call; one allows the
 * rest. */
static void refuse(char **words, int count)
{
    struct sock_filter program[64];
    unsigned short length = 0;
    program[length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(words[i], '=');
        must(equals != NULL && length < 60);
        unsigned call = (unsigned)number_of(words[i], (size_t)(equals - words[i]));
        unsigned answer = answer_for(equals + 1);
        program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
        program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter_calls(program, length);
}

/* A refusal may cost memory, never correctness: blocks are whole, and requests are served or
 * refused. */
static void live(void)
{
    use_heap_once(1);
    use_heap_in_threads(4, 10);
    for (int round = 0; round < 3; round++) {
        struct fill fill = { NULL, 0, 0 };
        for (size_t bytes = 64; fill.bytes < (size_t)48 << 20; bytes = bytes % 90000 + 997) {
            void **block = malloc(bytes);
            must(block != NULL);
            memset(block, 0xa5, bytes);
            *block = fill.first;
            fill.first = block;
            fill.bytes += bytes;
        }
        empty_heap(fill);
        unsigned char *zeroed = calloc(1, 5 << 20);
        must(zeroed != NULL);
        for (size_t at = 0; at < 5 << 20; at += 512) must(zeroed[at] == 0);
        zeroed = realloc(zeroed, 20 << 20);
        must(zeroed != NULL && zeroed[(5 << 20) - 1] == 0);
        free(zeroed);
    }
    use_heap_in_threads(4, 10);
    walk_heap();
}

int main(int argc, char **argv)
{
    require_prairie();
    if (argc >= 3 && strcmp(argv[1], "exec") == 0) {
        refuse(argv + 2, argc - 2);
        start_again(argv, "live");
    }
    if (argc >= 3 && strcmp(argv[1], "now") == 0) {
        live();
        refuse(argv + 2, argc - 2);
    }
    if (argc >= 3 && strcmp(argv[1], "soon") == 0) {
        use_heap_in_threads(1, 1);
        refuse(argv + 2, argc - 2);
    }
    must(argc >= 2);
    double start_ms = now_ms();
    live();
    printf("refused: lived on for %.0f ms\n", now_ms() - start_ms);
    return 0;
}
