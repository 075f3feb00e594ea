/* use.h - a short life of a heap: every kind of size taken, written, resized, checked and given
 * back. */
/* SPDX-License-Identifier: MIT */
/*
 * The functions used are in `heap`, so that a program that loaded prairie late, or under its own
 * names, runs the same life. A life ends with nothing allocated.
 */
#ifndef PRAIRIE_TEST_USE_H
#define PRAIRIE_TEST_USE_H

#include "blackbox.h"

#include <pthread.h>

struct heap {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void (*free)(void *);
};

static struct heap heap = { malloc, calloc, realloc, aligned_alloc, free };

enum { USE_BLOCKS = 256 };

/* Blocks of each kind of size: all small classes, and large ones up to 2 MiB; 10 MiB in all. */
SHARED size_t use_size(size_t index)
{
    static const size_t large[] = { 14337, 20000, 40000, 70000, 150000 };
    static const size_t huge[] = { 200000, 300000,  400000,        500000,
                                   700000, 1 << 20, (1 << 20) + 1, 2 << 20 };
    if (index < 60) return index * 5;
    if (index < 220) return 300 + (index - 60) * 88;
    return index < USE_BLOCKS - 8 ? large[index % 5] + index : huge[USE_BLOCKS - 1 - index];
}

SHARED void use_block_fully(unsigned char *block, size_t bytes, size_t key)
{
    /* The ends of a large block tell enough; filling it would only measure the kernel. */
    if (bytes <= 16384) {
        stamp(block, bytes, key);
        return;
    }
    stamp(block, 4096, key);
    stamp(block + bytes - 4096, 4096, key);
}

SHARED bool use_block_holds(const unsigned char *block, size_t bytes, size_t key)
{
    if (bytes <= 16384) return stamp_holds(block, bytes, key);
    return stamp_holds(block, 4096, key) && stamp_holds(block + bytes - 4096, 4096, key);
}

SHARED void use_heap_once(size_t salt)
{
    unsigned char *block[USE_BLOCKS];
    for (size_t i = 0; i < USE_BLOCKS; i++) {
        size_t bytes = use_size(i);
        if (i % 3 == 0) block[i] = heap.calloc(1, bytes);
        else if (i % 7 == 0) block[i] = heap.aligned_alloc(256, bytes);
        else block[i] = heap.malloc(bytes);
        if (block[i] == NULL) give_up("no %zu bytes for block %zu (errno %d)", bytes, i, errno);
        if (i % 3 == 0 && bytes > 0) must(block[i][0] == 0 && block[i][bytes - 1] == 0);
        use_block_fully(block[i], bytes, i + salt);
    }
    for (size_t i = 0; i < USE_BLOCKS; i += 5) {
        size_t bytes = use_size(i), grown = bytes + bytes / 2 + 1;
        must(use_block_holds(block[i], bytes, i + salt));
        block[i] = heap.realloc(block[i], grown);
        must(block[i] != NULL);
        must(stamp_holds(block[i], bytes < 4096 ? bytes : 4096, i + salt));
        use_block_fully(block[i], grown, i + salt);
    }
    for (size_t i = 0; i < USE_BLOCKS; i++) {
        size_t at = i * 37 % USE_BLOCKS, bytes = use_size(at);
        if (at % 5 == 0) bytes += bytes / 2 + 1;
        must(use_block_holds(block[at], bytes, at + salt));
        heap.free(block[at]);
    }
}

struct use_thread {
    pthread_t id;
    size_t salt;
    long rounds;
    pthread_barrier_t *barrier;
};

SHARED void *use_heap_thread(void *argument)
{
    struct use_thread *thread = (struct use_thread *)argument;
    if (thread->barrier != NULL) pthread_barrier_wait(thread->barrier);
    for (long i = 0; i < thread->rounds; i++) use_heap_once(thread->salt + (size_t)i);
    return NULL;
}

/* Up to 16 threads that all begin at the same moment. */
SHARED void use_heap_in_threads(size_t count, long rounds)
{
    struct use_thread thread[16];
    pthread_barrier_t barrier;
    must(count <= 16 && pthread_barrier_init(&barrier, NULL, (unsigned)count) == 0);
    for (size_t i = 0; i < count; i++) {
        thread[i] = (struct use_thread){ .salt = i * 1000, .rounds = rounds, .barrier = &barrier };
        must(pthread_create(&thread[i].id, NULL, use_heap_thread, &thread[i]) == 0);
    }
    for (size_t i = 0; i < count; i++) must(pthread_join(thread[i].id, NULL) == 0);
    pthread_barrier_destroy(&barrier);
}

#endif
