/* drift.h - does the process grow while the test runs?
 * SPDX-License-Identifier: MIT
 *
 * Held is what is resident beyond the bytes of live blocks: the allocator's overhead and the books
 * of the test. It swings with what the lanes do; whether it grows is told by medians of many
 * moments. Called by the supervisor only. */
#ifndef PRAIRIE_STRESS_DRIFT_H
#define PRAIRIE_STRESS_DRIFT_H

/* A run of so many seconds begins now. */
void drift_start(double now_seconds, double seconds);
/* Notes what is held, a thousand times in the run at most. */
void drift_note(double now_seconds);
/* Prints what was resident and held, and how fast it grew.
 * Violation: in the last quarter more is held than in the second one, by a quarter and 16 MiB; or
 * it was looked at too seldom to tell. */
void drift_report(void);

#endif
