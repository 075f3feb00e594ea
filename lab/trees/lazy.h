/* lazy.h - red-black tree without parents: the way down on a stack, fixed up lazily.
 *
 * A change goes down once without touching anything, and then climbs back only as far as
 * something is wrong: after most changes that is one or two levels. `child[0]` is the left one,
 * `child[1]` the right one, so mirrored cases are one case.
 *
 * B1  nodes come in order
 * B2  the root is black
 * B3  a red node has no red child
 * B4  every path from the root to the end has the same number of black nodes
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_LAZY_H
#define PRAIRIE_LAB_LAZY_H

#include "tree.h"

struct lazy_node {
    struct lazy_node *child[2];
    bool red;
};

struct lazy {
    struct lazy_node *top;
};

INLINE struct lazy_node *lazy_root(const struct lazy *tree) { return tree->top; }
INLINE struct lazy_node *lazy_left(const struct lazy_node *node) { return node->child[0]; }
INLINE struct lazy_node *lazy_right(const struct lazy_node *node) { return node->child[1]; }

#define TREE lazy
#include "descend.h"
#include "step.h"
#undef TREE

/* The nodes from the root downwards, each with the side on which the way goes on. */
struct lazy_way {
    unsigned depth;
    struct {
        struct lazy_node *node;
        unsigned side;
    } step[TREE_DEPTH_MAX];
};

INLINE void lazy_go_down(struct lazy_way *way, struct lazy_node *node, unsigned side)
{
    way->step[way->depth].node = node;
    way->step[way->depth].side = side;
    way->depth++;
}

/* The place where the node of a depth hangs. */
INLINE struct lazy_node **lazy_place(struct lazy *tree, struct lazy_way *way, unsigned depth)
{
    if (depth == 0) return &tree->top;
    return &way->step[depth - 1].node->child[way->step[depth - 1].side];
}

INLINE bool lazy_is_red(const struct lazy_node *node) { return node != NULL && node->red; }

/* The child opposite to `side` goes up, and `top` down to `side`. Returns the new top. */
INLINE struct lazy_node *lazy_turn(struct lazy_node *top, unsigned side)
{
    struct lazy_node *up = top->child[!side];

    top->child[!side] = up->child[side];
    up->child[side] = top;
    return up;
}

/* ---- insertion ---- */

/* The node below the way is red, and so is perhaps its parent. */
INLINE void lazy_fix_red(struct lazy *tree, struct lazy_way *way)
{
    unsigned depth = way->depth;

    while (depth >= 2 && way->step[depth - 1].node->red) {
        struct lazy_node *parent = way->step[depth - 1].node;
        struct lazy_node *grand = way->step[depth - 2].node;
        unsigned side = way->step[depth - 2].side;
        struct lazy_node *uncle = grand->child[!side];

        if (!lazy_is_red(uncle)) {
            if (way->step[depth - 1].side != side) {
                parent = lazy_turn(parent, side);
                grand->child[side] = parent;
            }
            parent->red = false;
            grand->red = true;
            *lazy_place(tree, way, depth - 2) = lazy_turn(grand, !side);
            return;
        }
        parent->red = uncle->red = false;
        grand->red = true;
        depth -= 2;
    }
    tree->top->red = false;
}

INLINE void lazy_insert(struct lazy *tree, struct lazy_node *node, tree_order *order)
{
    struct lazy_way way;

    way.depth = 0;
    for (struct lazy_node *at = tree->top; at != NULL;) {
        unsigned side = order(node, at) > 0;
        lazy_go_down(&way, at, side);
        at = at->child[side];
    }
    node->child[0] = node->child[1] = NULL;
    node->red = true;
    *lazy_place(tree, &way, way.depth) = node;
    lazy_fix_red(tree, &way);
}

/* ---- removal ---- */

/* Below the end of the way a black node is missing on all paths. */
INLINE void lazy_fix_short(struct lazy *tree, struct lazy_way *way)
{
    for (unsigned depth = way->depth; depth > 0; depth--) {
        struct lazy_node *parent = way->step[depth - 1].node;
        unsigned side = way->step[depth - 1].side;
        struct lazy_node *child = parent->child[side], *sibling = parent->child[!side];
        struct lazy_node **place = lazy_place(tree, way, depth - 1);

        if (lazy_is_red(child)) {
            child->red = false;
            return;
        }
        if (sibling->red) { /* a black sibling comes in its place, and the parent becomes red */
            sibling->red = false;
            parent->red = true;
            *place = lazy_turn(parent, side);
            place = &sibling->child[side];
            sibling = parent->child[!side];
        }
        if (lazy_is_red(sibling->child[side]) && !lazy_is_red(sibling->child[!side])) {
            sibling->red = true;
            sibling = parent->child[!side] = lazy_turn(sibling, !side);
            sibling->red = false;
        }
        if (lazy_is_red(sibling->child[!side])) {
            sibling->child[!side]->red = false;
            sibling->red = parent->red;
            parent->red = false;
            *place = lazy_turn(parent, side);
            return;
        }
        sibling->red = true; /* now the paths through the sibling are short too */
        if (parent->red) {
            parent->red = false;
            return;
        }
    }
    if (lazy_is_red(tree->top)) tree->top->red = false;
}

INLINE void lazy_remove(struct lazy *tree, struct lazy_node *node, tree_order *order)
{
    struct lazy_way way;
    struct lazy_node *gone = node;
    unsigned node_depth;
    bool was_red;

    way.depth = 0;
    for (struct lazy_node *at = tree->top; at != node;) {
        unsigned side = order(node, at) > 0;
        lazy_go_down(&way, at, side);
        at = at->child[side];
    }
    node_depth = way.depth;
    if (node->child[0] != NULL && node->child[1] != NULL) { /* its heir leaves its place for it */
        lazy_go_down(&way, node, 1);
        for (gone = node->child[1]; gone->child[0] != NULL; gone = gone->child[0])
            lazy_go_down(&way, gone, 0);
    }
    was_red = gone->red;
    *lazy_place(tree, &way, way.depth) = gone->child[gone->child[0] == NULL];
    if (gone != node) {
        *gone = *node;
        *lazy_place(tree, &way, node_depth) = gone;
        way.step[node_depth].node = gone;
    }
    if (!was_red) lazy_fix_short(tree, &way);
}

/* ---- all nodes ---- */

/* From the root for every node: O(n lg n). */
INLINE void lazy_iterate(const struct lazy *tree, tree_order *order, tree_visit *visit,
                         void *context)
{
    for (struct lazy_node *node = lazy_first(tree); node != NULL;
         node = lazy_next(tree, node, order))
        visit(node, context);
}

/* Black nodes on every path below; -1: *fault says what is wrong. */
static int lazy_height(const struct lazy_node *node, const char **fault)
{
    int left, right;

    if (node == NULL) return 0;
    if (node->red && (lazy_is_red(node->child[0]) || lazy_is_red(node->child[1])))
        *fault = "B3: a red node has a red child";
    left = lazy_height(node->child[0], fault);
    right = lazy_height(node->child[1], fault);
    if (*fault == NULL && left != right) *fault = "B4: paths differ in black nodes";
    return *fault != NULL ? -1 : left + !node->red;
}

static void lazy_visit_below(struct lazy_node *node, tree_visit *visit, void *context)
{
    if (node == NULL) return;
    lazy_visit_below(node->child[0], visit, context);
    visit(node, context);
    lazy_visit_below(node->child[1], visit, context);
}

static inline const char *lazy_fault(const struct lazy *tree, tree_order *order)
{
    struct tree_sequence sequence = { order, NULL, false };
    const char *fault = lazy_is_red(tree->top) ? "B2: the root is red" : NULL;

    if (fault != NULL || lazy_height(tree->top, &fault) < 0) return fault;
    lazy_visit_below(tree->top, tree_compare_with_last, &sequence);
    return sequence.broken ? "B1: not in order" : NULL;
}

#endif
