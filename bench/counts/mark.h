/* mark.h - how a counted program tells the stepper which call comes next.
 * SPDX-License-Identifier: MIT
 *
 * mark_next_call(name, entry) stops the program at a breakpoint with the magic word, the name and
 * the address of a function in registers. The stepper then counts the next call of that function,
 * from its first instruction to its return. Outside of the stepper the breakpoint ends the program.
 */
#ifndef PRAIRIE_COUNTS_MARK_H
#define PRAIRIE_COUNTS_MARK_H

#define MARK_MAGIC 0x70726169726965ul /* "prairie" */

#if !defined(__x86_64__)
#error "counts are taken on x86-64 only"
#endif

static inline void mark_next_call(const char *name, const void *entry)
{
    __asm__ volatile("int3" : : "a"(MARK_MAGIC), "D"(name), "S"(entry) : "memory");
}

#endif
