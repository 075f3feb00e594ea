/* shapes.c - what the compiler makes of inline.h: functions whose usual way is counted. */
/* SPDX-License-Identifier: MIT */
#include <prairie/inline.h>

void *take_16(void);
void *take_200(void);
void give_16(void *block);
void give_200(void *block);
void *take_any(size_t size);

void *take_16(void) { return prairie_inline_malloc(16); }
void *take_200(void) { return prairie_inline_malloc(200); }
void give_16(void *block) { prairie_inline_free(block, 16); }
void give_200(void *block) { prairie_inline_free(block, 200); }
void *take_any(size_t size) { return prairie_inline_malloc(size); }
