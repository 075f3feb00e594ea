/* thread_library.c - a library whose constructor starts threads that allocate; some still run
 * when main begins. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

static pthread_t lasting[2];
static char *gift;

static void *make_gift(void *unused)
{
    use_heap_once(10);
    gift = malloc(5000);
    stamp(gift, 5000, 77);
    return unused;
}

static void *keep_busy(void *unused)
{
    for (int i = 0; i < 20; i++) use_heap_once(20);
    return unused;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t maker;
    must(pthread_create(&maker, NULL, make_gift, NULL) == 0);
    for (int i = 0; i < 2; i++) must(pthread_create(&lasting[i], NULL, keep_busy, NULL) == 0);
    must(pthread_join(maker, NULL) == 0);
}

/* The block that a thread of the constructor left for main to free. */
char *thread_library_gift(void) { return gift; }

void thread_library_join(void)
{
    for (int i = 0; i < 2; i++) must(pthread_join(lasting[i], NULL) == 0);
}
