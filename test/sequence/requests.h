/* requests.h - what the steps ask for, and what must be true of the answers.
 * SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_SEQUENCE_REQUESTS_H
#define PRAIRIE_SEQUENCE_REQUESTS_H

#include "hosts.h"

struct request {
    const char *door;
    size_t size, align; /* align 0: none was asked for */
    int flags;          /* of the doors that take them */
    int arena;       /* from which it must come; ARENA_AUTOMATIC: from no manual one; ARENA_ANY */
    int other_arena; /* or from this one; same as arena, if only that will do */
    bool zero;
    bool is_absurd;               /* it must be refused */
    bool may_refuse;              /* and that may be so */
    uint64_t refused_by_hooks;    /* when it was made */
    struct own_tcache *names_for; /* the cache whose arena it names; NULL: not both are named */
    int named;                    /* that arena */
};

/* ---- by chance ---- */
size_t any_size(void);
/* That no block can have. */
size_t absurd_size(void);
size_t any_align(void);

/* ---- requests ---- */
int flags_of_align(size_t align);
/* By nallocx. */
bool is_small(size_t size, size_t align);
/* Of a block that is cut from a slab. */
size_t small_bytes_max(void);
struct request request_for(const char *door, size_t size);
/* Where the thread's own calls are served from. Its cache may hold what it freed of automatic
 * arenas; large blocks are in no cache that may be given out elsewhere. */
void from_thread(struct request *request);

/* ---- answers ---- */
/* A NULL has a reason, and a block none to be one. */
void check_refusal(const struct request *request, const void *block, int error);
/* The block's arena must be one of two. Returns it, or ARENA_AUTOMATIC. */
int arena_found(const struct request *request, const void *base);
void check_usable(const struct request *request, void *base, size_t usable);
/* In a hardened process: sampled blocks have no mark, nor large ones of arenas that the program
 * made, nor those that are taken while hooks run, whatever they are resized to. `before`: as
 * below. */
bool may_be_unmarked(const void *base, const struct block *before);
/* As many as nallocx told; in a hardened process more, of a block that has no mark. `before`: what
 * it was resized from; NULL: it is new. */
void check_size_told(const struct request *request, const void *base, size_t usable,
                     const struct block *before);
/* Bytes from..to are all this one. */
void require_fill(const struct request *request, const unsigned char *base, size_t from, size_t to,
                  unsigned char byte);
/* What the block did not have before, from there on, reads as it should. */
void check_fill(const struct request *request, const unsigned char *base, size_t from,
                size_t usable);

#endif
