/* tree.c - binary trees built, walked and torn down.
 * SPDX-License-Identifier: MIT
 *
 * Idea: the binary trees of Ellis, Kovac and Boehm's GCBench: equal small nodes whose neighbours in
 * the tree should be neighbours in memory. Small trees live in the caches, the large one strains
 * fresh memory, and its tear-down gives it all back. */
#include "sizes.h"

#include <stdlib.h>

struct node {
    struct node *left, *right;
    uint64_t value;
};

struct shape {
    unsigned depth; /* a complete tree of depth d has 2^d - 1 nodes */
    uint32_t trees;
    size_t node_bytes; /* a node with its payload */
};

static struct node *build(const struct shape *shape, unsigned depth, uint64_t value)
{
    if (depth == 0) return NULL;
    struct node *node = need(malloc(shape->node_bytes));
    node->value = value;
    node->left = build(shape, depth - 1, value * 2);
    node->right = build(shape, depth - 1, value * 2 + 1);
    return node;
}

static uint64_t walk(const struct node *node)
{
    return node == NULL ? 0 : node->value + 3 * walk(node->left) + 5 * walk(node->right);
}

static void tear_down(struct node *node)
{
    if (node == NULL) return;
    tear_down(node->left);
    tear_down(node->right);
    free(node);
}

static struct outcome run_tree(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t trees = scaled(job, shape->trees), sum = 0;
    for (uint64_t i = 0; i < trees; i++) {
        struct node *root = build(shape, shape->depth, job->seed + i);
        sum = sum * 7 + walk(root);
        tear_down(root);
    }
    return (struct outcome){ sum, trees * ((1ull << shape->depth) - 1) };
}

static const struct shape small = { 10, 72000, 32 };
static const struct shape medium = { 17, 400, 48 };
static const struct shape large = { 21, 5, 64 };

#define IDEA "the binary trees of GCBench (Ellis, Kovac, Boehm)"

static const struct workload workloads[] = {
    { "tree-1k", "trees",
      "trees of 1,023 nodes of 32 bytes built and torn down: 32 KB, fits the caches", IDEA, 1,
      &small, run_tree, SUITE_TIMED, NULL, NULL },
    { "tree-131k", "trees",
      "trees of 131,071 nodes of 48 bytes built and torn down: 6 MB of one class", IDEA, 1, &medium,
      run_tree, SUITE_TIMED, NULL, NULL },
    { "tree-2m", "trees",
      "trees of 2,097,151 nodes of 64 bytes built and torn down: 128 MB come and go", IDEA, 1,
      &large, run_tree, SUITE_TIMED, NULL, NULL },
};

const struct workload_list tree_list = { workloads, sizeof workloads / sizeof *workloads };
