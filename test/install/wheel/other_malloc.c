/* other_malloc.c - a malloc that is preloaded before prairie, with a mallctl of its own; it takes nothing
 * back.
 * SPDX-License-Identifier: MIT
 */
#include <stddef.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30, UNIT_BYTES = 16 };

static _Alignas(UNIT_BYTES) char room[MOST_BYTES];
static size_t used; /* atomic */

void *malloc(size_t size)
{
    size_t bytes = (size + 2 * UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES, at;

    if (size > MOST_BYTES) return NULL;
    at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
    if (at + bytes > MOST_BYTES) return NULL;
    memcpy(room + at, &size, sizeof size);
    return room + at + UNIT_BYTES;
}

void *calloc(size_t count, size_t size)
{
    return size == 0 || count <= MOST_BYTES / size ? malloc(count * size)
                                                   : NULL; /* no byte is given twice */
}

void *realloc(void *block, size_t size)
{
    void *moved = malloc(size);
    size_t before = 0;

    if (block != NULL) memcpy(&before, (char *)block - UNIT_BYTES, sizeof before);
    if (moved != NULL && before != 0) memcpy(moved, block, before < size ? before : size);
    return moved;
}

void free(void *block) { (void)block; }

/* Knows every block. */
int mallctl(const char *name, void *old, size_t *old_length, void *new_value, size_t new_length)
{
    (void)name, (void)old, (void)old_length, (void)new_value, (void)new_length;
    return 0;
}
