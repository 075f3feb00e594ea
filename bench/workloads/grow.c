/* grow.c - blocks that grow and shrink by realloc: strings, lists, vectors, one huge vector, read
 * buffers.
 * SPDX-License-Identifier: MIT
 *
 * Idea: the strings and arrays of scripting languages and editors (realloc in mimalloc-bench's
 * rbstress and in Zorn's perl traces). Growth inside a class costs a call only, growth of large
 * blocks is a copy, a move of pages, or nothing where the neighbour is free. */
#include "sizes.h"

#include <stdlib.h>

enum { STRINGS = 3000, STRING_BYTES_MAX = 6000, VECTORS = 12, BUFFERS = 1500 };
enum { LISTS = 200, LIST_NODES = 40, NODE_BYTES_MAX = 8192, ELEMENT_BYTES_MAX = 200 };

struct text {
    char *bytes;
    uint32_t count;
};

/* The naive string: one byte more than its text, grown by every appended piece. */
static struct outcome run_strings(const struct job *job)
{
    uint64_t appends = scaled(job, 20000000), sum = 0;
    uint64_t random = random_start(job->seed, 0);
    struct text *strings = own_memory(STRINGS * sizeof *strings);
    for (uint64_t i = 0; i < appends; i++) {
        struct text *text = &strings[random_below(&random, STRINGS)];
        uint32_t piece = 1 + random_below(&random, 64);
        if (text->count + piece > STRING_BYTES_MAX) {
            sum = sum * 3 + (unsigned char)text->bytes[text->count / 2] + text->count;
            free(text->bytes);
            *text = (struct text){ NULL, 0 };
        }
        text->bytes = need(realloc(text->bytes, text->count + piece + 1));
        memset(text->bytes + text->count, (int)(i & 0xFF), piece + 1);
        text->count += piece;
    }
    for (uint32_t i = 0; i < STRINGS; i++) {
        if (strings[i].bytes != NULL) sum += (unsigned char)strings[i].bytes[0] + strings[i].count;
        free(strings[i].bytes);
    }
    return (struct outcome){ sum, appends };
}

struct list {
    struct text node[LIST_NODES]; /* a ring: the oldest makes room for the next */
    uint32_t last;
};

static uint64_t drop_node(struct text *node)
{
    uint64_t sum = 0;
    if (node->bytes != NULL) sum = (unsigned char)node->bytes[node->count / 2] + node->count;
    free(node->bytes);
    *node = (struct text){ NULL, 0 };
    return sum;
}

/* Values are packed into the last node of a list, which grows by each of them until it is full and
 * then stays. Most blocks that live have stopped growing, and what room they have left is for
 * nobody. */
static struct outcome run_lists(const struct job *job)
{
    uint64_t pushes = scaled(job, 12000000), sum = 0;
    uint64_t random = random_start(job->seed, 0);
    struct list *lists = own_memory(LISTS * sizeof *lists);
    for (uint64_t i = 0; i < pushes; i++) {
        struct list *list = &lists[random_below(&random, LISTS)];
        struct text *node = &list->node[list->last];
        uint32_t bytes = 1 + random_below(&random, ELEMENT_BYTES_MAX);
        if (node->count + bytes > NODE_BYTES_MAX) {
            list->last = (list->last + 1) % LIST_NODES;
            node = &list->node[list->last];
            sum = sum * 3 + drop_node(node);
        }
        node->bytes = need(realloc(node->bytes, node->count + bytes));
        memset(node->bytes + node->count, (int)(i & 0xFF), bytes);
        node->count += bytes;
    }
    for (uint32_t i = 0; i < LISTS; i++)
        for (uint32_t j = 0; j < LIST_NODES; j++) sum = sum * 3 + drop_node(&lists[i].node[j]);
    return (struct outcome){ sum, pushes };
}

struct vector {
    uint64_t *item;
    size_t count, capacity;
};

static void append(struct vector *vector, uint64_t value, unsigned doubles)
{
    if (vector->count == vector->capacity) {
        vector->capacity = vector->capacity == 0 ? 4
                         : doubles               ? vector->capacity * 2
                                                 : vector->capacity + vector->capacity / 2;
        vector->item = need(realloc(vector->item, vector->capacity * sizeof *vector->item));
    }
    vector->item[vector->count++] = value;
}

static uint64_t drop(struct vector *vector)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < vector->count; i += 64) sum = sum * 3 + vector->item[i];
    free(vector->item);
    *vector = (struct vector){ NULL, 0, 0 };
    return sum;
}

/* Twelve vectors grow in turns by halves, each to a length of its own up to 12 MB. */
static struct outcome run_vectors(const struct job *job)
{
    uint64_t rounds = scaled(job, 180), sum = 0, operations = 0;
    uint64_t random = random_start(job->seed, 0);
    struct vector *vectors = own_memory(VECTORS * sizeof *vectors);
    for (uint64_t round = 0; round < rounds; round++) {
        size_t last[VECTORS], longest = 0;
        for (unsigned i = 0; i < VECTORS; i++) {
            last[i] = 1000 + random_below(&random, 200000) * (i == 0 ? 8 : 1);
            if (last[i] > longest) longest = last[i];
        }
        for (size_t count = 0; count < longest; count += 256)
            for (unsigned i = 0; i < VECTORS; i++)
                for (size_t j = count; j < count + 256 && j < last[i]; j++)
                    append(&vectors[i], j * round + i, 0);
        for (unsigned i = 0; i < VECTORS; i++) {
            operations += vectors[i].count;
            sum = sum * 5 + drop(&vectors[i]);
        }
    }
    return (struct outcome){ sum, operations };
}

static struct outcome run_vector_huge(const struct job *job)
{
    uint64_t rounds = scaled(job, 10), sum = 0, items = 20000000;
    struct vector vector = { NULL, 0, 0 };
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < items; i++) append(&vector, i ^ (job->seed + round), 1);
        sum = sum * 5 + drop(&vector);
    }
    return (struct outcome){ sum, rounds * items };
}

/* A buffer of 64 KB is filled by a reader with what there is, cut to that and kept. */
static struct outcome run_shrink(const struct job *job)
{
    uint64_t reads = scaled(job, 9000000), sum = 0;
    uint64_t random = random_start(job->seed, 0);
    char **kept = own_memory(BUFFERS * sizeof *kept);
    for (uint64_t i = 0; i < reads; i++) {
        char **slot = &kept[random_below(&random, BUFFERS)];
        size_t bytes = size_power_law(&random);
        char *buffer = need(malloc(65536));
        block_write(buffer, bytes, 512, i * 7 + bytes);
        buffer = need(realloc(buffer, bytes));
        if (*slot != NULL) sum = sum * 3 + block_word(*slot);
        free(*slot);
        *slot = buffer;
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        if (kept[i] != NULL) sum = sum * 3 + block_word(kept[i]);
        free(kept[i]);
    }
    return (struct outcome){ sum, reads };
}

#define IDEA "rbstress and Zorn's perl: strings and arrays of scripting languages"

static const struct workload workloads[] = {
    { "strings", "resize",
      "3,000 strings, a random one grows by 1 to 64 bytes up to 6 KB: growth that mostly stays in "
      "its class",
      IDEA, 1, NULL, run_strings, SUITE_TIMED, NULL, NULL },
    { "lists", "resize",
      "200 lists of 40 packed nodes: the last grows by 1 to 200 bytes up to 8 KB, then stays",
      "redis's lists of packed values (quicklists)", 1, NULL, run_lists, SUITE_TIMED, NULL, NULL },
    { "vectors", "resize",
      "12 vectors grow in turns by halves to between 8 KB and 12 MB, all written", IDEA, 1, NULL,
      run_vectors, SUITE_TIMED, NULL, NULL },
    { "vector-huge", "resize", "one vector doubles from 32 bytes to 256 MB: copies or moved pages",
      IDEA, 1, NULL, run_vector_huge, SUITE_TIMED, NULL, NULL },
    { "shrink", "resize", "buffers of 64 KB cut by realloc to what was read, 1,500 of them kept",
      "the reader that allocates for the worst case; Wilson's survey", 1, NULL, run_shrink,
      SUITE_TIMED, NULL, NULL },
};

const struct workload_list grow_list = { workloads, sizeof workloads / sizeof *workloads };
