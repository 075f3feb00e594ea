/* tree.c - patterns that build a complete binary tree of 32-byte nodes and tear it down, one
 * thread. SPDX-License-Identifier: MIT
 *
 * An operation is one node: its malloc while building and its free in the post-order tear-down. The
 * first half of a round (bench_lap) is the building. */
#include "micro.h"

#include <stdlib.h>

struct node {
    struct node *left, *right;
    uint64_t payload[2];
};
_Static_assert(sizeof(struct node) == 32, "the pattern is described as 32-byte nodes");

struct tree_shape {
    unsigned depth;  /* levels; a complete tree of depth d has 2^d - 1 nodes */
    unsigned repeat; /* trees per round, so that a round lasts some milliseconds */
};

static struct node *build(unsigned depth)
{
    if (depth == 0) return NULL;
    struct node *node = bench_need(malloc(sizeof *node));
    node->payload[0] = depth;
    node->payload[1] = 0;
    node->left = build(depth - 1);
    node->right = build(depth - 1);
    return node;
}

static void tear_down(struct node *node)
{
    if (node == NULL) return;
    tear_down(node->left);
    tear_down(node->right);
    free(node);
}

static uint64_t tree_round(const struct pattern *pattern)
{
    const struct tree_shape *shape = pattern->shape;
    for (unsigned i = 0; i < shape->repeat; i++) {
        struct node *root = build(shape->depth);
        if (shape->repeat == 1) bench_lap();
        tear_down(root);
    }
    return (((uint64_t)1 << shape->depth) - 1) * shape->repeat;
}

static const struct tree_shape tree_16k = { 14, 16 };
static const struct tree_shape tree_131k = { 17, 1 };
static const struct tree_shape tree_1m = { 20, 1 };

static const struct pattern patterns[] = {
    { "tree-16k",
      "16 trees of 16,383 nodes of 32 bytes, built and torn down: half a megabyte, fits caches", 1,
      &tree_16k, NULL, tree_round },
    { "tree-131k", "131,071 nodes of 32 bytes built and torn down: 4 MB of one size class", 1,
      &tree_131k, NULL, tree_round },
    { "tree-1m", "1,048,575 nodes of 32 bytes built and torn down: 32 MB of one size class", 1,
      &tree_1m, NULL, tree_round },
};

const struct family tree_family = { patterns, sizeof patterns / sizeof *patterns };
