/* outside.h - where another process finds what snapshot.c counts.
 *
 * Nothing is published. The figures stay where the floors keep them, and a process of the same user
 * reads them there (process_vm_readv), while this one runs on. It needs a map, which is this: a
 * note in the ELF file, found through the program header whatever was stripped, that says where
 * things are, and a table that says what they look like.
 *
 *      PT_NOTE "prairie" --> | outside_layout - . | arenas - . | ...   four bytes each
 *      outside_layout    --> version, rows: "class_bin.slab_count", 8 bytes at 88
 *
 * All of it is constant and relative, so that no loader writes to it, and nobody touches a page of
 * it before somebody looks (docs/decisions/0037).
 *
 * What a reader may rely on:
 * - Each word has one writer at a time: the holder of a lock, or the thread that owns the record.
 * - A lock's `taken` is the sequence number of what it guards, for each taker counts itself before
 *   it writes. When `state` is 0 in one copy of the struct and `taken` is the same in a later one,
 *   the first copy is of one moment.
 * - What a thread owns is of a moment that is just past, each word for itself. A magazine whose
 *   `top` is beyond its `limit` is left out.
 * - Records are never unmapped. The list of caches is whole when `taken` of threads_lock is the
 *   same before and after the walk, and the lock free before it.
 * Rows are only ever added. What they mean together changes with the version.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_VIEW_OUTSIDE_H
#define PRAIRIE_VIEW_OUTSIDE_H

#include "../base/attrs.h"

enum { OUTSIDE_VERSION = 1 };

enum outside_kind {
    OUTSIDE_ROOT = 'r',     /* `offset` is its number in the note */
    OUTSIDE_STRUCT = 's',   /* `bytes` of it */
    OUTSIDE_MEMBER = 'm',   /* of the struct before the dot */
    OUTSIDE_CONSTANT = 'c', /* `offset` is its value */
};

struct outside_row {
    char name[27];
    char kind;
    uint32_t offset;
    uint16_t bytes; /* of one element */
    uint16_t count; /* of elements; 0: of a constant */
};

struct outside_layout {
    uint32_t version, row_bytes, row_count, root_count;
    char release[16]; /* of the library */
    struct outside_row rows[];
};

extern PRIVATE const struct outside_layout outside_layout;

#endif
