/* thread_storm.c - thousands of threads are born, allocate and die; the process does not grow. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

/* What is held swings with the budget for dirty pages; whether it grows is told by medians of many
 * moments. */
enum { AT_ONCE = 8, DRIFT_KB_MAX = 2 * 1024, SAMPLES = 200, SAMPLES_COMPARED = SAMPLES / 4 };

/* Half of what a thread takes is freed by another: the blocks hang here from one thread to the
 * next. */
static void *left_behind[AT_ONCE][64];

static void *live(void *argument)
{
    size_t self = (size_t)argument;
    void *block[64];
    for (size_t i = 0; i < 64; i++) {
        block[i] = malloc(16 + i * 97);
        must(block[i] != NULL);
        memset(block[i], 1, 16 + i * 97);
    }
    for (size_t i = 0; i < 64; i++) {
        free(left_behind[self][i]);
        left_behind[self][i] = NULL;
        if (i % 2 == 0) free(block[i]);
        else left_behind[self][i] = block[i];
    }
    char *large = malloc(100000);
    must(large != NULL);
    memset(large, 1, 100000);
    free(large);
    return NULL;
}

static void generation(void)
{
    pthread_t thread[AT_ONCE];
    for (size_t i = 0; i < AT_ONCE; i++)
        must(pthread_create(&thread[i], NULL, live, (void *)i) == 0);
    for (size_t i = 0; i < AT_ONCE; i++) must(pthread_join(thread[i], NULL) == 0);
}

static int by_size(const void *left, const void *right)
{
    long a = *(const long *)left, b = *(const long *)right;
    return (a > b) - (a < b);
}

static long median_kb(long *samples_kb, size_t count)
{
    qsort(samples_kb, count, sizeof samples_kb[0], by_size);
    return samples_kb[count / 2];
}

int main(void)
{
    require_prairie();
    static long samples_kb[SAMPLES];
    long generations = scaled(6000) / AT_ONCE + 1, done = 0;
    for (long i = 0; i < 30 + generations / 5; i++) generation();
    double start_ms = now_ms();
    for (long s = 0; s < SAMPLES; s++) {
        for (; done < generations * (s + 1) / SAMPLES; done++) generation();
        samples_kb[s] = resident_kb();
    }
    double per_thread_us = (now_ms() - start_ms) * 1000 / (double)(generations * AT_ONCE);
    long first_kb = median_kb(samples_kb, SAMPLES_COMPARED);
    long last_kb = median_kb(samples_kb + SAMPLES - SAMPLES_COMPARED, SAMPLES_COMPARED);
    for (int t = 0; t < AT_ONCE; t++)
        for (int i = 0; i < 64; i++) free(left_behind[t][i]);
    walk_heap();
    printf("thread_storm: %ld threads, %.1f us each, %ld KiB at first, %ld at last, drift %ld KiB "
           "of %d\n",
           generations * AT_ONCE, per_thread_us, first_kb, last_kb, last_kb - first_kb,
           DRIFT_KB_MAX);
    must(last_kb - first_kb <= DRIFT_KB_MAX);
    return 0;
}
