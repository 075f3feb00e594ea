/* view_test.c - mallinfo, mallinfo2, malloc_info, malloc_stats, malloc_trim, mallopt: true
 * numbers, not zeros. */
/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <jemalloc/jemalloc.h>
#include <malloc.h>

enum { BURST_MIB = 100 };

/* The allocator's own functions, fetched like the others. */
static struct mallinfo2 (*info2)(void);
static struct mallinfo (*info)(void);
static int (*print_info)(int, FILE *);
static void *(*take_flagged)(size_t, int);
static void (*give_flagged)(void *, int);
static void (*print_stats)(void);
static int (*trim)(size_t);
static int (*set_option)(int, int);

/* A chain through the blocks themselves, so that the test's own bookkeeping weighs nothing. */
struct link {
    struct link *next;
};

static struct link *take_chain(size_t total_bytes, size_t bytes)
{
    struct link *first = NULL;
    for (size_t i = 0; i < total_bytes / bytes; i++) {
        struct link *block = call.malloc(bytes);
        assert_non_null(block);
        touch_pages(block, bytes);
        block->next = first;
        first = block;
    }
    return first;
}

static void give_chain(struct link *first)
{
    while (first != NULL) {
        struct link *next = first->next;
        call.free(first);
        first = next;
    }
}

static bool about(double value, double expected)
{
    return value > expected * 0.85 && value < expected * 1.3;
}

static double used_mib(void)
{
    struct mallinfo2 numbers = info2();
    return ((double)numbers.uordblks + (double)numbers.hblkhd) / MIB;
}

/* uordblks (with hblkhd, where a library counts mapped blocks apart) moves by what is taken and
 * given. */
static void used_bytes_follow(const struct check *check)
{
    give_chain(take_chain(4 * MIB, check->bytes));
    double before = used_mib();
    struct link *chain = take_chain((size_t)BURST_MIB * MIB, check->bytes);
    double during = used_mib();
    /* Where pages have 64 KiB a block of 14,337 bytes has as many. */
    double taken = (double)(BURST_MIB * MIB / check->bytes * call.malloc_usable_size(chain)) / MIB;
    give_chain(chain);
    double after = used_mib();
    print_message("used: %.1f, then %.1f, then %.1f MiB\n", before, during, after);
    assert_true(about(during - before, taken));
    assert_true(during - after > taken * 0.8);
    assert_true(after - before < 20);
}

static void small_bytes_are_uordblks(const struct check *check)
{
    struct mallinfo2 before = info2();
    struct link *chain = take_chain((size_t)BURST_MIB * MIB, check->bytes);
    struct mallinfo2 during = info2();
    give_chain(chain);
    assert_true(about((double)(during.uordblks - before.uordblks) / MIB, BURST_MIB));
    assert_true(during.arena + during.hblkhd >= (size_t)BURST_MIB * MIB);
}

/* What is free but still held shows up as fordblks or has left the process. */
static void free_bytes_are_counted(const struct check *check)
{
    (void)check;
    trim(0);
    struct link *keep = take_chain((size_t)BURST_MIB * MIB, 400);
    struct link *chain = take_chain((size_t)BURST_MIB / 4 * MIB, 400);
    struct mallinfo2 during = info2();
    long during_kb = resident_kb();
    give_chain(chain);
    struct mallinfo2 after = info2();
    double left_mib = (double)(during_kb - resident_kb()) / KIB;
    double held_mib = ((double)after.fordblks - (double)during.fordblks) / MIB;
    give_chain(keep);
    print_message("left the process: %.1f MiB, counted as free: %.1f MiB\n", left_mib, held_mib);
    assert_true(left_mib + held_mib > BURST_MIB / 4 * 0.8);
}

/* The old structure has int fields: it has to agree where the numbers fit. */
static void old_mallinfo_agrees(const struct check *check)
{
    struct link *chain = take_chain(30 * (size_t)MIB, check->bytes);
    struct mallinfo2 wide = info2();
    struct mallinfo narrow = info();
    give_chain(chain);
    assert_true(narrow.uordblks >= 0 && wide.uordblks < INT32_MAX);
    assert_true(
        about((double)narrow.uordblks + narrow.hblkhd, (double)(wide.uordblks + wide.hblkhd)));
    assert_true((double)narrow.uordblks + narrow.hblkhd > 29.0 * MIB);
}

static void counts_large_blocks(const struct check *check)
{
    double before = used_mib();
    void *block = call.malloc(check->bytes);
    assert_non_null(block);
    double during = used_mib();
    call.free(block);
    assert_true(about(during - before, (double)check->bytes / MIB));
    assert_true(used_mib() - before < 1);
}

/* trim answers 1 exactly when memory went back, and afterwards the burst is gone from the
 * process. */
static void trim_releases(const struct check *check)
{
    trim(0);
    long idle_kb = resident_kb();
    struct link *keep = take_chain((size_t)BURST_MIB / 2 * MIB, check->bytes);
    struct link *chain = take_chain((size_t)BURST_MIB * MIB, check->bytes);
    long peak_kb = resident_kb();
    give_chain(chain);
    long before_kb = resident_kb();
    int answer = trim(0);
    long after_kb = resident_kb();
    give_chain(keep);
    print_message("idle %ld, peak %ld, freed %ld, trimmed %ld KiB, answer %d\n", idle_kb, peak_kb,
                  before_kb, after_kb, answer);
    assert_true(peak_kb - idle_kb > BURST_MIB * KIB * 5 / 4);
    if (before_kb - after_kb > KIB) assert_int_equal(answer, 1);
    assert_true(answer == 0 || answer == 1);
    assert_true(after_kb - idle_kb < BURST_MIB / 2 * KIB * 5 / 4 + 4 * KIB);
}

/* Small enough a fall that no purge budget gives it back by itself: trim has something to do
 * and says so. */
static void trim_says_yes(const struct check *check)
{
    struct link *keep = take_chain((size_t)BURST_MIB * MIB, check->bytes);
    trim(0);
    struct link *chain = take_chain(3 * (size_t)MIB, check->bytes);
    give_chain(chain);
    long before_kb = resident_kb();
    int answer = trim(0);
    long after_kb = resident_kb();
    give_chain(keep);
    print_message("before %ld, after %ld KiB, answer %d\n", before_kb, after_kb, answer);
    assert_true(before_kb - after_kb > 2 * KIB);
    assert_int_equal(answer, 1);
}

static void option_known(const struct check *check)
{
    assert_int_equal(set_option((int)(ptrdiff_t)check->bytes, (int)check->other), 1);
    void *block = call.malloc(1000);
    assert_non_null(block);
    call.free(block);
}

static void option_unknown(const struct check *check)
{
    assert_int_equal(set_option((int)(ptrdiff_t)check->bytes, 1), 1);
}

/* --- extents of hooks --- */

static _Alignas(2 * MIB) char outside[66 * MIB]; /* never touched */

static void *alloc_outside(extent_hooks_t *hooks, void *new_address, size_t bytes, size_t align,
                           bool *zero, bool *commit, unsigned arena)
{
    (void)hooks, (void)new_address, (void)arena;
    *zero = *commit = true;
    return bytes <= sizeof outside && align <= 2 * MIB ? outside : NULL;
}

static bool dalloc_outside(extent_hooks_t *hooks, void *base, size_t bytes, bool committed,
                           unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)committed, (void)arena;
    return false;
}

/* What was never prairie's to open is no part of what it has opened, nor less than none of it. */
static void info_keeps_to_what_is_opened(const struct check *check)
{
    static extent_hooks_t hooks = { .alloc = alloc_outside, .dalloc = dalloc_outside };
    extent_hooks_t *table = &hooks;
    unsigned arena;
    size_t length = sizeof arena, bytes = 64 * MIB;
    struct mallinfo2 numbers;
    char name[40];
    void *block;

    (void)check;
    assert_int_equal(mallctl("arenas.create", &arena, &length, NULL, 0), 0);
    snprintf(name, sizeof name, "arena.%u.extent_hooks", arena);
    assert_int_equal(mallctl(name, NULL, NULL, &table, sizeof table), 0);
    block = take_flagged(bytes, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
    assert_non_null(block);
    numbers = info2();
    assert_true(numbers.hblkhd >= bytes && numbers.uordblks < bytes / 4);
    assert_true(numbers.arena <= numbers.usmblks && numbers.fordblks <= numbers.arena);
    give_flagged(block, MALLOCX_TCACHE_NONE);
    snprintf(name, sizeof name, "arena.%u.destroy", arena);
    assert_int_equal(mallctl(name, NULL, NULL, NULL, 0), 0);
}

/* --- malloc_info --- */

/* True when `text` is one properly nested element named `root`, with quoted attributes. */
static bool is_well_formed(const char *text, const char *root)
{
    char open[32][32];
    int depth = 0;
    bool had_root = false;
    for (const char *at = text; *at != '\0';) {
        if (*at != '<') {
            if (*at == '>' || (depth == 0 && strchr(" \t\n", *at) == NULL)) return false;
            at++;
            continue;
        }
        const char *end = strchr(at, '>');
        if (end == NULL) return false;
        bool closes = at[1] == '/', declares = at[1] == '?', is_empty = end[-1] == '/';
        const char *name = at + 1 + (closes || declares);
        size_t length = strcspn(name, " \t\n/>?");
        if (length == 0 || length >= sizeof open[0]) return false;
        int quotes = 0;
        for (const char *c = at; c < end; c++) quotes += *c == '"';
        if (quotes % 2 != 0 || (closes && quotes != 0)) return false;
        at = end + 1;
        if (declares) continue;
        if (closes) {
            if (depth == 0 || strlen(open[depth - 1]) != length
                || strncmp(open[depth - 1], name, length) != 0)
                return false;
            depth--;
            continue;
        }
        if (depth == 0 && (had_root || strlen(root) != length || strncmp(name, root, length) != 0))
            return false;
        had_root = true;
        if (is_empty) continue;
        if (depth == 32) return false;
        memcpy(open[depth], name, length);
        open[depth++][length] = '\0';
    }
    return depth == 0 && had_root;
}

static void parser_sees_faults(const struct check *check)
{
    (void)check;
    assert_true(is_well_formed("<a x=\"1\"><b/><c>2</c>\n</a>\n", "a"));
    assert_false(is_well_formed("<a><b></a></b>", "a"));
    assert_false(is_well_formed("<a x=\"1><b/></a>", "a"));
    assert_false(is_well_formed("<a>", "a"));
    assert_false(is_well_formed("<a/><a/>", "a"));
    assert_false(is_well_formed("", "a"));
    assert_false(is_well_formed("0 bytes", "a"));
}

static char info_text[1 << 20];

static void info_is_xml(const struct check *check)
{
    struct link *chain = take_chain(check->bytes, 300);
    FILE *file = tmpfile();
    assert_non_null(file);
    errno = SENTINEL;
    assert_int_equal(print_info(0, file), 0);
    rewind(file);
    size_t length = fread(info_text, 1, sizeof info_text - 1, file);
    info_text[length] = '\0';
    fclose(file);
    give_chain(chain);
    assert_true(length > 20);
    assert_true(is_well_formed(info_text, "malloc"));
    assert_true(strpbrk(info_text, "123456789") != NULL);
}

static void info_refuses_options(const struct check *check)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    errno = 0;
    assert_int_equal(print_info((int)check->bytes, file), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ftell(file), 0);
    fclose(file);
}

static void info_tells_of_a_full_stream(const struct check *check)
{
    FILE *file = fopen("/dev/full", "w");

    (void)check;
    if (file == NULL) return;
    assert_int_equal(setvbuf(file, NULL, _IONBF, 0), 0);
    assert_int_equal(print_info(0, file), -1);
    (void)fclose(file);
}

/* The statistics of a heap that holds 30 MiB name a number of that size. */
static void stats_are_printed(const struct check *check)
{
    (void)check;
    struct link *chain = take_chain(30 * (size_t)MIB, 1000);
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    int saved = dup(2);
    dup2(fileno(file), 2);
    print_stats();
    dup2(saved, 2);
    close(saved);
    rewind(file);
    size_t length = fread(info_text, 1, sizeof info_text - 1, file);
    info_text[length] = '\0';
    fclose(file);
    give_chain(chain);
    assert_true(length > 40);
    assert_true(strchr(info_text, '\n') != NULL && strpbrk(info_text, "123456789") != NULL);
}

#define FETCH(pointer, symbol) (*(void **)&pointer = dlsym(RTLD_DEFAULT, symbol))

static void add_options(void)
{
    static const struct {
        const char *name;
        int option, value;
    } known[] = {
        { "M_TRIM_THRESHOLD", M_TRIM_THRESHOLD, 1 << 20 },
        { "M_TOP_PAD", M_TOP_PAD, 1 << 16 },
        { "M_MMAP_THRESHOLD", M_MMAP_THRESHOLD, 1 << 18 },
        { "M_MMAP_MAX", M_MMAP_MAX, 1000 },
        { "M_ARENA_MAX", M_ARENA_MAX, 4 },
        { "M_ARENA_TEST", M_ARENA_TEST, 2 },
        { "M_PERTURB", M_PERTURB, 0 },
        { "M_MXFAST", M_MXFAST, 64 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        check_add((struct check){ .run = option_known,
                                  .bytes = (size_t)known[i].option,
                                  .other = (size_t)known[i].value },
                  "mallopt knows %s", known[i].name);
    static const int unknown[] = { -1000, 1000, 12345, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        check_add((struct check){ .run = option_unknown, .bytes = (size_t)unknown[i] },
                  "mallopt(%d) is unknown, and accepted", unknown[i]);
}

int main(void)
{
    checks_begin();
    FETCH(info2, "mallinfo2");
    FETCH(info, "mallinfo");
    FETCH(print_info, "malloc_info");
    FETCH(take_flagged, "mallocx");
    FETCH(give_flagged, "dallocx");
    FETCH(print_stats, "malloc_stats");
    FETCH(trim, "malloc_trim");
    FETCH(set_option, "mallopt");
    must(info2 != NULL && info != NULL && print_info != NULL && print_stats != NULL);
    must(trim != NULL && set_option != NULL);
    if (!any_allocator_will_do())
        must(lies_in_prairie((void *)info2) && lies_in_prairie((void *)info)
             && lies_in_prairie((void *)print_info) && lies_in_prairie((void *)print_stats)
             && lies_in_prairie((void *)trim) && lies_in_prairie((void *)set_option));

    /* Before others have opened as much. */
    if (!any_allocator_will_do())
        check_add((struct check){ .run = info_keeps_to_what_is_opened },
                  "mallinfo2 beside extents that hooks supply");

    static const size_t sizes[] = { 64, 1000, 14336 };
    for (size_t i = 0; i < 3; i++) {
        struct check check = { .bytes = sizes[i] };
        check.run = small_bytes_are_uordblks;
        check_add(check, "100 MiB in blocks of %zu are in uordblks", sizes[i]);
    }
    static const size_t mixed[] = { 64, 1000, 14336, 14337, 40000, MIB };
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++) {
        struct check check = { .bytes = mixed[i] };
        check.run = used_bytes_follow;
        check_add(check, "used bytes follow 100 MiB in blocks of %zu", mixed[i]);
        check.run = trim_releases;
        check_add(check, "malloc_trim after a burst in blocks of %zu", mixed[i]);
        check.run = old_mallinfo_agrees;
        check_add(check, "mallinfo agrees with mallinfo2 about blocks of %zu", mixed[i]);
    }
    check_add((struct check){ .run = trim_says_yes, .bytes = 256 },
              "malloc_trim says yes for small blocks");
    check_add((struct check){ .run = trim_says_yes, .bytes = 50000 },
              "malloc_trim says yes for large blocks");
    check_add((struct check){ .run = free_bytes_are_counted }, "free bytes are counted or gone");
    for (size_t mib = 2; mib <= 512; mib *= 4)
        check_add((struct check){ .run = counts_large_blocks, .bytes = mib * MIB },
                  "one block of %zu MiB is counted", mib);
    check_add((struct check){ .run = parser_sees_faults }, "the XML checker sees faults");
    check_add((struct check){ .run = info_is_xml, .bytes = 300 },
              "malloc_info of a small heap is XML");
    check_add((struct check){ .run = info_is_xml, .bytes = 40 * MIB },
              "malloc_info of a large heap is XML");
    check_add((struct check){ .run = info_refuses_options, .bytes = 1 },
              "malloc_info(1) is refused");
    check_add((struct check){ .run = info_refuses_options, .bytes = 255 },
              "malloc_info(255) is refused");
    if (!any_allocator_will_do())
        check_add((struct check){ .run = info_tells_of_a_full_stream },
                  "malloc_info tells of a full stream");
    check_add((struct check){ .run = stats_are_printed }, "malloc_stats prints");
    add_options();
    return checks_run("contract view");
}
