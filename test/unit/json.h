/* json.h - reads JSON strictly, and finds a value by the keys that lead to it. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_JSON_H
#define PRAIRIE_TEST_JSON_H

#include "unit.h"

static const char *json_end_of(const char *at);

static const char *json_end_of_text(const char *at)
{
    assert_int_equal(*at, '"');
    for (at++; *at != '"'; at++) {
        assert_true((unsigned char)*at >= ' ');
        if (*at == '\\') assert_non_null(strchr("\"\\/bfnrtu", *++at));
    }
    return at + 1;
}

static const char *json_end_of_number(const char *at)
{
    size_t digits;

    if (*at == '-') at++;
    digits = strspn(at, "0123456789");
    assert_true(digits == 1 || (digits > 1 && *at != '0'));
    return at + digits;
}

/* Where the members of an object or an array begin, or NULL after the last one. */
static const char *json_next_member(const char *at, bool is_first)
{
    char end = *at == ',' ? ',' : is_first ? *at : '\0';

    if (*at == '}' || *at == ']') return NULL;
    assert_true(is_first ? end != ',' : end == ',');
    return is_first ? at : at + 1;
}

static const char *json_end_of_members(const char *at)
{
    char open = *at++, close = open == '{' ? '}' : ']';

    for (bool is_first = true;; is_first = false) {
        const char *member = json_next_member(at, is_first);

        if (member == NULL) break;
        if (open == '{') {
            member = json_end_of_text(member);
            assert_int_equal(*member, ':');
            member++;
        }
        at = json_end_of(member);
    }
    assert_int_equal(*at, close);
    return at + 1;
}

/* Behind the value; the test fails when it is none. */
static const char *json_end_of(const char *at)
{
    if (*at == '{' || *at == '[') return json_end_of_members(at);
    if (*at == '"') return json_end_of_text(at);
    if (strncmp(at, "true", 4) == 0) return at + 4;
    if (strncmp(at, "false", 5) == 0) return at + 5;
    return json_end_of_number(at);
}

/* The member of that key, or that number in an array; NULL: there is none. */
static const char *json_member(const char *at, const char *key, size_t key_length)
{
    char open = *at++;
    bool is_first = true;

    for (unsigned long i = 0; (at = json_next_member(at, is_first)) != NULL; i++) {
        const char *value = open == '{' ? json_end_of_text(at) + 1 : at;
        bool is_it = open == '{' ? (size_t)(value - at) == key_length + 3
                                       && strncmp(at + 1, key, key_length) == 0
                                 : strtoul(key, NULL, 10) == i;

        if (is_it) return value;
        at = json_end_of(value);
        is_first = false;
    }
    return NULL;
}

/* `path`: keys and numbers with slashes between. NULL: there is no such value. */
static const char *json_find(const char *at, const char *path)
{
    while (at != NULL && *path != '\0') {
        size_t length = strcspn(path, "/");

        if (*at != '{' && *at != '[') return NULL;
        at = json_member(at, path, length);
        path += length + (path[length] == '/');
    }
    return at;
}

static uint64_t json_number(const char *text, const char *path)
{
    const char *value = json_find(text, path);

    if (value == NULL || *value < '0' || *value > '9') fail_msg("no number at %s", path);
    return strtoull(value, NULL, 10);
}

static void json_expect_text(const char *text, const char *path, const char *wanted)
{
    const char *value = json_find(text, path);

    if (value == NULL || *value != '"' || strncmp(value + 1, wanted, strlen(wanted)) != 0
        || value[1 + strlen(wanted)] != '"')
        fail_msg("not \"%s\" at %s", wanted, path);
}

#endif
