/* deep_bind_library.c - says which malloc and free it would call. */
/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

void *(*deep_bind_malloc(void))(size_t);
void (*deep_bind_free(void))(void *);

void *(*deep_bind_malloc(void))(size_t) { return malloc; }
void (*deep_bind_free(void))(void *) { return free; }
