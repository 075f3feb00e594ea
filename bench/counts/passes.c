/* passes.c - the functions that the longest calls of malloc and free pass, as addresses.
 *
 * Run by dev/passes. Prints a line for each: its name, then the addresses of the distinct functions
 * of the call that passed most of them.
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNSEEN __attribute__((no_instrument_function))

enum { PASSED_MAX = 1024, BLOCKS = 200000 };

struct passed {
    void *function[PASSED_MAX];
    unsigned count;
};

static struct passed now, most;
static int is_noting;

void __cyg_profile_func_enter(void *function, void *caller) UNSEEN;
void __cyg_profile_func_exit(void *function, void *caller) UNSEEN;

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    if (!is_noting || now.count == PASSED_MAX) return;
    for (unsigned i = 0; i < now.count; i++)
        if (now.function[i] == function) return;
    now.function[now.count++] = function;
}

void __cyg_profile_func_exit(void *function, void *caller) { (void)function, (void)caller; }

static void *block[BLOCKS];

static void begin(void)
{
    now.count = 0;
    is_noting = 1;
}

static void end(void)
{
    is_noting = 0;
    if (now.count > most.count) most = now;
}

static void tell(const char *what)
{
    printf("%s", what);
    for (unsigned i = 0; i < most.count; i++) printf(" %p", most.function[i]);
    printf("\n");
    most.count = 0;
}

static void measure(const char *taking, const char *giving, size_t size, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        begin();
        block[i] = malloc(size);
        end();
        memset(block[i], 1, size);
    }
    tell(taking);
    for (unsigned i = 0; i < count; i++) {
        begin();
        free(block[i]);
        end();
    }
    tell(giving);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    free(malloc(1)); /* the process starts */
    measure("malloc(64)", "free(64)", 64, BLOCKS);
    measure("malloc(12000)", "free(12000)", 12000, 3000);
    measure("malloc(1MiB)", "free(1MiB)", 1 << 20, 200);
    return 0;
}
