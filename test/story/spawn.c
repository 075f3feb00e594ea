/* spawn.c - vfork, posix_spawn, system and popen beside threads that allocate. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

extern char **environ;
static atomic_bool stop;

static void *allocate(void *unused)
{
    while (!stop) use_heap_once(5);
    return unused;
}

static void expect_success(pid_t pid)
{
    int status = 1;
    must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void spawn_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    expect_success(pid);
}

/* A vfork child that cannot start anything leaves its parent's memory as it was. */
static void spawn_vfork_in_vain(void)
{
    int status = 0;
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/no/such/program", "program", (char *)NULL);
        _exit(7);
    }
    must(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)
         && WEXITSTATUS(status) == 7);
}

static void spawn_posix(void)
{
    char *words[] = { (char *)(uintptr_t) "true", NULL };
    pid_t pid;
    must(posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ) == 0);
    expect_success(pid);
}

static void spawn_shell(void)
{
    must(system("exit 3") == 3 << 8);
    char line[64] = "";
    FILE *stream = popen("echo words", "r");
    must(stream != NULL && fgets(line, sizeof line, stream) != NULL && pclose(stream) == 0);
    must(strcmp(line, "words\n") == 0);
}

int main(void)
{
    require_prairie();
    pthread_t thread[2];
    long rounds = scaled(60);
    for (int i = 0; i < 2; i++) must(pthread_create(&thread[i], NULL, allocate, NULL) == 0);
    for (long i = 0; i < rounds; i++) {
        spawn_vfork();
        spawn_vfork_in_vain();
        spawn_posix();
        if (i % 4 == 0) spawn_shell();
        use_heap_once((size_t)i);
    }
    stop = true;
    for (int i = 0; i < 2; i++) must(pthread_join(thread[i], NULL) == 0);
    walk_heap();
    printf("spawn: %ld rounds of vfork, posix_spawn, system and popen\n", rounds);
    return 0;
}
