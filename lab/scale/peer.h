/* peer.h - another allocator under the loads, compiled as for ThreadSanitizer too: PEER_TAKE and
 * PEER_GIVE are its malloc and free, PEER_BEGIN what main, and then each thread, calls first. What
 * lies where in it, and which words are its locks, nobody says.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_SCALE_PEER_H
#define PRAIRIE_LAB_SCALE_PEER_H

#include <stddef.h>
#include <stdint.h>

void *PEER_TAKE(size_t bytes);
void PEER_GIVE(void *block);
#ifdef PEER_BEGIN
int PEER_BEGIN(void);
static void scale_begin(void) { (void)PEER_BEGIN(); }
#else
static void scale_begin(void) {}
#endif
static void *scale_take(size_t bytes) { return PEER_TAKE(bytes); }
static void scale_give(void *block) { PEER_GIVE(block); }

#ifdef MODELLED
static const char *scale_place(uintptr_t address)
{
    (void)address;
    return "allocator and blocks";
}
static const char *scale_lock(const uint32_t *word)
{
    (void)word;
    return NULL;
}
#endif

#endif
