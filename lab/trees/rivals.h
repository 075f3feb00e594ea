/* rivals.h - what one would take today instead of a binary tree: a sorted array, and a B-tree.
 *
 * Neither is intrusive: both keep a key and an address for each item, in memory of their own.
 * Their rows of the table have only the verbs that are measured.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_RIVALS_H
#define PRAIRIE_LAB_RIVALS_H

#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sorted array ---- */

struct entry {
    uint64_t key;
    struct item *item;
};

/* entry[0..count-1] by rising keys; it doubles when it is full. */
struct sorted {
    struct entry *entry;
    size_t count, capacity;
};

/* How many keys are below this one: halves what is left without branching on the outcome. */
INLINE size_t sorted_place(const struct sorted *sorted, uint64_t key)
{
    const struct entry *base = sorted->entry;
    size_t left = sorted->count;

    while (left > 1) {
        size_t half = left / 2;
        base += base[half - 1].key < key ? half : 0;
        left -= half;
    }
    return (size_t)(base - sorted->entry) + (left == 1 && base->key < key);
}

static void sorted_kind_insert(union any_tree *tree, struct item *item)
{
    struct sorted *sorted = tree->rival;
    size_t at;

    if (sorted == NULL) tree->rival = sorted = calloc(1, sizeof *sorted);
    if (sorted != NULL && sorted->count == sorted->capacity) {
        sorted->capacity = sorted->capacity == 0 ? 16 : 2 * sorted->capacity;
        sorted->entry = realloc(sorted->entry, sorted->capacity * sizeof *sorted->entry);
    }
    if (sorted == NULL || sorted->entry == NULL) {
        fprintf(stderr, "trees: no memory for the sorted array\n");
        exit(1);
    }
    at = sorted_place(sorted, item->key);
    memmove(sorted->entry + at + 1, sorted->entry + at,
            (sorted->count++ - at) * sizeof(struct entry));
    sorted->entry[at] = (struct entry){ item->key, item };
}

static void sorted_kind_remove(union any_tree *tree, struct item *item)
{
    struct sorted *sorted = tree->rival;
    size_t at = sorted_place(sorted, item->key);

    memmove(sorted->entry + at, sorted->entry + at + 1,
            (--sorted->count - at) * sizeof(struct entry));
    if (sorted->count > 0) return;
    free(sorted->entry);
    free(sorted);
    tree->rival = NULL;
}

INLINE struct item *sorted_kind_search(const union any_tree *tree, const struct item *like)
{
    const struct sorted *sorted = tree->rival;
    size_t at = sorted_place(sorted, like->key);

    return at < sorted->count && sorted->entry[at].key == like->key ? sorted->entry[at].item : NULL;
}

INLINE void sorted_kind_iterate(const union any_tree *tree, tree_visit *visit, void *context)
{
    const struct sorted *sorted = tree->rival;

    for (size_t i = 0; i < sorted->count; i++) visit(sorted->entry[i].item->node, context);
}

static const struct tree_kind sorted_kind = { .name = "sorted array",
                                              .item_bytes = sizeof(struct item),
                                              .insert = sorted_kind_insert,
                                              .remove = sorted_kind_remove,
                                              .search = sorted_kind_search,
                                              .iterate = sorted_kind_iterate };

/* ---- B-tree of the Abseil library; btree.cpp ---- */

void btree_kind_insert(union any_tree *tree, struct item *item);
void btree_kind_remove(union any_tree *tree, struct item *item);
struct item *btree_kind_search(const union any_tree *tree, const struct item *like);
void btree_kind_iterate(const union any_tree *tree, tree_visit *visit, void *context);

#endif
