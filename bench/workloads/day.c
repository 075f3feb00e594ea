/* day.c - a server's day: load, sessions and sizes drift; resident memory against live bytes.
 * SPDX-License-Identifier: MIT
 *
 * Idea: what runs for weeks shows what an hour of measuring does not. A day of 24 simulated hours
 * takes half a minute at 100 per cent (--scale 4000 makes it twenty minutes; below 100 the load
 * shrinks, too), in 1,440 ticks: each serves as many requests as the time of day brings, few at
 * night and most at noon. A request takes blocks that
 * die with it; one in eight leaves a record that lives for minutes, some for the day; in between a
 * session opens, grows its buffers, and ends. The typical size of records wanders between a half
 * and three times the first in the course of hours. Two threads work; what one kept is freed by
 * whoever its time comes to. The figures are resident bytes over live ones, on average and at the
 * end, when all sessions are over and the records of the day remain. */
#include "sizes.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TICKS = 1440,
    MEMBERS = 2,
    REQUEST_BLOCKS = 24,
    KEPT_MAX = 200000, /* records of one member that are alive at once */
    DAY_MS = 30000,
    AROUND_NOON = 1000, /* requests of a member in a tick, at most */
    LONG_ONE_IN = 40
};

struct kept {
    void *block;
    uint32_t bytes, until; /* the tick at which it is freed */
};

struct member {
    _Alignas(OWN_LINES) struct kept *kept; /* a ring: what was kept is looked at in turn */
    struct member *neighbour;
    uint32_t count;
    uint64_t random, sum, requests;
    uint64_t live_bytes; /* taken and not freed by this member: may pass below 0 */
};

struct day {
    const struct job *job;
    struct member member[MEMBERS];
    pthread_barrier_t barrier;
    unsigned tick;
    uint64_t requests; /* of each member in this tick */
    double start, resident_sum, live_sum;
    int samples; /* the file of samples; less than 0: none */
};

static struct day day;

/* In thousandths: a hill between 5 and 23 o'clock, and a tenth of it all night long. */
static uint64_t share_at(unsigned tick)
{
    uint64_t at = tick * 24 * 60 / TICKS, up = at > 300 ? at - 300 : 0;
    uint64_t down = at < 1380 ? 1380 - at : 0;

    return 100 + (up * down * 900) / (540 * 540);
}

/* Per cent of the usual size: 50 to 300, there and back every five hours. */
static uint64_t drift_at(unsigned tick)
{
    unsigned at = tick % 300;

    return 50 + (at < 150 ? at : 300 - at) * 250 / 150;
}

static void *take(struct member *member, size_t bytes)
{
    void *block = need(malloc(bytes));

    block_write(block, bytes, PAGE, member->random ^ bytes);
    member->live_bytes += bytes;
    return block;
}

static void give(struct member *member, void *block, size_t bytes)
{
    member->sum += block_sum(block, bytes, PAGE);
    member->live_bytes -= bytes;
    free(block);
}

static void keep(struct member *member)
{
    uint64_t random = random_next(&member->random);
    unsigned ticks = random % LONG_ONE_IN == 0 ? TICKS : 5 + (unsigned)(random >> 16) % 120;
    size_t bytes = size_program(&member->random) * drift_at(day.tick) / 100 + 8;
    struct kept *kept = &member->kept[member->count];

    if (member->count == KEPT_MAX) return;
    *kept = (struct kept){ take(member, bytes), (uint32_t)bytes, day.tick + ticks };
    member->count++;
}

/* The buffer of a session: grown as its text comes, dropped at the end. */
static void serve_session(struct member *member)
{
    size_t bytes = 512, most = size_between(&member->random, 2000, 200000);
    char *buffer = take(member, bytes);

    while (bytes < most) {
        size_t wider = bytes * 2;
        buffer = need(realloc(buffer, wider));
        block_write(buffer + bytes, wider - bytes, PAGE, member->random ^ wider);
        member->live_bytes += wider - bytes;
        bytes = wider;
    }
    give(member, buffer, bytes);
}

static void serve(struct member *member)
{
    void *block[REQUEST_BLOCKS];
    uint32_t bytes[REQUEST_BLOCKS];

    for (unsigned i = 0; i < REQUEST_BLOCKS; i++) {
        bytes[i] = (uint32_t)size_program(&member->random);
        block[i] = take(member, bytes[i]);
    }
    if (member->requests % 8 == 0)
        for (unsigned i = 0; i < 8; i++) keep(member);
    if (member->requests % 16 == 0) serve_session(member);
    for (unsigned i = 0; i < REQUEST_BLOCKS; i++) give(member, block[i], bytes[i]);
    member->requests++;
}

/* The neighbour's, so that half of all records die in another thread than they were born in. */
static void free_old(struct member *member, struct member *owner, unsigned tick)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < owner->count; i++) {
        struct kept *kept = &owner->kept[i];
        if (kept->until <= tick) give(member, kept->block, kept->bytes);
        else owner->kept[left++] = *kept;
    }
    owner->count = left;
}

static void *work(void *argument)
{
    struct member *member = argument;

    for (unsigned tick = 0; tick < TICKS; tick++) {
        pthread_barrier_wait(&day.barrier); /* the first thread has set the tick */
        free_old(member, tick % 2 == 0 ? member : member->neighbour, tick);
        pthread_barrier_wait(&day.barrier);
        for (uint64_t i = 0; i < day.requests; i++) serve(member);
        pthread_barrier_wait(&day.barrier); /* all is served; the first thread measures */
    }
    return NULL;
}

static double live_now(void)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < MEMBERS; i++) bytes += day.member[i].live_bytes;
    return (double)bytes / 1024;
}

static void sample(double before)
{
    double resident = resident_kb() - before, live = live_now();
    char line[80];
    int bytes;

    day.resident_sum += resident;
    day.live_sum += live;
    if (day.samples < 0) return;
    bytes =
        snprintf(line, sizeof line, "%.3f %.0f %.0f\n", day.tick * 24.0 / TICKS, live, resident);
    if (write(day.samples, line, (size_t)bytes) != bytes) stop("cannot write the samples");
}

static void wait_for_tick(unsigned tick)
{
    double due = day.start + (double)scaled(day.job, DAY_MS) / 1e3 * (tick + 1) / TICKS;
    double left = due - wall_seconds();

    if (left > 0) pause_ms((unsigned)(left * 1e3));
}

static void open_samples(const struct job *job)
{
    day.samples = -1;
    if (job->argument_count == 0) return;
    if (job->argument_count != 2 || strcmp(job->arguments[0], "--samples") != 0)
        stop("unknown argument '%s'", job->arguments[0]);
    day.samples = open(job->arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (day.samples < 0) stop("cannot write %s", job->arguments[1]);
}

static struct outcome run_day(const struct job *job)
{
    struct outcome outcome = { 0, 0 };
    uint64_t most = job->scale_percent < 100 ? scaled(job, AROUND_NOON) : AROUND_NOON;
    double before;

    open_samples(job);
    day.job = job;
    pthread_barrier_init(&day.barrier, NULL, MEMBERS + 1);
    for (unsigned i = 0; i < MEMBERS; i++) {
        day.member[i] =
            (struct member){ .kept = own_resident_memory(KEPT_MAX * sizeof(struct kept)),
                             .neighbour = &day.member[(i + 1) % MEMBERS],
                             .random = random_start(job->seed, i) };
    }
    day.start = wall_seconds();
    before = resident_kb();
    start_threads(MEMBERS, work, day.member, sizeof *day.member);
    for (day.tick = 0; day.tick < TICKS; day.tick++) {
        day.requests = most * share_at(day.tick) / 1000;
        pthread_barrier_wait(&day.barrier);
        pthread_barrier_wait(&day.barrier);
        pthread_barrier_wait(&day.barrier);
        sample(before);
        wait_for_tick(day.tick);
    }
    join_threads();
    report_figure("overhead", day.resident_sum / day.live_sum, "x");
    report_figure("overhead_at_end", (resident_kb() - before) / live_now(), "x");
    for (unsigned i = 0; i < MEMBERS; i++) {
        free_old(&day.member[i], &day.member[i], UINT32_MAX);
        outcome.checksum += day.member[i].sum;
        outcome.operations += day.member[i].requests * REQUEST_BLOCKS;
    }
    return outcome;
}

static const struct workload workloads[] = {
    { "day", "fragmentation",
      "a server's day in half a minute: load, sessions and sizes drift; resident bytes over live "
      "ones",
      "plateaus and drifts of Wilson's survey; what operators watch for weeks", MEMBERS, NULL,
      run_day, SUITE_FIGURES, "figure = \"overhead\"\nhigher_is_better = false\n",
      "--samples FILE (hour, live KB, resident KB)" },
};

const struct workload_list day_list = { workloads, sizeof workloads / sizeof *workloads };
