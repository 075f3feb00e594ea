/* step.h - the next and the previous node where nodes do not know their parents: from the root.
 *
 * A template like descend.h, and included after it.
 * SPDX-License-Identifier: MIT
 */
INLINE TREE_NODE *TREE_VERB(next)(const struct TREE *tree, const TREE_NODE *node, tree_order *order)
{
    TREE_NODE *at = TREE_VERB(root)(tree), *best = NULL;

    while (at != NULL) {
        if (order(node, at) < 0) {
            best = at;
            at = TREE_VERB(left)(at);
        } else {
            at = TREE_VERB(right)(at);
        }
    }
    return best;
}

INLINE TREE_NODE *TREE_VERB(previous)(const struct TREE *tree, const TREE_NODE *node,
                                      tree_order *order)
{
    TREE_NODE *at = TREE_VERB(root)(tree), *best = NULL;

    while (at != NULL) {
        if (order(node, at) > 0) {
            best = at;
            at = TREE_VERB(right)(at);
        } else {
            at = TREE_VERB(left)(at);
        }
    }
    return best;
}
