/* inline.h - taking and giving back small blocks without a call, where the size is a constant.
 *
 *      struct node *node = prairie_inline_malloc(sizeof *node);         6 instructions
 *      prairie_inline_free(node, sizeof *node);                         7
 *
 * The usual way of malloc, from its first instruction to its last but one, in the program's own
 * code. What is not usual - nothing ready or no room, a thread's first call, a process that is
 * hardened, sampled or counted, a checking flavour - goes on in the library, as it does in malloc
 * itself: a block is the same, whichever way it came, and may be given back by any other.
 *
 * It is for programs that carry prairie in themselves: linked with libprairie.a, or with prairie.c
 * compiled along, by -flto or without. They say so by -DPRAIRIE_INLINE=1, which the CMake target
 * prairie::static does by itself. Without it, at -O0, where the size is no constant or beyond 1,024
 * bytes, and where the object format is not ELF, these are plain calls.
 *
 * The code knows how a thread's ready blocks lie. The names that it reads carry the number of that
 * layout: with a library of another layout, or with the shared library, a program does not link.
 * src/heap/inline.c compares what is said here with what is so (docs/decisions/0038).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_INLINE_H
#define PRAIRIE_INLINE_H

#include "prairie.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PRAIRIE_INLINE_BYTES_MAX 1024

/* C90 knows no other word for it. */
#if defined(__GNUC__)
#define PRAIRIE_ALWAYS_INLINE __inline__ __attribute__((always_inline, unused))
#else
#define PRAIRIE_ALWAYS_INLINE inline
#endif

/* In C++ inline functions of several files call these, and must mean the same ones: they are no
 * file's own there. Files that inline and files that do not may meet in one program all the same:
 * both ways do the same. */
#ifdef __cplusplus
#define PRAIRIE_INLINE_FUNCTION PRAIRIE_ALWAYS_INLINE
#else
#define PRAIRIE_INLINE_FUNCTION static PRAIRIE_ALWAYS_INLINE
#endif

/* The size class: steps of 16 bytes up to 128, then four to a doubling, from 512 on eight. */
#define PRAIRIE_INLINE_CLASS(size)                 \
    ((size) <= 8     ? 1                           \
     : (size) <= 128 ? 1 + ((size) + 15) / 16      \
     : (size) <= 256 ? 9 + ((size)-128 + 31) / 32  \
     : (size) <= 512 ? 13 + ((size)-256 + 63) / 64 \
                     : 17 + ((size)-512 + 63) / 64)

#if defined(PRAIRIE_INLINE) && PRAIRIE_INLINE && defined(__ELF__) && defined(__OPTIMIZE__)

/* What the program itself contains may stand at a distance that the linker knows. */
#if defined(__PIC__) && !defined(__PIE__)
#define PRAIRIE_INLINE_MODEL "initial-exec"
#else
#define PRAIRIE_INLINE_MODEL "local-exec"
#endif

/* The calling thread's ready blocks. Of class n: word 2n points at the block that is next, or at a
 * NULL below the first one; word 2n + 1 points where that is when there is no room for more. */
extern __thread void ***prairie_front_v1
    __attribute__((tls_model(PRAIRIE_INLINE_MODEL), visibility("hidden")));
/* Which word a block of each size goes back by: 2n, or that of a place without room while the
 * library must see such blocks. */
extern const uint8_t prairie_frees_v1[PRAIRIE_INLINE_BYTES_MAX + 1]
    __attribute__((visibility("hidden")));

#define PRAIRIE_INLINE_KNOWS(size) \
    (__builtin_constant_p(size) && (size)-1 < PRAIRIE_INLINE_BYTES_MAX)
/* The compiler computes the address anew, so that a word is moved by one instruction. */
#define PRAIRIE_INLINE_FORGET(value) __asm__("" : "+r"(value))
/* As around a call: what a block held before is no part of what it holds after. */
#define PRAIRIE_INLINE_FENCE(block) __asm__ __volatile__("" : "+r"(block) : : "memory")

PRAIRIE_INLINE_FUNCTION void *prairie_inline_malloc(size_t size)
{
    if (PRAIRIE_INLINE_KNOWS(size)) {
        void ***front = prairie_front_v1;
        void *block = *front[2 * PRAIRIE_INLINE_CLASS(size)];

        if (__builtin_expect(block != NULL, 1)) {
            PRAIRIE_INLINE_FORGET(front);
            --front[2 * PRAIRIE_INLINE_CLASS(size)];
            PRAIRIE_INLINE_FENCE(block);
            return block;
        }
    }
    return prairie_malloc(size);
}

PRAIRIE_INLINE_FUNCTION void prairie_inline_free(void *block, size_t size)
{
    if (PRAIRIE_INLINE_KNOWS(size)) {
        void ***front = prairie_front_v1;
        size_t word = __atomic_load_n(&prairie_frees_v1[size], __ATOMIC_RELAXED);
        void **top = front[word];

        PRAIRIE_INLINE_FORGET(word);
        if (__builtin_expect(top != front[word + 1], 1)) {
            PRAIRIE_INLINE_FENCE(block);
            top[1] = block;
            PRAIRIE_INLINE_FORGET(word);
            ++front[word];
            return;
        }
    }
    prairie_free_sized(block, size);
}

#undef PRAIRIE_INLINE_MODEL
#undef PRAIRIE_INLINE_KNOWS
#undef PRAIRIE_INLINE_FORGET
#undef PRAIRIE_INLINE_FENCE

#else

/* As prairie_malloc. */
PRAIRIE_INLINE_FUNCTION void *prairie_inline_malloc(size_t size) { return prairie_malloc(size); }

/* As prairie_free_sized: `size` is the one that was asked for. */
PRAIRIE_INLINE_FUNCTION void prairie_inline_free(void *block, size_t size)
{
    prairie_free_sized(block, size);
}

#endif

#ifdef __cplusplus
}
#endif

#endif
