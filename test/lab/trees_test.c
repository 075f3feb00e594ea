/* trees_test.c - the five trees against a model: all small cases, every kind of damage. */
/* SPDX-License-Identifier: MIT */
/*
 * The model is a set of flags: which key is in the tree. After each step the checker of the tree's
 * invariants runs, and all looking verbs are compared with the model. That the checkers can find
 * something is tested by damaging trees on purpose, once for each invariant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kinds.h"

#include "../../bench/random.h"

enum { KEYS_MAX = 300 };

static const struct tree_kind *const kinds[] = { &llrb_kind, &lazy_kind, &bsd_kind,
                                                 &treap_hash_kind, &treap_random_kind };

struct world {
    const struct tree_kind *kind;
    union any_tree tree;
    uint32_t keys;
    char *items;
    bool in_tree[KEYS_MAX];
};

static uint64_t random_state = 42;

/* Keys are even numbers, so that there is something between any two. */
static struct item *item_at(const struct world *world, uint32_t index)
{
    return (struct item *)(void *)(world->items + (size_t)index * world->kind->item_bytes);
}

static void make_world(struct world *world, const struct tree_kind *kind, uint32_t keys)
{
    memset(world, 0, sizeof *world);
    world->kind = kind;
    world->keys = keys;
    world->items = calloc(keys + 1, kind->item_bytes); /* the last one is for questions */
    assert_non_null(world->items);
    for (uint32_t i = 0; i < keys; i++) item_at(world, i)->key = 2 * (uint64_t)i;
}

static void end_world(struct world *world) { free(world->items); }

static void expect_sound(const struct world *world)
{
    const char *fault = world->kind->fault(&world->tree);

    if (fault != NULL) fail_msg("%s: %s", world->kind->name, fault);
}

static void put(struct world *world, uint32_t index)
{
    world->kind->insert(&world->tree, item_at(world, index));
    world->in_tree[index] = true;
    expect_sound(world);
}

static void take(struct world *world, uint32_t index)
{
    world->kind->remove(&world->tree, item_at(world, index));
    world->in_tree[index] = false;
    expect_sound(world);
}

/* ---- the model ---- */

/* The nearest key in the tree from `index` on, towards a side; NULL: none. */
static struct item *nearest(const struct world *world, int64_t index, int step)
{
    for (; index >= 0 && index < world->keys; index += step)
        if (world->in_tree[index]) return item_at(world, (uint32_t)index);
    return NULL;
}

struct listing {
    const struct world *world;
    int64_t last;
};

static void expect_following(void *node, void *context)
{
    struct listing *listing = context;

    assert_ptr_equal(item_of(node), nearest(listing->world, listing->last + 1, 1));
    listing->last = (int64_t)(item_of(node)->key / 2);
}

static void expect_same(const struct world *world)
{
    const struct tree_kind *kind = world->kind;
    struct item *question = item_at(world, world->keys);
    struct listing listing = { world, -1 };

    assert_ptr_equal(kind->first(&world->tree), nearest(world, 0, 1));
    assert_ptr_equal(kind->last(&world->tree), nearest(world, world->keys - 1, -1));
    for (uint32_t i = 0; i < world->keys; i++) {
        struct item *item = item_at(world, i);
        question->key = item->key;
        assert_ptr_equal(kind->search(&world->tree, question), world->in_tree[i] ? item : NULL);
        assert_ptr_equal(kind->at_least(&world->tree, question), nearest(world, i, 1));
        question->key = item->key + 1;
        assert_null(kind->search(&world->tree, question));
        assert_ptr_equal(kind->at_least(&world->tree, question), nearest(world, i + 1, 1));
        if (!world->in_tree[i]) continue;
        assert_ptr_equal(kind->next(&world->tree, item), nearest(world, i + 1, 1));
        assert_ptr_equal(kind->previous(&world->tree, item), nearest(world, (int64_t)i - 1, -1));
    }
    kind->iterate(&world->tree, expect_following, &listing);
    assert_null(nearest(world, listing.last + 1, 1));
}

/* ---- tests ---- */

static void random_steps(void **state)
{
    static const uint32_t sizes[] = { 1, 2, 3, 7, 30, KEYS_MAX };

    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
        for (size_t size = 0; size < ARRAY_COUNT(sizes); size++) {
            struct world world;
            make_world(&world, kinds[k], sizes[size]);
            for (unsigned step = 0; step < 3000; step++) {
                uint32_t index = random_below(&random_state, world.keys);
                /* Waves: mostly growing, then mostly shrinking. */
                bool grow = random_below(&random_state, 4) != (step / 500) % 2 * 3;
                if (world.in_tree[index] != grow) (grow ? put : take)(&world, index);
                if (step % 50 == 0) expect_same(&world);
            }
            end_world(&world);
        }
}

static void exchange(uint32_t *one, uint32_t *other)
{
    uint32_t kept = *one;

    *one = *other;
    *other = kept;
}

static bool next_permutation(uint32_t *order, uint32_t count)
{
    uint32_t pivot = count - 1, other = count - 1;

    while (pivot > 0 && order[pivot - 1] > order[pivot]) pivot--;
    if (pivot == 0) return false;
    while (order[other] < order[pivot - 1]) other--;
    exchange(&order[other], &order[pivot - 1]);
    for (uint32_t left = pivot, right = count - 1; left < right; left++, right--)
        exchange(&order[left], &order[right]);
    return true;
}

static void start_permutation(uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) order[i] = i;
}

/* Every order of insertion with every order of removal, up to five keys. */
static void all_orders(void **state)
{
    uint32_t in[KEYS_MAX], out[KEYS_MAX];

    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
        for (uint32_t count = 1; count <= 5; count++) {
            struct world world;
            make_world(&world, kinds[k], count);
            start_permutation(in, count);
            do {
                start_permutation(out, count);
                do {
                    for (uint32_t i = 0; i < count; i++) put(&world, in[i]);
                    for (uint32_t i = 0; i < count; i++) take(&world, out[i]);
                    assert_null(kinds[k]->first(&world.tree));
                } while (next_permutation(out, count));
            } while (next_permutation(in, count));
            end_world(&world);
        }
}

/* Every order of insertion of eight keys, with two orders of removal. */
static void all_orders_of_eight(void **state)
{
    enum { COUNT = 8 };
    uint32_t in[COUNT];

    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        struct world world;
        make_world(&world, kinds[k], COUNT);
        start_permutation(in, COUNT);
        do {
            for (uint32_t i = 0; i < COUNT; i++) put(&world, in[i]);
            for (uint32_t i = 0; i < COUNT; i++) take(&world, i * 5 % COUNT);
        } while (next_permutation(in, COUNT));
        end_world(&world);
    }
}

static void sorted_input(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
        for (unsigned way = 0; way < 4; way++) {
            struct world world;
            make_world(&world, kinds[k], KEYS_MAX);
            for (uint32_t i = 0; i < KEYS_MAX; i++) put(&world, way & 1 ? i : KEYS_MAX - 1 - i);
            expect_same(&world);
            for (uint32_t i = 0; i < KEYS_MAX; i++) take(&world, way & 2 ? i : KEYS_MAX - 1 - i);
            expect_same(&world);
            end_world(&world);
        }
}

/* ---- damage ---- */

/* A full tree of 100 keys, in which a mutation finds what it needs. */
static void make_full(struct world *world, const struct tree_kind *kind)
{
    make_world(world, kind, 100);
    for (uint32_t i = 0; i < 100; i++) put(world, i * 37 % 100);
}

static void expect_fault(struct world *world, const char *number)
{
    const char *fault = world->kind->fault(&world->tree);

    assert_non_null(fault);
    assert_memory_equal(fault, number, 2);
    end_world(world);
}

/* Two keys change places, in every tree. */
static void disorder_is_found(void **state)
{
    static const char *const numbers[] = { "L1", "B1", "P1", "H1", "H1" };

    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        struct world world;
        make_full(&world, kinds[k]);
        item_at(&world, 40)->key = item_at(&world, 60)->key;
        expect_fault(&world, numbers[k]);
    }
}

static void damage_to_llrb_is_found(void **state)
{
    struct world world;
    struct llrb_node *node;

    (void)state;
    make_full(&world, &llrb_kind);
    world.tree.llrb.top |= LLRB_RED;
    expect_fault(&world, "L4");

    make_full(&world, &llrb_kind); /* a red link on the right alone */
    for (node = llrb_root(&world.tree.llrb); llrb_is_red(node->left);) node = llrb_left(node);
    node->right |= LLRB_RED;
    expect_fault(&world, "L2");

    make_full(&world, &llrb_kind); /* two in a row: found on the way to the first key */
    for (node = llrb_root(&world.tree.llrb); node->left != 0; node = llrb_left(node))
        node->left |= LLRB_RED;
    expect_fault(&world, "L2");

    make_full(&world, &llrb_kind); /* all links black */
    for (uint32_t i = 0; i < 100; i++) {
        NODE_OF(llrb, item_at(&world, i))->left &= ~LLRB_RED;
        NODE_OF(llrb, item_at(&world, i))->right &= ~LLRB_RED;
    }
    expect_fault(&world, "L3");
}

static void damage_to_lazy_is_found(void **state)
{
    struct world world;

    (void)state;
    make_full(&world, &lazy_kind);
    world.tree.lazy.top->red = true;
    expect_fault(&world, "B2");

    make_full(&world, &lazy_kind);
    for (uint32_t i = 0; i < 100; i++) NODE_OF(lazy, item_at(&world, i))->red = true;
    world.tree.lazy.top->red = false;
    expect_fault(&world, "B3");

    make_full(&world, &lazy_kind);
    for (uint32_t i = 0; i < 100; i++) NODE_OF(lazy, item_at(&world, i))->red = false;
    expect_fault(&world, "B4");
}

static void damage_to_bsd_is_found(void **state)
{
    struct world world;
    struct bsd_node *top;

    (void)state;
    make_full(&world, &bsd_kind);
    world.tree.bsd.top->red = true;
    expect_fault(&world, "P2");

    make_full(&world, &bsd_kind);
    world.tree.bsd.top->parent = world.tree.bsd.top->child[0];
    expect_fault(&world, "P2");

    make_full(&world, &bsd_kind);
    for (uint32_t i = 0; i < 100; i++) NODE_OF(bsd, item_at(&world, i))->red = true;
    world.tree.bsd.top->red = false;
    expect_fault(&world, "P3");

    make_full(&world, &bsd_kind);
    for (uint32_t i = 0; i < 100; i++) NODE_OF(bsd, item_at(&world, i))->red = false;
    expect_fault(&world, "P4");

    make_full(&world, &bsd_kind);
    top = world.tree.bsd.top;
    top->child[0]->parent = top->child[1];
    expect_fault(&world, "P5");
}

static void damage_to_treaps_is_found(void **state)
{
    struct world world;
    struct treap_hash_node *top, *child;

    (void)state;
    make_full(&world, &treap_random_kind);
    world.tree.treap_random.top->left->priority = UINT32_MAX;
    world.tree.treap_random.top->priority = UINT32_MAX - 1;
    expect_fault(&world, "H2");

    make_full(&world, &treap_hash_kind); /* the root and its left child, turned around */
    top = world.tree.treap_hash.top;
    child = top->left;
    top->left = child->right;
    child->right = top;
    world.tree.treap_hash.top = child;
    expect_fault(&world, "H2");
}

/* ---- what is claimed about depth ---- */

static uint64_t path_sum;

static void add_depths(const struct treap_random_node *node, unsigned depth)
{
    if (node == NULL) return;
    path_sum += depth;
    add_depths(node->left, depth + 1);
    add_depths(node->right, depth + 1);
}

/* Priorities are random enough: sorted input makes a tree as flat as chance would, about
 * 2 ln(300) - 1.8 = 9.6 steps on average to a node. */
static void treaps_are_flat(void **state)
{
    struct world world;

    (void)state;
    make_world(&world, &treap_random_kind, KEYS_MAX);
    for (uint32_t i = 0; i < KEYS_MAX; i++) put(&world, i);
    path_sum = 0;
    add_depths(world.tree.treap_random.top, 1);
    assert_in_range(path_sum, 7 * KEYS_MAX, 14 * KEYS_MAX);
    end_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps),
        cmocka_unit_test(all_orders),
        cmocka_unit_test(all_orders_of_eight),
        cmocka_unit_test(sorted_input),
        cmocka_unit_test(disorder_is_found),
        cmocka_unit_test(damage_to_llrb_is_found),
        cmocka_unit_test(damage_to_lazy_is_found),
        cmocka_unit_test(damage_to_bsd_is_found),
        cmocka_unit_test(damage_to_treaps_is_found),
        cmocka_unit_test(treaps_are_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
