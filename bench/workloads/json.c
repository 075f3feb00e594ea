/* json.c - a document read into a tree of values, changed, written out again and dropped.
 * SPDX-License-Identifier: MIT
 *
 * Idea: what services do all day with JSON (the parser benchmarks around cJSON and RapidJSON): a
 * block for every value, every key and every text, all born in document order and freed together,
 * and an output buffer that grows by doubling. */
#include "sizes.h"

#include <stdlib.h>

enum { TEXT_BYTES_MAX = 4 << 20, RECORDS = 6000 };

enum kind { NUMBER, STRING, ARRAY, OBJECT };

struct value {
    enum kind kind;
    char *key;  /* inside an object */
    char *text; /* STRING */
    int64_t number;
    struct value *first, *next;
};

struct writer {
    char *text;
    size_t count, capacity;
};

struct reader {
    const char *at;
    uint64_t values;
};

/* The input is made in memory of our own; the output grows under the allocator under test. */
static void put(struct writer *writer, const char *text, size_t count)
{
    if (writer->count + count > writer->capacity) {
        while (writer->count + count > writer->capacity)
            writer->capacity = writer->capacity == 0 ? 256 : writer->capacity * 2;
        writer->text = need(realloc(writer->text, writer->capacity));
    }
    memcpy(writer->text + writer->count, text, count);
    writer->count += count;
}

static void put_text(struct writer *writer, const char *text)
{
    put(writer, "\"", 1);
    put(writer, text, strlen(text));
    put(writer, "\"", 1);
}

static void put_number(struct writer *writer, int64_t number)
{
    char digits[24];
    char *at = digits + sizeof digits;
    do *--at = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    put(writer, at, (size_t)(digits + sizeof digits - at));
}

static void put_value(struct writer *writer, const struct value *value)
{
    if (value->kind == NUMBER) {
        put_number(writer, value->number);
        return;
    }
    if (value->kind == STRING) {
        put_text(writer, value->text);
        return;
    }
    put(writer, value->kind == ARRAY ? "[" : "{", 1);
    for (const struct value *child = value->first; child != NULL; child = child->next) {
        if (child != value->first) put(writer, ",", 1);
        if (value->kind == OBJECT) {
            put_text(writer, child->key);
            put(writer, ":", 1);
        }
        put_value(writer, child);
    }
    put(writer, value->kind == ARRAY ? "]" : "}", 1);
}

static void random_words(struct writer *writer, uint64_t *random, size_t bytes)
{
    put(writer, "\"", 1);
    for (size_t i = 0; i < bytes; i++) {
        char letter = (char)('a' + random_below(random, 26));
        put(writer, &letter, 1);
    }
    put(writer, "\"", 1);
}

static void make_record(struct writer *writer, uint64_t *random)
{
    static const char *const keys[] = { "id", "name", "street", "town", "note", "tags", "scores" };
    put(writer, "{", 1);
    for (unsigned i = 0; i < 7; i++) {
        if (i > 0) put(writer, ",", 1);
        put_text(writer, keys[i]);
        put(writer, ":", 1);
        if (i == 0) put_number(writer, random_below(random, 1000000));
        else if (i < 5)
            random_words(writer, random,
                         i == 4 ? size_power_law(random) % 1024 : 4 + random_below(random, 24));
        else {
            put(writer, "[", 1);
            for (uint32_t j = 0, count = 1 + random_below(random, 8); j < count; j++) {
                if (j > 0) put(writer, ",", 1);
                if (i == 5) random_words(writer, random, 3 + random_below(random, 9));
                else put_number(writer, random_below(random, 100));
            }
            put(writer, "]", 1);
        }
    }
    put(writer, "}", 1);
}

static const char *make_document(uint64_t seed)
{
    uint64_t random = random_start(seed, 0);
    struct writer writer = { own_memory(TEXT_BYTES_MAX), 0, TEXT_BYTES_MAX };
    put(&writer, "[", 1);
    for (uint32_t i = 0; i < RECORDS; i++) {
        if (i > 0) put(&writer, ",", 1);
        make_record(&writer, &random);
        if (writer.count > TEXT_BYTES_MAX - 16384) stop("the document outgrew its own memory");
    }
    put(&writer, "]", 2);
    return writer.text;
}

static char *read_text(struct reader *reader)
{
    const char *start = ++reader->at;
    while (*reader->at != '"') reader->at++;
    size_t count = (size_t)(reader->at++ - start);
    char *text = need(malloc(count + 1));
    memcpy(text, start, count);
    text[count] = '\0';
    return text;
}

static struct value *read_value(struct reader *reader)
{
    struct value *value = need(calloc(1, sizeof *value));
    reader->values++;
    if (*reader->at == '"') {
        value->kind = STRING;
        value->text = read_text(reader);
    } else if (*reader->at == '[' || *reader->at == '{') {
        char end = *reader->at == '[' ? ']' : '}';
        struct value **last = &value->first;
        value->kind = *reader->at == '[' ? ARRAY : OBJECT;
        do {
            reader->at++;
            char *key = value->kind == OBJECT ? read_text(reader) : NULL;
            if (key != NULL) reader->at++; /* the colon */
            *last = read_value(reader);
            (*last)->key = key;
            last = &(*last)->next;
        } while (*reader->at != end);
        reader->at++;
    } else {
        while (*reader->at >= '0' && *reader->at <= '9')
            value->number = value->number * 10 + (*reader->at++ - '0');
    }
    return value;
}

/* One text in eight gets longer. */
static void change(struct value *value, uint64_t *random)
{
    if (value->kind == STRING && random_below(random, 8) == 0) {
        size_t count = strlen(value->text);
        value->text = need(realloc(value->text, count + 12));
        memcpy(value->text + count, " and so on.", 12);
    }
    for (struct value *child = value->first; child != NULL; child = child->next)
        change(child, random);
}

static void drop(struct value *value)
{
    while (value != NULL) {
        struct value *next = value->next;
        drop(value->first);
        free(value->key);
        free(value->text);
        free(value);
        value = next;
    }
}

/* One record in five loses all members but the first two. */
static void cut_records(struct value *document, uint64_t *random)
{
    for (struct value *record = document->first; record != NULL; record = record->next)
        if (random_below(random, 5) == 0) {
            struct value *kept = record->first->next->next;
            drop(kept->next);
            kept->next = NULL;
        }
}

static uint64_t text_sum(const struct writer *writer)
{
    uint64_t sum = writer->count;
    for (size_t i = 0; i < writer->count; i += 16) sum = sum * 31 + (unsigned char)writer->text[i];
    return sum;
}

static struct outcome run_json(const struct job *job)
{
    const char *text = make_document(job->seed);
    uint64_t passes = scaled(job, 75), sum = 0, random = random_start(job->seed, 1);
    struct reader reader = { text, 0 };
    for (uint64_t i = 0; i < passes; i++) {
        struct writer writer = { NULL, 0, 0 };
        reader.at = text;
        struct value *document = read_value(&reader);
        change(document, &random);
        cut_records(document, &random);
        put_value(&writer, document);
        sum = sum * 5 + text_sum(&writer);
        drop(document);
        free(writer.text);
    }
    return (struct outcome){ sum, reader.values };
}

static const struct workload workloads[] = {
    { "json", "programs",
      "a document of 6,000 records parsed into a tree of values, changed, written out and dropped",
      "the benchmarks of JSON parsers", 1, NULL, run_json, SUITE_TIMED, NULL, NULL },
};

const struct workload_list json_list = { workloads, sizeof workloads / sizeof *workloads };
