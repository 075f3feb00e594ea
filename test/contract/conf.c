/* conf.c - says, for conf_run.py, what the options made of this program. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

#include <pthread.h>
#include <sys/resource.h>

extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
extern int mallctlnametomib(const char *, size_t *, size_t *) __attribute__((weak));
extern void malloc_stats_print(void (*)(void *, const char *), void *, const char *)
    __attribute__((weak));
extern bool prairie_stats_metrics(void (*)(void *, const char *), void *) __attribute__((weak));

#ifdef DEFINE_CONF
const char *malloc_conf = "narenas:3,dirty_decay_ms:11,muzzy_decay_ms:12";
const char *malloc_conf_2_conf_harder = "muzzy_decay_ms:99";
#endif

/* Is there such a name, whatever it takes and gives? */
static void print_known(const char *name)
{
    size_t path[8], parts = 8;
    int error = mallctlnametomib(name, path, &parts);

    puts(error == 0 ? "known" : error == ENOENT ? "unknown" : "?");
}

/* Of a text; numbers are smaller, or negative. With 32 bits the environment may lie right below the
 * last pages, where nothing does. */
static bool is_address(uint64_t value)
{
    return value > 0x10000000 && value < (UINTPTR_MAX > UINT32_MAX ? 0x7fffffffffff : 0xffffe000);
}

static void print_leaf(const char *name)
{
    static const size_t sizes[] = { 8, 4, 1 };

    for (int i = 0; i < 3; i++) {
        uint64_t value = 0;
        size_t length = sizes[i];
        int error = mallctl(name, &value, &length, NULL, 0);
        if (error == EINVAL) continue;
        if (error != 0) printf("%s: %s\n", name, strerror(error));
        else if (length == sizeof(char *) && is_address(value))
            printf("%s: %s\n", name, (const char *)(uintptr_t)value);
        else printf("%s: %lld\n", name, sizes[i] == 4 ? (int32_t)value : (long long)value);
        return;
    }
    printf("%s: no length fits\n", name);
}

static size_t number(const char *name)
{
    size_t value = 0, length = sizeof value;
    uint64_t any = 1;

    mallctl("epoch", NULL, NULL, &any, sizeof any);
    mallctl(name, &value, &length, NULL, 0);
    return value;
}

/* What blocks hold when they are given out. */
static void print_contents(void)
{
    static const size_t sizes[] = { 8, 100, 1000, 5000, 14336, 100000 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        unsigned char *volatile block = malloc(bytes);
        memset(block, 0x77, bytes);
        free(block);
        block = malloc(bytes);
        printf("%zu: %s\n", bytes,
               bytes_are(block, 0, bytes)      ? "zeros"
               : bytes_are(block, 0xa5, bytes) ? "junk"
                                               : "what was there");
        block = realloc(block, 2 * bytes);
        printf("%zu: end %s\n", bytes,
               bytes_are(block + bytes, 0, bytes)      ? "zeros"
               : bytes_are(block + bytes, 0xa5, bytes) ? "junk"
                                                       : "what was there");
        free(block);
        block = calloc(1, bytes);
        printf("%zu: calloc %s\n", bytes, bytes_are(block, 0, bytes) ? "zeros" : "what was there");
        free(block);
    }
}

/* A freed block may be read here: its page is still there. */
static void print_freed(void)
{
    unsigned char *volatile block = malloc(100), *volatile other = malloc(100);
    unsigned char *volatile at = block + 16; /* links, where there are any, lie before */

    memset(block, 0x77, 100);
    memset(other, 0x77, 100);
    free(block);
    printf("freed: %s\n", bytes_are(at, 0x5a, 64) ? "junk" : "what was there");
    free(other);
}

/* Bytes that this thread holds after taking and giving back some of a size. */
static void print_cached(size_t bytes)
{
    void *blocks[100];

    for (int i = 0; i < 100; i++) blocks[i] = malloc(bytes);
    for (int i = 0; i < 100; i++) free(blocks[i]);
    printf("cached: %s\n", number("stats.arenas.4096.tcache_bytes") >= bytes ? "some" : "none");
}

static pthread_barrier_t barrier;

/* A thread with a cache, so that there are two of them. */
static void *one_block(void *unused)
{
    free(malloc(100));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static size_t dirty_bytes(void)
{
    return number("stats.arenas.4096.pdirty") * number("arenas.page");
}

/* A burst of memory, and how much of it is dirty once it is given back: looks until next to none
 * is, and so long at most. */
static void print_dirty(bool with_thread, unsigned wait_ms)
{
    enum { BLOCKS = 64 };
    void *blocks[BLOCKS];
    pthread_t thread;

    if (with_thread) {
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_create(&thread, NULL, one_block, NULL);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(1 << 20), 1, 1 << 20);
    for (int i = 0; i < BLOCKS; i += 2) free(blocks[i]);
    for (int i = 1; i < BLOCKS; i += 2) free(blocks[i]);
    size_t kib = dirty_bytes() >> 10;
    for (unsigned waited_ms = 0; kib >= 64 && waited_ms < wait_ms; waited_ms += 100) {
        usleep(100 * 1000);
        kib = dirty_bytes() >> 10;
    }
    printf("dirty: %s\n", kib < 64 ? "none" : kib < 8192 ? "some" : kib < 60000 ? "much" : "all");
    if (!with_thread) return;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

/* How much a freed block of so many MiB leaves dirty. */
static void print_oversize(size_t mib)
{
    char *volatile block = malloc(mib << 20);

    memset(block, 1, mib << 20);
    free(block);
    /* What goes back ends at a huge page, so that a little of it may stay. */
    size_t dirty = dirty_bytes() >> 20;
    printf("dirty: %s\n", dirty < 3 ? "little" : "much");
}

/* How much is dirty when so many MiB are in use and two of them come back. */
static void print_crowded(size_t mib)
{
    char *block[2];

    for (size_t i = 0; i < mib; i++) memset(block[i % 2] = malloc(1 << 20), 1, 1 << 20);
    free(block[0]);
    free(block[1]);
    size_t dirty = dirty_bytes() >> 20;
    printf("dirty: %s\n", dirty == 0 ? "little" : "much");
}

static size_t address_space(void)
{
    size_t committed = 0;
    char line[300];
    FILE *maps = fopen("/proc/self/smaps", "r");
    bool writable = false;
    size_t kib;

    while (fgets(line, sizeof line, maps) != NULL) {
        char rights[8];
        if (sscanf(line, "%*x-%*x %7s", rights) == 1 && strchr(line, '-') != NULL
            && strchr("rwxp-", rights[0]) != NULL && strlen(rights) == 4)
            writable = rights[1] == 'w';
        else if (writable && sscanf(line, "Size: %zu kB", &kib) == 1) committed += kib << 10;
    }
    fclose(maps);
    return committed;
}

/* Writable address space that a burst leaves behind after a purge, in tenths of the burst. */
static void print_retained(void)
{
    size_t before = address_space();
    char *volatile block = malloc(40 << 20);

    memset(block, 1, 40 << 20);
    free(block);
    mallctl("arena.0.purge", NULL, NULL, NULL, 0);
    size_t after = address_space();
    printf("kept: %s\n", after < before + (20 << 20) ? "nothing" : "the right to use it");
}

static void write_out(void *context, const char *text) { fputs(text, context); }

static void allocate_a_little_of_everything(void)
{
    static void *blocks[3000];

    for (size_t i = 0; i < 3000; i++) blocks[i] = malloc(i * 7);
    for (size_t i = 0; i < 3000; i += 2) free(blocks[i]);
}

/* One that gave out ten blocks of 100 bytes. */
static void destroy_an_arena(void)
{
    void *(*take)(size_t, int);
    unsigned arena = 0;
    size_t length = sizeof arena;
    char name[40];

    *(void **)&take = dlsym(RTLD_DEFAULT, "mallocx");
    mallctl("arenas.create", &arena, &length, NULL, 0);
    for (unsigned i = 0; i < 10; i++) (void)take(100, (int)((arena + 1) << 20) | 0x100);
    snprintf(name, sizeof name, "arena.%u.destroy", arena);
    mallctl(name, NULL, NULL, NULL, 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "get") == 0)
        for (int i = 2; i < argc; i++) print_leaf(argv[i]);
    if (strcmp(what, "known") == 0)
        for (int i = 2; i < argc; i++) print_known(argv[i]);
    if (strcmp(what, "contents") == 0) print_contents();
    if (strcmp(what, "freed") == 0) print_freed();
    if (strcmp(what, "cached") == 0) print_cached(strtoul(argv[2], NULL, 0));
    if (strcmp(what, "dirty") == 0)
        print_dirty(strcmp(argv[2], "thread") == 0, (unsigned)atoi(argv[3]));
    if (strcmp(what, "oversize") == 0) print_oversize(strtoul(argv[2], NULL, 0));
    if (strcmp(what, "retained") == 0) print_retained();
    if (strcmp(what, "crowded") == 0) print_crowded(strtoul(argv[2], NULL, 0));
    if (strcmp(what, "refused") == 0) printf("refused: %d\n", malloc(SIZE_MAX / 2) == NULL);
    if (strcmp(what, "to_zero") == 0) {
        void *volatile block = realloc(malloc(10), 0);
        printf("realloc to zero: %s\n", block == NULL ? "NULL" : "a block");
    }
    if (strcmp(what, "statistics") == 0) {
        allocate_a_little_of_everything();
        malloc_stats_print(write_out, stdout, argc > 2 ? argv[2] : NULL);
    }
    if (strcmp(what, "destroyed") == 0) {
        destroy_an_arena();
        malloc_stats_print(write_out, stdout, argc > 2 ? argv[2] : NULL);
    }
    if (strcmp(what, "metrics") == 0) {
        allocate_a_little_of_everything();
        prairie_stats_metrics(write_out, stdout);
    }
    return 0;
}
