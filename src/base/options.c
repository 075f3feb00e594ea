/* options.c - the table of options, and the reading of "key:value,key:value".
 * SPDX-License-Identifier: MIT
 */
#include "options.h"

#include "fatal.h"
#include "port.h"
#include "units.h"

#define OPTION(id, kind, mode, name, standard, least, most, words, sentence) \
    { name, OPTION_KIND_##kind, OPTION_MODE_##mode, least, most, words },
const struct option_row option_rows[OPTION_COUNT] = {
#include "option_list.h"
};
#undef OPTION

#define OPTION(id, kind, mode, name, standard, least, most, words, sentence) (uint64_t)(standard),
uint64_t option_values[OPTION_COUNT] SEALED = {
#include "option_list.h"
};
#undef OPTION

/* Other names. */
static const struct option_alias {
    char name[16];
    uint8_t option;
} aliases[] = {
    { "arenas", OPTION_NARENAS },
    { "helper_thread", OPTION_BACKGROUND_THREAD },
};

struct text {
    const char *start;
    size_t length;
};

enum verdict { PAIR_SET, PAIR_UNKNOWN, VALUE_UNKNOWN, VALUE_OUT_OF_RANGE };

/* Where the texts of all sources are kept, so that options that are texts end with a NUL. */
static char text_room[4096] SPARSE;
static size_t text_used SEALED;
static bool not_understood; /* a pair was not, and abort_conf does not forgive it */

static bool equals(struct text text, const char *word)
{
    size_t length = __builtin_strlen(word);

    return text.length == length && __builtin_memcmp(text.start, word, length) == 0;
}

static bool starts_with(struct text text, const char *start)
{
    size_t length = __builtin_strlen(start);

    return text.length >= length && __builtin_memcmp(text.start, start, length) == 0;
}

/* ---- values ---- */

static unsigned digit_of(char letter)
{
    if (letter >= '0' && letter <= '9') return (unsigned)(letter - '0');
    if ((letter | 32) >= 'a' && (letter | 32) <= 'f') return (unsigned)((letter | 32) - 'a') + 10;
    return 16;
}

static bool is_blank(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

/* As C writes numbers: 10, 0x10, 010. */
static bool parse_number(struct text text, uint64_t *value)
{
    uint64_t number = 0;
    unsigned base = 10;
    size_t at = 0;

    if (text.length > 2 && text.start[0] == '0' && (text.start[1] | 32) == 'x') base = 16, at = 2;
    else if (text.length > 1 && text.start[0] == '0') base = 8, at = 1;
    if (at == text.length) return false;
    for (; at < text.length; at++) {
        unsigned digit = digit_of(text.start[at]);
        if (digit >= base || number > (UINT64_MAX - digit) / base) return false;
        number = number * base + digit;
    }
    *value = number;
    return true;
}

/* What may stand before a number, as with strtoumax: blanks, then a sign. True: it is a minus. */
static bool take_sign(struct text *text)
{
    struct text rest = *text;
    bool negative;

    while (rest.length > 0 && is_blank(rest.start[0])) rest.start++, rest.length--;
    negative = rest.length > 0 && rest.start[0] == '-';
    if (negative || (rest.length > 0 && rest.start[0] == '+')) rest.start++, rest.length--;
    *text = rest;
    return negative;
}

static bool is_signed(const struct option_row *row)
{
    return row->kind == OPTION_KIND_SSIZE || row->kind == OPTION_KIND_I64;
}

/* That limit counts, or none. */
static enum verdict count_as(uint64_t limit, const struct option_row *row, uint64_t *value)
{
    if ((row->mode & OPTION_CLIPPED) == 0) return VALUE_OUT_OF_RANGE;
    *value = limit;
    return PAIR_SET;
}

static enum verdict parse_integer(const struct option_row *row, struct text text, uint64_t *value)
{
    bool negative = take_sign(&text);
    uint64_t size;

    if (!parse_number(text, &size)) return VALUE_UNKNOWN;
    *value = negative ? 0 - size : size;
    if (negative && size != 0) {
        bool small = is_signed(row) && size <= INT64_MAX && -(int64_t)size >= row->least;
        return small ? PAIR_SET : count_as(row->most, row, value); /* jemalloc has it wrap around */
    }
    if (size > row->most) return count_as(row->most, row, value);
    if (row->least > 0 && size < (uint64_t)row->least)
        return count_as((uint64_t)row->least, row, value);
    if (row->kind == OPTION_KIND_SIZE && size != (size_t)size) *value = SIZE_MAX; /* 32 bits */
    return PAIR_SET;
}

/* 1, 0.25, .5; kept in 65536ths. */
static enum verdict parse_fraction(struct text text, uint64_t *value)
{
    uint64_t whole = 0, part = 0, scale = 1;
    bool beyond_point = false;
    size_t digits = 0;

    if (equals(text, "-1")) {
        *value = UINT32_MAX;
        return PAIR_SET;
    }
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = digit_of(text.start[i]);
        if (text.start[i] == '.' && !beyond_point) {
            beyond_point = true;
            continue;
        }
        if (digit > 9) return VALUE_UNKNOWN;
        digits++;
        if (!beyond_point) whole = whole * 10 + digit;
        else if (scale < 1000000000) part = part * 10 + digit, scale *= 10;
        if (whole >= 65535) return VALUE_OUT_OF_RANGE;
    }
    *value = (whole << 16) + (part << 16) / scale;
    return digits > 0 ? PAIR_SET : VALUE_UNKNOWN;
}

static int number_of_word(const struct option_row *row, struct text text)
{
    int number = 0;

    for (const char *word = row->words; *word != '\0'; word += __builtin_strlen(word) + 1) {
        if (equals(text, word)) return (uint64_t)number <= row->most ? number : -1;
        number++;
    }
    return -1;
}

static enum verdict keep_text(struct text text, uint64_t *value)
{
    char *room = text_room + text_used;

    if (text.length >= sizeof text_room - text_used) return VALUE_OUT_OF_RANGE;
    __builtin_memcpy(room, text.start, text.length);
    room[text.length] = '\0';
    text_used += text.length + 1;
    *value = (uintptr_t)room;
    return PAIR_SET;
}

static enum verdict parse_value(enum option option, struct text text, uint64_t *value)
{
    const struct option_row *row = &option_rows[option];
    int number;

    switch ((enum option_kind)row->kind) {
    case OPTION_KIND_BOOL:
        *value = equals(text, "true");
        return *value == 1 || equals(text, "false") ? PAIR_SET : VALUE_UNKNOWN;
    case OPTION_KIND_CHOICE:
        number = number_of_word(row, text);
        *value = (uint64_t)number;
        return number >= 0 ? PAIR_SET : VALUE_UNKNOWN;
    case OPTION_KIND_FRACTION: return parse_fraction(text, value);
    case OPTION_KIND_TEXT: return keep_text(text, value);
    case OPTION_KIND_IGNORED: return PAIR_SET;
    default: break;
    }
    if (option == OPTION_NARENAS && equals(text, "default")) text = (struct text){ "0", 1 };
    return parse_integer(row, text, value);
}

/* ---- pairs ---- */

static unsigned option_of_key(struct text key)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (equals(key, option_rows[i].name)) return i;
    for (unsigned i = 0; i < ARRAY_COUNT(aliases); i++)
        if (equals(key, aliases[i].name)) return aliases[i].option;
    return OPTION_COUNT;
}

/* tcache_max as a power of two; clipped as that is. */
static enum verdict set_lg_tcache_max(struct text text)
{
    uint64_t number = 0;
    bool negative = take_sign(&text);

    if (!parse_number(text, &number)) return VALUE_UNKNOWN;
    if (number >= SIZE_BITS - 1 || (negative && number != 0)) number = SIZE_BITS - 2;
    option_values[OPTION_TCACHE_MAX] = (uint64_t)1 << number;
    return PAIR_SET;
}

static enum verdict set_pair(struct text key, struct text value, const char *source)
{
    unsigned option = option_of_key(key);
    uint64_t number = 0;
    enum verdict verdict;

    if (equals(key, "lg_tcache_max")) return set_lg_tcache_max(value);
    if (option == OPTION_COUNT) return PAIR_UNKNOWN;
    verdict = parse_value((enum option)option, value, &number);
    if (verdict != PAIR_SET) return verdict;
    if (option == OPTION_STATS_PRINT && number != 0)
        number =
            __builtin_strcmp(source, "PRAIRIE_CONF") == 0 ? STATS_PRINTED_SHORT : STATS_PRINTED;
    option_values[option] = number;
    return PAIR_SET;
}

static void say(const char *what, struct text pair, const char *source)
{
    struct text parts[] = {
        { what, __builtin_strlen(what) },     pair,       { " (", 2 },
        { source, __builtin_strlen(source) }, { ")", 1 },
    };
    char line[240];
    size_t used = 0;

    for (unsigned part = 0; part < ARRAY_COUNT(parts); part++)
        for (size_t i = 0; i < parts[part].length && used < sizeof line - 1; i++)
            line[used++] = parts[part].start[i];
    line[used++] = '\n';
    port_write_error(line, used);
}

static void complain(enum verdict verdict, struct text pair, const char *source)
{
    const char *what = "prairie: Invalid conf pair: ";

    if (verdict == VALUE_UNKNOWN) what = "prairie: Invalid conf value: ";
    if (verdict == VALUE_OUT_OF_RANGE) what = "prairie: Out-of-range conf value: ";
    say(what, pair, source);
    if (!starts_with(pair, "experimental_")) not_understood = true;
}

static void parse_pair(struct text pair, const char *source)
{
    const char *colon = __builtin_memchr(pair.start, ':', pair.length);
    enum verdict verdict = PAIR_UNKNOWN;

    if (colon != NULL) {
        struct text key = { pair.start, (size_t)(colon - pair.start) };
        verdict = set_pair(key, (struct text){ colon + 1, pair.length - key.length - 1 }, source);
    }
    if (verdict != PAIR_SET) complain(verdict, pair, source);
    else if (option_is_set(OPTION_CONFIRM_CONF)) say("prairie: -- Set conf value: ", pair, source);
}

/* The next pair that is not empty, and what comes after it. Length 0: there is none. */
static struct text next_pair(const char **text)
{
    const char *start = *text, *end;

    while (*start == ',') start++;
    end = start;
    while (*end != '\0' && *end != ',') end++;
    *text = end;
    return (struct text){ start, (size_t)(end - start) };
}

void options_parse(const char *text, const char *source)
{
    struct text pair;

    if (text == NULL) return;
    while ((pair = next_pair(&text)).length != 0) parse_pair(pair, source);
}

void options_parse_first(const char *text)
{
    struct text pair;

    if (text == NULL) return;
    while ((pair = next_pair(&text)).length != 0) {
        if (equals(pair, "abort_conf:true")) option_values[OPTION_ABORT_CONF] = 1;
        if (equals(pair, "confirm_conf:true")) option_values[OPTION_CONFIRM_CONF] = 1;
    }
}

void options_finish(void)
{
    if (not_understood && option_is_set(OPTION_ABORT_CONF))
        fatal("abort_conf:true, and an option that is not understood");
}

/* ---- while the program runs ---- */

enum { CHANGED_MAX = 16 };

static struct {
    uint8_t option;
    uint64_t value_at_start;
} changed[CHANGED_MAX] SPARSE;
static unsigned changed_count; /* atomic: options that were changed; entries below it are whole */

/* The caller sees to it that there is one at a time. Who reads the new value finds the entry;
 * partner: option_value_at_start. */
void option_set(enum option option, uint64_t value)
{
    unsigned i = 0;

    while (i < changed_count && changed[i].option != option) i++;
    if (i == changed_count && i < CHANGED_MAX) {
        changed[i].option = (uint8_t)option;
        changed[i].value_at_start = option_values[option];
        __atomic_store_n(&changed_count, changed_count + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&option_values[option], value, __ATOMIC_RELEASE);
}

uint64_t option_value_at_start(enum option option)
{
    uint64_t value = __atomic_load_n(&option_values[option], __ATOMIC_ACQUIRE);
    unsigned count = __atomic_load_n(&changed_count, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < count; i++)
        if (changed[i].option == option) return changed[i].value_at_start;
    return value;
}

bool option_asked_at_start(enum option option)
{
    uint64_t value = option_value_at_start(option);

    return value != 0 && value != OPTION_UNASKED;
}

/* ---- words ---- */

const char *option_word(enum option option, uint64_t number)
{
    const char *word = option_rows[option].words;

    while (number-- > 0) word += __builtin_strlen(word) + 1;
    return word;
}

int option_number(enum option option, const char *word)
{
    return number_of_word(&option_rows[option],
                          (struct text){ word, word == NULL ? 0 : __builtin_strlen(word) });
}

const char *option_text(enum option option)
{
    uint64_t value = option_values[option];

    return value != 0 ? (const char *)(uintptr_t)value : option_rows[option].words;
}
