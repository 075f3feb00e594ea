/* treap_random.h - treap whose priorities are drawn at insertion and kept in the nodes.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_TREAP_RANDOM_H
#define PRAIRIE_LAB_TREAP_RANDOM_H

#include "tree.h"

struct treap_random_node {
    struct treap_random_node *left, *right;
    uint32_t priority;
};

struct treap_random {
    struct treap_random_node *top;
    uint32_t drawn; /* how many priorities were */
};

#define TREE treap_random

INLINE uint32_t treap_random_priority(const struct treap_random_node *node)
{
    return node->priority;
}

#include "treap.h"
#undef TREE

INLINE void treap_random_insert(struct treap_random *tree, struct treap_random_node *node,
                                tree_order *order)
{
    /* A counter, multiplied and folded: every 32-bit number once before one comes again. */
    uint32_t word = ++tree->drawn * 0x9e3779b9;

    word = (word ^ (word >> 16)) * 0x85ebca6b;
    node->priority = word ^ (word >> 13);
    treap_random_hang_up(tree, node, order);
}

#endif
