/* control_fuzz.c - names, number paths and lengths of the control tree: nothing is written beyond
 * what was promised, and nothing breaks. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "fuzz.h"

const unsigned fuzz_bytes_max = 300;

enum { OLD_BYTES = 64, FILLER = 0x5a, NUMBERS = 6 };

static const struct control_row *draw_row(void)
{
    const struct control_table *table = control_tables[random_below(control_table_count)];

    return &table->rows[random_below(table->count)];
}

/* Its name with numbers for stars, perhaps cut, perhaps with a letter changed. */
static const struct control_row *draw_name(char *name)
{
    static const char *const numbers[NUMBERS] = { "0", "1", "7", "4096", "4097", "99999" };
    const struct control_row *row = draw_row();
    size_t length = 0;
    uint64_t change;

    for (const char *at = row->name; *at != '\0'; at++) {
        const char *number = numbers[*at == '*' ? random_below(NUMBERS) : 0];

        if (*at != '*') name[length++] = *at;
        else length += strlen(strcpy(name + length, number));
    }
    name[length] = '\0';
    change = random_below(8);
    if (change == 0) name[random_below(length)] = '\0';
    if (change == 1) name[random_below(length)] = (char)random_below(256);
    return change < 2 ? NULL : row;
}

/* Values may be written where any value is one; not pointers, nor what serves look at
 * themselves. */
static bool may_write(const struct control_row *row)
{
    return row != NULL && row->type != CONTROL_POINTER && row->type != CONTROL_RAW
        && (row->rights & CONTROL_ARGUMENT) == 0;
}

static size_t length_of_type(unsigned type)
{
    switch (type) {
    case CONTROL_BOOL: return sizeof(bool);
    case CONTROL_UNSIGNED: return sizeof(unsigned);
    default: return sizeof(uint64_t);
    }
}

struct ask {
    unsigned char old[OLD_BYTES];
    size_t old_length;
    uint64_t new_value;
    size_t new_length;
    bool reads, writes;
};

static struct ask draw_ask(const struct control_row *row)
{
    static const char *const texts[] = { "", "a", "secondary",
                                         "a name that is longer than any room" };
    /* Raw leaves follow addresses that the caller's buffers hold. */
    bool may_read = row != NULL && row->type != CONTROL_RAW;
    struct ask ask = { .reads = may_read && random_below(2) == 0 };

    memset(ask.old, FILLER, sizeof ask.old);
    ask.old_length =
        row != NULL && random_below(3) != 0 ? length_of_type(row->type) : random_below(17);
    ask.writes = may_write(row) && random_below(2) == 0;
    ask.new_length =
        row != NULL && random_below(4) != 0 ? length_of_type(row->type) : random_below(17);
    if (ask.new_length > sizeof ask.new_value) ask.new_length = sizeof ask.new_value;
    ask.new_value = random_below((uint64_t)1 << random_below(63));
    if (row != NULL && row->type == CONTROL_BOOL) ask.new_value &= 1;
    if (row != NULL && row->type == CONTROL_TEXT)
        ask.new_value = (uint64_t)(uintptr_t)texts[random_below(ARRAY_COUNT(texts))];
    return ask;
}

/* For who looks at a failure. */
static void say(const char *name, const size_t *path, size_t length)
{
    print_message("%s", name);
    for (size_t i = 0; i < length; i++) print_message(" %zx", path[i]);
    print_message("\n");
}

static void check_answer(const struct ask *ask, size_t promised, int answer)
{
    assert_true(answer == 0 || answer == EINVAL || answer == ENOENT || answer == EPERM
                || answer == EFAULT || answer == EAGAIN || answer == ENOMEM);
    for (size_t at = promised; at < OLD_BYTES; at++) assert_int_equal(ask->old[at], FILLER);
}

static void ask_by_name(void)
{
    char name[2 * CONTROL_NAME_BYTES];
    struct ask ask = draw_ask(draw_name(name));
    size_t promised = ask.old_length;
    int answer;

    say(name, NULL, 0);

    answer = control_by_name(name, ask.reads ? ask.old : NULL, ask.reads ? &ask.old_length : NULL,
                             ask.writes ? &ask.new_value : NULL, ask.writes ? ask.new_length : 0);
    check_answer(&ask, promised, answer);
}

static void ask_by_path(void)
{
    char name[2 * CONTROL_NAME_BYTES];
    const struct control_row *row = draw_name(name);
    size_t path[CONTROL_DEPTH_MAX + 1], length = 1 + random_below(CONTROL_DEPTH_MAX), promised;
    struct ask ask;

    for (unsigned i = 0; i <= CONTROL_DEPTH_MAX; i++) path[i] = SIZE_MAX;
    promised = length;
    if (control_path_of(name, path, &length) != 0) return;
    for (size_t i = promised; i <= CONTROL_DEPTH_MAX; i++) assert_true(path[i] == SIZE_MAX);
    if (random_below(3) == 0) {
        path[random_below(length)] = random_below(5000);
        row = NULL; /* it means another leaf now */
    }
    say(name, path, length);
    ask = draw_ask(row);
    promised = ask.old_length;
    check_answer(&ask, promised,
                 control_by_path(
                     path, length, ask.reads ? ask.old : NULL, ask.reads ? &ask.old_length : NULL,
                     ask.writes ? &ask.new_value : NULL, ask.writes ? ask.new_length : 0));
}

void fuzz_one(void)
{
    void *blocks[8] = { NULL };

    fake_cores(2);
    fake_address_space(512 * MiB, 0);
    fake_commit_bytes_max(64 * MiB); /* a reserve may be asked for that is larger */
    while (!random_is_over()) {
        unsigned slot = (unsigned)random_below(8);

        switch (random_below(8)) {
        case 0:
            prairie_free(blocks[slot]);
            blocks[slot] = prairie_malloc(1 + random_below(100000));
            break;
        case 1:
        case 2:
        case 3: ask_by_path(); break;
        default: ask_by_name();
        }
    }
    prairie_check_all();
}
