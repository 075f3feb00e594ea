/* interpreter.c - what a scripting language does: boxed numbers, strings, lists and dictionaries.
 * SPDX-License-Identifier: MIT
 *
 * Idea: the perl, python and gawk runs in Zorn and Grunwald's traces and in Johnstone's: counted
 * references, most objects die at once, some end in a list or dictionary that grows by realloc or
 * by a new table, and whole dictionaries die together. */
#include "sizes.h"

#include <stdlib.h>

enum { WORDS = 8000, MODULES = 12, DICT_FIRST = 8, MODULE_LIFE = 150000 };

enum kind { INTEGER, STRING, LIST, DICT };

struct object {
    uint32_t references;
    enum kind kind;
};

struct integer {
    struct object head;
    int64_t value;
};

struct string {
    struct object head;
    uint32_t hash, count;
    char text[];
};

struct list {
    struct object head;
    size_t count, capacity;
    struct object **item;
};

struct entry {
    struct string *key; /* NULL: free */
    struct object *value;
};

struct dict {
    struct object head;
    size_t count, capacity; /* a power of two */
    struct entry *entry;
};

static uint64_t made;

static void *new_object(enum kind kind, size_t bytes)
{
    struct object *object = need(malloc(bytes));
    *object = (struct object){ 1, kind };
    made++;
    return object;
}

static void release(struct object *object);

static void release_list(struct list *list)
{
    for (size_t i = 0; i < list->count; i++) release(list->item[i]);
    free(list->item);
}

static void release_dict(struct dict *dict)
{
    for (size_t i = 0; i < dict->capacity; i++) {
        if (dict->entry[i].key == NULL) continue;
        release(&dict->entry[i].key->head);
        release(dict->entry[i].value);
    }
    free(dict->entry);
}

static void release(struct object *object)
{
    if (--object->references > 0) return;
    if (object->kind == LIST) release_list((struct list *)object);
    if (object->kind == DICT) release_dict((struct dict *)object);
    free(object);
}

static struct object *new_integer(int64_t value)
{
    struct integer *integer = new_object(INTEGER, sizeof *integer);
    integer->value = value;
    return &integer->head;
}

static struct string *joined(const char *left, size_t left_count, const char *right,
                             size_t right_count)
{
    struct string *string = new_object(STRING, sizeof *string + left_count + right_count + 1);
    string->count = (uint32_t)(left_count + right_count);
    memcpy(string->text, left, left_count);
    memcpy(string->text + left_count, right, right_count);
    string->text[string->count] = '\0';
    string->hash = 2166136261u;
    for (uint32_t i = 0; i < string->count; i++)
        string->hash = (string->hash ^ (unsigned char)string->text[i]) * 16777619u;
    return string;
}

static struct list *new_list(void)
{
    struct list *list = new_object(LIST, sizeof *list);
    list->count = list->capacity = 0;
    list->item = NULL;
    return list;
}

static void append(struct list *list, struct object *object)
{
    if (list->count == list->capacity) {
        list->capacity += list->capacity / 8 + 4;
        list->item = need(realloc(list->item, list->capacity * sizeof *list->item));
    }
    list->item[list->count++] = object;
}

static struct dict *new_dict(void)
{
    struct dict *dict = new_object(DICT, sizeof *dict);
    dict->count = 0;
    dict->capacity = DICT_FIRST;
    dict->entry = need(calloc(dict->capacity, sizeof *dict->entry));
    return dict;
}

static struct entry *find(struct dict *dict, const struct string *key)
{
    for (size_t at = key->hash;; at++) {
        struct entry *entry = &dict->entry[at & (dict->capacity - 1)];
        if (entry->key == NULL) return entry;
        if (entry->key->hash == key->hash && strcmp(entry->key->text, key->text) == 0) return entry;
    }
}

static void enlarge(struct dict *dict)
{
    struct entry *old = dict->entry;
    size_t old_capacity = dict->capacity;
    dict->capacity *= 2;
    dict->entry = need(calloc(dict->capacity, sizeof *dict->entry));
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].key != NULL) *find(dict, old[i].key) = old[i];
    free(old);
}

/* The list of a word in a module's dictionary; makes it, and takes the key, when it is new. */
static struct list *list_of(struct dict *dict, struct string *key)
{
    struct entry *entry = find(dict, key);
    if (entry->key != NULL) return (struct list *)entry->value;
    struct list *list = new_list();
    key->head.references++;
    *entry = (struct entry){ key, &list->head };
    if (++dict->count * 3 > dict->capacity * 2) enlarge(dict);
    return list;
}

static struct string *word(uint64_t *random)
{
    char digits[12];
    unsigned count = 0;
    uint32_t number = random_below(random, WORDS) * (1 + random_below(random, 2));
    do digits[count++] = (char)('a' + number % 16);
    while ((number /= 16) != 0);
    return joined("word-", 5, digits, count);
}

static uint64_t step(struct dict *module, uint64_t *random, uint64_t number)
{
    struct string *key = word(random);
    struct list *list = list_of(module, key);
    struct object *integer = new_integer((int64_t)number);
    uint64_t sum = list->count;
    if (list->count > 0) { /* a sum and a label, both dropped at once */
        const struct integer *last = (const struct integer *)list->item[list->count - 1];
        struct object *total = new_integer(last->value + (int64_t)number);
        struct string *label = joined(key->text, key->count, ": more text of it", 17);
        sum += label->hash + (uint64_t)((struct integer *)total)->value;
        release(total);
        release(&label->head);
    }
    append(list, integer);
    release(&key->head);
    return sum;
}

static struct outcome run_interpreter(const struct job *job)
{
    uint64_t steps = scaled(job, 3500000), sum = 0, random = random_start(job->seed, 0);
    struct dict *module[MODULES];
    made = 0;
    for (unsigned i = 0; i < MODULES; i++) module[i] = new_dict();
    for (uint64_t i = 0; i < steps; i++) {
        sum = sum * 3 + step(module[random_below(&random, MODULES)], &random, i);
        if (i % MODULE_LIFE == MODULE_LIFE - 1) {
            struct dict **dying = &module[i / MODULE_LIFE % MODULES];
            release(&(*dying)->head);
            *dying = new_dict();
        }
    }
    for (unsigned i = 0; i < MODULES; i++) {
        sum += module[i]->count;
        release(&module[i]->head);
    }
    return (struct outcome){ sum, made };
}

static const struct workload workloads[] = {
    { "interpreter", "programs",
      "boxed numbers and strings that die at once, lists and dictionaries that grow and die "
      "together",
      "the perl, python and gawk runs of Zorn, Grunwald and Johnstone", 1, NULL, run_interpreter,
      SUITE_TIMED, NULL, NULL },
};

const struct workload_list interpreter_list = { workloads, sizeof workloads / sizeof *workloads };
