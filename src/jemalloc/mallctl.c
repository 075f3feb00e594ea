/* mallctl.c - the control tree under jemalloc's names.
 * SPDX-License-Identifier: MIT
 */
#include "../control/control.h"

#include <errno.h>

int mallctl(const char *name, void *old_buffer, size_t *old_length, void *new_buffer,
            size_t new_length);
int mallctlnametomib(const char *name, size_t *path, size_t *length);
int mallctlbymib(const size_t *path, size_t length, void *old_buffer, size_t *old_length,
                 void *new_buffer, size_t new_length);

/* Errors are returned; errno stays as it is. */
PUBLIC int mallctl(const char *name, void *old_buffer, size_t *old_length, void *new_buffer,
                   size_t new_length)
{
    int saved_errno = errno;
    int error = control_by_name(name, old_buffer, old_length, new_buffer, new_length);

    errno = saved_errno;
    return error;
}

PUBLIC int mallctlnametomib(const char *name, size_t *path, size_t *length)
{
    return control_path_of(name, path, length);
}

PUBLIC int mallctlbymib(const size_t *path, size_t length, void *old_buffer, size_t *old_length,
                        void *new_buffer, size_t new_length)
{
    int saved_errno = errno;
    int error = control_by_path(path, length, old_buffer, old_length, new_buffer, new_length);

    errno = saved_errno;
    return error;
}
