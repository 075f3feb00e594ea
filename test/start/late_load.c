/* late_load.c - libprairie.so is loaded late, after other libraries have used up static
 * thread-local storage. */
/* SPDX-License-Identifier: MIT */
#include "late.h"

static pthread_barrier_t loaded;

/* Was there before prairie: its thread slot has to be made for it. */
static void *older_thread(void *unused)
{
    pthread_barrier_wait(&loaded);
    for (int i = 0; i < 5; i++) use_heap_once(40);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t older[2];
    must(pthread_barrier_init(&loaded, NULL, 3) == 0);
    for (int i = 0; i < 2; i++) must(pthread_create(&older[i], NULL, older_thread, NULL) == 0);
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        if (library == NULL) skip_test("the storage is used up without prairie: %s", dlerror());
        int (*use)(int) = (int (*)(int))dlsym(library, "tls_library_use");
        must(use != NULL && use(5) >= 1);
    }
    late_load();
    use_heap_once(1);
    pthread_barrier_wait(&loaded);
    use_heap_in_threads(6, 5);
    for (int i = 0; i < 2; i++) must(pthread_join(older[i], NULL) == 0);

    /* The program's own heap goes on beside it. */
    void *own = malloc(1000);
    void *theirs = heap.malloc(1000);
    must(own != NULL && theirs != NULL && own != theirs);
    free(own);
    heap.free(theirs);
    printf("late_load: after %d other libraries\n", argc - 1);
    return 0;
}
