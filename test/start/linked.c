/* linked.c - a program that was linked with prairie, dynamically or statically, instead of
 * being preloaded. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <malloc.h>
#include <prairie/prairie.h>
#include <sys/wait.h>

int main(void)
{
    require_prairie();
    must(strcmp(prairie_version(), PRAIRIE_VERSION) == 0);
    use_heap_once(1);
    use_heap_in_threads(6, 10);

    /* Both sets of names are doors to one heap. */
    void *block = malloc(1000);
    must(block != NULL && prairie_usable_size(block) >= 1000);
    prairie_free(block);
    block = prairie_malloc(100000);
    must(block != NULL && malloc_usable_size(block) >= 100000);
    block = realloc(block, 200000);
    must(block != NULL);
    free(block);

    /* The C library's own allocations go through it too. */
    struct prairie_stats before = { .struct_bytes = sizeof before }, after = before;
    must(prairie_stats_read(&before));
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    must(stream != NULL);
    for (int i = 0; i < 100000; i++) fputs("0123456789", stream);
    fclose(stream);
    must(length == 1000000);
    must(prairie_stats_read(&after));
    must(after.allocated - before.allocated >= 1000000);
    free(text);

    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        use_heap_in_threads(2, 3);
        _exit(0);
    }
    must(waitpid(pid, &status, 0) == pid && status == 0);
    walk_heap();
    puts("linked: one heap under all names");
    return 0;
}
