/* treap_hash.h - treap whose priorities are hashes of the nodes' addresses: two words a node.
 *
 * A priority is computed each time that it is asked for, several times on every way down.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_TREAP_HASH_H
#define PRAIRIE_LAB_TREAP_HASH_H

#include "tree.h"

struct treap_hash_node {
    struct treap_hash_node *left, *right;
};

struct treap_hash {
    struct treap_hash_node *top;
};

#define TREE treap_hash

/* Two rounds of multiplying and folding: every bit of the address reaches every bit of the hash. */
INLINE uint32_t treap_hash_priority(const struct treap_hash_node *node)
{
    uint64_t hash = (uintptr_t)node;

    hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9;
    return (uint32_t)(hash >> 32);
}

#include "treap.h"
#undef TREE

INLINE void treap_hash_insert(struct treap_hash *tree, struct treap_hash_node *node,
                              tree_order *order)
{
    treap_hash_hang_up(tree, node, order);
}

#endif
