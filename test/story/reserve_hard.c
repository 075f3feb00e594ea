/* reserve_hard.c - threads at a hard limit, under the sanitizers: callbacks free what others
 * hold. */
/* SPDX-License-Identifier: MIT */
#include <prairie/prairie.h>
#include <prairie/reserve.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 3, KEPT = 4000, SERVED_LEAST = 10000 };
enum { MOMENTS_LEAST = 15, MOMENTS_MOST = 600 }; /* of 100 ms each */

static struct {
    pthread_mutex_t lock;
    char *block[KEPT];
    size_t count;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_ulong low, crit, served, refused;
static atomic_bool over;

static void drop(void *unused, reserve_cnd_t condition, size_t size)
{
    size_t left;

    (void)unused, (void)size;
    atomic_fetch_add(condition == RESERVE_CND_LOW ? &low : &crit, 1);
    pthread_mutex_lock(&kept.lock);
    for (left = kept.count / 2; kept.count > left;) prairie_free(kept.block[--kept.count]);
    pthread_mutex_unlock(&kept.lock);
}

static void pass(void *unused, reserve_cnd_t condition, size_t size)
{
    (void)unused, (void)condition, (void)size;
}

static void *work(void *number)
{
    unsigned turn = (unsigned)(uintptr_t)number;

    while (!atomic_load(&over)) {
        size_t bytes = turn * 2654435761u % 16 == 0 ? 30000 : 16 + turn * 40503u % 4000;
        char *block = turn % 2 ? xmalloc(bytes) : prairie_malloc(bytes);

        turn++;
        if (block == NULL) {
            atomic_fetch_add(&refused, 1);
            continue;
        }
        *block = 1;
        atomic_fetch_add(&served, 1);
        pthread_mutex_lock(&kept.lock);
        if (kept.count < KEPT) {
            kept.block[kept.count++] = block;
            block = NULL;
        }
        pthread_mutex_unlock(&kept.lock);
        prairie_free(block);
        if (turn % 64 == 0) {
            if (reserve_cb_register(pass, number)) abort();
            if (reserve_cb_unregister(pass, number)) abort();
        }
    }
    return NULL;
}

int main(void)
{
    struct timespec moment = { 0, 100000000 };
    pthread_t thread[THREADS];

    if (reserve_min_set(256 << 10) || reserve_cb_register(drop, NULL)) return 1;
    limit_hard_set(5 << 20);
    limit_soft_set(4 << 20);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(i + 1)) != 0) return 1;
    for (int i = 0; i < MOMENTS_LEAST || (i < MOMENTS_MOST && (low == 0 || served < SERVED_LEAST));
         i++)
        nanosleep(&moment, NULL);
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    printf("served %lu, refused %lu, LOW %lu, CRIT %lu\n", served, refused, low, crit);
    while (kept.count > 0) prairie_free(kept.block[--kept.count]);
    prairie_check_all();
    return served >= SERVED_LEAST && low > 0 && refused < served / 1000 ? 0 : 1;
}
