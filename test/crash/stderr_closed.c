/* expect: abort silent */
/* stderr_closed.c - with nowhere to write to, the program still dies by SIGABRT. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    close(2);
    void *block = malloc(100000);
    free(block);
    free(hidden(block));
    missed();
}
