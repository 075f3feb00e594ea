/* pages_test.c - memory on macOS, on a model of its kernel's memory objects.
 *
 * A mapping is a list of entries. The first touch gives an entry an object, which has its pages.
 * Cutting an entry that has one makes two that share it; an object lives, with all its pages, until
 * no entry has a part of it. That is what XNU's osfmk/vm/vm_map.c does (vm_map_delete,
 * vm_map_clip_start, vm_map_reusable_pages).
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include "os/unix.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 16384, PAGES_MAX = 64, ENTRIES_MAX = 64, REUSABLE = 7, REUSE = 8 };

/* ---- the model ---- */

enum page { ABSENT, IN_USE, DROPPABLE }; /* who reads ABSENT gets zeros */

struct object {
    unsigned entries;
    enum page page[PAGES_MAX];
};

/* Pages have the same number in a mapping and in its object. */
struct entry {
    size_t first, end;
    int protection;
    struct object *object; /* NULL: nobody touched it */
};

static struct {
    struct object objects[ENTRIES_MAX];
    struct entry entry[ENTRIES_MAX];
    size_t object_count, entry_count;
    bool refuses_mappings;
} kernel;

static char *const base = (char *)0x100000000;

static char *address(size_t page) { return base + page * PAGE; }
static size_t number(const void *at) { return (size_t)((const char *)at - base) / PAGE; }

static struct os_range pages(size_t first, size_t count)
{
    return (struct os_range){ address(first), count * PAGE };
}

static void add_entry(struct entry entry)
{
    assert_true(kernel.entry_count < ENTRIES_MAX);
    if (entry.object != NULL) entry.object->entries++;
    kernel.entry[kernel.entry_count++] = entry;
}

static void cut_at(size_t page)
{
    for (size_t i = 0; i < kernel.entry_count; i++) {
        struct entry *entry = &kernel.entry[i], right = *entry;

        if (page <= entry->first || page >= entry->end) continue;
        entry->end = right.first = page;
        add_entry(right);
    }
}

static int model_munmap(void *at, size_t bytes)
{
    size_t first = number(at), end = first + bytes / PAGE, i = 0;

    if (kernel.refuses_mappings) {
        errno = ENOMEM;
        return -1;
    }
    cut_at(first);
    cut_at(end);
    while (i < kernel.entry_count) {
        struct entry *entry = &kernel.entry[i];

        if (entry->first >= first && entry->end <= end) {
            if (entry->object != NULL) entry->object->entries--;
            *entry = kernel.entry[--kernel.entry_count];
        } else {
            i++;
        }
    }
    return 0;
}

static void *model_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    struct entry entry = { 0, bytes / PAGE, protection, NULL };

    (void)file;
    (void)offset;
    if (kernel.refuses_mappings) return MAP_FAILED;
    if ((flags & MAP_FIXED) != 0) {
        (void)model_munmap(at, bytes);
        entry.first = number(at);
        entry.end = entry.first + bytes / PAGE;
    }
    add_entry(entry);
    return address(entry.first);
}

static int model_mprotect(void *at, size_t bytes, int protection)
{
    size_t first = number(at), end = first + bytes / PAGE;

    cut_at(first);
    cut_at(end);
    for (size_t i = 0; i < kernel.entry_count; i++)
        if (kernel.entry[i].first >= first && kernel.entry[i].end <= end)
            kernel.entry[i].protection = protection;
    return 0;
}

static int model_madvise(void *at, size_t bytes, int advice)
{
    size_t first = number(at), end = first + bytes / PAGE;
    enum page from = advice == REUSABLE ? IN_USE : DROPPABLE;

    assert_true(advice == REUSABLE || advice == REUSE);
    for (size_t i = 0; i < kernel.entry_count; i++) {
        const struct entry *entry = &kernel.entry[i];

        if (entry->end <= first || entry->first >= end) continue;
        if ((entry->protection & PROT_WRITE) == 0) {
            errno = EPERM;
            return -1;
        }
        if (entry->object == NULL || (advice == REUSABLE && entry->object->entries > 1)) continue;
        for (size_t page = entry->first; page < entry->end; page++)
            if (page >= first && page < end && entry->object->page[page] == from)
                entry->object->page[page] = advice == REUSABLE ? DROPPABLE : IN_USE;
    }
    return 0;
}

static struct entry *entry_of(size_t page)
{
    for (size_t i = 0; i < kernel.entry_count; i++)
        if (page >= kernel.entry[i].first && page < kernel.entry[i].end) return &kernel.entry[i];
    fail_msg("page %zu is not mapped", page);
    return NULL;
}

static void use(size_t first, size_t count)
{
    for (size_t page = first; page < first + count; page++) {
        struct entry *entry = entry_of(page);

        assert_true((entry->protection & PROT_WRITE) != 0);
        if (entry->object == NULL) {
            assert_true(kernel.object_count < ENTRIES_MAX);
            entry->object = &kernel.objects[kernel.object_count++];
            entry->object->entries = 1;
        }
        entry->object->page[page] = IN_USE;
    }
}

static void expect(size_t first, size_t count, enum page state)
{
    for (size_t page = first; page < first + count; page++) {
        const struct object *object = entry_of(page)->object;

        assert_int_equal(object != NULL ? object->page[page] : ABSENT, state);
    }
}

/* Pages that the kernel must keep, whether anybody can reach them or not. */
static size_t pages_kept(void)
{
    size_t count = 0;

    for (size_t i = 0; i < kernel.object_count; i++)
        for (size_t page = 0; kernel.objects[i].entries > 0 && page < PAGES_MAX; page++)
            count += kernel.objects[i].page[page] == IN_USE;
    return count;
}

/* ---- the port, on the model ---- */

#undef MADV_FREE_REUSABLE
#undef MADV_FREE_REUSE
#define MADV_FREE_REUSABLE REUSABLE
#define MADV_FREE_REUSE REUSE
#define madvise model_madvise
#define mmap model_mmap
#define munmap model_munmap
#define mprotect model_mprotect
#define issetugid() 0
#define arc4random_buf(at, bytes) memset(at, 0, bytes)

const int unix_map_file = -1, unix_map_rights = 0, unix_map_undumped = 0;
char **unix_environment(void) { return NULL; }
size_t os_page_bytes(void) { return PAGE; }

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    (void)word, (void)expected, (void)duration_ms;
}

#include "os/darwin_pages.c"
#include "os/posix.c"
#include "os/unix.c"

static int begin(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    assert_ptr_equal(os_reserve(PAGES_MAX * (size_t)PAGE, PAGE).base, base);
    assert_true(os_commit(pages(0, 32)));
    use(0, 32);
    assert_int_equal(pages_kept(), 32);
    return 0;
}

static void purged_pages_read_as_zero_and_are_kept_by_nobody(void **state)
{
    (void)state;
    assert_true(os_purge(pages(8, 8)));
    expect(8, 8, ABSENT);
    expect(0, 8, IN_USE);
    expect(16, 16, IN_USE);
    assert_int_equal(pages_kept(), 24);
    use(8, 4);
    assert_int_equal(pages_kept(), 28);
}

static void closed_pages_are_kept_by_nobody(void **state)
{
    (void)state;
    assert_true(os_close(pages(24, 8)));
    assert_int_equal(pages_kept(), 24);
    assert_true(os_commit(pages(24, 8)));
    expect(24, 8, ABSENT);
}

static void the_end_of_a_mapping_is_kept_by_nobody(void **state)
{
    (void)state;
    assert_ptr_equal(os_resize(pages(0, 32), 20 * (size_t)PAGE, false).base, base);
    assert_int_equal(pages_kept(), 20);
    os_release(pages(10, 10));
    assert_true(pages_kept() <= 20);
    expect(0, 10, IN_USE);
}

/* What this port cannot change: of an object that was cut before, the kernel drops nothing until
 * the last part of it goes. */
static void of_a_mapping_that_was_cut_pages_go_with_the_last_part(void **state)
{
    (void)state;
    assert_true(os_purge(pages(8, 8)));
    assert_true(os_purge(pages(16, 4)));
    expect(16, 4, ABSENT);
    assert_int_equal(pages_kept(), 24);
    assert_true(os_purge(pages(0, 8)));
    assert_true(os_purge(pages(20, 12)));
    assert_int_equal(pages_kept(), 0);
}

static void pages_that_stay_are_in_use_again(void **state)
{
    (void)state;
    kernel.refuses_mappings = true;
    errno = 99;
    assert_false(os_purge(pages(8, 8)));
    assert_false(os_close(pages(8, 8)));
    os_release(pages(8, 8)); /* a cut would be one mapping too many */
    assert_int_equal(errno, 99);
    expect(0, 32, IN_USE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(purged_pages_read_as_zero_and_are_kept_by_nobody, begin),
        cmocka_unit_test_setup(closed_pages_are_kept_by_nobody, begin),
        cmocka_unit_test_setup(the_end_of_a_mapping_is_kept_by_nobody, begin),
        cmocka_unit_test_setup(of_a_mapping_that_was_cut_pages_go_with_the_last_part, begin),
        cmocka_unit_test_setup(pages_that_stay_are_in_use_again, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
