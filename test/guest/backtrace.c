/* backtrace.c - a SIGABRT handler asks for the callers of the misuse that prairie told, for the
 * first time: the C library loads a library for that, which allocates. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <execinfo.h>
#include <signal.h>

static void *volatile block;

static void tell_callers(int signal)
{
    void *caller[32];
    (void)signal;
    int count = backtrace(caller, 32);
    must(count > 2);
    backtrace_symbols_fd(caller, count, 1);
    char **symbol = backtrace_symbols(caller, count);
    must(symbol != NULL);
    free(symbol);
    use_heap_in_threads(2, 1);
    _exit(0);
}

int main(void)
{
    require_prairie();
    must(signal(SIGABRT, tell_callers) != SIG_ERR);
    alarm(20);
    block = malloc(200000);
    free(block);
    free(block);
    give_up("a second free was not told");
}
