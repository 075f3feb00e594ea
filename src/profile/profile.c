/* profile.c - when profiles are written, and into which files.
 * SPDX-License-Identifier: MIT
 */
#include "profile.h"

#include "../base/options.h"
#include "../base/port.h"
#include "../base/report.h"
#include "../cache/thread.h"
#include "../sample/sampling.h"
#include "../space/commit.h"

/* How long a dump waits for another one to end. */
enum { TURNS_MAX = 200, TURN_MS = 5 };

struct profile profile;

/* ---- names ---- */

/* How many there were for the reason; NULL: of the end there is one. */
static uint64_t *dumps_for(char reason)
{
    switch (reason) {
    case 'i': return &profile.interval_dumps;
    case 'm': return &profile.manual_dumps;
    case 'u': return &profile.peak_dumps;
    default: return NULL;
    }
}

/* prefix.process.sequence.reason; each reason but the end has a sequence of its own. */
static const char *make_name(struct report *name, char reason)
{
    const char letter[2] = { reason, '\0' };
    uint64_t *dumps = dumps_for(reason);

    report_print(name, "%s.%" PRIu64 ".%" PRIu64 ".%s", profile.prefix, (uint64_t)os_process_id(),
                 profile.dumps++, letter);
    if (dumps != NULL) report_number(name, (*dumps)++);
    report_text(name, option_is_set(OPTION_PROF_PPROF) ? ".pb.gz" : ".heap");
    return report_kept(name);
}

static bool name_ends(const char *name, const char *ending)
{
    size_t length = __builtin_strlen(name), wanted = __builtin_strlen(ending);

    return length >= wanted && __builtin_memcmp(name + length - wanted, ending, wanted) == 0;
}

/* ---- dumps ---- */

static bool dump_turn(void)
{
    for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
        uintptr_t dumping = 0, mine = port_thread_mark();

        if (__atomic_compare_exchange_n(&profile.dumping, &dumping, mine, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true;
        if (dumping == mine) return false; /* interrupted by the signal whose handler wants to */
        os_pause(TURN_MS);
    }
    return false;
}

static void end_turn(void) { __atomic_store_n(&profile.dumping, (uintptr_t)0, __ATOMIC_RELEASE); }

void profile_forget_dump(void) { end_turn(); }

enum profile_prefix profile_set_prefix(const char *prefix)
{
    size_t length = __builtin_strlen(prefix);

    if (length >= sizeof profile.prefix) return PREFIX_TOO_LONG;
    if (!dump_turn()) return PREFIX_IN_USE;
    __builtin_memcpy(profile.prefix, prefix, length + 1);
    end_turn();
    return PREFIX_SET;
}

/* How many stacks hold blocks, of whatever sizes and threads. Those whose hash is the same count as
 * one, and those of which no caller is known. */
static size_t live_stacks(const struct profile_snapshot *snapshot)
{
    size_t count = 0, unknown = 0;

    for (size_t i = 0; i < snapshot->site_count; i++) {
        const struct profile_snapshot_site *site = &snapshot->site[i];

        if (site->live == 0) continue;
        if (site->depth == 0) unknown = 1;
        else
            snapshot->sorted[count++] = (uintptr_t)stack_hash(0, site->return_address, site->depth);
    }
    return profile_snapshot_sort(snapshot->sorted, count) + unknown;
}

/* Leaks are what lives at the end. Like the files, as many as samples stand for. True: there are
 * any. */
static NOINLINE bool report_leaks(const struct profile_snapshot *snapshot)
{
    double bytes = 0, blocks = 0;
    size_t contexts = live_stacks(snapshot);
    struct report line = { .write = report_to_error };

    for (size_t i = 0; i < snapshot->site_count; i++) {
        const struct profile_snapshot_site *site = &snapshot->site[i];
        double count = (double)site->live / sampler_probability(site->bytes, snapshot->period);

        blocks += count;
        bytes += count * (double)site->bytes;
    }
    if (contexts == 0) return false;
    report_print(&line,
                 "prairie: Leak approximation summary: ~%" PRIu64 " bytes, ~%" PRIu64
                 " objects, >= %" PRIu64 " contexts\n",
                 (uint64_t)(bytes + 0.5), (uint64_t)(blocks + 0.5), (uint64_t)contexts);
    report_flush(&line);
    return true;
}

static bool write_file(const struct profile_snapshot *snapshot, const char *path)
{
    bool pprof = name_ends(path, ".pb.gz") || name_ends(path, ".pprof");

    if (!out_open(snapshot->out, path, pprof)) return false;
    if (pprof) profile_write_pprof(snapshot);
    else profile_write_jeprof(snapshot, option_is_set(OPTION_PROF_ACCUM));
    return out_close(snapshot->out);
}

/* Who calls for a dump is answered. One of the others is told of: the next would fail as well. */
static NOINLINE void tell_not_written(const char *path)
{
    struct report line = { .write = report_to_error };

    if (profile.failure_told) return;
    profile.failure_told = true;
    report_print(&line, "prairie: profile not written: %s\n", path);
    report_flush(&line);
}

/* Without a prefix there is no file unless somebody names one, but leaks are told. *leaks, unless
 * it is NULL: are they wanted, and later, were there any? */
static bool dump(const char *path, char reason, bool *leaks)
{
    struct report name = { .used = 0 };
    struct profile_snapshot snapshot;
    bool writes, written = false, tells_leaks = leaks != NULL && *leaks;

    if (leaks != NULL) *leaks = false;
    if (!profile.on) return false;
    if (path == NULL && !tells_leaks && RELAXED_LOAD(profile.prefix[0]) == '\0') return false;
    if (!dump_turn()) return false;
    writes = path != NULL || profile.prefix[0] != '\0';
    if (writes && path == NULL) path = make_name(&name, reason);
    if ((writes || tells_leaks) && profile_snapshot_take(&snapshot)) {
        written = writes && write_file(&snapshot, path);
        if (tells_leaks) *leaks = report_leaks(&snapshot);
        os_release(snapshot.memory);
    }
    if (writes && !written && reason != 'm') tell_not_written(path);
    end_turn();
    if (written) sampling_tell_dumped(path);
    return written;
}

bool profile_dump(const char *name) { return dump(name, 'm', NULL); }

static void dump_at_end(void)
{
    bool leaks = option_is_set(OPTION_PROF_LEAK);

    (void)dump(NULL, 'f', &leaks);
    if (leaks && option_is_set(OPTION_PROF_LEAK_ERROR)) os_exit(1);
}

static void poll_interval(void)
{
    uint64_t next = RELAXED_LOAD(profile.interval_next), taken = sampler_taken_bytes();

    if (taken < next) return;
    if (!__atomic_compare_exchange_n(&profile.interval_next, &next, taken + profile.interval_bytes,
                                     false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    (void)dump(NULL, 'i', NULL);
}

/* The region opens further ahead than what was ever held. As of a moment ago: all threads ask. */
static size_t touched_bytes_now(void)
{
    return (commit_taken_pages() << space.page_shift) + RELAXED_LOAD(commit.vast_bytes);
}

static void poll_peak(void)
{
    size_t peak = RELAXED_LOAD(profile.peak_bytes), touched = touched_bytes_now();

    if (touched <= peak) return;
    if (__atomic_compare_exchange_n(&profile.peak_bytes, &peak, touched, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        (void)dump(NULL, 'u', NULL);
}

void profile_poll(void)
{
    const struct sampler *sampler = sampler_here();

    if (sampler != NULL && sampler->in_hook) return; /* it was called by a dump, perhaps */
    if (profile.interval_bytes != 0 && RELAXED_LOAD(sampling_active)) poll_interval();
    if (RELAXED_LOAD(profile.gdump)) poll_peak();
}

static void choose_polling(void)
{
    RELAXED_STORE(sampling_polls, profile.interval_bytes != 0 || RELAXED_LOAD(profile.gdump));
}

void profile_set_gdump(bool gdump)
{
    RELAXED_STORE(profile.peak_bytes, touched_bytes_now());
    RELAXED_STORE(profile.gdump, gdump);
    choose_polling();
}

/* ---- start and settings ---- */

static void set_period(unsigned lg_sample)
{
    RELAXED_STORE(profile.lg_sample, (uint8_t)lg_sample);
    sampler_set_period((uint64_t)1 << lg_sample);
}

/* In this order a dump that has begun weighs what it counts as it was drawn. What another thread
 * draws between the two weighs wrongly. */
void profile_reset(unsigned lg_sample)
{
    samples_reset();
    set_period(lg_sample);
    if (sampler_here() != NULL) counting_pass_back((struct counting_front *)thread_front());
}

bool profile_start(void)
{
    int64_t lg_interval = (int64_t)option_value(OPTION_LG_PROF_INTERVAL);
    bool leak = option_is_set(OPTION_PROF_LEAK);

    set_period((unsigned)option_value(OPTION_LG_PROF_SAMPLE));
    sampler_set_seed(os_wall_ns() ^ (uint64_t)os_process_id() << 40);
    if (profile_set_prefix(option_text(OPTION_PROF_PREFIX)) != PREFIX_SET)
        report_to_error(NULL, "prairie: prof_prefix is longer than 767 bytes, "
                              "and not used\n");
    threads_sampling_init(option_is_set(OPTION_PROF_THREAD_ACTIVE_INIT));
    if (!sampling_start((unsigned)option_value(OPTION_PROF_BT_MAX))) return false;
    profile.on = true;
    if (lg_interval >= 0)
        profile.interval_bytes = profile.interval_next = (uint64_t)1 << lg_interval;
    profile_set_gdump(option_is_set(OPTION_PROF_GDUMP));
    RELAXED_STORE(sampling_active, option_is_set(OPTION_PROF_ACTIVE));
    if (leak) os_keep_error_output();
    if (leak || option_is_set(OPTION_PROF_FINAL)) os_at_exit(dump_at_end);
    return true;
}
