/* btree.cpp - the B-tree of Google's Abseil library behind the verbs of the other trees.
 * SPDX-License-Identifier: MIT
 *
 * A map from keys to items, with the nodes of 256 bytes that the library chooses. The map is made with
 * its first item and unmade with its last, so that an empty one takes no memory. */
#include <absl/container/btree_map.h>
#include <cstdint>

struct item {
    std::uint64_t key;
    std::uint64_t node[1]; /* where a node would be; a visitor gets its address */
};

union any_tree {
    void *rival;
};

using item_map = absl::btree_map<std::uint64_t, item *>;

static item_map *map_of(const any_tree *tree) { return static_cast<item_map *>(tree->rival); }

extern "C" void btree_kind_insert(any_tree *tree, item *item)
{
    if (tree->rival == nullptr) tree->rival = new item_map;
    map_of(tree)->emplace(item->key, item);
}

extern "C" void btree_kind_remove(any_tree *tree, item *item)
{
    map_of(tree)->erase(item->key);
    if (!map_of(tree)->empty()) return;
    delete map_of(tree);
    tree->rival = nullptr;
}

extern "C" item *btree_kind_search(const any_tree *tree, const item *like)
{
    const auto found = map_of(tree)->find(like->key);
    return found == map_of(tree)->end() ? nullptr : found->second;
}

extern "C" void btree_kind_iterate(const any_tree *tree, void (*visit)(void *, void *), void *context)
{
    for (const auto &entry : *map_of(tree)) visit(entry.second->node, context);
}
