/* linux_code.c - what code lies where in the address space, and which build of it.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "os.h"

#include <link.h>

struct text_reader {
    int file;
    size_t used, have;
    char *buffer;
    size_t bytes;
};

static int next_letter(struct text_reader *reader)
{
    if (reader->used == reader->have) {
        reader->have = os_file_read(reader->file, reader->buffer, reader->bytes);
        reader->used = 0;
        if (reader->have == 0) return -1;
    }
    return (unsigned char)reader->buffer[reader->used++];
}

/* A hexadecimal number and the letter behind it. */
static uintptr_t read_hex(struct text_reader *reader, int *behind)
{
    uintptr_t number = 0;

    for (;;) {
        int letter = next_letter(reader);

        if (letter >= '0' && letter <= '9') number = number * 16 + (uintptr_t)(letter - '0');
        else if (letter >= 'a' && letter <= 'f')
            number = number * 16 + (uintptr_t)(letter - 'a' + 10);
        else {
            *behind = letter;
            return number;
        }
    }
}

struct path_room {
    char *text;
    size_t used, bytes;
};

/* The rest of the line, from this letter on; cut where there is no room for all of it. */
static const char *read_path(struct text_reader *reader, int letter, struct path_room *room)
{
    char *path = room->text + room->used;
    size_t length = 0, left = room->bytes - room->used;

    while (letter == ' ') letter = next_letter(reader);
    for (; letter != '\n' && letter >= 0; letter = next_letter(reader))
        if (length + 1 < left) path[length++] = (char)letter;
    if (length == 0 || left == 0) return "";
    path[length++] = '\0';
    room->used += length;
    return path;
}

/* A note of the kind that linkers leave. Everything is read with care: a library may be unloaded
 * meanwhile. */
static bool find_build_id(struct os_code *mapping, uintptr_t note, size_t bytes)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head = { 0 };
        size_t whole;

        if (os_copy_checked(&head, (const void *)note, sizeof head) != sizeof head) return false;
        if (head.n_namesz > bytes || head.n_descsz > bytes) return false;
        whole =
            sizeof head + ((head.n_namesz + 3) & ~(size_t)3) + ((head.n_descsz + 3) & ~(size_t)3);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4
            && head.n_descsz <= OS_BUILD_ID_MAX) {
            mapping->build_id_bytes = (uint32_t)os_copy_checked(
                mapping->build_id, (const void *)(note + sizeof head + 4), head.n_descsz);
            return true;
        }
        if (whole > bytes) return false;
        note += whole;
        bytes -= whole;
    }
    return false;
}

/* The file is mapped at `base` from its first byte on. */
static void read_build_id(struct os_code *mapping, uintptr_t base)
{
    ElfW(Ehdr) head = { 0 };

    if (os_copy_checked(&head, (const void *)base, sizeof head) != sizeof head) return;
    if (__builtin_memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        uintptr_t at = base + head.e_phoff + (size_t)i * sizeof(ElfW(Phdr));
        ElfW(Phdr) segment = { 0 };

        if (os_copy_checked(&segment, (const void *)at, sizeof segment) != sizeof segment) return;
        if (segment.p_type == PT_NOTE
            && find_build_id(mapping, base + segment.p_offset, segment.p_filesz))
            return;
    }
}

/* Which file is mapped: numbers to compare, of which the last is read as if it were hexadecimal. */
struct file_numbers {
    uintptr_t major, minor, inode;
};

static struct file_numbers read_numbers(struct text_reader *reader, int *behind)
{
    struct file_numbers file;

    file.major = read_hex(reader, behind);
    file.minor = read_hex(reader, behind);
    file.inode = read_hex(reader, behind);
    return file;
}

static bool is_same_file(struct file_numbers one, struct file_numbers other)
{
    return one.inode == other.inode && one.minor == other.minor && one.major == other.major;
}

/* What a line says beside the struct os_code. */
struct mapping {
    bool is_code;
    struct file_numbers file;
};

/* A line: start-limit rwxp offset device inode path. False: there is none. */
static bool read_line(struct text_reader *reader, struct path_room *room, struct os_code *code,
                      struct mapping *mapping)
{
    int letter = 0;

    *code = (struct os_code){ .start = read_hex(reader, &letter) };
    if (letter != '-') return false;
    code->limit = read_hex(reader, &letter);
    (void)next_letter(reader);
    (void)next_letter(reader);
    mapping->is_code = next_letter(reader) == 'x';
    (void)next_letter(reader);
    (void)next_letter(reader);
    code->offset = read_hex(reader, &letter);
    mapping->file = read_numbers(reader, &letter); /* emulators may end the line here */
    code->path = read_path(reader, letter, room);
    return true;
}

size_t os_code_read(struct os_code *code, size_t most, char *paths, size_t paths_bytes)
{
    char buffer[1024];
    struct text_reader reader = { .file = os_mappings_open(), .buffer = buffer };
    struct path_room room = { paths, 0, paths_bytes };
    struct mapping mapping;
    struct file_numbers first_file = { 0 };
    uintptr_t first_base = 0;
    size_t count = 0;

    reader.bytes = sizeof buffer;
    if (reader.file < 0) return 0;
    while (count < most) {
        size_t used = room.used;

        if (!read_line(&reader, &room, &code[count], &mapping)) break;
        if (code[count].offset == 0) {
            first_base = code[count].start;
            first_file = mapping.file;
        }
        if (!mapping.is_code) {
            room.used = used;
            continue;
        }
        if (code[count].path[0] == '/' && first_base != 0 && is_same_file(mapping.file, first_file))
            read_build_id(&code[count], first_base);
        count++;
    }
    os_file_close(reader.file);
    return count;
}
