/* trees.c - the benchmark of the five trees, and the same verbs on larger ones.
 * SPDX-License-Identifier: MIT
 *
 *      trees article TREE NNODES NSETS NSEARCH NITER
 *      trees large TREE NODES
 *      trees list
 *
 * Every line of output is a JSON object. Times are the processor's, user and system. `checksum`
 * adds up all that was found and visited, and does not depend on the tree. */
#include "rivals.h"

#include "../../bench/random.h"
#include "../kit/count.h"

#include <malloc.h>
#include <time.h>

struct job {
    uint32_t nodes, sets, searches, iterations;
    char *items;         /* nodes of them, keys rising */
    struct item **order; /* a permutation of them */
    uint64_t random;     /* state */
    uint64_t checksum;
};

/* ---- tools ---- */

/* User and system time of the process. */
static double seconds_used(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What asking the clock twice takes: it would be some 4 ns of each operation on 100 nodes. */
static NOINLINE double clock_cost(void)
{
    double least = 1;

    for (unsigned i = 0; i < 1000; i++) {
        double start = seconds_used(), cost = seconds_used() - start;
        if (cost < least) least = cost;
    }
    return least;
}

static void *need(void *memory)
{
    if (memory != NULL) return memory;
    fprintf(stderr, "trees: no memory\n");
    exit(1);
}

INLINE struct item *item_at(const struct job *job, const struct tree_kind *kind, uint32_t index)
{
    return (struct item *)(void *)(job->items + (size_t)index * kind->item_bytes);
}

static void shuffle(struct job *job)
{
    for (uint32_t i = job->nodes; i > 1; i--) {
        uint32_t other = random_below(&job->random, i);
        struct item *item = job->order[other];
        job->order[other] = job->order[i - 1];
        job->order[i - 1] = item;
    }
}

static void make_items(struct job *job, const struct tree_kind *kind)
{
    job->items = need(calloc(job->nodes, kind->item_bytes));
    job->order = need(calloc(job->nodes, sizeof(struct item *)));
    for (uint32_t i = 0; i < job->nodes; i++) {
        job->order[i] = item_at(job, kind, i);
        job->order[i]->key = i;
    }
    job->random = 20080725;
}

static void add_key(void *node, void *context) { *(uint64_t *)context += item_of(node)->key; }

/* ---- the article's benchmark ---- */

/* What accompanies each insertion and removal: all items of the tree, the first `count`. */
INLINE void look_around(const struct tree_kind *kind, struct job *job, const union any_tree *tree,
                        uint32_t count)
{
    for (uint32_t round = 0; round < job->searches; round++)
        for (uint32_t i = 0; i < count; i++)
            job->checksum += kind->search(tree, job->order[i])->key;
    for (uint32_t round = 0; round < job->iterations && count > 0; round++)
        kind->iterate(tree, add_key, &job->checksum);
}

INLINE void run_article(const struct tree_kind *kind, struct job *job)
{
    for (uint32_t set = 0; set < job->sets; set++) {
        shuffle(job);
        for (uint32_t size = 1; size <= job->nodes; size++) {
            union any_tree tree = { 0 };
            for (uint32_t i = 0; i < size; i++) {
                kind->insert(&tree, job->order[i]);
                look_around(kind, job, &tree, i + 1);
            }
            for (uint32_t i = size; i-- > 0;) {
                kind->remove(&tree, job->order[i]);
                look_around(kind, job, &tree, i);
            }
        }
    }
}

static void report_article(const struct tree_kind *kind, const struct job *job, double seconds)
{
    printf("{\"tree\": \"%s\", \"nodes\": %u, \"sets\": %u, \"searches\": %u, \"iterations\": %u, "
           "\"seconds\": %.4f, \"checksum\": %llu}\n",
           kind->name, job->nodes, job->sets, job->searches, job->iterations, seconds,
           (unsigned long long)job->checksum);
}

/* ---- larger trees ---- */

enum phase { INSERT, SEARCH, ITERATE, REPLACE, REMOVE, PHASES };
static const char *const phase_name[PHASES] = { "insert", "search", "iterate", "replace",
                                                "remove" };

INLINE void run_phase(const struct tree_kind *kind, struct job *job, union any_tree *tree,
                      enum phase phase)
{
    switch (phase) {
    case INSERT:
        for (uint32_t i = 0; i < job->nodes; i++) kind->insert(tree, job->order[i]);
        break;
    case SEARCH:
        for (uint32_t i = 0; i < job->nodes; i++)
            job->checksum += kind->search(tree, job->order[i])->key;
        break;
    case ITERATE: kind->iterate(tree, add_key, &job->checksum); break;
    case REPLACE: /* one out, one in: the tree keeps its size */
        for (uint32_t i = 0; i < job->nodes; i++) {
            kind->remove(tree, job->order[i]);
            kind->insert(tree, job->order[i]);
        }
        break;
    default:
        for (uint32_t i = 0; i < job->nodes; i++) kind->remove(tree, job->order[i]);
    }
}

/* Every phase goes through the items in another order than the one before. */
INLINE void run_large(const struct tree_kind *kind, struct job *job, double *seconds,
                      size_t *tree_bytes)
{
    union any_tree tree = { 0 };
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;

    for (enum phase phase = 0; phase < PHASES; phase++) {
        double start;
        shuffle(job);
        start = seconds_used();
        count_begin();
        run_phase(kind, job, &tree, phase);
        count_end(phase_name[phase]);
        seconds[phase] += seconds_used() - start;
        /* Later rounds find blocks in the C library's caches, which count as used all the time. */
        if (phase == INSERT && *tree_bytes == 0)
            *tree_bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    }
}

static void report_large(const struct tree_kind *kind, const struct job *job, const double *seconds,
                         uint32_t rounds, size_t tree_bytes)
{
    size_t own_bytes = kind->item_bytes - sizeof(struct item);
    double node_bytes = (double)own_bytes + (double)tree_bytes / (double)job->nodes;
    double clock = rounds * clock_cost();

    printf("{\"tree\": \"%s\", \"nodes\": %u, \"node_bytes\": %.1f, \"checksum\": %llu", kind->name,
           job->nodes, node_bytes, (unsigned long long)job->checksum);
    for (enum phase phase = 0; phase < PHASES; phase++)
        printf(", \"%s\": %.2f", phase_name[phase],
               (seconds[phase] - clock) * 1e9 / ((double)rounds * job->nodes));
    printf("}\n");
}

enum { LARGE_OPERATIONS = 2000000 };

INLINE void work(const struct tree_kind *kind, struct job *job, bool article)
{
    make_items(job, kind);
    if (article) {
        double start = seconds_used();
        count_begin();
        run_article(kind, job);
        count_end("article");
        report_article(kind, job, seconds_used() - start);
    } else {
        double seconds[PHASES] = { 0 };
        size_t tree_bytes = 0;
        uint32_t rounds = is_counted() ? 1 : 1 + LARGE_OPERATIONS / job->nodes;
        for (uint32_t i = 0; i < rounds; i++) run_large(kind, job, seconds, &tree_bytes);
        report_large(kind, job, seconds, rounds, tree_bytes);
    }
    free(job->items);
    free(job->order);
}

/* ---- the choice: one function for each tree, in which its row is a constant ---- */

#define DEFINE_WORK(T) \
    static NOINLINE void work_##T(struct job *job, bool article) { work(&T##_kind, job, article); }

DEFINE_WORK(llrb)
DEFINE_WORK(lazy)
DEFINE_WORK(bsd)
DEFINE_WORK(treap_hash)
DEFINE_WORK(treap_random)
DEFINE_WORK(sorted)

#ifdef WITH_BTREE
static const struct tree_kind btree_kind = { .name = "btree",
                                             .item_bytes = sizeof(struct item),
                                             .insert = btree_kind_insert,
                                             .remove = btree_kind_remove,
                                             .search = btree_kind_search,
                                             .iterate = btree_kind_iterate };
DEFINE_WORK(btree)
#endif

static const struct {
    const char *name;
    void (*work)(struct job *job, bool article);
} choices[] = {
    { "llrb", work_llrb },
    { "lazy", work_lazy },
    { "bsd", work_bsd },
    { "treap_hash", work_treap_hash },
    { "treap_random", work_treap_random },
    { "sorted", work_sorted },
#ifdef WITH_BTREE
    { "btree", work_btree },
#endif
};

static int usage(void)
{
    fprintf(stderr, "usage: trees article TREE NNODES NSETS NSEARCH NITER\n"
                    "       trees large TREE NODES\n       trees list\n");
    return 2;
}

static uint32_t number(const char *text) { return (uint32_t)strtoul(text, NULL, 10); }

int main(int argc, char **argv)
{
    struct job job = { 0 };
    bool article = argc == 7 && strcmp(argv[1], "article") == 0;

    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < ARRAY_COUNT(choices); i++) puts(choices[i].name);
        return 0;
    }
    if (!article && !(argc == 4 && strcmp(argv[1], "large") == 0)) return usage();
    job.nodes = number(argv[3]);
    if (article) {
        job.sets = number(argv[4]);
        job.searches = number(argv[5]);
        job.iterations = number(argv[6]);
    }
    if (job.nodes == 0) return usage();
    for (size_t i = 0; i < ARRAY_COUNT(choices); i++) {
        if (strcmp(argv[2], choices[i].name) != 0) continue;
        choices[i].work(&job, article);
        return 0;
    }
    return usage();
}
