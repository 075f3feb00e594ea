/* mach/mach.h - the few types of Mach that malloc/malloc.h is written in, for tests where there is
 * no Mach: a task is a process that somebody can read.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_TEST_ZONE_MACH_H
#define PRAIRIE_TEST_ZONE_MACH_H

#include <stddef.h>
#include <stdint.h>

typedef int kern_return_t;
typedef int boolean_t;
typedef unsigned task_t;
typedef uintptr_t vm_address_t;
typedef uintptr_t vm_size_t;

enum { KERN_SUCCESS = 0, KERN_FAILURE = 5 };

/* The task that this process is. */
task_t mach_task_self(void);

#endif
