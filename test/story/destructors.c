/* destructors.c - destructors of thread-local keys allocate and free, and set their keys again
 * until no more is allowed. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <malloc.h>
#include <stdatomic.h>

enum { KEYS = 40, REARMS = 4, AT_ONCE = 10 };

struct value {
    size_t key;
    int rounds_left;
    unsigned char payload[100];
};

static pthread_key_t key[KEYS];
static atomic_long destructor_calls, alive;

static struct value *value_new(size_t index, int rounds_left)
{
    struct value *value = malloc(sizeof *value + index * 500);
    must(value != NULL);
    value->key = index;
    value->rounds_left = rounds_left;
    stamp(value->payload, sizeof value->payload, index);
    alive++;
    return value;
}

static void destroy(void *argument)
{
    struct value *value = argument;
    size_t index = value->key;
    int rounds_left = value->rounds_left;
    must(stamp_holds(value->payload, sizeof value->payload, index));
    destructor_calls++;
    free(value);
    alive--;
    /* More than what is freed, of sizes that the thread has not used before. */
    void *block[8];
    for (size_t i = 0; i < 8; i++) {
        block[i] = malloc((index * 8 + i) * 60 + (i == 0 ? 20000 : 0));
        must(block[i] != NULL);
    }
    for (size_t i = 0; i < 8; i++) free(block[i]);
    if (rounds_left > 1)
        must(pthread_setspecific(key[index], value_new(index, rounds_left - 1)) == 0);
}

static void *live(void *unused)
{
    for (size_t i = 0; i < KEYS; i++) must(pthread_setspecific(key[i], value_new(i, REARMS)) == 0);
    free(malloc(3000));
    return unused;
}

int main(void)
{
    require_prairie();
    long threads = scaled(200) / AT_ONCE * AT_ONCE;
    if (threads == 0) threads = AT_ONCE;
    for (int i = 0; i < KEYS; i++) must(pthread_key_create(&key[i], destroy) == 0);
    size_t used_before = 0;
    for (long done = -AT_ONCE; done < threads; done += AT_ONCE) {
        pthread_t thread[AT_ONCE];
        /* The first generation warms up and is not counted. */
        if (done == 0) used_before = mallinfo2().uordblks, destructor_calls = 0;
        for (int i = 0; i < AT_ONCE; i++) must(pthread_create(&thread[i], NULL, live, NULL) == 0);
        for (int i = 0; i < AT_ONCE; i++) must(pthread_join(thread[i], NULL) == 0);
    }
    long leaked = (long)mallinfo2().uordblks - (long)used_before;
    printf("destructors: %ld threads, %ld calls, %ld bytes more in use\n", threads,
           destructor_calls, leaked);
    must(destructor_calls == threads * KEYS * REARMS);
    must(alive == 0);
    must(any_allocator_will_do() || leaked < 64 * 1024);
    walk_heap();
    return 0;
}
