/* descend.h - what looks alike in every binary search tree: going down without changing anything.
 *
 * A template without a guard. Each tree includes it after defining TREE, its name, and the
 * functions TREE_root, TREE_left and TREE_right.
 * SPDX-License-Identifier: MIT
 */
#include "tree_names.h"

INLINE TREE_NODE *TREE_VERB(search)(const struct TREE *tree, const TREE_NODE *like,
                                    tree_order *order)
{
    TREE_NODE *node = TREE_VERB(root)(tree);

    while (node != NULL) {
        int way = order(like, node);
        if (way == 0) break;
        node = way < 0 ? TREE_VERB(left)(node) : TREE_VERB(right)(node);
    }
    return node;
}

INLINE TREE_NODE *TREE_VERB(at_least)(const struct TREE *tree, const TREE_NODE *like,
                                      tree_order *order)
{
    TREE_NODE *node = TREE_VERB(root)(tree), *best = NULL;

    while (node != NULL) {
        int way = order(like, node);
        if (way == 0) return node;
        if (way < 0) best = node;
        node = way < 0 ? TREE_VERB(left)(node) : TREE_VERB(right)(node);
    }
    return best;
}

INLINE TREE_NODE *TREE_VERB(first)(const struct TREE *tree)
{
    TREE_NODE *first = NULL;

    for (TREE_NODE *node = TREE_VERB(root)(tree); node != NULL; node = TREE_VERB(left)(node))
        first = node;
    return first;
}

INLINE TREE_NODE *TREE_VERB(last)(const struct TREE *tree)
{
    TREE_NODE *last = NULL;

    for (TREE_NODE *node = TREE_VERB(root)(tree); node != NULL; node = TREE_VERB(right)(node))
        last = node;
    return last;
}
