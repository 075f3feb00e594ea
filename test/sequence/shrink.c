/* shrink.c - leaves out the steps that a failure does not need, and runs again and again to find
 * them.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "../blackbox/blackbox.h"
#include "shrink.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { SHRINK_SECONDS = 600 };

struct kept_steps *kept;
static size_t kept_bytes(void) { return sizeof *kept + world.steps; }

void map_kept(int file)
{
    kept = mmap(NULL, kept_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (kept == MAP_FAILED) give_up("sequence: no memory for the steps");
}

/* The sentence without its numbers, so that the same failure is known again elsewhere. */
void note_kind(const char *text)
{
    char *to = kept != NULL ? kept->kind : NULL;
    const char *end = strchr(text, '(');

    for (; to != NULL && *text != '\0' && text != end && to < kept->kind + KIND_CHARS - 1; text++)
        if (!(*text >= '0' && *text <= '9') && !(*text >= 'a' && *text <= 'f')) *to++ = *text;
    if (to != NULL) *to = '\0';
}

static char **arguments_of_child;
static char wanted_kind[KIND_CHARS]; /* of the failure of the whole run */

static bool fails(bool shows)
{
    kept->kind[0] = '\0';
    pid_t child = fork();

    if (child < 0) give_up("sequence: no process");
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        if (!shows) dup2(nowhere, 1);
        if (!shows) dup2(nowhere, 2);
        alarm(patience(CHILD_SECONDS));
        execv("/proc/self/exe", arguments_of_child);
        _exit(126);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return status != 0 && (wanted_kind[0] == '\0' || strcmp(kept->kind, wanted_kind) == 0);
}

/* Leaves out stretches of so many kept steps, where the run still fails. True: some are gone. */
static bool leave_out(uint64_t *list, uint64_t *count, uint64_t length, double until_ms)
{
    bool some = false;
    for (uint64_t first = 0; first < *count && now_ms() < until_ms;) {
        uint64_t end = first + length < *count ? first + length : *count;
        for (uint64_t i = first; i < end; i++) kept->keep[list[i]] = 0;
        if (fails(false)) {
            memmove(list + first, list + end, (*count - end) * sizeof *list);
            *count -= end - first;
            some = true;
        } else {
            for (uint64_t i = first; i < end; i++) kept->keep[list[i]] = 1;
            first = end;
        }
    }
    return some;
}

int shrink(int argc, char **argv)
{
    char number[24];
    int file = memfd_create("steps", 0), used = 0;
    double until_ms = now_ms() + SHRINK_SECONDS * 1e3;

    arguments_of_child = calloc((size_t)argc + 8, sizeof(char *));
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--shrink") != 0) arguments_of_child[used++] = argv[i];
    if (file < 0 || ftruncate(file, (off_t)kept_bytes()) != 0) give_up("sequence: no memory");
    map_kept(file);
    snprintf(number, sizeof number, "%d", file);
    arguments_of_child[used++] = "--kept";
    arguments_of_child[used++] = number;
    memset(kept->keep, 1, world.steps);
    if (!fails(false)) give_up("sequence: nothing fails, so nothing can be left out");
    memcpy(wanted_kind, kept->kind, KIND_CHARS);
    uint64_t count = kept->step + 1, *list = calloc(count, sizeof *list);
    memset(kept->keep + count, 0, world.steps - count);
    for (uint64_t i = 0; i < count; i++) list[i] = i;
    for (uint64_t length = count / 2; length > 0; length /= 2)
        while (leave_out(list, &count, length, until_ms) && length == 1) {}
    arguments_of_child[used++] = "--say";
    printf("%llu steps are left:\n", (unsigned long long)count);
    fflush(stdout);
    return fails(true) ? 1 : 0;
}
