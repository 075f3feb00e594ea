/* bsd.h - red-black tree in the manner of the macro header of the BSDs: nodes have parents.
 *
 * Changes go down without a stack and climb back by the parents, as far as something is wrong.
 * The next and the previous node are found from a node alone. The price is a third address in
 * every node.
 *
 * P1  nodes come in order
 * P2  the root is black, and has no parent
 * P3  a red node has no red child
 * P4  every path from the root to the end has the same number of black nodes
 * P5  a node is the parent of its children
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_BSD_H
#define PRAIRIE_LAB_BSD_H

#include "tree.h"

struct bsd_node {
    struct bsd_node *child[2], *parent; /* P5 */
    bool red;
};

struct bsd {
    struct bsd_node *top;
};

INLINE struct bsd_node *bsd_root(const struct bsd *tree) { return tree->top; }
INLINE struct bsd_node *bsd_left(const struct bsd_node *node) { return node->child[0]; }
INLINE struct bsd_node *bsd_right(const struct bsd_node *node) { return node->child[1]; }

#define TREE bsd
#include "descend.h"
#undef TREE

/* The neighbour towards a side: the nearest node below on that side, else the first above on it. */
INLINE struct bsd_node *bsd_step(const struct bsd_node *node, unsigned side)
{
    struct bsd_node *at = node->child[side], *parent;

    if (at != NULL) {
        while (at->child[!side] != NULL) at = at->child[!side];
        return at;
    }
    for (parent = node->parent; parent != NULL && parent->child[side] == node;
         parent = node->parent)
        node = parent;
    return parent;
}

INLINE struct bsd_node *bsd_next(const struct bsd *tree, const struct bsd_node *node,
                                 tree_order *order)
{
    (void)tree;
    (void)order;
    return bsd_step(node, 1);
}

INLINE struct bsd_node *bsd_previous(const struct bsd *tree, const struct bsd_node *node,
                                     tree_order *order)
{
    (void)tree;
    (void)order;
    return bsd_step(node, 0);
}

INLINE bool bsd_is_red(const struct bsd_node *node) { return node != NULL && node->red; }

/* Hangs `by`, which may be NULL, where `node` hangs. */
INLINE void bsd_replace(struct bsd *tree, const struct bsd_node *node, struct bsd_node *by)
{
    struct bsd_node *parent = node->parent;

    if (parent == NULL) tree->top = by;
    else parent->child[parent->child[1] == node] = by;
    if (by != NULL) by->parent = parent;
}

/* The child opposite to `side` goes up, and `top` down to `side`. */
INLINE void bsd_turn(struct bsd *tree, struct bsd_node *top, unsigned side)
{
    struct bsd_node *up = top->child[!side], *across = up->child[side];

    top->child[!side] = across;
    if (across != NULL) across->parent = top;
    bsd_replace(tree, top, up);
    up->child[side] = top;
    top->parent = up;
}

/* ---- insertion ---- */

INLINE void bsd_fix_red(struct bsd *tree, struct bsd_node *node)
{
    struct bsd_node *parent;

    while ((parent = node->parent) != NULL && parent->red) {
        struct bsd_node *grand = parent->parent; /* there is one: the root is not red */
        unsigned side = grand->child[1] == parent;
        struct bsd_node *uncle = grand->child[!side];

        if (bsd_is_red(uncle)) {
            parent->red = uncle->red = false;
            grand->red = true;
            node = grand;
            continue;
        }
        if (parent->child[side] != node) {
            bsd_turn(tree, parent, side);
            parent = node;
        }
        parent->red = false;
        grand->red = true;
        bsd_turn(tree, grand, !side);
        break;
    }
    tree->top->red = false;
}

INLINE void bsd_insert(struct bsd *tree, struct bsd_node *node, tree_order *order)
{
    struct bsd_node *parent = NULL;
    unsigned side = 0;

    for (struct bsd_node *at = tree->top; at != NULL; at = at->child[side]) {
        parent = at;
        side = order(node, at) > 0;
    }
    node->child[0] = node->child[1] = NULL;
    node->parent = parent;
    node->red = true;
    if (parent == NULL) tree->top = node;
    else parent->child[side] = node;
    bsd_fix_red(tree, node);
}

/* ---- removal ---- */

/* On all paths through `child`, which may be NULL, below `parent`, a black node is missing. */
INLINE void bsd_fix_short(struct bsd *tree, struct bsd_node *parent, struct bsd_node *child)
{
    while (parent != NULL && !bsd_is_red(child)) {
        unsigned side = parent->child[1] == child;
        struct bsd_node *sibling = parent->child[!side];

        if (sibling->red) { /* a black sibling comes in its place, and the parent becomes red */
            sibling->red = false;
            parent->red = true;
            bsd_turn(tree, parent, side);
            sibling = parent->child[!side];
        }
        if (!bsd_is_red(sibling->child[0]) && !bsd_is_red(sibling->child[1])) {
            sibling->red = true; /* now the paths through the sibling are short too */
            child = parent;
            parent = child->parent;
            continue;
        }
        if (!bsd_is_red(sibling->child[!side])) {
            sibling->child[side]->red = false;
            sibling->red = true;
            bsd_turn(tree, sibling, !side);
            sibling = parent->child[!side];
        }
        sibling->red = parent->red;
        parent->red = false;
        sibling->child[!side]->red = false;
        bsd_turn(tree, parent, side);
        return;
    }
    if (child != NULL) child->red = false;
}

INLINE void bsd_remove(struct bsd *tree, struct bsd_node *node, tree_order *order)
{
    struct bsd_node *gone = node, *child, *parent;
    bool was_red;

    (void)order;
    if (node->child[0] != NULL && node->child[1] != NULL) /* its heir leaves its place for it */
        for (gone = node->child[1]; gone->child[0] != NULL;) gone = gone->child[0];
    child = gone->child[gone->child[0] == NULL];
    parent = gone->parent;
    was_red = gone->red;
    bsd_replace(tree, gone, child);
    if (gone != node) {
        if (parent == node) parent = gone;
        gone->red = node->red;
        bsd_replace(tree, node, gone);
        for (unsigned side = 0; side < 2; side++) {
            gone->child[side] = node->child[side];
            if (gone->child[side] != NULL) gone->child[side]->parent = gone;
        }
    }
    if (!was_red) bsd_fix_short(tree, parent, child);
}

/* ---- all nodes ---- */

INLINE void bsd_iterate(const struct bsd *tree, tree_order *order, tree_visit *visit, void *context)
{
    (void)order;
    for (struct bsd_node *node = bsd_first(tree); node != NULL; node = bsd_step(node, 1))
        visit(node, context);
}

/* Black nodes on every path below; -1: *fault says what is wrong. */
static int bsd_height(const struct bsd_node *node, const struct bsd_node *parent,
                      const char **fault)
{
    int left, right;

    if (node == NULL) return 0;
    if (node->parent != parent) {
        *fault = parent == NULL ? "P2: the root has a parent" : "P5: a child has another parent";
        return -1;
    }
    if (node->red && bsd_is_red(parent)) *fault = "P3: a red node has a red child";
    left = bsd_height(node->child[0], node, fault);
    right = bsd_height(node->child[1], node, fault);
    if (*fault == NULL && left != right) *fault = "P4: paths differ in black nodes";
    return *fault != NULL ? -1 : left + !node->red;
}

static inline const char *bsd_fault(const struct bsd *tree, tree_order *order)
{
    struct tree_sequence sequence = { order, NULL, false };
    const char *fault = bsd_is_red(tree->top) ? "P2: the root is red" : NULL;

    if (fault != NULL || bsd_height(tree->top, NULL, &fault) < 0) return fault;
    bsd_iterate(tree, order, tree_compare_with_last, &sequence);
    return sequence.broken ? "P1: not in order" : NULL;
}

#endif
