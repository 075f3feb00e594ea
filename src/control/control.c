/* control.c - finds the leaf that a name or a number path means, and keeps the protocol.
 *
 * A number path has one number for each part of a name: the number itself where the name has one,
 * else a number that stands for a row which begins so. Whoever patches a number of the first kind
 * gets a leaf of the same row.
 *
 *      stats   .  arenas  .  *  .  pactive
 *      token      token      7     token
 *
 * The last token is the row's own; the others are those of the first row that begins like this.
 *
 * A token is the table's number in its upper half and the row's in its lower one.
 * SPDX-License-Identifier: MIT
 */
#include "control.h"

#include <errno.h>

enum { TOKEN_BITS = 16 };

/* A part of a row's name: from `start` up to a dot or the end. */
struct part {
    const char *start;
    size_t length;
};

static struct part first_part(const char *name)
{
    return (struct part){ name, __builtin_strcspn(name, ".") };
}

/* Length 0: there is none. */
static struct part part_after(struct part part)
{
    const char *end = part.start + part.length;

    return *end == '.' ? first_part(end + 1) : (struct part){ end, 0 };
}

static bool is_last(struct part part) { return part.start[part.length] != '.'; }

static bool is_star(struct part part) { return part.length == 1 && part.start[0] == '*'; }

static bool ends_part(char after) { return after == '.' || after == '\0'; }

/* Are the names equal up to there, and does a part end there in both? The second one is known
 * to. */
static bool begins_alike(const char *name, const char *other, size_t length)
{
    return __builtin_strncmp(name, other, length) == 0 && ends_part(name[length]);
}

/* A part that is a number, of few digits. Returns its end; NULL: it is none. */
static const char *after_number(const char *part, size_t *number)
{
    size_t value = 0, length = 0;

    for (; length < CONTROL_NAME_BYTES && !ends_part(part[length]); length++) {
        unsigned digit = (unsigned char)part[length] - '0';
        if (digit > 9 || value > (SIZE_MAX - digit) / 10) return NULL;
        value = value * 10 + digit;
    }
    *number = value;
    return length > 0 && ends_part(part[length]) ? part + length : NULL;
}

/* ---- rows ---- */

/* NULL: there is none. */
static const struct control_table *table_of_token(size_t token)
{
    return token >> TOKEN_BITS < control_table_count ? control_tables[token >> TOKEN_BITS] : NULL;
}

static const struct control_row *row_of_token(size_t token)
{
    const struct control_table *table = table_of_token(token);
    size_t row = token & (((size_t)1 << TOKEN_BITS) - 1);

    return table != NULL && row < table->count ? &table->rows[row] : NULL;
}

/* What a row was found by. */
struct found {
    size_t index[CONTROL_INDEX_MAX]; /* the numbers of the name; 0 for those that it lacks */
    unsigned parts;                  /* in the name; may be fewer than the row has */
    bool whole;                      /* as many as the row has */
};

/* Does the row begin as the name says? Of a name, however long, no more is read than rows have. */
static bool row_matches(const struct control_row *row, const char *name, struct found *found)
{
    const char *at = name;
    unsigned stars = 0;

    *found = (struct found){ .parts = 0 };
    for (struct part pattern = first_part(row->name); pattern.length != 0;
         pattern = part_after(pattern), at++) {
        if (is_star(pattern)) at = after_number(at, &found->index[stars++]);
        else at = begins_alike(at, pattern.start, pattern.length) ? at + pattern.length : NULL;
        if (at == NULL) return false;
        found->parts++;
        if (*at == '\0') {
            found->whole = is_last(pattern);
            return true;
        }
    }
    return false;
}

static bool leaf_exists(const struct control_table *table, const struct control_row *row,
                        const size_t *index)
{
    return table->exists == NULL || table->exists(row, index);
}

/* The first row that begins so; -1: none does. */
static int64_t find_token(const char *name, struct found *found)
{
    for (unsigned t = 0; t < control_table_count; t++) {
        const struct control_table *table = control_tables[t];

        for (unsigned r = 0; r < table->count; r++) {
            const struct control_row *row = &table->rows[r];
            if (row->name[0] != name[0] || !row_matches(row, name, found)) continue;
            if (leaf_exists(table, row, found->index)) return (int64_t)t << TOKEN_BITS | r;
        }
    }
    return -1;
}

/* ---- number paths ---- */

/* The token of the first row that begins as this one does, up to and with the part. */
static size_t token_of_start(const struct control_row *row, struct part last)
{
    size_t length = (size_t)(last.start - row->name) + last.length;

    for (unsigned t = 0; t < control_table_count; t++)
        for (unsigned r = 0; r < control_tables[t]->count; r++)
            if (begins_alike(control_tables[t]->rows[r].name, row->name, length))
                return (size_t)t << TOKEN_BITS | r;
    return SIZE_MAX; /* not reached: the row itself begins so */
}

int control_path_of(const char *name, size_t *path, size_t *length)
{
    struct found found;
    int64_t token = find_token(name, &found);
    const struct control_row *row;
    struct part pattern;
    unsigned stars = 0;
    size_t wanted;

    row = token >= 0 ? row_of_token((size_t)token) : NULL;
    if (row == NULL) return ENOENT;
    pattern = first_part(row->name);
    wanted = *length < found.parts ? *length : found.parts;
    for (unsigned i = 0; i < wanted; i++, pattern = part_after(pattern)) {
        if (is_star(pattern)) path[i] = found.index[stars++];
        else if (found.whole && i == found.parts - 1) path[i] = (size_t)token;
        else path[i] = token_of_start(row, pattern);
    }
    *length = wanted;
    return 0;
}

/* Do the tokens of a path stand for rows that begin as this one does? Its numbers go to `index`. */
static bool path_fits(const struct control_row *row, const size_t *path, size_t length,
                      size_t *index)
{
    struct part pattern = first_part(row->name);

    for (size_t i = 0; i < length; i++, pattern = part_after(pattern)) {
        size_t start_bytes = (size_t)(pattern.start - row->name) + pattern.length;
        const struct control_row *other;

        if (pattern.length == 0) return false;
        if (is_star(pattern)) {
            *index++ = path[i];
            continue;
        }
        other = row_of_token(path[i]);
        if (other == NULL || !begins_alike(other->name, row->name, start_bytes)) return false;
    }
    return pattern.length == 0;
}

/* ---- the protocol ---- */

static size_t bytes_of_type(unsigned type)
{
    switch (type) {
    case CONTROL_BOOL: return sizeof(bool);
    case CONTROL_UNSIGNED: return sizeof(unsigned);
    case CONTROL_U64:
    case CONTROL_I64: return sizeof(uint64_t);
    default: return sizeof(void *);
    }
}

static bool is_permitted(const struct control_call *call)
{
    bool reads = call->old_buffer != NULL || call->old_length != NULL;
    bool writes = call->new_buffer != NULL || call->new_length != 0;
    unsigned rights = call->row->rights;

    return (!reads || (rights & CONTROL_READ) != 0) && (!writes || (rights & CONTROL_WRITE) != 0);
}

/* A buffer of another length gets what fits, and the error. */
static int give_old(struct control_call *call)
{
    size_t bytes = bytes_of_type(call->row->type), fits;

    if (!control_is_read(call)) return 0;
    fits = *call->old_length < bytes ? *call->old_length : bytes;
    __builtin_memcpy(call->old_buffer, &call->old, fits);
    if (*call->old_length == bytes) return 0;
    *call->old_length = fits;
    return EINVAL;
}

/* For leaves that must be read, in full. */
static bool is_read_exactly(const struct control_call *call, size_t bytes)
{
    if (control_is_read(call) && *call->old_length == bytes) return true;
    if (call->old_length != NULL) *call->old_length = 0;
    return false;
}

static int serve_call(const struct control_table *table, struct control_call *call)
{
    int saved_errno = errno, error = table->serve(call);

    errno = saved_errno;
    return error;
}

/* Such a call gets what fits and EINVAL, and writes nothing: one that fails leaves all as it
 * was. */
static bool reads_another_length(const struct control_call *call, size_t bytes)
{
    return control_is_read(call) && *call->old_length != bytes;
}

static int call_row(const struct control_table *table, struct control_call *call)
{
    size_t bytes = bytes_of_type(call->row->type);
    int error;

    if (!is_permitted(call)) return EPERM;
    if (call->row->type == CONTROL_RAW || call->row->type == CONTROL_ACTION)
        return serve_call(table, call);
    if (call->new_buffer != NULL && (call->row->rights & CONTROL_ARGUMENT) == 0) {
        if (call->new_length != bytes) return EINVAL;
        if (call->row->type == CONTROL_BOOL)
            call->new_value.flag = *(const unsigned char *)call->new_buffer != 0;
        else __builtin_memcpy(&call->new_value, call->new_buffer, bytes);
        call->writes = !reads_another_length(call, bytes);
    }
    if ((call->row->rights & CONTROL_EXACT) != 0 && !is_read_exactly(call, bytes)) return EINVAL;
    error = serve_call(table, call);
    return error != 0 ? error : give_old(call);
}

int control_by_name(const char *name, void *old_buffer, size_t *old_length, void *new_buffer,
                    size_t new_length)
{
    struct control_call call = { .old_buffer = old_buffer,
                                 .old_length = old_length,
                                 .new_buffer = new_buffer,
                                 .new_length = new_length };
    struct found found;
    int64_t token = find_token(name, &found);

    if (token < 0 || !found.whole) return ENOENT;
    call.row = row_of_token((size_t)token);
    __builtin_memcpy(call.index, found.index, sizeof call.index);
    return call_row(table_of_token((size_t)token), &call);
}

union control_value control_read_row(const struct control_table *table,
                                     const struct control_row *row)
{
    union control_value value = { .u64 = 0 };
    size_t bytes = bytes_of_type(row->type);
    struct control_call call = { .row = row, .old_buffer = &value, .old_length = &bytes };

    (void)call_row(table, &call);
    return value;
}

const struct control_row *control_read(const char *name, union control_value *value)
{
    struct found found;
    int64_t token = find_token(name, &found);

    if (token < 0 || !found.whole) return NULL;
    *value = control_read_row(table_of_token((size_t)token), row_of_token((size_t)token));
    return row_of_token((size_t)token);
}

int control_by_path(const size_t *path, size_t length, void *old_buffer, size_t *old_length,
                    void *new_buffer, size_t new_length)
{
    struct control_call call = { .old_buffer = old_buffer,
                                 .old_length = old_length,
                                 .new_buffer = new_buffer,
                                 .new_length = new_length };
    size_t token;

    if (length == 0 || length > CONTROL_DEPTH_MAX) return ENOENT;
    token = path[length - 1]; /* every leaf's name ends in a word */
    call.row = row_of_token(token);
    if (call.row == NULL || !path_fits(call.row, path, length, call.index)) return ENOENT;
    if (!leaf_exists(table_of_token(token), call.row, call.index)) return ENOENT;
    return call_row(table_of_token(token), &call);
}
