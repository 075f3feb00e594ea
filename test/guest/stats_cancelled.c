/* stats_cancelled.c - threads are cancelled while they print statistics: no lock stays behind. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <malloc.h>

enum { THREADS = 4 };

/* Printing may be a cancellation point; where it is not, the next one is. */
static void *print_for_ever(void *file)
{
    for (;;) {
        malloc_stats();
        must(malloc_info(0, file) == 0);
        use_heap_once(1);
        pthread_testcancel();
    }
}

int main(void)
{
    require_prairie();
    uint64_t seed = seed_of_run();
    int errors = dup(2), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    must(errors >= 0 && nothing >= 0 && dup2(nothing, 2) == 2);
    alarm(60);
    for (long round = scaled(20); round > 0; round--) {
        pthread_t thread[THREADS];
        FILE *file[THREADS];
        for (int i = 0; i < THREADS; i++) {
            file[i] = fopen("/dev/null", "w");
            must(file[i] != NULL);
            must(pthread_create(&thread[i], NULL, print_for_ever, file[i]) == 0);
        }
        sleep_ms((long)random_between(&seed, 0, 5));
        for (int i = 0; i < THREADS; i++) must(pthread_cancel(thread[i]) == 0);
        for (int i = 0; i < THREADS; i++) {
            void *result = NULL;
            must(pthread_join(thread[i], &result) == 0 && result == PTHREAD_CANCELED);
            must(fclose(file[i]) == 0);
        }
        malloc_stats();
        use_heap_once(2);
    }
    must(dup2(errors, 2) == 2);
    walk_heap();
    printf("stats_cancelled: every round ended\n");
    return 0;
}
