/* expect: abort "prairie: double free" arguments: 16 48 64 128 */
/* double_free_traded.c - a thread frees a block twice among many, and main is about to get both. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

enum { MANY = 4000 };

static size_t bytes;
static void *block[MANY];

static void take_many(void)
{
    for (int i = 0; i < MANY; i++) {
        block[i] = malloc(bytes);
        must(block[i] != NULL);
    }
}

static void *give_many(void *unused)
{
    for (int i = 0; i < MANY; i++) {
        free(block[i]);
        if (i == MANY / 2) free(hidden(block[i - 5]));
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    require_prairie();
    bytes = number_argument(argc, argv);
    take_many();
    must(pthread_create(&thread, NULL, give_many, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);
    must(usleep(20000) == 0); /* until they have cooled (docs/decisions/0046) */
    take_many();
    missed();
}
