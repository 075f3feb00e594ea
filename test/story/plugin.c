/* plugin.c - a library that allocates in its constructor, its thread-local storage and its
 * functions; plugins.c opens and closes copies of it. */
/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* More than the C library has ready: each thread that comes here gets a block of malloc's for
 * it. */
static _Thread_local char own[5000];
static void *table;
static pthread_key_t key;

__attribute__((constructor)) static void open_plugin(void)
{
    table = calloc(100, 100);
    if (table == NULL || pthread_key_create(&key, free) != 0) abort();
}

__attribute__((destructor)) static void close_plugin(void)
{
    free(table);
    (void)pthread_key_delete(key);
}

/* A block for the caller to free, whatever has become of the plugin. */
void *plugin_make(size_t bytes);
void *plugin_make(size_t bytes)
{
    char *block = malloc(bytes);
    if (block == NULL) abort();
    memset(block, ++own[bytes % sizeof own], bytes);
    return block;
}

/* A thread of the plugin's: allocates until it is told to stop, and leaves a block to its end. */
void *plugin_work(void *stop);
void *plugin_work(void *stop)
{
    for (size_t i = 0; !__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE); i++)
        free(plugin_make(1 + i % 30000));
    if (pthread_setspecific(key, plugin_make(3000)) != 0) abort();
    return NULL;
}
