/* options.h - what a user may set.
 *
 * Read once, before main, as "key:value,key:value" from the places that control/conf.c names. Every
 * option is an entry of option_list.h; other names for some of them are in options.c. A pair that
 * is not understood is said on stderr and ignored.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_OPTIONS_H
#define PRAIRIE_BASE_OPTIONS_H

#include "attrs.h"
#include "constants.h"

/* What the option `hardened` is unless somebody sets it. */
#ifndef PRAIRIE_HARDENED
#define PRAIRIE_HARDENED 0
#endif

enum option {
#define OPTION(id, kind, mode, name, standard, least, most, words, sentence) OPTION_##id,
#include "option_list.h"
#undef OPTION
    OPTION_COUNT
};

enum option_kind {
    OPTION_KIND_BOOL,
    OPTION_KIND_UNSIGNED,
    OPTION_KIND_SIZE,
    OPTION_KIND_SSIZE,
    OPTION_KIND_U64,
    OPTION_KIND_I64,
    OPTION_KIND_FRACTION,
    OPTION_KIND_CHOICE,
    OPTION_KIND_TEXT,
    OPTION_KIND_IGNORED,
};
/* OPTION_CLIPPED is a bit beside the mode. */
enum { OPTION_CLIPPED = 4 };
enum option_mode {
    OPTION_MODE_OBEYED,
    OPTION_MODE_KEPT,
    OPTION_MODE_SAMPLER,
    OPTION_MODE_OBEYED_CLIPPED = OPTION_CLIPPED + OPTION_MODE_OBEYED,
    OPTION_MODE_KEPT_CLIPPED = OPTION_CLIPPED + OPTION_MODE_KEPT,
    OPTION_MODE_SAMPLER_CLIPPED = OPTION_CLIPPED + OPTION_MODE_SAMPLER,
};

/* Without a pointer, so that the loader need not write to the table. */
struct option_row {
    char name[44];
    uint8_t kind, mode;
    int64_t least;
    uint64_t most;
    char words[40]; /* of a choice, each with its NUL; the default of a text */
};

extern PRIVATE const struct option_row option_rows[OPTION_COUNT];
/* Written before main; a text is its address, or 0 for the default. Signed kinds are stored as
 * two's complement. */
extern PRIVATE uint64_t option_values[OPTION_COUNT];

/* A flag that nobody set: it does what `true` does, and reads back as false, which is jemalloc's
 * default. */
enum { OPTION_UNASKED = 3 };
/* What a source asks for with stats_print:true. */
enum { STATS_NOT_PRINTED, STATS_PRINTED, STATS_PRINTED_SHORT };

/* `text` may be NULL. `source` is how messages name where it came from. */
void options_parse(const char *text, const char *source);
/* Sets abort_conf and confirm_conf only, and says nothing: they count for pairs that come before
 * them. */
void options_parse_first(const char *text);
/* Aborts when abort_conf is set and a pair was not understood. */
void options_finish(void);

/* The number-th word of a choice. */
const char *option_word(enum option option, uint64_t number);
/* The number of that word; -1: it has none. */
int option_number(enum option option, const char *word);
const char *option_text(enum option option);

/* Other threads may be changing it; partner: option_set. */
INLINE uint64_t option_value(enum option option) { return RELAXED_LOAD(option_values[option]); }
INLINE bool option_is_set(enum option option) { return option_value(option) != 0; }
/* The control tree changes some while the program runs; what they were before is remembered. */
void option_set(enum option option, uint64_t value);
uint64_t option_value_at_start(enum option option);
/* Was that flag set to true before the program began? */
bool option_asked_at_start(enum option option);

INLINE bool option_background_thread(void) { return option_is_set(OPTION_BACKGROUND_THREAD); }
INLINE int64_t option_decay_ms(void) { return (int64_t)option_value(OPTION_DIRTY_DECAY_MS); }

#endif
