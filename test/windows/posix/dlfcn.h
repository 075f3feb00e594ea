/* dlfcn.h - the process's functions by their names. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_WINDOWS_DLFCN_H
#define PRAIRIE_TEST_WINDOWS_DLFCN_H

#ifdef __cplusplus
extern "C" {
#endif

#define RTLD_DEFAULT NULL

typedef struct {
    const char *dli_fname; /* libprairie, or the module's own name */
} Dl_info;

void *dlsym(void *library, const char *name);
int dladdr(const void *address, Dl_info *info);

#ifdef __cplusplus
}
#endif

#endif
