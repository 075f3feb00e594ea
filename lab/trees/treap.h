/* treap.h - treap: a search tree by its order, a heap by priorities that chance gives.
 *
 * A template without a guard, for treap_hash.h and treap_random.h. The shape is that of a tree
 * whose nodes were inserted by falling priority, so a random one: its expected depth is O(lg n),
 * its worst one O(n). Insertion goes down to where the new node's priority belongs, and cuts the
 * tree below in two; removal zips the two trees below a node into one. Both are loops down,
 * without a way back.
 *
 * H1  nodes come in order
 * H2  no node has a higher priority than its parent
 *
 * TREE_priority(node) tells a node's priority.
 * SPDX-License-Identifier: MIT
 */
#include "tree_names.h"

INLINE TREE_NODE *TREE_VERB(root)(const struct TREE *tree) { return tree->top; }
INLINE TREE_NODE *TREE_VERB(left)(const TREE_NODE *node) { return node->left; }
INLINE TREE_NODE *TREE_VERB(right)(const TREE_NODE *node) { return node->right; }

#include "descend.h"
#include "step.h"

INLINE void TREE_VERB(hang_up)(struct TREE *tree, TREE_NODE *node, tree_order *order)
{
    TREE_NODE **link = &tree->top, *rest;
    TREE_NODE **before = &node->left, **after = &node->right; /* where what is before it goes */
    uint32_t priority = TREE_VERB(priority)(node);

    while (*link != NULL && TREE_VERB(priority)(*link) >= priority)
        link = order(node, *link) < 0 ? &(*link)->left : &(*link)->right;
    rest = *link;
    *link = node;
    while (rest != NULL) {
        if (order(node, rest) < 0) {
            *after = rest;
            after = &rest->left;
            rest = rest->left;
        } else {
            *before = rest;
            before = &rest->right;
            rest = rest->right;
        }
    }
    *before = *after = NULL;
}

/* Hangs two trees, all of the first before all of the second, as one at a link. */
INLINE void TREE_VERB(zip)(TREE_NODE **link, TREE_NODE *before, TREE_NODE *after)
{
    uint32_t before_priority, after_priority;

    if (before != NULL && after != NULL) {
        before_priority = TREE_VERB(priority)(before);
        after_priority = TREE_VERB(priority)(after);
        for (;;) {
            if (before_priority >= after_priority) {
                *link = before;
                link = &before->right;
                before = before->right;
                if (before == NULL) break;
                before_priority = TREE_VERB(priority)(before);
            } else {
                *link = after;
                link = &after->left;
                after = after->left;
                if (after == NULL) break;
                after_priority = TREE_VERB(priority)(after);
            }
        }
    }
    *link = before != NULL ? before : after;
}

INLINE void TREE_VERB(remove)(struct TREE *tree, TREE_NODE *node, tree_order *order)
{
    TREE_NODE **link = &tree->top;

    while (*link != node) link = order(node, *link) < 0 ? &(*link)->left : &(*link)->right;
    TREE_VERB(zip)(link, node->left, node->right);
}

static void TREE_VERB(visit_below)(TREE_NODE *node, tree_visit *visit, void *context)
{
    if (node == NULL) return;
    TREE_VERB(visit_below)(node->left, visit, context);
    visit(node, context);
    TREE_VERB(visit_below)(node->right, visit, context);
}

/* By recursion: no bound for the depth is certain. */
INLINE void TREE_VERB(iterate)(const struct TREE *tree, tree_order *order, tree_visit *visit,
                               void *context)
{
    (void)order;
    TREE_VERB(visit_below)(tree->top, visit, context);
}

static bool TREE_VERB(is_heap)(const TREE_NODE *node)
{
    if (node == NULL) return true;
    if (node->left != NULL && TREE_VERB(priority)(node->left) > TREE_VERB(priority)(node))
        return false;
    if (node->right != NULL && TREE_VERB(priority)(node->right) > TREE_VERB(priority)(node))
        return false;
    return TREE_VERB(is_heap)(node->left) && TREE_VERB(is_heap)(node->right);
}

static inline const char *TREE_VERB(fault)(const struct TREE *tree, tree_order *order)
{
    struct tree_sequence sequence = { order, NULL, false };

    if (!TREE_VERB(is_heap)(tree->top)) return "H2: a node above its parent's priority";
    TREE_VERB(iterate)(tree, order, tree_compare_with_last, &sequence);
    return sequence.broken ? "H1: not in order" : NULL;
}
