/* hidden.h - pointers that the compiler must not see through. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_HIDDEN_H
#define PRAIRIE_TEST_HIDDEN_H

#include <stdint.h>

/* The same pointer, of which the compiler no longer knows where it came from, nor what is there. */
static inline void *hidden(const volatile void *pointer)
{
    void *result = (void *)(uintptr_t)pointer;

    __asm__ volatile("" : "+r"(result) : : "memory");
    return result;
}

#endif
