/* came_first.c - a library's thread has a block before a process is to be hardened: one line says
 * that it is not, and it goes on as any other. */
/* SPDX-License-Identifier: MIT */
/* usage: came_first         starts itself, and reads what that says
 *        came_first tell    takes and gives blocks of 20 bytes, which end where their class does */
#include "../blackbox/blackbox.h"

#include <malloc.h>
#include <spawn.h>
#include <sys/wait.h>

enum { BYTES = 20, BLOCKS = 1000 };

extern char **environ;
extern void came_first_end(void);

static int tell(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        char *block = malloc(BYTES);
        must(block != NULL && malloc_usable_size(block) > BYTES);
        memset(block, 1, malloc_usable_size(block));
        free(block);
    }
    came_first_end();
    return 0;
}

static void read_all(int file, char *text, size_t room_bytes)
{
    size_t length = 0;
    ssize_t got;
    while ((got = read(file, text + length, room_bytes - 1 - length)) > 0) length += (size_t)got;
    text[length] = '\0';
}

int main(int argc, char **argv)
{
    require_prairie();
    if (argc == 2) return tell();
    char *words[] = { argv[0], (char *)(uintptr_t) "tell", NULL };
    char text[1000];
    int ends[2], status = 1;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    must(pipe(ends) == 0 && posix_spawn_file_actions_init(&actions) == 0);
    must(posix_spawn_file_actions_adddup2(&actions, ends[1], 2) == 0);
    must(posix_spawn_file_actions_addclose(&actions, ends[0]) == 0);
    must(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, words, environ) == 0);
    must(posix_spawn_file_actions_destroy(&actions) == 0 && close(ends[1]) == 0);
    read_all(ends[0], text, sizeof text);
    must(waitpid(pid, &status, 0) == pid && status == 0);
    if (strcmp(text,
               "prairie: hardened:true, but nothing is: another thread came first, or there is "
               "no memory\n")
        != 0)
        give_up("came_first: it said \"%s\"", text);
    puts("came_first: one line said so, and it went on");
    came_first_end();
    return 0;
}
