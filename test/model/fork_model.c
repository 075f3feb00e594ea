/* fork_model.c - a fork while another thread is in the middle of a call: the child can go on. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "explore.h"

#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 6 };

static bool handlers_are_forgotten;
static void *blocks[2][BLOCKS];

/* The lock's checks ask at each step whether this thread forks. */
static void setup(void)
{
    explore_ignore(inside_forking_thread());
    prairie_free(prairie_malloc(1));
}

static void warm(unsigned thread)
{
    blocks[thread][0] = prairie_malloc(100);
    prairie_free(blocks[thread][0]);
}

static void use_heap(unsigned thread)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[thread][i] = prairie_malloc(i % 2 == 0 ? 1000 : 20000);
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[thread][i]);
}

/* It must be able to allocate, in every class and length, and find everything in order. */
static _Noreturn void live_as_child(void)
{
    use_heap(0);
    thread_flush();
    prairie_check_all();
    _exit(0);
}

static void body(unsigned thread)
{
    int child, status = 0;

    if (thread == 1) {
        use_heap(1);
        return;
    }
    child = handlers_are_forgotten ? fork() : fake_fork();
    if (child == 0) live_as_child();
    expect(child > 0 && waitpid(child, &status, 0) == child);
    expect(status == 0);
    use_heap(0);
}

static void finish(void) { prairie_check_all(); }

static void forget_handlers(void) { handlers_are_forgotten = true; }

const struct model fork_model = {
    .name = "fork",
    .threads = 2,
    .interruptions = 2,
    .setup = setup,
    .warm = warm,
    .body = body,
    .finish = finish,
    .breakages = { { "a fork without handlers", forget_handlers } },
};
