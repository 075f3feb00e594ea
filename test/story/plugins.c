/* plugins.c - libraries that allocate are opened and closed while threads that used them live and
 * others allocate. */
/* SPDX-License-Identifier: MIT */
/* usage: plugins FILE   the library; copies of it are libraries of their own, and lie in memory */
#include "../blackbox/use.h"

#include <malloc.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { THREADS = 6, COPIES = 4, LEFT = 64, DRIFT_BYTES_MAX = 256 * 1024 };

struct plugin {
    void *handle;
    void *(*make)(size_t);
    void *(*work)(void *);
};

static struct plugin plugin[COPIES];
static char path[COPIES][64];
static pthread_barrier_t meeting;
static atomic_bool stop, all_done;

/* A thread that outlives each plugin that it has called into. */
static void *use_plugins(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    for (;;) {
        void *left[LEFT];
        pthread_barrier_wait(&meeting); /* they are open */
        if (all_done) return NULL;
        for (size_t i = 0; i < LEFT; i++)
            left[i] = plugin[i % COPIES].make(random_between(&state, 1, 20000));
        pthread_barrier_wait(&meeting); /* nobody is inside of one any more */
        use_heap_once(state % 7);
        pthread_barrier_wait(&meeting); /* they are closed */
        for (size_t i = 0; i < LEFT; i++) free(left[i]);
        pthread_barrier_wait(&meeting); /* nothing of them is left */
    }
}

static void *allocate(void *unused)
{
    while (!stop) use_heap_once(3);
    return unused;
}

/* A copy that nobody has to remove, however this process ends. */
static void copy_file(const char *from, int i)
{
    char bytes[4096];
    int source = open(from, O_RDONLY | O_CLOEXEC), copy = memfd_create("plugin", MFD_CLOEXEC);
    ssize_t length;
    must(source >= 0 && copy >= 0);
    while ((length = read(source, bytes, sizeof bytes)) > 0)
        must(write(copy, bytes, (size_t)length) == length);
    must(length == 0 && close(source) == 0);
    snprintf(path[i], sizeof path[i], "/proc/self/fd/%d", copy);
}

static void open_plugin(int i)
{
    plugin[i].handle = dlopen(path[i], RTLD_NOW | RTLD_LOCAL);
    if (plugin[i].handle == NULL) give_up("%s", dlerror());
    plugin[i].make = (void *(*)(size_t))dlsym(plugin[i].handle, "plugin_make");
    plugin[i].work = (void *(*)(void *))dlsym(plugin[i].handle, "plugin_work");
    must(plugin[i].make != NULL && plugin[i].work != NULL);
}

static void live_a_round(void)
{
    static int quiet;
    pthread_t worker[COPIES];
    for (int i = 0; i < COPIES; i++) open_plugin(i);
    quiet = 0;
    for (int i = 0; i < COPIES; i++)
        must(pthread_create(&worker[i], NULL, plugin[i].work, &quiet) == 0);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    __atomic_store_n(&quiet, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < COPIES; i++) must(pthread_join(worker[i], NULL) == 0);
    for (int i = 0; i < COPIES; i++) must(dlclose(plugin[i].handle) == 0);
    must(dlopen(path[0], RTLD_NOW | RTLD_NOLOAD) == NULL); /* it is gone */
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    pthread_t user[THREADS], allocator;
    uint64_t seed = seed_of_run();
    long rounds = scaled(100);
    for (int i = 0; i < COPIES; i++) copy_file(argv[1], i);
    must(pthread_barrier_init(&meeting, NULL, THREADS + 1) == 0);
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_create(&user[i], NULL, use_plugins, (void *)(uintptr_t)(seed + i)) == 0);
    for (int i = 0; i < 5; i++) live_a_round();
    long used_before = (long)mallinfo2().uordblks;
    must(pthread_create(&allocator, NULL, allocate, NULL) == 0);
    for (long round = 0; round < rounds; round++) live_a_round();
    stop = true;
    must(pthread_join(allocator, NULL) == 0);
    long leaked = (long)mallinfo2().uordblks - used_before;
    all_done = true;
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < THREADS; i++) must(pthread_join(user[i], NULL) == 0);
    walk_heap();
    printf("plugins: %ld rounds of %d libraries, %ld bytes more in use\n", rounds, COPIES, leaked);
    must(any_allocator_will_do() || leaked < DRIFT_BYTES_MAX);
    return 0;
}
