/* no_deep_bind.c - a library to preload beside prairie: dlopen without RTLD_DEEPBIND.
 *
 *     cc -O2 -shared -fPIC -o no_deep_bind.so no_deep_bind.c
 *     LD_PRELOAD="$PWD/no_deep_bind.so /usr/local/lib/libprairie.so" program
 *
 * A library that is opened with that flag looks for malloc and free in the C library first, whatever
 * is preloaded. docs/switching.md says which programs do so, and what becomes of them.
 */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>

/* The last call is a jump where it is optimised: dlopen looks where its caller's RUNPATH says, and
 * knows the caller by the address to return to. */
void *dlopen(const char *file, int mode)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return next(file, mode & ~RTLD_DEEPBIND);
}
