/* fake_inside.h - what the files of the fake kernel share: its lock, its counts, and the failures
 * that were asked for.
 *
 * One mutex guards the model; the ports below the locks of prairie do without it. errno is kept, as
 * os.h wants.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_TEST_KERNEL_FAKE_INSIDE_H
#define PRAIRIE_TEST_KERNEL_FAKE_INSIDE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fake.h"

#include "base/port.h"
#include "base/units.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fake {
    pthread_mutex_t mutex;

    uint64_t fail_in;  /* calls until the one that fails; 0: none */
    uint64_t fail_row; /* how many fail then, one after the other */
    bool failing[FAKE_FAILING_COUNT];
    uint64_t failures, calls_that_can_fail;
    uint64_t calls[FAKE_CALL_COUNT];
    void (*on_call)(enum fake_call kind), (*beside_call)(enum fake_call kind);
};
extern struct fake fake;

NORETURN INLINE void broken(const char *what)
{
    port_write_error("fake kernel: ", 13);
    port_write_error(what, strlen(what));
    port_write_error("\n", 1);
    abort();
}

INLINE void enter(void) { (void)pthread_mutex_lock(&fake.mutex); }
INLINE void leave(void) { (void)pthread_mutex_unlock(&fake.mutex); }

INLINE void count_call(enum fake_call kind)
{
    (void)__atomic_add_fetch(&fake.calls[kind], 1, __ATOMIC_RELAXED);
    if (fake.on_call != NULL) fake.on_call(kind);
}

/* Nobody holds the fake's lock. */
INLINE void pass_beside(enum fake_call kind)
{
    if (fake.beside_call != NULL) fake.beside_call(kind);
}

INLINE bool refuse(void)
{
    fake.failures++;
    return false;
}

/* Counts a call that can fail; false when this one must. */
INLINE bool admit(enum fake_call kind)
{
    count_call(kind);
    fake.calls_that_can_fail++;
    if (fake.fail_in > 0 && --fake.fail_in == 0) {
        if (--fake.fail_row > 0) fake.fail_in = 1;
        return refuse();
    }
    return fake.failing[kind] ? refuse() : true;
}

#endif
