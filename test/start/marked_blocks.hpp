/* marked_blocks.hpp - blocks for operators of a program's own: each has a mark before it, so that
 * one that comes by another way shows, and all are counted. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_START_MARKED_BLOCKS_HPP
#define PRAIRIE_TEST_START_MARKED_BLOCKS_HPP

#include "../blackbox/blackbox.h"

#include <cstdint>
#include <cstdlib>
#include <new>

/* That the sized delete is missing is what these programs are about. */
#pragma GCC diagnostic ignored "-Wsized-deallocation"

namespace
{

struct header {
    uint64_t mark, bytes;
};
constexpr uint64_t LIVES = 0x6c6976657321, IS_GONE = 0x676f6e65;
size_t taken, given;

void *take_marked(size_t size)
{
    auto *own = static_cast<header *>(malloc(sizeof(header) + size));
    if (own == nullptr) throw std::bad_alloc();
    *own = { LIVES, size };
    taken++;
    return own + 1;
}

void give_marked(void *block) noexcept
{
    if (block == nullptr) return;
    auto *own = static_cast<header *>(block) - 1;
    must(own->mark == LIVES);
    own->mark = IS_GONE;
    given++;
    free(own);
}

} // namespace

#endif
