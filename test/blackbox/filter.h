/* filter.h - a filter of the system calls of this process, and of those it becomes. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_FILTER_H
#define PRAIRIE_TEST_FILTER_H

#include "blackbox.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* Ends the test as skipped where there are no filters. */
SHARED void filter_calls(struct sock_filter *code, size_t length)
{
    struct sock_fprog program = { (unsigned short)length, code };

    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        skip_test("this kernel or container takes no filter (errno %d)", errno);
}

#endif
