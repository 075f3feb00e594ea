/* shims_main.c - functions that programs and tools put before the C library's, and that allocate,
 * are never asked by the heap: not at its start, not while it grows, not while it gives memory
 * back. */
/* SPDX-License-Identifier: MIT */
/* usage: shims_main LIBRARY: starts itself again with the library of shims.c loaded before
 * prairie. */
#include "limits.h"
#include "shims.h"

#include <sys/wait.h>

extern struct shim_calls shim_calls __attribute__((weak));

static int called(const char *name)
{
    int count = 0;
    for (int i = 0; i < shim_calls.count && i < SHIM_CALLERS_MAX; i++)
        count += strcmp(shim_calls.name[i], name) == 0;
    return count;
}

/* Memory that comes, goes back, moves, is looked at and is told of. */
static void live(void)
{
    use_heap_once(1);
    use_heap_in_threads(4, 5);
    char *large = malloc(100 << 20);
    must(large != NULL);
    memset(large, 1, 100 << 20);
    large = realloc(large, 150 << 20);
    must(large != NULL && large[100] == 1);
    free(large);
    int (*trim)(size_t) = (int (*)(size_t))dlsym(RTLD_DEFAULT, "malloc_trim");
    must(trim != NULL);
    (void)trim(0);
    pid_t child = fork();
    int status = 1;
    if (child == 0) {
        use_heap_once(2);
        _exit(0);
    }
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    walk_heap();
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "shimmed") != 0) {
        char text[8192];
        int length = snprintf(text, sizeof text, "%s:%s", argv[1], getenv("PRAIRIE_LIBRARY"));
        must(length > 0 && length < (int)sizeof text && setenv("LD_PRELOAD", text, 1) == 0);
        start_again(argv, "shimmed");
    }
    must(&shim_calls != NULL);
    require_prairie();
    live();
    /* The shims are in use: by this program, at the least. */
    must(close(open("/dev/null", O_RDONLY)) == 0 && now_ms() > 0 && getenv("LD_PRELOAD") != NULL);
    must(called("open") > 0 && called("close") > 0 && called("clock_gettime") > 0
         && called("getenv") > 0);
    must(shim_calls.count <= SHIM_CALLERS_MAX);
    for (int i = 0; i < shim_calls.count; i++)
        if (lies_in_prairie(shim_calls.caller[i]))
            give_up("prairie called %s, which may be anybody's", shim_calls.name[i]);
    printf("shims: %d calls, none of prairie's\n", shim_calls.count);
    return 0;
}
