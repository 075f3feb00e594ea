/* control_opt.c - the options as they were when the program began, one leaf for each entry of the
 * list.
 * SPDX-License-Identifier: MIT
 */
#include "conf.h"
#include "control_tree.h"

#include "../arenas/arena_set.h"

#include <errno.h>

/* Types of the kinds of options, by their names. */
enum {
    TYPE_OF_BOOL = CONTROL_BOOL,
    TYPE_OF_UNSIGNED = CONTROL_UNSIGNED,
    TYPE_OF_SIZE = CONTROL_SIZE,
    TYPE_OF_SSIZE = CONTROL_SSIZE,
    TYPE_OF_U64 = CONTROL_U64,
    TYPE_OF_I64 = CONTROL_I64,
    TYPE_OF_FRACTION = CONTROL_UNSIGNED,
    TYPE_OF_CHOICE = CONTROL_TEXT,
    TYPE_OF_TEXT = CONTROL_TEXT,
    TYPE_OF_IGNORED = CONTROL_ACTION, /* never served */
};

/* Beyond the options: the texts they came from. */
enum { OPT_CONF_FIRST = OPTION_COUNT };

static const struct control_row opt_rows[] = {
#define OPTION(id, kind, mode, name, standard, least, most, words, sentence) \
    { "opt." name, TYPE_OF_##kind, CONTROL_READ, OPTION_##id },
#include "../base/option_list.h"
#undef OPTION
#define ROW(id, leaf, name, title) \
    { "opt.malloc_conf." leaf, CONTROL_TEXT, CONTROL_READ, OPT_CONF_FIRST + CONF_##id },
    CONF_SOURCES(ROW)
#undef ROW
};

/* Keys without a value are no names. */
static bool opt_exists(const struct control_row *row, const size_t *unused)
{
    (void)unused;
    return row->leaf >= OPT_CONF_FIRST || option_rows[row->leaf].kind != OPTION_KIND_IGNORED;
}

static int serve_opt(struct control_call *call)
{
    unsigned leaf = call->row->leaf;
    enum option option = (enum option)leaf;
    uint64_t value;

    if (leaf >= OPT_CONF_FIRST) {
        call->old.text = conf_text((enum conf_source)(leaf - OPT_CONF_FIRST));
        return call->old.text != NULL ? 0 : ENOENT; /* it came from nowhere */
    }
    value = option_value_at_start(option);
    switch ((enum option_kind)option_rows[leaf].kind) {
    case OPTION_KIND_BOOL: call->old.flag = option_asked_at_start(option); return 0;
    case OPTION_KIND_UNSIGNED:
    case OPTION_KIND_FRACTION:
        call->old.number = leaf == OPTION_NARENAS ? arena_limit : (unsigned)value;
        return 0;
    case OPTION_KIND_CHOICE: call->old.text = option_word(option, value); return 0;
    case OPTION_KIND_TEXT: call->old.text = option_text(option); return 0;
    default: call->old = control_value_of(call->row->type, value); return 0;
    }
}

const struct control_table control_opt = { opt_rows, ARRAY_COUNT(opt_rows), opt_exists, serve_opt };
