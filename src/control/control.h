/* control.h - the control tree: names for what can be asked and set, in tables.
 *
 * A row is a leaf: its name, with a `*` for each number in it, its type, what may be done with it,
 * and a number by which its table's `serve` knows it. There are three tables: figures (figures.h),
 * options, and the list of all else (control_list.h); they meet in control_tree.c. Rows hold no
 * pointers, so that the loader need not write to them.
 *
 * The protocol (lengths, permissions, partial reads) is kept in control.c, so that `serve` sees
 * values:
 *
 *      reading    serve puts the value into call->old
 *      writing    call->writes is true and call->new_value is what shall be; call->old becomes
 *                 what was
 *      calling    a leaf of type ACTION
 *
 * It returns 0 or an error number of <errno.h>: EFAULT for values out of range, EAGAIN when it
 * cannot be done now, ENOENT as if the name did not exist. The numbers of a name are in
 * call->index, in order.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CONTROL_H
#define PRAIRIE_CONTROL_H

#include "../base/attrs.h"

enum control_type {
    CONTROL_BOOL,     /* bool */
    CONTROL_UNSIGNED, /* unsigned, uint32_t */
    CONTROL_SIZE,     /* size_t */
    CONTROL_SSIZE,    /* ssize_t */
    CONTROL_U64,      /* uint64_t */
    CONTROL_I64,      /* int64_t */
    CONTROL_TEXT,     /* const char * */
    CONTROL_POINTER,  /* void * */
    CONTROL_ACTION,   /* nothing goes in or out */
    CONTROL_RAW,      /* serve looks at the caller's buffers itself */
};

/* What may be done with a leaf. */
enum {
    CONTROL_READ = 1,
    CONTROL_WRITE = 2,
    CONTROL_EXACT = 4,     /* reading with another length gives nothing at all, and sets it to 0 */
    CONTROL_JSON = 8,      /* no right: printed as JSON (figures.h) */
    CONTROL_HEAP = 16,     /* no right: the process starts before it is served */
    CONTROL_ARGUMENT = 32, /* what is written is of another type: serve looks at the buffer */
    CONTROL_NONE = 0,
    CONTROL_BOTH = CONTROL_READ | CONTROL_WRITE,
    CONTROL_HEAP_READ = CONTROL_HEAP | CONTROL_READ,
    CONTROL_HEAP_WRITE = CONTROL_HEAP | CONTROL_WRITE,
    CONTROL_HEAP_BOTH = CONTROL_HEAP | CONTROL_BOTH,
    CONTROL_HEAP_EXACT = CONTROL_HEAP | CONTROL_READ | CONTROL_EXACT,
    CONTROL_HEAP_ASK = CONTROL_HEAP_BOTH | CONTROL_ARGUMENT,
    CONTROL_HEAP_MAKE = CONTROL_HEAP_EXACT | CONTROL_HEAP_ASK,
};

enum { CONTROL_NAME_BYTES = 60, CONTROL_INDEX_MAX = 2, CONTROL_DEPTH_MAX = 7 };
/* Numbers of arenas with a meaning of their own. */
enum { CONTROL_ARENAS_ALL = 4096, CONTROL_ARENAS_DESTROYED = 4097 };

struct control_row {
    char name[CONTROL_NAME_BYTES];
    uint8_t type; /* enum control_type */
    uint8_t rights;
    uint16_t leaf; /* a number that the table gives it */
};

union control_value {
    bool flag;
    unsigned number;
    size_t size;
    intptr_t ssize;
    uint64_t u64;
    const char *text;
    void *pointer;
};

/* A number, or an address, as a leaf of that type has it. */
INLINE union control_value control_value_of(unsigned type, uint64_t number)
{
    switch (type) {
    case CONTROL_BOOL: return (union control_value){ .flag = number != 0 };
    case CONTROL_UNSIGNED: return (union control_value){ .number = (unsigned)number };
    case CONTROL_SIZE: return (union control_value){ .size = (size_t)number };
    case CONTROL_SSIZE: return (union control_value){ .ssize = (intptr_t)number };
    case CONTROL_TEXT: return (union control_value){ .text = (const char *)(uintptr_t)number };
    default: return (union control_value){ .u64 = number };
    }
}

/* The same back; an address is none. */
INLINE uint64_t control_number_of(unsigned type, union control_value value)
{
    switch (type) {
    case CONTROL_BOOL: return value.flag;
    case CONTROL_UNSIGNED: return value.number;
    case CONTROL_SIZE: return value.size;
    case CONTROL_SSIZE: return (uint64_t)(int64_t)value.ssize;
    default: return value.u64;
    }
}

struct control_call {
    const struct control_row *row;
    size_t index[CONTROL_INDEX_MAX];
    bool writes;
    union control_value old, new_value;
    /* As the caller gave them, for RAW leaves and arguments. */
    void *old_buffer;
    size_t *old_length;
    const void *new_buffer;
    size_t new_length;
};

/* Has the caller room for the value, of whatever length? */
INLINE bool control_is_read(const struct control_call *call)
{
    return call->old_buffer != NULL && call->old_length != NULL;
}

struct control_table {
    const struct control_row *rows;
    unsigned count;
    /* Is there this leaf, with these numbers? Asked for every look-up of a name or a number path;
     * those of its numbers that a partial name lacks are 0. NULL: always. */
    bool (*exists)(const struct control_row *row, const size_t *index);
    int (*serve)(struct control_call *call);
};

/* All tables, in the order in which names are looked for. */
extern PRIVATE const struct control_table *const control_tables[];
extern PRIVATE const unsigned control_table_count;

/* ---- for tables that speak of arenas ---- */

/* As `arenas.narenas` says. */
unsigned control_arena_count(void);
/* What the number of an arena in a name stands for. */
enum control_arena_kind {
    CONTROL_ARENA_NONE, /* nothing that was made */
    CONTROL_ARENA_ONE,  /* that one; the first counts as made, for what is of no arena is its */
    CONTROL_ARENA_SUM,  /* all: CONTROL_ARENAS_ALL, and their count, which is an old name for it */
    CONTROL_ARENA_PAST, /* those that were destroyed, when one was */
};
enum control_arena_kind control_arena_kind(size_t index);
/* Writes the name that the program gave to the arena, or one of its number: at most
 * CONTROL_ARENA_NAME_BYTES with the NUL. Under control_lock. */
enum { CONTROL_ARENA_NAME_BYTES = 32 };
void control_arena_name(unsigned index, char *name);

/* ---- the protocol: mallctl, mallctlnametomib and mallctlbymib ---- */

/* Errors are returned; errno stays as it is. */

int control_by_name(const char *name, void *old_buffer, size_t *old_length, void *new_buffer,
                    size_t new_length);
/* Read a leaf whose name has no numbers, into a value of its row's type; 0 when it has none now.
 * By name, NULL: there is no such leaf. */
union control_value control_read_row(const struct control_table *table,
                                     const struct control_row *row);
const struct control_row *control_read(const char *name, union control_value *value);
int control_path_of(const char *name, size_t *path, size_t *length);
int control_by_path(const size_t *path, size_t length, void *old_buffer, size_t *old_length,
                    void *new_buffer, size_t new_length);

#endif
