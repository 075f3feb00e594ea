/* kinds.h - the five trees over one kind of item, as five rows of one table of verbs.
 *
 * An item is a key with the node of whichever tree it is in behind it, so that every tree has
 * items of its own size. The rows are constants: an inline function that gets one of them as a
 * constant calls its verbs directly.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_KINDS_H
#define PRAIRIE_LAB_KINDS_H

#include "bsd.h"
#include "lazy.h"
#include "llrb.h"
#include "treap_hash.h"
#include "treap_random.h"

struct item {
    uint64_t key;
    uint64_t node[]; /* a node of one of the trees */
};

union any_tree {
    struct llrb llrb;
    struct lazy lazy;
    struct bsd bsd;
    struct treap_hash treap_hash;
    struct treap_random treap_random;
    void *rival; /* rivals.h */
};


struct tree_kind {
    const char *name;
    size_t item_bytes; /* the key with the node */
    void (*insert)(union any_tree *tree, struct item *item);
    void (*remove)(union any_tree *tree, struct item *item);
    struct item *(*search)(const union any_tree *tree, const struct item *like);
    struct item *(*at_least)(const union any_tree *tree, const struct item *like);
    struct item *(*first)(const union any_tree *tree);
    struct item *(*last)(const union any_tree *tree);
    struct item *(*next)(const union any_tree *tree, const struct item *item);
    struct item *(*previous)(const union any_tree *tree, const struct item *item);
    void (*iterate)(const union any_tree *tree, tree_visit *visit, void *context);
    const char *(*fault)(const union any_tree *tree);
};

INLINE struct item *item_of(const void *node)
{
    return node == NULL ? NULL : TREE_OWNER(node, struct item, node);
}

INLINE int by_key(const void *one, const void *other)
{
    uint64_t left = TREE_OWNER(one, struct item, node)->key;
    uint64_t right = TREE_OWNER(other, struct item, node)->key;

    return (left > right) - (left < right);
}

#define NODE_OF(T, item) ((struct T##_node *)(void *)(uintptr_t)(item)->node)

#define DEFINE_KIND(T)                                                                         \
    INLINE void T##_kind_insert(union any_tree *tree, struct item *item)                       \
    {                                                                                          \
        T##_insert(&tree->T, NODE_OF(T, item), by_key);                                        \
    }                                                                                          \
    INLINE void T##_kind_remove(union any_tree *tree, struct item *item)                       \
    {                                                                                          \
        T##_remove(&tree->T, NODE_OF(T, item), by_key);                                        \
    }                                                                                          \
    INLINE struct item *T##_kind_search(const union any_tree *tree, const struct item *like)   \
    {                                                                                          \
        return item_of(T##_search(&tree->T, NODE_OF(T, like), by_key));                        \
    }                                                                                          \
    INLINE struct item *T##_kind_at_least(const union any_tree *tree, const struct item *like) \
    {                                                                                          \
        return item_of(T##_at_least(&tree->T, NODE_OF(T, like), by_key));                      \
    }                                                                                          \
    INLINE struct item *T##_kind_first(const union any_tree *tree)                             \
    {                                                                                          \
        return item_of(T##_first(&tree->T));                                                   \
    }                                                                                          \
    INLINE struct item *T##_kind_last(const union any_tree *tree)                              \
    {                                                                                          \
        return item_of(T##_last(&tree->T));                                                    \
    }                                                                                          \
    INLINE struct item *T##_kind_next(const union any_tree *tree, const struct item *item)     \
    {                                                                                          \
        return item_of(T##_next(&tree->T, NODE_OF(T, item), by_key));                          \
    }                                                                                          \
    INLINE struct item *T##_kind_previous(const union any_tree *tree, const struct item *item) \
    {                                                                                          \
        return item_of(T##_previous(&tree->T, NODE_OF(T, item), by_key));                      \
    }                                                                                          \
    INLINE void T##_kind_iterate(const union any_tree *tree, tree_visit *visit, void *context) \
    {                                                                                          \
        T##_iterate(&tree->T, by_key, visit, context);                                         \
    }                                                                                          \
    static inline const char *T##_kind_fault(const union any_tree *tree)                       \
    {                                                                                          \
        return T##_fault(&tree->T, by_key);                                                    \
    }                                                                                          \
    static const struct tree_kind T##_kind = { #T,                                             \
                                               sizeof(struct item) + sizeof(struct T##_node),  \
                                               T##_kind_insert,                                \
                                               T##_kind_remove,                                \
                                               T##_kind_search,                                \
                                               T##_kind_at_least,                              \
                                               T##_kind_first,                                 \
                                               T##_kind_last,                                  \
                                               T##_kind_next,                                  \
                                               T##_kind_previous,                              \
                                               T##_kind_iterate,                               \
                                               T##_kind_fault };

DEFINE_KIND(llrb)
DEFINE_KIND(lazy)
DEFINE_KIND(bsd)
DEFINE_KIND(treap_hash)
DEFINE_KIND(treap_random)

#endif
