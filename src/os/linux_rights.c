/* linux_rights.c - does the background thread have more rights than the program?
 *
 * With Linux every thread has ids, groups, capabilities and filters of its own. The C library's
 * calls give rights up in each thread that the C library knows, and the background thread is none
 * of those; other calls reach the calling thread alone. A thread of the process that kept its
 * rights gives them to whoever takes the process over. So the background thread compares itself
 * with the process's first thread and with the one that started it: as long as one of them has its
 * rights, it is worth no more than that one.
 *
 * Another thread's rights can be read in a file only, its status. The files stay open, in a table
 * of descriptors of the background thread's own: so the program sees no descriptor, and neither a
 * change of the root nor a filter that forbids to open files is in the way. Kernels before 5.9 have
 * no such table that costs nothing; there the files are opened for each look.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "os.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/auxv.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

enum rights_of { RIGHTS_OF_ITSELF, RIGHTS_OF_FIRST, RIGHTS_OF_STARTER, RIGHTS_OF_COUNT };

static struct {
    char starter[48]; /* name of the status of the thread that started it, by that thread */
    bool could_lose;  /* by the same: the program could give up ids, groups or capabilities */
    bool opened;      /* the rest is known; this and the rest by the background thread */
    bool has_table;   /* descriptors are its own */
    long thread;      /* atomic: its number, with a table; 0: it has none, or has not looked */
    uint64_t own;     /* its rights when it last looked */
    uint64_t at_open; /* and when it opened the files: what it may call then it may call */
    long file[RIGHTS_OF_COUNT]; /* with a table; failed: there is none */
} rights_known SPARSE;

/* ---- before the background thread starts ---- */

static bool ids_differ(long call)
{
    uint32_t id[3] = { 0, 0, 0 };

    (void)kernel(call, (long)&id[0], (long)&id[1], (long)&id[2]);
    return id[0] != id[1] || id[1] != id[2];
}

/* Without a capability and with three equal ids a thread can change nothing of that but by starting
 * another program, or by entering a user namespace, which only a process of one thread can. */
static bool could_lose_rights(void)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 } };
#if defined(SYS_getresuid32)
    enum { IDS = SYS_getresuid32, GROUP_IDS = SYS_getresgid32 };
#else
    enum { IDS = SYS_getresuid, GROUP_IDS = SYS_getresgid };
#endif

    if (failed(kernel(SYS_capget, (long)&header, (long)data))) return true;
    return data[0].permitted != 0 || data[1].permitted != 0 || ids_differ(IDS)
        || ids_differ(GROUP_IDS);
}

static void note_starter(void)
{
    static const char folder[] = "/proc/self/task/", file[] = "/status";
    unsigned long thread = (unsigned long)kernel(SYS_gettid);
    char *at = rights_known.starter + sizeof folder - 1;

    __builtin_memcpy(rights_known.starter, folder, sizeof folder);
    __builtin_memcpy(linux_write_number(at, thread), file, sizeof file);
}

void linux_rights_begin(void)
{
    note_starter();
    rights_known.could_lose = could_lose_rights();
    rights_known.opened = false;
    RELAXED_STORE(rights_known.thread, 0L);
}

/* One that the C library knows of has its rights from there. */
bool os_thread_rights_may_part(bool alone)
{
    return !UNDER_TSAN && (alone || rights_known.could_lose);
}

/* ---- reading ---- */

/* What a status says of rights, mixed into one number; 0: it cannot be told, or the thread has
 * ended. */
struct status_reader {
    uint64_t mixed;
    char label[4];   /* how the line begins */
    unsigned column; /* from the start of the line, no further than the state's */
    bool wanted;     /* the line is about rights */
    bool ended;      /* the thread has */
};

enum { STATE_COLUMN = 7, MIXED_START = 1 };

static bool label_is(const struct status_reader *reader, const char *label)
{
    return __builtin_memcmp(reader->label, label, sizeof reader->label) == 0;
}

static bool is_about_rights(const struct status_reader *reader)
{
    static const char labels[][5] = { "Uid:", "Gid:", "Grou", "CapI", "CapP",
                                      "CapE", "CapB", "CapA", "NoNe", "Secc" };

    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        if (label_is(reader, labels[i])) return true;
    return false;
}

static void read_character(struct status_reader *reader, char character)
{
    if (character == '\n') {
        reader->column = 0;
        reader->wanted = false;
        return;
    }
    if (reader->column < sizeof reader->label) reader->label[reader->column] = character;
    if (reader->column == sizeof reader->label - 1) reader->wanted = is_about_rights(reader);
    if (reader->column == STATE_COLUMN && label_is(reader, "Stat"))
        reader->ended = character == 'Z' || character == 'X';
    if (reader->wanted)
        reader->mixed = (reader->mixed ^ (unsigned char)character) * UINT64_C(0x100000001b3);
    if (reader->column <= STATE_COLUMN) reader->column++;
}

static long open_status(enum rights_of whose)
{
    static const char *const name[] = { "/proc/thread-self/status", "/proc/self/status",
                                        rights_known.starter };

    return kernel(SYS_openat, AT_FDCWD, (long)name[whose], O_RDONLY | O_CLOEXEC);
}

static uint64_t read_status(long file)
{
    struct status_reader reader = { .mixed = MIXED_START };
    char text[2048] = { 0 };
    long got;

    while (!failed(got = kernel(SYS_read, file, (long)text, sizeof text)) && got > 0)
        for (long i = 0; i < got; i++) read_character(&reader, text[i]);
    return failed(got) || reader.ended || reader.mixed == MIXED_START ? 0 : reader.mixed;
}

static uint64_t rights_of(enum rights_of whose)
{
    long file = rights_known.has_table ? rights_known.file[whose] : open_status(whose);
    uint64_t mixed;

    if (failed(file)) return 0;
    if (rights_known.has_table) (void)kernel(SYS_lseek, file, 0, SEEK_SET);
    mixed = read_status(file);
    if (!rights_known.has_table) (void)kernel(SYS_close, file);
    return mixed;
}

/* ---- the background thread's look ---- */

static void open_rights(void)
{
    rights_known.has_table =
        !failed(kernel(SYS_close_range, 0, (long)UINT32_MAX, CLOSE_RANGE_UNSHARE));
    if (rights_known.has_table) RELAXED_STORE(rights_known.thread, kernel(SYS_gettid));
    for (unsigned whose = 0; whose < RIGHTS_OF_COUNT && rights_known.has_table; whose++)
        rights_known.file[whose] = open_status((enum rights_of)whose);
    rights_known.own = rights_known.at_open = rights_of(RIGHTS_OF_ITSELF);
    rights_known.opened = true;
}

bool linux_take_own_files(void)
{
    if (!rights_known.opened) open_rights();
    return rights_known.has_table && rights_known.at_open != 0
        && rights_of(RIGHTS_OF_ITSELF) == rights_known.at_open;
}

/* When it has ended its number may be another thread's, also in a copy of the process. */
bool linux_has_own_files(void)
{
    long thread = RELAXED_LOAD(rights_known.thread);

    return thread != 0 && linux_background_lives() && kernel(SYS_gettid) == thread;
}

/* A filter that the program puts on all threads at once changes our own rights as well. */
bool os_thread_rights_parted(void)
{
    uint64_t first, starter;

    if (!rights_known.opened) open_rights();
    if (rights_known.own == 0) return rights_known.could_lose;
    first = rights_of(RIGHTS_OF_FIRST);
    if (first == rights_known.own) return false;
    starter = rights_of(RIGHTS_OF_STARTER);
    if (starter == rights_known.own) return false;
    rights_known.own = rights_of(RIGHTS_OF_ITSELF);
    if (rights_known.own == 0) return rights_known.could_lose;
    return first != rights_known.own && starter != rights_known.own;
}
