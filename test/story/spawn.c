/* spawn.c - three threads use vfork, posix_spawn, system and popen beside eight that allocate. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 8, SPAWNERS = 3 };

extern char **environ;
static atomic_bool stop;
static atomic_long rounds_left;

static void *allocate(void *unused)
{
    while (!stop) {
        use_heap_once(5);
        sleep_ms(1);
    }
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

static void *keep_spawning(void *unused)
{
    long round;
    while ((round = --rounds_left) >= 0) {
        spawn_vfork();
        spawn_vfork_in_vain();
        spawn_posix();
        if (round % 4 == 0) spawn_shell();
        use_heap_once((size_t)round);
    }
    return unused;
}

int main(void)
{
    require_prairie();
    pthread_t thread[THREADS], spawner[SPAWNERS];
    long rounds = rounds_left = scaled(200);
    for (int i = 0; i < THREADS; i++) must(pthread_create(&thread[i], NULL, allocate, NULL) == 0);
    for (int i = 0; i < SPAWNERS; i++)
        must(pthread_create(&spawner[i], NULL, keep_spawning, NULL) == 0);
    for (int i = 0; i < SPAWNERS; i++) must(pthread_join(spawner[i], NULL) == 0);
    stop = true;
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    walk_heap();
    printf("spawn: %ld rounds of vfork, posix_spawn, system and popen\n", rounds);
    return 0;
}
