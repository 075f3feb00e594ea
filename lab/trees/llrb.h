/* llrb.h - left-leaning red-black tree: changed in one pass down, two words a node.
 *
 * It is a tree of small nodes with one, two or three keys (a 2-3-4 tree), written down in
 * binary: the keys of a small node are joined by red links, small nodes by black ones. The
 * colour of a link is the lowest bit of the address in it.
 *
 *      one key       two keys          three keys
 *
 *         b              b                 b
 *        / \          // \              // \\
 *                     a                 a     c          // and \\ are red
 *
 * Insertion splits every full small node on its way down, so that its parent has room for the
 * middle key; removal fills up every small node with one key on its way down, from a neighbour.
 * So nothing is left to do on the way back, and there is none.
 *
 * L1  nodes come in order
 * L2  small nodes have the shapes above: a right link is red only beside a red left link, and no
 *     node that hangs on a red link has a red link
 * L3  every path from the root to the end has the same number of black links
 * L4  the link to the root is black
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_LLRB_H
#define PRAIRIE_LAB_LLRB_H

#include "tree.h"

#define LLRB_RED ((uintptr_t)1)

struct llrb_node {
    uintptr_t left, right; /* address of a node, and LLRB_RED */
};

struct llrb {
    uintptr_t top; /* L4 */
};

INLINE struct llrb_node *llrb_at(uintptr_t link) { return (struct llrb_node *)(link & ~LLRB_RED); }
INLINE bool llrb_is_red(uintptr_t link) { return (link & LLRB_RED) != 0; }
INLINE struct llrb_node *llrb_root(const struct llrb *tree) { return llrb_at(tree->top); }
INLINE struct llrb_node *llrb_left(const struct llrb_node *node) { return llrb_at(node->left); }
INLINE struct llrb_node *llrb_right(const struct llrb_node *node) { return llrb_at(node->right); }

#define TREE llrb
#include "descend.h"
#include "step.h"
#undef TREE

/* ---- insertion ---- */

/* The black link below the small node at `link` that leads towards a place in the order. */
INLINE uintptr_t *llrb_towards(uintptr_t *link, const struct llrb_node *place, tree_order *order)
{
    do {
        struct llrb_node *node = llrb_at(*link);
        link = order(place, node) < 0 ? &node->left : &node->right;
    } while (llrb_is_red(*link));
    return link;
}

INLINE bool llrb_is_full(uintptr_t link) { return llrb_is_red(llrb_at(link)->right); }

/* Two small nodes of one key each, below the middle key. */
INLINE void llrb_halve(uintptr_t link)
{
    llrb_at(link)->left &= ~LLRB_RED;
    llrb_at(link)->right &= ~LLRB_RED;
}

/* Both turn three nodes around; the link from above keeps its colour. */
INLINE void llrb_turn_left(uintptr_t *link)
{
    struct llrb_node *top = llrb_at(*link), *right = llrb_at(top->right);

    top->right = right->left;
    right->left = (uintptr_t)top | LLRB_RED;
    *link = (uintptr_t)right | (*link & LLRB_RED);
}

INLINE void llrb_turn_right(uintptr_t *link)
{
    struct llrb_node *top = llrb_at(*link), *left = llrb_at(top->left);

    top->left = left->right;
    left->right = (uintptr_t)top | LLRB_RED;
    *link = (uintptr_t)left | (*link & LLRB_RED);
}

/* Brings a small node that got one more key somewhere into its shape (L2). */
INLINE void llrb_straighten(uintptr_t *link)
{
    struct llrb_node *top = llrb_at(*link);

    if (!llrb_is_red(top->left)) {
        if (llrb_is_red(top->right)) llrb_turn_left(link);
    } else if (!llrb_is_red(top->right)) {
        struct llrb_node *left = llrb_at(top->left);
        if (llrb_is_red(left->right)) llrb_turn_left(&top->left);
        else if (!llrb_is_red(left->left)) return;
        llrb_turn_right(link);
    }
}

INLINE void llrb_insert(struct llrb *tree, struct llrb_node *node, tree_order *order)
{
    uintptr_t *link = &tree->top;

    node->left = node->right = 0;
    if (*link == 0) {
        *link = (uintptr_t)node;
        return;
    }
    if (llrb_is_full(*link)) llrb_halve(*link); /* the tree grows at its top */
    for (;;) {
        uintptr_t *below = llrb_towards(link, node, order);

        if (*below == 0) {
            *below = (uintptr_t)node | LLRB_RED;
            llrb_straighten(link);
            return;
        }
        if (!llrb_is_full(*below)) {
            link = below;
            continue;
        }
        /* Its middle key moves up into the small node at `link`, which is not full. */
        llrb_halve(*below);
        *below |= LLRB_RED;
        llrb_straighten(link);
    }
}

/* ---- removal ---- */

/* A small node spread out. Five keys are those of two neighbours and the one between them. */
struct llrb_spread {
    unsigned count;
    struct llrb_node *key[5];
    uintptr_t child[6]; /* black */
};

/* Appends the keys and children of the small node at a black link. */
INLINE void llrb_spread_out(struct llrb_spread *spread, uintptr_t link)
{
    struct llrb_node *top = llrb_at(link), *side;
    unsigned count = spread->count;

    if (llrb_is_red(top->left)) {
        side = llrb_at(top->left);
        spread->child[count] = side->left;
        spread->key[count++] = side;
        spread->child[count] = side->right;
    } else {
        spread->child[count] = top->left;
    }
    spread->key[count++] = top;
    if (llrb_is_red(top->right)) {
        side = llrb_at(top->right);
        spread->child[count] = side->left;
        spread->key[count++] = side;
        spread->child[count] = side->right;
    } else {
        spread->child[count] = top->right;
    }
    spread->count = count;
}

INLINE void llrb_join(struct llrb_node *node, uintptr_t left, uintptr_t right)
{
    node->left = left;
    node->right = right;
}

/* A small node of `count` keys, 0 to 3, from the `first` on: the black link to it. */
INLINE uintptr_t llrb_fold(const struct llrb_spread *spread, unsigned first, unsigned count)
{
    struct llrb_node *const *key = spread->key + first;
    const uintptr_t *child = spread->child + first;

    if (count == 0) return child[0];
    if (count == 1) {
        llrb_join(key[0], child[0], child[1]);
        return (uintptr_t)key[0];
    }
    llrb_join(key[0], child[0], child[1]);
    if (count == 2) {
        llrb_join(key[1], (uintptr_t)key[0] | LLRB_RED, child[2]);
    } else {
        llrb_join(key[2], child[2], child[3]);
        llrb_join(key[1], (uintptr_t)key[0] | LLRB_RED, (uintptr_t)key[2] | LLRB_RED);
    }
    return (uintptr_t)key[1];
}

INLINE bool llrb_is_single(uintptr_t link) { return !llrb_is_red(llrb_at(link)->left); }

/* Which neighbour child number `at` shares keys with: one that can spare some, if there is one.
 * Returns the number of the left one of the two. */
INLINE unsigned llrb_neighbour(const struct llrb_spread *parent, unsigned at)
{
    bool has_left = at > 0, has_right = at < parent->count;

    if (has_left && !llrb_is_single(parent->child[at - 1])) return at - 1;
    if (has_right && !llrb_is_single(parent->child[at + 1])) return at;
    return has_left ? at - 1 : at;
}

/* Gives the small node of one key that hangs on `below` a second or third one: its keys, its
 * neighbour's and the one between them are joined, and cut again when they are more than three. */
static NOINLINE void llrb_fill_up(uintptr_t *link, uintptr_t below)
{
    struct llrb_spread parent = { .count = 0 }, both = { .count = 0 };
    unsigned at = 0, left;

    llrb_spread_out(&parent, *link);
    while (parent.child[at] != below) at++;
    left = llrb_neighbour(&parent, at);
    llrb_spread_out(&both, parent.child[left]);
    both.key[both.count++] = parent.key[left];
    llrb_spread_out(&both, parent.child[left + 1]);

    if (both.count == 3) {
        parent.child[left] = llrb_fold(&both, 0, 3);
        for (unsigned i = left + 1; i < parent.count; i++) {
            parent.key[i - 1] = parent.key[i];
            parent.child[i] = parent.child[i + 1];
        }
        parent.count--;
    } else {
        unsigned cut = at == left ? 2 : both.count - 3;
        parent.key[left] = both.key[cut];
        parent.child[left] = llrb_fold(&both, 0, cut);
        parent.child[left + 1] = llrb_fold(&both, cut + 1, both.count - cut - 1);
    }
    *link = llrb_fold(&parent, 0, parent.count);
}

/* Takes `node`, or else the first key, out of the small node at a link, which has no children.
 * Returns what was taken. */
INLINE struct llrb_node *llrb_take(uintptr_t *link, struct llrb_node *node)
{
    struct llrb_spread spread = { .count = 0 };
    struct llrb_node *taken;
    unsigned at = 0;

    llrb_spread_out(&spread, *link);
    while (at < spread.count && spread.key[at] != node) at++;
    if (at == spread.count) at = 0;
    taken = spread.key[at];
    for (spread.count--; at < spread.count; at++) spread.key[at] = spread.key[at + 1];
    *link = llrb_fold(&spread, 0, spread.count);
    return taken;
}

/* `heir` takes the place of `node`, which is one of the keys of the small node at a link. */
INLINE void llrb_replace(uintptr_t *link, const struct llrb_node *node, struct llrb_node *heir)
{
    struct llrb_node *top = llrb_at(*link);

    if (top != node) link = llrb_at(top->left) == node ? &top->left : &top->right;
    llrb_join(heir, node->left, node->right);
    *link = (uintptr_t)heir | (*link & LLRB_RED);
}

INLINE void llrb_remove(struct llrb *tree, struct llrb_node *node, tree_order *order)
{
    uintptr_t *link = &tree->top; /* a small node of two or three keys, or the root */
    uintptr_t *holder = NULL;     /* the one that `node` is a key of, once it was passed */
    struct llrb_node *heir;

    for (;;) {
        uintptr_t *below = link;
        /* Behind `node` itself the way goes right once, and left from then on: to its heir. */
        do {
            struct llrb_node *at = llrb_at(*below);
            if (at == node) holder = link;
            below = order(node, at) < 0 ? &at->left : &at->right;
        } while (llrb_is_red(*below));

        if (*below == 0) break;
        if (llrb_is_single(*below)) llrb_fill_up(link, *below);
        else link = below;
    }
    heir = llrb_take(link, node);
    if (heir != node) llrb_replace(holder, node, heir);
}

/* ---- all nodes ---- */

INLINE void llrb_iterate(const struct llrb *tree, tree_order *order, tree_visit *visit,
                         void *context)
{
    struct llrb_node *above[TREE_DEPTH_MAX], *node = llrb_root(tree);
    unsigned depth = 0;

    (void)order;
    for (;;) {
        for (; node != NULL; node = llrb_left(node)) above[depth++] = node;
        if (depth == 0) return;
        node = above[--depth];
        visit(node, context);
        node = llrb_right(node);
    }
}

/* Black links on every path below; -1: *fault says what is wrong. */
static int llrb_height(const struct llrb_node *node, bool hangs_on_red, const char **fault)
{
    int left, right;

    if (node == NULL) return 0;
    if (llrb_is_red(node->right) && !llrb_is_red(node->left)) *fault = "L2: a red link leans right";
    if (hangs_on_red && llrb_is_red(node->left)) *fault = "L2: two red links in a row";
    left = llrb_height(llrb_left(node), llrb_is_red(node->left), fault);
    right = llrb_height(llrb_right(node), llrb_is_red(node->right), fault);
    if (*fault != NULL) return -1;
    left += !llrb_is_red(node->left);
    right += !llrb_is_red(node->right);
    if (left != right) *fault = "L3: paths differ in black links";
    return left;
}

static inline const char *llrb_fault(const struct llrb *tree, tree_order *order)
{
    struct tree_sequence sequence = { order, NULL, false };
    const char *fault = NULL;

    if (llrb_is_red(tree->top)) return "L4: the link to the root is red";
    if (llrb_height(llrb_root(tree), false, &fault) < 0) return fault;
    llrb_iterate(tree, order, tree_compare_with_last, &sequence);
    return sequence.broken ? "L1: not in order" : NULL;
}

#endif
