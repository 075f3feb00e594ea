/* code_test.c - what is read of the process's mappings, and of the notes of mapped files. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* The real kernel's reader, beside the fake kernel's, on files and memory of the test's own. */
#define os_code_read real_code_read
#define os_copy_checked copy_checked
#define os_mappings_open open_mappings
#define os_file_read read_text
#define os_file_close close_text
#include "os/linux_code.c"

#include "unit.h"

/* ---- what stands for the kernel ---- */

static const char *text; /* of the mappings; NULL: the file cannot be opened */
static size_t text_at, piece_bytes = 7;

int open_mappings(void)
{
    text_at = 0;
    return text != NULL ? 0 : -1; /* the number of standard input, where that is closed */
}

size_t read_text(int file, void *bytes, size_t wanted)
{
    size_t left = strlen(text) - text_at, count = left < wanted ? left : wanted;

    assert_int_equal(file, 0);
    if (count > piece_bytes) count = piece_bytes;
    memcpy(bytes, text + text_at, count);
    text_at += count;
    return count;
}

void close_text(int file) { assert_int_equal(file, 0); }

/* A file as it is mapped: what lies outside cannot be read. */
static struct {
    ElfW(Ehdr) head;
    ElfW(Phdr) segment[3];
    unsigned char notes[256];
} image;

size_t copy_checked(void *to, const void *from, size_t bytes)
{
    uintptr_t offset = (uintptr_t)from - (uintptr_t)&image;

    if (offset >= sizeof image) return 0;
    if (bytes > sizeof image - offset) bytes = sizeof image - offset;
    memcpy(to, from, bytes);
    return bytes;
}

/* ---- notes ---- */

static size_t notes_bytes;

static void start_image(unsigned segments)
{
    memset(&image, 0, sizeof image);
    memcpy(image.head.e_ident, ELFMAG, SELFMAG);
    image.head.e_phoff = sizeof image.head;
    image.head.e_phnum = (ElfW(Half))segments;
    notes_bytes = 0;
}

static void add_note(unsigned type, const char *name, const char *contents)
{
    ElfW(Nhdr) head = { (ElfW(Word))strlen(name) + 1, (ElfW(Word))strlen(contents), type };
    unsigned char *at = image.notes + notes_bytes;

    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, name, head.n_namesz);
    memcpy(at + sizeof head + ((head.n_namesz + 3) & ~3u), contents, head.n_descsz);
    notes_bytes += sizeof head + ((head.n_namesz + 3) & ~3u) + ((head.n_descsz + 3) & ~3u);
    assert_true(notes_bytes <= sizeof image.notes);
}

static void set_segment(unsigned i, unsigned type, size_t bytes)
{
    image.segment[i].p_type = type;
    image.segment[i].p_offset = (uintptr_t)image.notes - (uintptr_t)&image;
    image.segment[i].p_filesz = bytes;
}

static void expect_id(const char *wanted)
{
    struct os_code mapping = { .path = "" };

    read_build_id(&mapping, (uintptr_t)&image);
    assert_int_equal(mapping.build_id_bytes, strlen(wanted));
    assert_memory_equal(mapping.build_id, wanted, strlen(wanted));
}

static void the_id_is_found_behind_other_notes(void **state)
{
    (void)state;
    start_image(3);
    add_note(1, "GNU", "thirteen long");
    add_note(77, "Name", "");
    add_note(NT_GNU_BUILD_ID, "GNU", "0123456789abcdef0123");
    set_segment(0, PT_LOAD, sizeof image.notes);
    set_segment(2, PT_NOTE, notes_bytes);
    expect_id("0123456789abcdef0123");
}

static void the_next_segment_is_tried(void **state)
{
    (void)state;
    start_image(2);
    add_note(1, "GNU", "none");
    set_segment(0, PT_NOTE, notes_bytes);
    set_segment(1, PT_NOTE, notes_bytes);
    image.segment[1].p_offset += notes_bytes;
    image.segment[1].p_filesz = sizeof image.notes - notes_bytes;
    add_note(NT_GNU_BUILD_ID, "GNU", "abcd");
    expect_id("abcd");
}

static void behind_the_last_header_nothing_is_looked_at(void **state)
{
    (void)state;
    start_image(1);
    add_note(NT_GNU_BUILD_ID, "GNU", "abcd");
    set_segment(0, PT_LOAD, notes_bytes);
    set_segment(1, PT_NOTE, notes_bytes);
    expect_id("");
    image.head.e_phnum = 2;
    expect_id("abcd");
}

/* Of no known name, of a length that no id has, longer than its segment, or of another file. */
static void what_is_no_id_is_not_taken_for_one(void **state)
{
    const unsigned whole = sizeof(ElfW(Nhdr)) + 4 + 4;

    (void)state;
    start_image(1);
    add_note(NT_GNU_BUILD_ID, "GNUx", "abcd");
    set_segment(0, PT_NOTE, notes_bytes);
    expect_id("");
    start_image(1);
    add_note(NT_GNU_BUILD_ID, "GNU", "0123456789abcdef0123456789abcdefX");
    set_segment(0, PT_NOTE, notes_bytes);
    expect_id("");
    start_image(1);
    add_note(1, "GNU", "abcd");
    add_note(NT_GNU_BUILD_ID, "GNU", "abcd");
    set_segment(0, PT_NOTE, whole);
    expect_id("");
    set_segment(0, PT_NOTE, whole - 1);
    expect_id("");
    set_segment(0, PT_NOTE, notes_bytes);
    expect_id("abcd");
    image.head.e_ident[1] = 'e';
    expect_id("");
}

/* ---- mappings ---- */

/* As high as addresses are. */
#if UINTPTR_MAX > UINT32_MAX
#define HIGH "7fabcdef"
#define HIGH_START 0x7fabcdef0000
#else
#define HIGH "fabc"
#define HIGH_START 0xfabc0000
#endif

/* The line before the last one ends as under emulators. */
static const char usual[] =
    "1000-2000 r--p 00000000 08:01 11 /usr/bin/one\n"
    "2000-4000 r-xp 00001000 08:01 11                         /usr/bin/one\n"
    "4000-5000 rw-p 00003000 08:01 11 /usr/bin/one\n"
    "a000-b000 rw-p 00000000 00:00 0 [heap]\n"
    "c000-d000 r-xp 00000000 00:00 0 \n"
    "e000-f000 rw-p 00000000 00:00 0\n" HIGH "0000-" HIGH
    "8000 r-xp 00000000 08:01 12 /lib/with a space.so (deleted)\n";

static void code_is_told_with_its_place_and_path(void **state)
{
    struct os_code code[8];
    char paths[200];

    (void)state;
    text = usual;
    for (piece_bytes = 1; piece_bytes < 200; piece_bytes += 13) {
        assert_int_equal(real_code_read(code, 8, paths, sizeof paths), 3);
        assert_int_equal(code[0].start, 0x2000);
        assert_int_equal(code[0].limit, 0x4000);
        assert_int_equal(code[0].offset, 0x1000);
        assert_string_equal(code[0].path, "/usr/bin/one");
        assert_int_equal(code[0].build_id_bytes, 0);
        assert_int_equal(code[1].start, 0xc000);
        assert_string_equal(code[1].path, "");
        assert_int_equal(code[2].start, HIGH_START);
        assert_int_equal(code[2].limit, HIGH_START + 0x8000);
        assert_int_equal(code[2].offset, 0);
        assert_string_equal(code[2].path, "/lib/with a space.so (deleted)");
    }
}

/* Paths are cut, and their room is not left. */
static void no_more_is_told_than_there_is_room_for(void **state)
{
    struct os_code code[4];
    char paths[20];

    (void)state;
    text = usual;
    memset(paths, 'x', sizeof paths);
    memset(code, 0x5a, sizeof code);
    assert_int_equal(real_code_read(code, 2, paths, sizeof paths - 3), 2);
    assert_true(all_bytes_are(&code[2], 0x5a, 2 * sizeof code[0]));
    assert_int_equal(real_code_read(code, 4, paths, sizeof paths - 3), 3);
    assert_string_equal(code[0].path, "/usr/bin/one");
    assert_string_equal(code[2].path, "/li");
    assert_true(all_bytes_are(paths + sizeof paths - 3, 'x', 3));
    assert_int_equal(real_code_read(code, 4, paths, 0), 3);
    assert_string_equal(code[0].path, "");
}

/* Whose id is "abcd". */
static void start_image_with_id(void)
{
    start_image(1);
    add_note(NT_GNU_BUILD_ID, "GNU", "abcd");
    set_segment(0, PT_NOTE, notes_bytes);
}

/* The id is that of the mapping from the file's first byte on. */
static void code_has_the_id_of_its_file(void **state)
{
    static char line[200];
    struct os_code code[2];
    char paths[40];
    uintptr_t base = (uintptr_t)&image;

    (void)state;
    start_image_with_id();
    (void)snprintf(line, sizeof line,
                   "%lx-%lx r--p 00000000 08:01 11 /one\n%lx-%lx r-xp 00001000 08:01 11 /one\n",
                   (long)base, (long)base + 4096, (long)base + 4096, (long)base + 8192);
    text = line;
    assert_int_equal(real_code_read(code, 2, paths, sizeof paths), 1);
    assert_int_equal(code[0].build_id_bytes, 4);
    assert_memory_equal(code[0].build_id, "abcd", 4);
}

/* Pages of a file whose first byte is not mapped have none, whatever lies before them. */
static void code_has_no_other_files_id(void **state)
{
    static const char *const others[] = { "08:01 12 /two", "08:02 11 /one", "09:01 11 /one" };
    static char line[200];
    struct os_code code[2];
    char paths[40];
    uintptr_t base = (uintptr_t)&image;

    (void)state;
    start_image_with_id();
    for (unsigned i = 0; i < ARRAY_COUNT(others); i++) {
        (void)snprintf(
            line, sizeof line, "%lx-%lx r-xp 00000000 08:01 11 /one\n%lx-%lx r-xp 00001000 %s\n",
            (long)base, (long)base + 4096, (long)base + 4096, (long)base + 8192, others[i]);
        text = line;
        assert_int_equal(real_code_read(code, 2, paths, sizeof paths), 2);
        assert_int_equal(code[0].build_id_bytes, 4);
        assert_int_equal(code[1].build_id_bytes, 0);
        assert_string_equal(code[1].path, strchr(others[i], '/'));
    }
}

static void without_the_file_nothing_is_told(void **state)
{
    struct os_code code[1];
    char paths[10];

    (void)state;
    assert_int_equal(real_code_read(code, 1, paths, sizeof paths), 0);
    text = "";
    assert_int_equal(real_code_read(code, 1, paths, sizeof paths), 0);
}

UNIT_MAIN(UNIT_TEST(the_id_is_found_behind_other_notes), UNIT_TEST(the_next_segment_is_tried),
          UNIT_TEST(behind_the_last_header_nothing_is_looked_at),
          UNIT_TEST(what_is_no_id_is_not_taken_for_one),
          UNIT_TEST(code_is_told_with_its_place_and_path),
          UNIT_TEST(no_more_is_told_than_there_is_room_for), UNIT_TEST(code_has_the_id_of_its_file),
          UNIT_TEST(code_has_no_other_files_id), UNIT_TEST(without_the_file_nothing_is_told))
