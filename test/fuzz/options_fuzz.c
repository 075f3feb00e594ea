/* options_fuzz.c - any text as options: values within their bounds, a line for each that is not
 * understood. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "fuzz.h"

const unsigned fuzz_bytes_max = 300;

/* Pieces that texts are made of, so that names are found without being guessed. */
static size_t draw_piece(char *text, size_t room)
{
    static const char *const pieces[] = {
        ":",     ",",   "true", "false",           "-1", "0",  "18446744073709551616",
        "64KiB", "1.5", "%p",   "abort_conf:true", "\t", "lg_"
    };
    const char *piece;
    size_t length;

    switch (random_below(4)) {
    case 0: piece = option_rows[random_below(OPTION_COUNT)].name; break;
    case 1: piece = option_rows[random_below(OPTION_COUNT)].words; break;
    case 2: piece = pieces[random_below(ARRAY_COUNT(pieces))]; break;
    default: {
        static char letter[2];
        letter[0] = (char)random_below(256);
        if (letter[0] == '\n') letter[0] = ' '; /* it would be printed as it is */
        piece = letter;
    }
    }
    length = min_size(strlen(piece), room - 1);
    memcpy(text, piece, length);
    text[length] = '\0';
    return length;
}

static void check_values(void)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];

        if (row->kind == OPTION_KIND_BOOL)
            assert_true(option_values[i] <= 1 || option_values[i] == OPTION_UNASKED
                        || option_values[i] == STATS_PRINTED_SHORT);
        if (row->kind == OPTION_KIND_CHOICE)
            assert_true(strlen(option_word((enum option)i, option_values[i])) > 0);
        if (row->kind == OPTION_KIND_TEXT) assert_non_null(option_text((enum option)i));
    }
}

static void check_lines(void)
{
    const char *line = fake_error_text();

    while (*line != '\0') {
        const char *end = strchr(line, '\n');
        assert_non_null(end);
        assert_int_equal(strncmp(line, "prairie: ", 9), 0);
        line = end + 1;
    }
}

void fuzz_one(void)
{
    char text[1024], *own;
    size_t length = 0;

    text[0] = '\0';
    while (!random_is_over() && length + 1 < sizeof text)
        length += draw_piece(text + length, sizeof text - length);
    /* A text of just its length, so that a sanitizer sees who reads on. */
    own = strdup(text);
    options_parse_first(own);
    option_values[OPTION_ABORT_CONF] = 0;
    options_parse(own, "MALLOC_CONF");
    option_values[OPTION_ABORT_CONF] = 0;
    options_finish();
    check_values();
    check_lines();
    options_parse(own, "MALLOC_CONF");
    check_values();
    heap_obey_options();
    prairie_free(prairie_malloc(100));
    prairie_check_all();
}
