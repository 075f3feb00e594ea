/* record.c - a library to preload that writes the trace of a program's allocations (see trace.h).
 * SPDX-License-Identifier: MIT
 *
 * PRAIRIE_TRACE names the file; %p in it becomes the process's number, so that the processes of a
 * tree each get one. Without %p the first process takes the file and the others run unrecorded.
 * Blocks come from the C library's malloc under its own names; the recorder's tables come from
 * mmap. A free is noted before it happens and an allocation after it, both under one lock, so that
 * the order of the file is one in which the program could have run. A child of fork is not recorded
 * until it executes another program. A process that executes another program itself begins anew, so
 * that of a script which ends in exec only the program counts. A recording that cannot go on leaves
 * an empty file. */
#define _GNU_SOURCE
#include "trace_book.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's allocator under the names that nobody interposes. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

#define PUBLIC __attribute__((visibility("default")))

enum { MAP_FIRST = 1 << 20, START_POOL = 4096, NUMBER_BYTES = 24 };

struct entry {
    void *block; /* NULL: free */
    uint32_t slot;
};

struct start {
    void *(*work)(void *);
    void *argument;
    uint32_t thread;
};

/* Everything below is under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace_book book;
static struct trace_writer *writers[TRACE_THREADS_MAX];
static uint32_t writer_count;
static struct entry *map; /* from a block to its slot; linear probing */
static size_t map_size, map_used;
static struct start *starts;
static unsigned starts_used;
static int file = -1;

static bool spoiled;

static _Atomic bool recording;
static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static __thread struct trace_writer *mine;

/* A trace without its end would look like a whole one. What is no file of its own, a pipe perhaps,
 * cannot be emptied; whoever reads it has the message only. */
static void empty_file(void)
{
    if (file >= 0 && ftruncate(file, 0) != 0) return;
}

/* Under the lock, with a reason that does not go through stdio. */
static void give_up(const char *why)
{
    const char head[] = "record: ";
    recording = false;
    spoiled = true;
    empty_file();
    if (write(2, head, sizeof head - 1) < 0 || write(2, why, strlen(why)) < 0
        || write(2, "\n", 1) < 0)
        return;
}

static size_t home_of(const void *block)
{
    return (size_t)(((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15ull >> 20) & (map_size - 1);
}

static size_t find(const void *block)
{
    size_t at = home_of(block);
    while (map[at].block != NULL && map[at].block != block) at = (at + 1) & (map_size - 1);
    return at;
}

static bool enlarge_map(void)
{
    struct entry *old = map;
    size_t old_size = map_size;
    map_size = old_size == 0 ? MAP_FIRST : old_size * 2;
    map = trace_reserve(map_size * sizeof *map);
    if (map == NULL) return false;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].block != NULL) map[find(old[i].block)] = old[i];
    if (old != NULL) munmap(old, old_size * sizeof *old);
    return true;
}

static void insert(void *block, uint32_t slot)
{
    if (map_used * 2 >= map_size && !enlarge_map()) {
        give_up("no memory for the table of blocks");
        return;
    }
    map[find(block)] = (struct entry){ block, slot };
    map_used++;
}

/* Takes the entry out and moves back those that stand further along than they must. */
static uint32_t take_out(void *block)
{
    size_t hole = find(block);
    if (map[hole].block == NULL) return UINT32_MAX; /* older than the recording */
    uint32_t slot = map[hole].slot;
    for (size_t at = (hole + 1) & (map_size - 1); map[at].block != NULL;
         at = (at + 1) & (map_size - 1)) {
        size_t from_home = (at - home_of(map[at].block)) & (map_size - 1);
        if (from_home < ((at - hole) & (map_size - 1))) continue;
        map[hole] = map[at];
        hole = at;
    }
    map[hole].block = NULL;
    map_used--;
    return slot;
}

static struct trace_writer *new_writer(uint32_t thread)
{
    struct trace_writer *writer = trace_reserve(sizeof *writer);
    if (writer == NULL) {
        give_up("no memory for a thread's events");
        return NULL;
    }
    writer->file = file;
    writer->head.thread = thread;
    writers[thread] = writer;
    return writer;
}

static uint32_t new_thread(struct trace_writer *parent)
{
    if (writer_count == TRACE_THREADS_MAX) {
        give_up("too many threads");
        return 0;
    }
    if (writer_count > 0 && !trace_put(parent, TRACE_START, writer_count, 0, 0))
        give_up("cannot write the trace");
    return writer_count++;
}

/* A thread that was not started through pthread_create counts as started by the first one. */
static struct trace_writer *my_writer(void)
{
    if (mine == NULL) mine = new_writer(new_thread(writers[0]));
    return mine;
}

static bool begin(void)
{
    if (!recording) return false;
    pthread_mutex_lock(&lock);
    if (recording && my_writer() != NULL) return true;
    pthread_mutex_unlock(&lock);
    return false;
}

static void finish(bool written)
{
    if (!written) give_up("cannot write the trace");
    if (spoiled) empty_file(); /* of what was written after the reason to give up */
    pthread_mutex_unlock(&lock);
}

static void *note_new(void *block, enum trace_event event, size_t bytes, size_t alignment)
{
    if (block == NULL || !begin()) return block;
    uint32_t slot = trace_book_take(&book, mine->head.thread);
    if (slot == UINT32_MAX) {
        give_up("more live blocks than a trace can name");
        finish(true);
        return block;
    }
    insert(block, slot);
    finish(trace_put_new(&book, mine, event, slot, bytes,
                         alignment != 0 ? (unsigned)__builtin_ctzl(alignment) : 0));
    return block;
}

static void note_free(void *block)
{
    int saved = errno;
    if (block != NULL && begin()) {
        uint32_t slot = take_out(block);
        finish(slot == UINT32_MAX || trace_put_free(&book, mine, slot));
    }
    errno = saved;
}

PUBLIC void *malloc(size_t bytes) { return note_new(__libc_malloc(bytes), TRACE_MALLOC, bytes, 0); }

PUBLIC void *calloc(size_t count, size_t bytes)
{
    return note_new(__libc_calloc(count, bytes), TRACE_CALLOC, count * bytes, 0);
}

PUBLIC void free(void *block)
{
    note_free(block);
    __libc_free(block);
}

PUBLIC void *realloc(void *block, size_t bytes)
{
    uint32_t slot = UINT32_MAX;
    if (block == NULL) return malloc(bytes);
    if (bytes == 0) note_free(block);
    else if (begin()) {
        slot = take_out(block);
        finish(true);
    }
    void *moved = __libc_realloc(block, bytes);
    if (slot == UINT32_MAX || !begin()) return moved;
    insert(moved != NULL ? moved : block, slot);
    finish(moved == NULL || trace_put_realloc(&book, mine, slot, bytes));
    return moved;
}

PUBLIC void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, total);
}

PUBLIC void *memalign(size_t alignment, size_t bytes)
{
    size_t power = sizeof(void *); /* the C library rounds an odd alignment up as well */
    while (power < alignment) power *= 2;
    return note_new(__libc_memalign(power, bytes), TRACE_ALIGNED, bytes, power);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

PUBLIC void *valloc(size_t bytes) { return memalign((size_t)getpagesize(), bytes); }

PUBLIC void *pvalloc(size_t bytes)
{
    size_t page = (size_t)getpagesize();
    return memalign(page, (bytes + page - 1) & ~(page - 1));
}

PUBLIC int posix_memalign(void **result, size_t alignment, size_t bytes)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    int saved = errno;
    void *block = memalign(alignment, bytes);
    errno = saved;
    if (block == NULL) return ENOMEM;
    *result = block;
    return 0;
}

static void *run_started(void *argument)
{
    struct start start = *(struct start *)argument;
    pthread_mutex_lock(&lock);
    mine = new_writer(start.thread);
    pthread_mutex_unlock(&lock);
    return start.work(start.argument);
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*work)(void *), void *argument)
{
    if (real_pthread_create == NULL)
        *(void **)&real_pthread_create = dlsym(RTLD_NEXT, "pthread_create");
    if (!begin()) return real_pthread_create(thread, attributes, work, argument);
    if (starts == NULL || starts_used == START_POOL) {
        starts = trace_reserve(START_POOL * sizeof *starts);
        starts_used = 0;
    }
    struct start *start = starts != NULL ? &starts[starts_used++] : NULL;
    if (start != NULL) *start = (struct start){ work, argument, new_thread(mine) };
    finish(start != NULL);
    return start == NULL ? EAGAIN : real_pthread_create(thread, attributes, run_started, start);
}

static void end_recording(void)
{
    bool written = true;
    if (!begin()) return;
    recording = false;
    for (uint32_t i = 0; i < writer_count; i++)
        if (writers[i] != NULL && !trace_flush(writers[i])) written = false;
    finish(written);
}

PUBLIC void _exit(int code)
{
    end_recording();
    for (;;) syscall(SYS_exit_group, code);
}

PUBLIC void _Exit(int code) { _exit(code); }

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }

static void after_fork_in_child(void)
{
    recording = false;
    pthread_mutex_unlock(&lock);
}

/* The process's number in decimal digits, ended by a zero byte. */
static void own_number(char digits[NUMBER_BYTES])
{
    char *at = digits + NUMBER_BYTES - 1;
    *at = '\0';
    for (unsigned long rest = (unsigned long)getpid(); rest != 0; rest /= 10)
        *--at = (char)('0' + rest % 10);
    memmove(digits, at, (size_t)(digits + NUMBER_BYTES - at));
}

/* Puts the process's number where the name says %p. False: the name is too long. */
static bool file_name(char *name, size_t room, const char *pattern, const char *number)
{
    size_t count = 0;
    for (; *pattern != '\0'; pattern++) {
        if (count + NUMBER_BYTES > room) return false;
        if (pattern[0] == '%' && pattern[1] == 'p') {
            memcpy(name + count, number, strlen(number));
            count += strlen(number);
            pattern++;
        } else {
            name[count++] = *pattern;
        }
    }
    name[count] = '\0';
    return true;
}

/* The file, if this process may have it: nobody has, or the same process before it executed this.
 * */
static int open_file(const char *name, const char *number)
{
    const char *owner = getenv("PRAIRIE_TRACE_OWNER");
    bool again = owner != NULL && strcmp(owner, number) == 0;
    int low = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | (again ? O_TRUNC : O_EXCL), 0666);
    if (low < 0) return -1;
    int high = fcntl(low, F_DUPFD_CLOEXEC, 500); /* shells close and use the low numbers */
    if (high < 0) return low;
    close(low);
    return high;
}

__attribute__((constructor)) static void start_recording(void)
{
    char name[4096], number[NUMBER_BYTES];
    const char *pattern = getenv("PRAIRIE_TRACE");
    if (pattern == NULL || *pattern == '\0') return;
    own_number(number);
    if (!file_name(name, sizeof name, pattern, number)) {
        give_up("the name in PRAIRIE_TRACE is too long");
        return;
    }
    file = open_file(name, number);
    if (file < 0) return; /* another process of the tree has it */
    setenv("PRAIRIE_TRACE_OWNER", number, 1);
    if (write(file, TRACE_MAGIC, TRACE_MAGIC_BYTES) != TRACE_MAGIC_BYTES || !trace_book_open(&book)
        || !enlarge_map()) {
        give_up("cannot begin the trace");
        return;
    }
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    mine = new_writer(new_thread(NULL));
    recording = mine != NULL;
}

__attribute__((destructor)) static void stop_recording(void) { end_recording(); }
