/* checks.c - the table of checks, the doors and the sizes that the contract tests share. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

struct calls call;

static struct CMUnitTest *table;
static size_t table_count;
static size_t table_capacity;

static void *symbol(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!any_allocator_will_do() && !lies_in_prairie(address)) give_up("%s is not prairie's", name);
    return address;
}

#define FETCH(name) (*(void **)&call.name = symbol(#name))

void checks_begin(void)
{
    require_prairie();
    FETCH(malloc);
    FETCH(calloc);
    FETCH(realloc);
    FETCH(free);
    FETCH(reallocarray);
    FETCH(aligned_alloc);
    FETCH(posix_memalign);
    FETCH(memalign);
    FETCH(valloc);
    FETCH(pvalloc);
    FETCH(cfree);
    FETCH(free_sized);
    FETCH(free_aligned_sized);
    FETCH(malloc_usable_size);
}

/* --- the table --- */

static void run_row(void **state)
{
    const struct check *check = *state;
    if (check->exit_door != NULL && dlsym(RTLD_DEFAULT, check->exit_door->symbol) == NULL) skip();
    check->run(check);
}

void check_add(struct check check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check.name, sizeof check.name, format, arguments);
    va_end(arguments);

    if (table_count == table_capacity) {
        table_capacity = table_capacity > 0 ? 2 * table_capacity : 256;
        table = realloc(table, table_capacity * sizeof *table);
        must(table != NULL);
    }
    struct check *row = malloc(sizeof *row);
    must(row != NULL);
    *row = check;
    table[table_count++] = (struct CMUnitTest){ row->name, run_row, NULL, NULL, row };
}

int checks_run(const char *group)
{
    int failures = _cmocka_run_group_tests(group, table, table_count, NULL, NULL);
    printf("%s: %zu named checks, %d failed\n", group, table_count, failures);
    return failures != 0;
}

/* --- the doors --- */

static void *take_malloc(size_t bytes) { return call.malloc(bytes); }
static void *take_calloc_of_one(size_t bytes) { return call.calloc(1, bytes); }
static void *take_calloc_of_bytes(size_t bytes) { return call.calloc(bytes, 1); }
static void *take_realloc(size_t bytes) { return call.realloc(NULL, bytes); }
static void *take_reallocarray_of_one(size_t bytes) { return call.reallocarray(NULL, 1, bytes); }
static void *take_reallocarray_of_bytes(size_t bytes) { return call.reallocarray(NULL, bytes, 1); }
static void *take_aligned_alloc_16(size_t bytes) { return call.aligned_alloc(16, bytes); }
static void *take_aligned_alloc_64(size_t bytes) { return call.aligned_alloc(64, bytes); }
static void *take_memalign_256(size_t bytes) { return call.memalign(256, bytes); }
static void *take_memalign_8192(size_t bytes) { return call.memalign(8192, bytes); }
static void *take_valloc(size_t bytes) { return call.valloc(bytes); }
static void *take_pvalloc(size_t bytes) { return call.pvalloc(bytes); }

/* posix_memalign answers with a code; the doors answer with errno. That it leaves errno alone
 * is a check. */
static void *take_posix_memalign(size_t align_bytes, size_t bytes)
{
    void *block = &call;
    int before = errno;
    int error = call.posix_memalign(&block, align_bytes, bytes);
    assert_int_equal(errno, before);
    if (error == 0) return block;
    assert_ptr_equal(block, &call);
    errno = error;
    return NULL;
}
static void *take_posix_memalign_8(size_t bytes) { return take_posix_memalign(8, bytes); }
static void *take_posix_memalign_1024(size_t bytes) { return take_posix_memalign(1024, bytes); }

const struct door doors[] = {
    { "malloc", take_malloc, 1, false },
    { "calloc(1, n)", take_calloc_of_one, 1, true },
    { "calloc(n, 1)", take_calloc_of_bytes, 1, true },
    { "realloc(NULL, n)", take_realloc, 1, false },
    { "reallocarray(NULL, 1, n)", take_reallocarray_of_one, 1, false },
    { "reallocarray(NULL, n, 1)", take_reallocarray_of_bytes, 1, false },
    { "aligned_alloc(16, n)", take_aligned_alloc_16, 16, false },
    { "aligned_alloc(64, n)", take_aligned_alloc_64, 64, false },
    { "posix_memalign(8, n)", take_posix_memalign_8, 8, false },
    { "posix_memalign(1024, n)", take_posix_memalign_1024, 1024, false },
    { "memalign(256, n)", take_memalign_256, 256, false },
    { "memalign(8192, n)", take_memalign_8192, 8192, false },
    { "valloc", take_valloc, 4096, false },
    { "pvalloc", take_pvalloc, 4096, false },
};
const size_t door_count = sizeof doors / sizeof doors[0];

static void give_free(void *block, size_t align_bytes, size_t bytes)
{
    (void)align_bytes, (void)bytes;
    call.free(block);
}
static void give_cfree(void *block, size_t align_bytes, size_t bytes)
{
    (void)align_bytes, (void)bytes;
    call.cfree(block);
}
static void give_free_sized(void *block, size_t align_bytes, size_t bytes)
{
    (void)align_bytes;
    call.free_sized(block, bytes);
}
static void give_free_aligned_sized(void *block, size_t align_bytes, size_t bytes)
{
    call.free_aligned_sized(block, align_bytes, bytes);
}
static void give_realloc_to_zero(void *block, size_t align_bytes, size_t bytes)
{
    (void)align_bytes, (void)bytes;
    if (block != NULL) assert_null(call.realloc(block, 0));
}
static void give_reallocarray_to_zero(void *block, size_t align_bytes, size_t bytes)
{
    (void)align_bytes;
    if (block != NULL) assert_null(call.reallocarray(block, 0, bytes + 1));
}

const struct exit_door exit_doors[] = {
    { "free", "free", give_free },
    { "cfree", "cfree", give_cfree },
    { "free_sized", "free_sized", give_free_sized },
    { "free_aligned_sized", "free_aligned_sized", give_free_aligned_sized },
    { "realloc(p, 0)", "realloc", give_realloc_to_zero },
    { "reallocarray(p, 0, n)", "reallocarray", give_reallocarray_to_zero },
};
const size_t exit_door_count = sizeof exit_doors / sizeof exit_doors[0];

/* --- the sizes --- */

/* Keeps the list sorted and without twins. */
void sizes_add(struct sizes *sizes, size_t bytes)
{
    size_t at = sizes->count;
    while (at > 0 && sizes->bytes[at - 1] >= bytes) at--;
    if (at < sizes->count && sizes->bytes[at] == bytes) return;
    must(sizes->count < sizeof sizes->bytes / sizeof sizes->bytes[0]);
    memmove(&sizes->bytes[at + 1], &sizes->bytes[at], (sizes->count - at) * sizeof sizes->bytes[0]);
    sizes->bytes[at] = bytes;
    sizes->count++;
}

static void add_around(struct sizes *sizes, size_t bytes, size_t distance)
{
    sizes_add(sizes, bytes - distance);
    sizes_add(sizes, bytes);
    sizes_add(sizes, bytes + distance);
}

struct sizes sizes_of_classes(void)
{
    struct sizes sizes = { .count = 0 };
    sizes_add(&sizes, 8);
    for (size_t bytes = 16; bytes <= 128; bytes += 16) sizes_add(&sizes, bytes);
    for (size_t base = 128; base < 14 * KIB; base *= 2)
        for (size_t quarter = 1; quarter <= 4; quarter++)
            if (base + quarter * base / 4 <= 14 * KIB) sizes_add(&sizes, base + quarter * base / 4);
    return sizes;
}

struct sizes sizes_at_limits(void)
{
    struct sizes sizes = sizes_of_classes();
    struct sizes classes = sizes;
    for (size_t i = 0; i < classes.count; i++) add_around(&sizes, classes.bytes[i], 1);
    sizes_add(&sizes, 0);
    sizes_add(&sizes, 1);
    add_around(&sizes, (size_t)sysconf(_SC_PAGESIZE), 1);
    for (unsigned shift = 3; shift <= 26; shift++) {
        add_around(&sizes, (size_t)1 << shift, 1);
        /* Above, pages are what counts, and each size costs thousands of page faults. */
        if (shift > 6 && shift < 23) add_around(&sizes, (size_t)1 << shift, 64);
    }
    return sizes;
}

struct sizes sizes_doubtful(void)
{
    struct sizes sizes = { .count = 0 };
    for (unsigned shift = 27; shift <= (SIZE_MAX > UINT32_MAX ? 47 : 30); shift++) {
        add_around(&sizes, (size_t)1 << shift, 1);
        add_around(&sizes, (size_t)1 << shift, 64);
    }
    return sizes;
}

struct sizes sizes_absurd(uint64_t seed)
{
    struct sizes sizes = { .count = 0 };
    for (unsigned shift = SIZE_MAX > UINT32_MAX ? 49 : 31; shift < sizeof(size_t) * 8; shift++)
        add_around(&sizes, (size_t)1 << shift, 1);
    add_around(&sizes, PTRDIFF_MAX, 1);
    for (size_t k = 0; k <= 20; k++) sizes_add(&sizes, SIZE_MAX - k);
    for (unsigned shift = 5; shift <= 21; shift++) {
        sizes_add(&sizes, SIZE_MAX - ((size_t)1 << shift));
        sizes_add(&sizes, SIZE_MAX - ((size_t)1 << shift) + 1);
        sizes_add(&sizes, SIZE_MAX - ((size_t)1 << shift) + 2);
    }
    for (int i = 0; i < 60; i++) sizes_add(&sizes, SIZE_MAX - random_between(&seed, 0, 1 << 21));
    return sizes;
}

/* --- what checks say --- */

double processor_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

bool flavour_is_hardened(void)
{
    const char *flavour = getenv("PRAIRIE_FLAVOUR");

    return flavour != NULL && (strcmp(flavour, "hardened") == 0 || strcmp(flavour, "copies") == 0);
}

size_t align_promised(size_t bytes) { return bytes >= 16 ? 16 : 8; }

bool is_aligned(const void *block, size_t align_bytes)
{
    return ((uintptr_t)block & (align_bytes - 1)) == 0;
}

void touch_ends(void *block, size_t bytes)
{
    volatile unsigned char *byte = block;
    if (bytes == 0) return;
    byte[0] = 0x5a;
    byte[bytes - 1] = 0xa5;
    assert_int_equal(byte[bytes - 1], 0xa5);
}

void touch_pages(void *block, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        touch_ends((char *)block + at, bytes - at < 4096 ? bytes - at : 4096);
}

void expect_refused(void *block)
{
    int error = errno;
    assert_null(block);
    assert_int_equal(error, ENOMEM);
}
