/* windows_slot.h - a thread's word in the static thread-local storage of Windows.
 *
 * The loader gives each thread a copy of every module's section .tls, so the word begins as
 * &front_empty also in threads that were there before the library. Compilers' own thread-local
 * variables would do the same with Microsoft's and clang's, but gcc's call malloc; so the four
 * loads are written down: the module's number, the thread's table of blocks, the block of this
 * module, the word.
 *
 * thread_slot is a place in the section, and its address is no address of the variable: nobody may
 * use it but as the name in these two.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_WINDOWS_SLOT_H
#define PRAIRIE_OS_WINDOWS_SLOT_H

#include "../base/attrs.h"

struct front;

extern PRIVATE const union front_constant front_empty; /* cache/cache.c */

/* _tls_index is the module's number, which the loader writes once: an assembler's name, because
 * compilers would look for it in another library. The loader may put a longer table in the place of
 * a thread's when a library comes that wants one, so it is loaded each time. */
INLINE char *thread_block(void)
{
    size_t index;
    char **blocks;

    __asm__("movl _tls_index(%%rip), %k0" : "=r"(index));
    __asm__ volatile("movq %%gs:0x58, %0" : "=r"(blocks));
    return blocks[index];
}

INLINE struct front *thread_word(void)
{
    struct front *front;

    __asm__ volatile("movq thread_slot@SECREL32(%1), %0" : "=r"(front) : "r"(thread_block()));
    return front;
}

INLINE struct front *thread_word_again(void) { return thread_word(); }

INLINE void thread_front_set(struct front *front)
{
    __asm__ volatile("movq %0, thread_slot@SECREL32(%1)"
                     :
                     : "r"(front), "r"(thread_block())
                     : "memory");
}

#endif
