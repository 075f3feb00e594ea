/* attrs.h - the compiler's attributes under names that say what they are for.
 *
 * Owns no state. One of the few files that may test which compiler builds us.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_ATTRS_H
#define PRAIRIE_BASE_ATTRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where branches are counted (dev/coverage), a function has one copy of each. */
#if defined(PRAIRIE_COVERAGE)
#define INLINE static inline
#else
#define INLINE static inline __attribute__((always_inline))
#endif
/* No pointer that it is called with is NULL. */
#define NONNULL __attribute__((nonnull))
#define COLD __attribute__((cold, noinline))
#define NOINLINE __attribute__((noinline))
#define NORETURN __attribute__((noreturn))
/* A function that reads, without their lock, numbers that may be a moment old. */
#define READS_UNLOCKED __attribute__((no_sanitize_thread, noinline))
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN true
#define INLINE_READS_UNLOCKED static READS_UNLOCKED __attribute__((unused))
#else
#define UNDER_TSAN false
#define INLINE_READS_UNLOCKED INLINE
#endif
/* Stands between two reads without a lock. A unit test that defines it before it takes the library
 * in (test/unit/interleave.h) lets something happen there; in every other build it is nothing. */
#ifndef BETWEEN_READS
#define BETWEEN_READS(place) ((void)0)
#endif
#define PUBLIC __attribute__((visibility("default")))
#define PRIVATE __attribute__((visibility("hidden")))
/* A function that a program with the archive in it may have of its own, which counts then. */
#define REPLACEABLE __attribute__((weak))
/* Zeroed data of which a usual process touches little or nothing. The linker puts SPARSE data last,
 * so that the pages before it are few and all in use (docs/decisions/0013). SPARSE_BUT_FIRST is for
 * arrays whose first element every process touches: they lie between the two. */
#if defined(__MACH__)
#define SPARSE __attribute__((section("__DATA,__sparse,zerofill")))
#define SPARSE_BUT_FIRST SPARSE
#elif defined(_WIN32)
#define SPARSE
#define SPARSE_BUT_FIRST
#else
#define SPARSE __attribute__((section(".bss.sparse")))
#define SPARSE_BUT_FIRST __attribute__((section(".bss.head")))
#endif

/* Data that decides and stays as it is once the options were read. The linker lays it on pages of
 * its own, which a hardened process closes (space/sealed.h). What is written later is written
 * between sealed_open and sealed_close. */
#if defined(__ELF__)
#define SEALED __attribute__((section("prairie_sealed")))
#else
#define SEALED
#endif
/* Where such pages begin and end, as a definition: prairie_sealed_first and prairie_sealed_end.
 * They begin at a page of 4 KiB, and what the assembler calls subsection 1 lies behind all else. */
#if defined(__ELF__)
#define SEALED_BOUNDS                                                          \
    __asm__(".pushsection prairie_sealed,\"aw\",%progbits\n .balign 4096\n"    \
            " .globl prairie_sealed_first\n .hidden prairie_sealed_first\n"    \
            "prairie_sealed_first:\n .popsection\n"                            \
            " .pushsection prairie_sealed,1,\"aw\",%progbits\n .balign 4096\n" \
            " .globl prairie_sealed_end\n .hidden prairie_sealed_end\n"        \
            "prairie_sealed_end:\n .popsection");                              \
    extern PRIVATE char prairie_sealed_first[], prairie_sealed_end[]
#else
#define SEALED_BOUNDS \
    static char prairie_sealed_first[1], *const prairie_sealed_end = prairie_sealed_first
#endif

/* A note of type 1 in the ELF file, of lines for the assembler. Its name has 7 letters. */
#if defined(__ELF__)
#define ELF_NOTE(name, lines)                                         \
    __asm__(".pushsection .note." name ", \"a\", %note\n .balign 4\n" \
            " .long 8, 2f - 1f, 1\n .asciz \"" name "\"\n1:" lines "\n2: .popsection");
#else
#define ELF_NOTE(name, lines)
#endif
/* Of what such lines name: gcc's link-time optimisation does not read them, and would make it
 * local. */
#if defined(__GNUC__) && !defined(__clang__)
#define NAMED_IN_LINES __attribute__((externally_visible))
#else
#define NAMED_IN_LINES
#endif

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* A second name for a function of this file, exported. */
#define ALIAS_OF(function) ALIAS_OF_NAME(function)
#define ALIAS_OF_NAME(name) __attribute__((alias(#name), visibility("default"), used))

/* A second name of a variable of this file, for what of us is compiled into programs
 * (include/prairie/inline.h). Only ELF has such names. */
#if defined(__ELF__)
#define SEEN_INLINE(declaration, variable) extern declaration SEEN_INLINE_NAME(variable)
#define SEEN_INLINE_NAME(name) __attribute__((alias(#name), visibility("hidden"), used))
#else
#define SEEN_INLINE(declaration, variable) _Static_assert(sizeof(variable) != 0, "")
#endif

/* Values that are read without the lock under which they are written, or that need none: whole, and
 * perhaps a moment old. */
#define RELAXED_LOAD(object) __atomic_load_n(&(object), __ATOMIC_RELAXED)
#define RELAXED_STORE(object, value) __atomic_store_n(&(object), (value), __ATOMIC_RELAXED)

/* Before a struct's uint64_t that atomic operations change. i386 aligns those to 4 bytes; on two
 * cache lines an operation takes 90 us, and ends the process where split_lock_detect=fatal. */
#define ON_ONE_LINE _Alignas(8)

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The compiler knows no longer where a value came from: it keeps it, or computes with it as it
 * is. */
#define FORGET(value) __asm__("" : "+r"(value))

INLINE void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* waits longer than yield, which most cores ignore */
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/* Memory that is about to be read, and soon written: where a read comes first, a fresh page costs
 * two faults, one for a page of zeros and one for its own. Nothing of it changes. */
INLINE void touch(void *address)
{
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("orb $0, %0" : "+m"(*(char *)address));
#else
    (void)address;
#endif
}

#endif
