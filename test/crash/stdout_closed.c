/* expect: abort "prairie: double free" */
/* stdout_closed.c - the line appears although stdin and stdout are closed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    close(0);
    close(1);
    void *block = malloc(100000);
    free(block);
    free(hidden(block));
    missed();
}
