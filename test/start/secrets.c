/* secrets.c - what a hardened process writes behind its blocks is another word in each process,
 * also where the kernel gives no random numbers. */
/* SPDX-License-Identifier: MIT */
/* usage: secrets            starts itself many times
 *        secrets refused    the same without getrandom */
#include "../blackbox/filter.h"
#include "../blackbox/blackbox.h"

#include <linux/audit.h>
#include <spawn.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PROCESSES = 60, BYTES = 20, BEHIND = 12 };

extern char **environ;

static void refuse_getrandom(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter_calls(program, sizeof program / sizeof program[0]);
}

/* What lies behind a block, up to the class's end: eleven bytes of canary or of mark, and a zero
 * between. */
static int tell(void)
{
    volatile unsigned char *block = malloc(BYTES);
    must(block != NULL);
    printf("%p ", (void *)(uintptr_t)block);
    for (int i = 0; i < BEHIND; i++) printf("%02x", block[BYTES + i]);
    printf("\n");
    free((void *)(uintptr_t)block);
    return 0;
}

struct told {
    char address[20], bytes[2 * BEHIND + 1];
};

static struct told ask(char **words)
{
    int ends[2], status = 1;
    char line[200] = { 0 };
    struct told told;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    must(pipe(ends) == 0 && posix_spawn_file_actions_init(&actions) == 0);
    must(posix_spawn_file_actions_adddup2(&actions, ends[1], 1) == 0);
    must(posix_spawn_file_actions_addclose(&actions, ends[0]) == 0);
    must(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, words, environ) == 0);
    must(posix_spawn_file_actions_destroy(&actions) == 0);
    must(close(ends[1]) == 0);
    ssize_t length = 0, got;
    while ((got = read(ends[0], line + length, sizeof line - 1 - (size_t)length)) > 0)
        length += got;
    must(close(ends[0]) == 0 && waitpid(pid, &status, 0) == pid && status == 0);
    must(sscanf(line, "%19s %24s", told.address, told.bytes) == 2);
    return told;
}

/* How many different words there are. */
static int different(struct told *told, bool of_one_place)
{
    int count = 0;
    for (int i = 0; i < PROCESSES; i++) {
        bool is_new = true;
        if (of_one_place && strcmp(told[i].address, told[0].address) != 0) continue;
        for (int k = 0; k < i && is_new; k++)
            is_new = strcmp(told[i].bytes, told[k].bytes) != 0
                  || (of_one_place && strcmp(told[k].address, told[0].address) != 0);
        count += is_new;
    }
    return count;
}

int main(int argc, char **argv)
{
    require_prairie();
    if (argc == 2 && strcmp(argv[1], "tell") == 0) return tell();
    if (argc == 2 && strcmp(argv[1], "refused") == 0) refuse_getrandom();
    /* Addresses are no secret: they are the same in all. */
    if (personality(ADDR_NO_RANDOMIZE) == -1) skip_test("addresses are always at random here");
    char *words[] = { argv[0], (char *)(uintptr_t) "tell", NULL };
    struct told told[PROCESSES];
    int same_place = 0;
    for (int i = 0; i < PROCESSES; i++) {
        told[i] = ask(words);
        same_place += strcmp(told[i].address, told[0].address) == 0;
    }
    int words_seen = different(told, false), at_one_place = different(told, true);
    printf("secrets: %d processes, %d words behind a block; of %d blocks at %s %d words\n",
           PROCESSES, words_seen, same_place, told[0].address, at_one_place);
    must(words_seen > PROCESSES * 9 / 10);
    must(same_place > 1 && at_one_place > same_place * 9 / 10);
    return 0;
}
