/* main.c - prints which file answers malloc, and the version of prairie at run time. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#ifdef WITH_JEMALLOC_HEADER
#include <jemalloc/jemalloc.h>
#define malloc(size) mallocx(size, MALLOCX_ALIGN(64))
#endif
#include <prairie/prairie.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    Dl_info owner;
    char *volatile block = malloc(100);

    if (block == NULL || dladdr(dlsym(RTLD_DEFAULT, "malloc"), &owner) == 0) return 1;
    memset(block, 1, 100);
    free(block);

    const char *slash = strrchr(owner.dli_fname, '/');
    printf("%s %s\n", slash != NULL ? slash + 1 : owner.dli_fname, prairie_version());
    return 0;
}
