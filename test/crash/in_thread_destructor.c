/* expect: abort "prairie: double free" */
/* in_thread_destructor.c - the misuse happens while a thread ends. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void destroy(void *block)
{
    free(block);
    free(hidden(block));
    missed();
}

static void *run(void *key)
{
    pthread_setspecific(*(pthread_key_t *)key, malloc(50000));
    return NULL;
}

int main(void)
{
    require_prairie();
    pthread_key_t key;
    pthread_t thread;
    must(pthread_key_create(&key, destroy) == 0);
    must(pthread_create(&thread, NULL, run, &key) == 0);
    must(pthread_join(thread, NULL) == 0);
    missed();
}
