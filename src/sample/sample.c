/* sample.c - the table of sites, and the records of sampled blocks.
 * SPDX-License-Identifier: MIT
 */
#include "sample.h"

#include "../base/port.h"
#include "../os/os.h"
#include "../space/meta.h"
#include "../space/page_map.h"

enum { BUCKETS = 4096, NAMES_MAX = 768, NAME_BYTES = 16 };
/* A program whose every stack differs must not fill memory with them: beyond so many they are cut
 * short, until a reset gives all of them back. */
enum { SITES_MANY = 100000, DEPTH_OF_MANY = 4 };
/* How long a dump waits for the lock. */
enum { WAITS_MAX = 100, WAIT_MS = 5 };

struct sample {
    struct site *site; /* constant; gone after another reset */
    size_t bytes;      /* constant */
    uint64_t era;      /* constant: the resets before it */
};

struct lock samples_lock = { .state = LOCK_FREE, .rank = LOCK_SAMPLES };
static struct {
    uint64_t era;                         /* under lock: counts resets */
    struct sample_totals totals;          /* under lock */
    uint64_t looks_of_class[CLASS_COUNT]; /* under lock; G2 */
    struct site *bucket[BUCKETS];         /* under lock */
    unsigned name_count;                  /* under lock */
    char name[NAMES_MAX][NAME_BYTES];     /* those below name_count are constant */
} samples SPARSE;

/* So that a dump out of a signal handler knows when it waits for itself. */
static uintptr_t
    holder; /* atomic: the mark of the thread that holds the lock; 0: none, or not marked yet */

static void take_table(void)
{
    lock_take(&samples_lock);
    RELAXED_STORE(holder, port_thread_mark());
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void give_table(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    RELAXED_STORE(holder, (uintptr_t)0);
    lock_give(&samples_lock);
}

static bool is_site_of(const struct site *site, const struct origin *origin, size_t bytes)
{
    return site->bytes == bytes && site->name == origin->name && site->depth == origin->depth
        && __builtin_memcmp(site->return_address, origin->return_address,
                            origin->depth * sizeof(uintptr_t))
               == 0;
}

static size_t site_record_bytes(unsigned depth)
{
    return sizeof(struct site) + depth * sizeof(uintptr_t);
}

static struct site *make_site(const struct origin *origin, size_t bytes, uint64_t hash)
{
    struct site *site = meta_take(site_record_bytes(origin->depth));

    if (site == NULL) return NULL;
    site->bytes = bytes;
    site->hash = hash;
    site->depth = origin->depth;
    site->name = origin->name;
    __builtin_memcpy(site->return_address, origin->return_address,
                     origin->depth * sizeof(uintptr_t));
    site->next = samples.bucket[hash % BUCKETS];
    samples.bucket[hash % BUCKETS] = site;
    samples.totals.sites++;
    samples.totals.addresses += site->depth;
    return site;
}

static struct site *site_of(struct origin origin, size_t bytes)
{
    uint64_t hash;

    if (samples.totals.sites >= SITES_MANY && origin.depth > DEPTH_OF_MANY)
        origin.depth = DEPTH_OF_MANY;
    hash = stack_hash(bytes * 64 + origin.name, origin.return_address, origin.depth);
    for (struct site *site = samples.bucket[hash % BUCKETS]; site != NULL; site = site->next)
        if (site->hash == hash && is_site_of(site, &origin, bytes)) return site;
    return make_site(&origin, bytes, hash);
}

/* Before the block is the program's: whoever gets it to free sees the table as it is then. G2 */
static void aim_sized_frees(unsigned class_index)
{
    bool look = samples.looks_of_class[class_index] != 0;
    unsigned offset = offset_of_class(class_index) + class_map_offset;

    sized_free_goes_to(class_index, look ? 0 : (uint8_t)offset);
}

static void count_looks(unsigned class_index, int step)
{
    samples.looks_of_class[class_index] += (uint64_t)(int64_t)step;
    if (samples.looks_of_class[class_index] <= 1) aim_sized_frees(class_index);
}

void sized_free_look(unsigned class_index, int step)
{
    take_table();
    count_looks(class_index, step);
    give_table();
}

void sized_frees_aim(void)
{
    take_table();
    for (unsigned class_index = 1; class_index <= CLASS_OF_1024; class_index++)
        aim_sized_frees(class_index);
    give_table();
}

bool sized_free_looks(unsigned class_index) { return samples.looks_of_class[class_index] != 0; }

uint32_t sample_note(const struct origin *origin, size_t bytes)
{
    struct sample *sample = meta_take(sizeof *sample);
    struct site *site;

    if (sample == NULL) return 0;
    take_table();
    site = site_of(*origin, bytes);
    if (site != NULL) {
        *sample = (struct sample){ site, bytes, samples.era };
        site->live++;
        site->taken++;
        if (bytes <= TABLE_BYTES_MAX) count_looks(class_of_size(bytes), 1);
    }
    give_table();
    if (site != NULL) return meta_number(sample);
    meta_give(sample, sizeof *sample);
    return 0;
}

void sample_forget(uint32_t record)
{
    struct sample *sample = meta_record(record);

    take_table();
    if (sample->era == samples.era) sample->site->live--;
    if (sample->bytes <= TABLE_BYTES_MAX) count_looks(class_of_size(sample->bytes), -1);
    give_table();
    meta_give(sample, sizeof *sample);
}

size_t sample_bytes(uint32_t record) { return ((struct sample *)meta_record(record))->bytes; }

unsigned sample_name(const char *name)
{
    size_t length = min_size(__builtin_strlen(name), NAME_BYTES - 1);
    unsigned number = 0;

    if (length == 0) return 0;
    take_table();
    while (number < samples.name_count
           && (__builtin_memcmp(samples.name[number], name, length) != 0
               || samples.name[number][length] != '\0'))
        number++;
    if (number == samples.name_count && number < NAMES_MAX) {
        __builtin_memcpy(samples.name[number], name, length);
        samples.name[number][length] = '\0';
        samples.name_count++;
    }
    give_table();
    return number < NAMES_MAX ? number + 1 : 0;
}

const char *sample_name_text(unsigned number)
{
    return number != 0 ? samples.name[number - 1] : "";
}

/* The records that live are of an era before, and no longer lead to their sites. */
void samples_reset(void)
{
    take_table();
    samples.era++;
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (samples.bucket[i] != NULL) {
            struct site *site = samples.bucket[i];

            samples.bucket[i] = site->next;
            meta_give(site, site_record_bytes(site->depth));
        }
    }
    samples.totals = (struct sample_totals){ 0 };
    give_table();
}

struct sample_totals samples_totals(void)
{
    return (struct sample_totals){ RELAXED_LOAD(samples.totals.sites),
                                   RELAXED_LOAD(samples.totals.addresses) };
}

bool samples_visit(void (*visit)(const struct site *site, void *context), void *context)
{
    for (unsigned waits = 0; !lock_try_anywhere(&samples_lock); waits++) {
        if (waits == WAITS_MAX || RELAXED_LOAD(holder) == port_thread_mark()) return false;
        os_pause(WAIT_MS);
    }
    for (unsigned i = 0; i < BUCKETS; i++)
        for (const struct site *site = samples.bucket[i]; site != NULL; site = site->next)
            visit(site, context);
    lock_give_anywhere(&samples_lock);
    return true;
}
