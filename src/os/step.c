/* step.c - a clock that costs next to nothing: the processor's own, where programs can read it.
 * SPDX-License-Identifier: MIT
 */
#include "../base/port.h"

enum { STEP_NS = 100000 };

#if defined(__x86_64__) || defined(__i386__)

/* Time-stamp counters run at 1 to 5 GHz, whatever the core's own pace. */
uint32_t port_step(void) { return (uint32_t)(__builtin_ia32_rdtsc() / ((uint64_t)STEP_NS * 3)); }

#elif defined(__aarch64__) && !defined(_WIN32)

uint32_t port_step(void)
{
    uint64_t count, per_second;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    __asm__("mrs %0, cntfrq_el0" : "=r"(per_second));
    if (per_second == 0) return (uint32_t)(port_now_ns() / STEP_NS); /* as emulators say */
    return (uint32_t)(count / (per_second / (1000000000 / STEP_NS) + 1));
}

#else

uint32_t port_step(void) { return (uint32_t)(port_now_ns() / STEP_NS); }

#endif
