/* copies.c - the functions that copy and fill end the process before they leave a block, and do
 * what they should else. */
/* SPDX-License-Identifier: MIT */
/* usage: copies          each misuse in a child, which says one line and aborts; then all that is right
 *        copies begins   of a process that is not hardened: a block that begins behind its page
 *        copies unseen   the same in a library that does not look: children come to their ends, or are stopped later */
#include "../blackbox/blackbox.h"
#include "../blackbox/hidden.h"

#include <malloc.h>
#include <signal.h>
#include <strings.h>
#include <sys/wait.h>

enum { SMALL = 24, LARGE = 50000, ROOM = 1 << 20 };

static char outside[ROOM], text[ROOM];
static volatile size_t small = SMALL, large = LARGE;

static char *taken(size_t bytes)
{
    char *block = hidden(malloc(bytes));
    must(block != NULL);
    return block;
}

static char *freed(size_t bytes)
{
    char *block = taken(bytes);
    free(block);
    return hidden(block);
}

static const char *text_of(size_t length)
{
    for (size_t i = 0; i < length; i++) text[i] = 'x';
    text[length] = '\0';
    return hidden(text);
}

static char *full(size_t bytes)
{
    char *block = taken(bytes);
    for (size_t i = 0; i < bytes; i++) block[i] = 'x';
    return block;
}

#define CASE(name, action) \
    static void name(void) { action; }
#define KEEP(value) (void)hidden(value)

CASE(memcpy_into, KEEP(memcpy(taken(small), outside, small + 1)))
CASE(memcpy_from, KEEP(memcpy(outside, taken(small), small + 1)))
CASE(memcpy_into_middle, KEEP(memcpy(taken(small) + 10, outside, small - 9)))
CASE(memcpy_into_large, KEEP(memcpy(taken(large), outside, large + 1)))
CASE(memcpy_into_large_middle, KEEP(memcpy(taken(large) + 30000, outside, large - 29999)))
CASE(memcpy_into_large_end, KEEP(memcpy(taken(large) + large - 1, outside, 2)))
CASE(memcpy_from_large, KEEP(memcpy(outside, taken(large), large + 1)))
CASE(memcpy_negative, KEEP(memcpy(taken(small), outside, (size_t)0 - small)))
CASE(memcpy_negative_large, KEEP(memcpy(taken(large) + 30000, outside, (size_t)0 - 1)))
CASE(memset_negative_large, KEEP(memset(taken(large) + 30000, 1, (size_t)0 - 100)))
CASE(strncpy_negative_large, KEEP(strncpy(taken(large) + 30000, text_of(3), (size_t)0 - 1)))
CASE(memcpy_into_freed, KEEP(memcpy(freed(small), outside, 1)))
CASE(memcpy_from_freed, KEEP(memcpy(outside, freed(small), 1)))
CASE(memmove_into, KEEP(memmove(taken(small), outside, small + 1)))
CASE(memmove_within, char *block = taken(small); KEEP(memmove(block + 1, block, small)))
CASE(memset_into, KEEP(memset(taken(small), 1, small + 1)))
CASE(memset_into_freed, KEEP(memset(freed(small), 1, 1)))
CASE(mempcpy_into, KEEP(mempcpy(taken(small), outside, small + 1)))
CASE(bcopy_into, bcopy(outside, taken(small), small + 1))
CASE(bzero_into, bzero(taken(small), small + 1))
CASE(strcpy_into, KEEP(strcpy(taken(small), text_of(small))))
CASE(strcpy_from, KEEP(strcpy(outside, full(small))))
CASE(stpcpy_into, KEEP(stpcpy(taken(small), text_of(small))))
CASE(strncpy_into, KEEP(strncpy(taken(small), text_of(3), small + 1)))
CASE(strncpy_from, KEEP(strncpy(outside, full(small), small + 1)))
CASE(stpncpy_into, KEEP(stpncpy(taken(small), text_of(3), small + 1)))
CASE(strcat_into, char *block = taken(small); strcpy(block, "abc");
     KEEP(strcat(block, text_of(small - 3))))
CASE(strncat_into, char *block = taken(small); strcpy(block, "abc");
     KEEP(strncat(block, text_of(small), small - 3)))

#define MISUSE(name, said) \
    {                      \
#name, name, said  \
    }
#define PAST "prairie: copy past the end of a block: "
#define FROM_PAST "prairie: copy from past the end of a block: "
static const struct misuse {
    const char *name;
    void (*act)(void);
    const char *says;
} misuses[] = {
    MISUSE(memcpy_into, PAST),
    MISUSE(memcpy_from, FROM_PAST),
    MISUSE(memcpy_into_middle, PAST),
    MISUSE(memcpy_into_large, PAST),
    MISUSE(memcpy_into_large_middle, PAST),
    MISUSE(memcpy_into_large_end, PAST),
    MISUSE(memcpy_from_large, FROM_PAST),
    MISUSE(memcpy_negative, PAST),
    MISUSE(memcpy_negative_large, PAST),
    MISUSE(memset_negative_large, PAST),
    MISUSE(strncpy_negative_large, PAST),
    MISUSE(memcpy_into_freed, "prairie: copy into a freed block: "),
    MISUSE(memcpy_from_freed, "prairie: copy from a freed block: "),
    MISUSE(memmove_into, PAST),
    MISUSE(memmove_within, PAST),
    MISUSE(memset_into, PAST),
    MISUSE(memset_into_freed, "prairie: copy into a freed block: "),
    MISUSE(mempcpy_into, PAST),
    MISUSE(bcopy_into, PAST),
    MISUSE(bzero_into, PAST),
    MISUSE(strcpy_into, PAST),
    MISUSE(strcpy_from, FROM_PAST),
    MISUSE(stpcpy_into, PAST),
    MISUSE(strncpy_into, PAST),
    MISUSE(strncpy_from, FROM_PAST),
    MISUSE(stpncpy_into, PAST),
    MISUSE(strcat_into, PAST),
    MISUSE(strncat_into, PAST),
};

/* What the child said, and whether it aborted. */
static bool act(const struct misuse *misuse, char *said, size_t room)
{
    int ends[2], status;
    size_t used = 0;
    must(pipe(ends) == 0);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        must(dup2(ends[1], 2) == 2);
        close(ends[0]);
        misuse->act();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; used < room - 1 && (got = read(ends[0], said + used, room - 1 - used)) > 0;)
        used += (size_t)got;
    said[used] = '\0';
    close(ends[0]);
    must(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static unsigned misuse_is_stopped(bool is_seen)
{
    unsigned stopped = 0;
    for (size_t i = 0; i < sizeof misuses / sizeof misuses[0]; i++) {
        char said[400];
        bool is_told = act(&misuses[i], said, sizeof said)
                    && strncmp(said, misuses[i].says, strlen(misuses[i].says)) == 0
                    && strchr(said, '\n') == said + strlen(said) - 1;
        stopped += is_told;
        if (is_told != is_seen && is_seen) {
            fprintf(stderr, "copies: %s: %s\n", misuses[i].name,
                    said[0] != '\0' ? said : "was not stopped");
            exit(1);
        }
    }
    return stopped;
}

/* Up to the last byte of blocks of all kinds, one byte at a time and all of it; and nothing at the
 * end. */
static void what_is_right_goes_on(void)
{
    static const size_t sizes[] = { 1,     7,     8,     24,    100,    1000,   5000,
                                    14328, 14400, 16384, 50000, 300000, 1000000 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t bytes = sizes[i];
        char *block = taken(bytes), *other = taken(bytes);
        for (size_t n = 0; n < bytes; n++) outside[n] = (char)(n * 7 + i);
        must(hidden(memcpy(block, outside, bytes)) == block && memcmp(block, outside, bytes) == 0);
        must(hidden(memmove(other, block, bytes)) == other && memcmp(other, outside, bytes) == 0);
        must(hidden(mempcpy(other, block, bytes)) == other + bytes);
        must(hidden(memcpy(block + bytes, outside, 0)) == block + bytes);
        for (size_t at = 0; at < bytes; at += 1 + bytes / 50)
            must(hidden(memcpy(block + at, other + at, bytes - at)) == block + at);
        must(hidden(memmove(block, block + bytes / 2, bytes - bytes / 2)) == block);
        must(memcmp(block, outside + bytes / 2, bytes - bytes / 2) == 0);
        must(hidden(memmove(other + bytes / 2, other, bytes - bytes / 2)) == other + bytes / 2);
        must(memcmp(other + bytes / 2, outside, bytes - bytes / 2) == 0);
        must(hidden(memset(block, 'y', bytes)) == block && block[0] == 'y'
             && block[bytes - 1] == 'y');
        bzero(hidden(block), bytes);
        must(block[0] == 0 && block[bytes - 1] == 0);
        must(hidden(strcpy(block, text_of(bytes - 1))) == block && strlen(block) == bytes - 1);
        must(hidden(stpcpy(other, block)) == other + bytes - 1);
        must(hidden(strncpy(other, "ab", bytes)) == other
             && other[bytes - 1] == (bytes == 1 ? 'a' : '\0'));
        must(hidden(strncpy(block, text_of(bytes), bytes)) == block && block[bytes - 1] == 'x');
        must(hidden(strncpy(outside, block, bytes)) == outside);
        must(hidden(stpncpy(other, "", bytes)) == other);
        block[0] = '\0';
        must(hidden(strcat(block, text_of(bytes - 1))) == block && strlen(block) == bytes - 1);
        block[0] = '\0';
        must(hidden(strncat(block, text_of(bytes), bytes - 1)) == block
             && strlen(block) == bytes - 1);
        must((block = realloc(block, bytes + 100)) != NULL);
        KEEP(memset(hidden(block), 1, malloc_usable_size(block)));
        must((other = realloc(other, bytes / 2 + 1)) != NULL);
        KEEP(memset(hidden(other), 1, bytes / 2 + 1));
        free(block);
        free(other);
        must((block = aligned_alloc(256, 1024)) != NULL);
        KEEP(memset(hidden(block), 1, 1024));
        free(block);
    }
}

static char *begins_behind_page;
CASE(memset_past_its_page, KEEP(memset(begins_behind_page, 1, ROOM)))

/* Large blocks do, to spread over a processor's caches. */
static void it_is_told_where_a_block_begins(void)
{
    char said[400], says[100];
    for (size_t bytes = 17000; begins_behind_page == NULL; bytes += 1000) {
        char *block = taken(bytes);
        must(bytes < ROOM);
        if ((uintptr_t)block % 4096 != 0) begins_behind_page = block;
    }
    snprintf(says, sizeof says, PAST "%p\n", (void *)begins_behind_page);
    const struct misuse misuse = MISUSE(memset_past_its_page, says);
    must(act(&misuse, said, sizeof said) && strcmp(said, says) == 0);
}

static void in_a_handler(int signal)
{
    (void)signal;
    KEEP(memcpy(hidden(outside), text_of(100), 100));
}

int main(int argc, char **argv)
{
    bool is_seen = argc == 1;
    require_prairie();
    if (argc == 2 && strcmp(argv[1], "begins") == 0) {
        it_is_told_where_a_block_begins();
        return 0;
    }
    unsigned stopped = misuse_is_stopped(is_seen), all = sizeof misuses / sizeof misuses[0];
    what_is_right_goes_on();
    must(signal(SIGUSR1, in_a_handler) != SIG_ERR && raise(SIGUSR1) == 0);
    printf("copies: %u of %u stopped\n", stopped, all);
    return stopped == (is_seen ? all : 0) ? 0 : 1;
}
