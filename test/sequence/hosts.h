/* hosts.h - tables of extent hooks that supply memory in many ways, refuse at random, and keep
 * books.
 * SPDX-License-Identifier: MIT
 *
 * The books are one for all hosts: an arena's hooks may be exchanged, and those that came later get
 * back what those before them gave.
 *
 *   B1  what is given back, purged, split or merged is an extent in the books, of that arena, and
 * of that length B2  no live block is in an extent that is given back B3  once an arena is
 * destroyed every extent of its own was offered to dalloc, and to destroy if that refused
 */
#ifndef PRAIRIE_SEQUENCE_HOSTS_H
#define PRAIRIE_SEQUENCE_HOSTS_H

#include "player.h"

struct host;

void hosts_start(void);
/* A host with a character of its own, by chance. NULL: all are in use. */
struct host *host_make(void);
void host_drop(struct host *host);
extent_hooks_t *host_hooks(struct host *host);
const char *host_words(const struct host *host);
/* Hooks refuse nothing any more: for an orderly end. */
void hosts_consent(void);

/* B3; gives back what the arena's hooks were never asked to take, because there was none to ask.
 * `strict`: all of its hooks were ours. */
void books_close(unsigned arena, bool strict);
/* In which arena's extent the address is: ARENA_AUTOMATIC: in none. */
int books_arena_of(const void *address);
/* Bytes in extents that did not come from prairie. */
size_t books_foreign_bytes(void);
/* Bytes of large blocks of prairie's own that are extents now. */
size_t books_borrowed_bytes(void);

#endif
