/* drift.c - samples of resident memory, their medians, and the line through them.
 * SPDX-License-Identifier: MIT
 */
#include "drift.h"

#include "lane.h"

#include "../blackbox/process_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 1000, QUARTER_SAMPLES_MIN = 4, GROWTH_MIB = 16, GROWTH_PARTS = 4 };
enum { LEAK_MIB = 600 };

static struct {
    double start_seconds, next_seconds, step_seconds;
    unsigned count, leaked_mib;
    double at_seconds[SAMPLES_MAX], resident_mib[SAMPLES_MAX], held_mib[SAMPLES_MAX];
} drift;

static double mib(double bytes) { return bytes / (1 << 20); }

static double resident_bytes(void)
{
    long kb = read_status_kb("VmRSS:");

    if (kb < 0) violation("/proc/self/status does not say what is resident");
    return (double)kb * 1024;
}

void drift_start(double now_seconds, double seconds)
{
    drift.step_seconds = seconds / SAMPLES_MAX;
    drift.start_seconds = now_seconds;
    drift.next_seconds = now_seconds + drift.step_seconds;
}

/* Sabotage: over the run so much is lost, evenly. */
static void leak_some(double now_seconds)
{
    static void *volatile lost; /* or the compiler would leave the call out */
    double steps = (now_seconds - drift.start_seconds) / drift.step_seconds;

    for (; drift.leaked_mib < steps / SAMPLES_MAX * LEAK_MIB; drift.leaked_mib++) {
        lost = malloc(1 << 20);
        if (lost != NULL) memset(lost, 1, 1 << 20);
    }
}

void drift_note(double now_seconds)
{
    double resident;

    if (now_seconds < drift.next_seconds || drift.count == SAMPLES_MAX) return;
    resident = resident_bytes();
    drift.at_seconds[drift.count] = now_seconds;
    drift.resident_mib[drift.count] = mib(resident);
    drift.held_mib[drift.count++] = mib(resident - (double)atomic_load(&world.live_bytes));
    while (drift.next_seconds <= now_seconds) drift.next_seconds += drift.step_seconds;
    if (world.sabotage == SABOTAGE_LEAK) leak_some(now_seconds);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(const double *from, unsigned count)
{
    double sorted[SAMPLES_MAX];

    for (unsigned i = 0; i < count; i++) sorted[i] = from[i];
    qsort(sorted, count, sizeof *sorted, compare);
    return sorted[count / 2];
}

/* The first sample of a quarter of the time: on a busy machine samples come at odd moments. */
static unsigned begin_of_quarter(unsigned quarter)
{
    double from = drift.start_seconds + quarter * drift.step_seconds * SAMPLES_MAX / 4;
    unsigned i = 0;

    while (i < drift.count && drift.at_seconds[i] < from) i++;
    return i;
}

/* Of the line of least squares; the first quarter, in which all begins, does not count. */
static double slope_an_hour(const double *value)
{
    unsigned first = begin_of_quarter(1), count = drift.count - first;
    const double *at = drift.at_seconds;
    double middle = 0, mean = 0, rise = 0, run = 0;

    for (unsigned i = first; i < drift.count; i++) {
        middle += at[i] / count;
        mean += value[i] / count;
    }
    for (unsigned i = first; i < drift.count; i++) {
        rise += (at[i] - middle) * (value[i] - mean);
        run += (at[i] - middle) * (at[i] - middle);
    }
    return rise / run * 3600;
}

struct medians {
    double early, late;
};

static double median_of_quarter(const double *value, unsigned quarter)
{
    unsigned begin = begin_of_quarter(quarter);
    unsigned end = quarter < 3 ? begin_of_quarter(quarter + 1) : drift.count;

    if (end - begin < QUARTER_SAMPLES_MIN)
        violation("%u looks in a quarter of the time are too few to tell growth", end - begin);
    return median(value + begin, end - begin);
}

static struct medians report(const char *what, const double *value)
{
    struct medians medians = { median_of_quarter(value, 1), median_of_quarter(value, 3) };

    printf("stress: %s: %.1f MiB in the second quarter, %.1f MiB in the last, %+.2f MiB an hour\n",
           what, medians.early, medians.late, slope_an_hour(value));
    return medians;
}

void drift_report(void)
{
    struct medians held;

    (void)report("resident", drift.resident_mib);
    held = report("beyond live blocks", drift.held_mib);
    if (held.late > held.early + held.early / GROWTH_PARTS + GROWTH_MIB)
        violation("what is held grew by %.1f MiB", held.late - held.early);
}
