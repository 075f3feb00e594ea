/* limits.c - steps that set limits, the reserve and its callbacks, and lift them.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "controls.h"

#include <errno.h>
#include <prairie/reserve.h>
#include <sys/resource.h>

#pragma weak prairie_stats_read
#pragma weak reserve_cb_register
#pragma weak reserve_cb_unregister

enum { KB = 1024, MB = 1024 * 1024, CALLBACKS_MAX = 3 };

static unsigned callbacks; /* of player 0 */

static void callback(void *context, reserve_cnd_t condition, size_t size)
{
    (void)context, (void)size;
    add(" <%s", condition == RESERVE_CND_LOW ? "LOW" : "CRIT");
    for (unsigned i = below(4); i > 0; i--)
        if (me->depth < 3) step_nested();
    add(">");
}

size_t used_now(void)
{
    size_t used = 0;
    if (number_of("limit.used", sizeof used, &used) != 0) violation("limit.used refuses");
    return used;
}

void allow_figures(size_t used_before)
{
    size_t used = used_now();

    if (world.hard_bytes != 0 && used > used_before) world.hard_allowed += used - used_before;
}

struct prairie_stats numbers_now(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    size_t used = used_now();

    if (!prairie_stats_read(&stats)) violation("prairie_stats_read refuses");
    allow_figures(used);
    return stats;
}

static void set_hard(size_t bytes)
{
    size_t used;

    if (bytes != 0) world.may_refuse = true;
    int error = write_number("limit.hard", sizeof bytes, &bytes);
    if (error != 0) violation("limit.hard=%zu: error %d", bytes, error);
    used = used_now();
    world.hard_allowed = used > bytes ? used : bytes;
    world.hard_bytes = bytes;
    if (bytes == 0 && world.players == 1) world.may_refuse = false;
}

/* Never more than the limit, or less and less when there was more; neither by prairie's own account
 * nor by the statistics, which know that the pages between blocks of a slab have gone. The records
 * of clean pages do not count, nor the class map. */
void check_hard(void)
{
    if (world.hard_bytes == 0 || world.players > 1) return;
    struct prairie_stats stats = numbers_now();
    size_t used = used_now(), in_use = stats.mapped - stats.clean;
    size_t records = stats.clean / 64 + stats.mapped / 4096;
    if (used > world.hard_allowed)
        violation("%zu bytes are used, limit.hard is %zu", used, (size_t)world.hard_bytes);
    if (in_use > world.hard_allowed + records)
        violation("%zu bytes are in use, limit.hard is %zu", in_use, (size_t)world.hard_bytes);
    if (used < world.hard_allowed)
        world.hard_allowed = used > world.hard_bytes ? used : (size_t)world.hard_bytes;
}

static void step_space(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_AS, &limit);
    if (limit.rlim_cur < world.address_bytes && chance(60)) limit.rlim_cur = world.address_bytes;
    else limit.rlim_cur = (rlim_t)log_uniform(16 * MB, world.address_bytes);
    add("RLIMIT_AS=%zu", (size_t)limit.rlim_cur);
    setrlimit(RLIMIT_AS, &limit);
}

void step_limits(void)
{
    unsigned kind = below(100);
    size_t bytes;

    if (me->index != 0) return;
    if (world.has_space_limit && kind < 30) {
        step_space();
    } else if (kind < 50) {
        bytes = world.hard_bytes == 0 || chance(40)
                  ? (chance(50) ? numbers_now().mapped - 512 * KB : used_now()) + below(3 * MB)
                  : 0;
        add("limit.hard=%zu", bytes);
        set_hard(bytes);
    } else if (kind < 62) {
        bytes = chance(50) ? used_now() - 256 * KB + below(2 * MB) : 0;
        add("limit.soft=%zu", bytes);
        int error = write_number("limit.soft", sizeof bytes, &bytes);
        if (error != 0) violation("limit.soft=%zu: error %d", bytes, error);
    } else if (kind < 75) {
        bytes = chance(50) ? below(2 * MB) : 0;
        add("reserve.min=%zu", bytes);
        int error = write_number("reserve.min", sizeof bytes, &bytes);
        if (error != 0 && !(error == EAGAIN && has_reason_to_refuse(0)))
            violation("reserve.min=%zu: error %d", bytes, error);
    } else if (callbacks < CALLBACKS_MAX && chance(50)) {
        add("reserve_cb_register");
        callbacks += !reserve_cb_register(callback, NULL);
    } else if (callbacks > 0) {
        add("reserve_cb_unregister");
        if (reserve_cb_unregister(callback, NULL)) violation("a callback is not there");
        callbacks--;
    }
}

void lift_limits(void)
{
    size_t none = 0;

    set_hard(0);
    (void)write_number("limit.soft", sizeof none, &none);
    (void)write_number("reserve.min", sizeof none, &none);
    for (; callbacks > 0; callbacks--) (void)reserve_cb_unregister(callback, NULL);
}
