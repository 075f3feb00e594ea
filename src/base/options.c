/* options.c - the table of options, and the reading of "key:value,key:value".
 * SPDX-License-Identifier: MIT
 */
#include "options.h"

#include "port.h"

const struct option_row option_rows[OPTION_COUNT] = {
    [OPTION_STATS_PRINT] = { "stats_print", true, 0, 0, 1,
                             "Print the statistics to the standard error when the program ends." },
    [OPTION_HELPER_THREAD] = { "helper_thread", true, 1, 0, 1,
                               "Let a program that has threads use one more, now and then, to give "
                               "memory back." },
    [OPTION_ARENAS] = { "arenas", false, 0, 0, 256,
                        "How many arenas there may be; 0 means one for each core the program may "
                        "use." },
};

uint64_t option_values[OPTION_COUNT] = {
    [OPTION_HELPER_THREAD] = 1,
};

struct text {
    const char *start;
    size_t length;
};

static bool equals(struct text text, const char *word)
{
    size_t length = __builtin_strlen(word);

    return text.length == length && __builtin_memcmp(text.start, word, length) == 0;
}

static bool parse_number(struct text text, uint64_t *value)
{
    uint64_t number = 0;

    if (text.length == 0) return false;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned char)text.start[i] - '0';
        if (digit > 9 || number > (UINT64_MAX - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *value = number;
    return true;
}

static bool parse_value(const struct option_row *row, struct text text, uint64_t *value)
{
    if (row->is_bool) {
        *value = equals(text, "true");
        return *value == 1 || equals(text, "false");
    }
    return parse_number(text, value) && *value >= row->least && *value <= row->most;
}

static void complain(struct text pair)
{
    static const char before[] = "prairie: PRAIRIE_CONF: bad pair: ";
    char line[160];
    size_t used = sizeof before - 1;

    __builtin_memcpy(line, before, used);
    for (size_t i = 0; i < pair.length && used < sizeof line - 1; i++) line[used++] = pair.start[i];
    line[used++] = '\n';
    port_write_error(line, used);
}

static void parse_pair(struct text pair)
{
    const char *colon = __builtin_memchr(pair.start, ':', pair.length);
    struct text key, value;

    if (colon != NULL) {
        key = (struct text){ pair.start, (size_t)(colon - pair.start) };
        value = (struct text){ colon + 1, pair.length - key.length - 1 };
        for (unsigned i = 0; i < OPTION_COUNT; i++) {
            uint64_t number = 0;
            if (!equals(key, option_rows[i].name)) continue;
            if (!parse_value(&option_rows[i], value, &number)) break;
            option_values[i] = number;
            return;
        }
    }
    complain(pair);
}

void options_parse(const char *text)
{
    while (text != NULL && *text != '\0') {
        const char *end = text;

        while (*end != '\0' && *end != ',') end++;
        if (end != text) parse_pair((struct text){ text, (size_t)(end - text) });
        text = *end == ',' ? end + 1 : end;
    }
}
