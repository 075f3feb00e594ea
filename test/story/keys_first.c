/* keys_first.c - forty thread keys exist before the heap is used: setting one more may itself
 * allocate. One is made afterwards. */
/* SPDX-License-Identifier: MIT */
/* usage: keys_first          prairie is preloaded
 *        keys_first late     prairie is loaded by dlopen after the keys were made */
#include "../start/late.h"

enum { KEYS = 40, THREADS = 20 };

static pthread_key_t key[KEYS], later_key;

static void make_keys(void)
{
    for (int i = 0; i < KEYS; i++) must(pthread_key_create(&key[i], NULL) == 0);
}

static void preinit(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv, (void)environment;
    make_keys();
}
__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;

/* The first thing this thread does with the heap happens inside pthread_setspecific, or on the
 * way to it. */
static void *live(void *argument)
{
    size_t number = (size_t)argument;
    if (number % 2 == 0) must(pthread_setspecific(key[KEYS - 1], argument) == 0);
    char *block = heap.malloc(100);
    must(block != NULL);
    must(pthread_getspecific(later_key) == NULL); /* the heap has another */
    for (int i = 0; i < KEYS; i++) must(pthread_setspecific(key[i], block + i) == 0);
    use_heap_once(number);
    for (int i = 0; i < KEYS; i++) must(pthread_getspecific(key[i]) == block + i);
    heap.free(block);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    if (argc == 2 && strcmp(argv[1], "late") == 0) late_load();
    else require_prairie();
    heap.free(heap.malloc(100));
    must(pthread_key_create(&later_key, NULL) == 0);
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, live, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    printf("keys_first: %d keys, then %d threads\n", KEYS, THREADS);
    return 0;
}
