/* tree.h - what the five trees have in common: intrusive nodes, an order, one set of verbs.
 *
 * A tree keeps nodes that lie inside the things of its user, so it allocates nothing. For a tree
 * called T there are `struct T`, which is empty when it is all zeros, `struct T_node`, and
 *
 *      T_insert(tree, node, order)      T_remove(tree, node, order)
 *      T_search(tree, like, order)      the node that is equal to `like`, or NULL
 *      T_at_least(tree, like, order)    the first node that is not before `like`, or NULL
 *      T_first(tree)                    T_last(tree)
 *      T_next(tree, node, order)        T_previous(tree, node, order)
 *      T_iterate(tree, order, visit, context)  all nodes in order; the visitor changes nothing
 *      T_fault(tree, order)             the broken invariant, by number and name, or NULL
 *
 * No two nodes of a tree may be equal in its order. All verbs are inline and take the order as a
 * constant function, so the compiler writes comparisons in place, as it does for trees of macros.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_TREE_H
#define PRAIRIE_LAB_TREE_H

#include "../../src/base/attrs.h"

/* Below 0: `one` comes before `other`; 0: they are equal. Both are nodes. */
typedef int tree_order(const void *one, const void *other);
typedef void tree_visit(void *node, void *context);

/* More than the longest path in any tree that fits into memory: 2 * log2 of the nodes. */
enum { TREE_DEPTH_MAX = 128 };

/* A visitor that finds out whether the nodes come in order. */
struct tree_sequence {
    tree_order *order;
    const void *last; /* NULL before the first */
    bool broken;
};

static inline void tree_compare_with_last(void *node, void *context)
{
    struct tree_sequence *sequence = context;

    if (sequence->last != NULL && sequence->order(sequence->last, node) >= 0)
        sequence->broken = true;
    sequence->last = node;
}

/* The thing that a node lies in. */
#define TREE_OWNER(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

#endif
