/* profile_jeprof.c - samples in the text format that jeprof reads.
 * SPDX-License-Identifier: MIT
 */
#include "profile.h"

#include "../base/report.h"

struct counts {
    uint64_t live, live_bytes, taken, taken_bytes;
};

static void write_piece(void *out, const char *text)
{
    out_bytes(out, text, __builtin_strlen(text));
}

static void write_counts(struct report *report, struct counts counts)
{
    report_print(report, "  t*: %" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "]\n", counts.live,
                 counts.live_bytes, counts.taken, counts.taken_bytes);
}

/* jeprof scales what it reads by itself, from the period in the first line; a line is of one
 * size. */
static struct counts counts_of(const struct profile_snapshot_site *site, bool with_freed)
{
    uint64_t taken = with_freed ? site->taken : 0;

    return (struct counts){ site->live, site->live * site->bytes, taken, taken * site->bytes };
}

static void write_totals(struct report *report, const struct profile_snapshot *snapshot,
                         bool with_freed)
{
    struct counts sum = { 0, 0, 0, 0 };

    for (size_t i = 0; i < snapshot->site_count; i++) {
        struct counts counts = counts_of(&snapshot->site[i], with_freed);

        sum.live += counts.live;
        sum.live_bytes += counts.live_bytes;
        sum.taken += counts.taken;
        sum.taken_bytes += counts.taken_bytes;
    }
    write_counts(report, sum);
}

static NOINLINE void write_maps(struct profile_out *out)
{
    int file = os_mappings_open();
    char piece[512];
    size_t got;

    if (file < 0) return;
    while ((got = os_file_read(file, piece, sizeof piece)) > 0) out_bytes(out, piece, got);
    os_file_close(file);
}

void profile_write_jeprof(const struct profile_snapshot *snapshot, bool with_freed)
{
    struct report report = { .write = write_piece, .context = snapshot->out };

    report_print(&report, "heap_v2/%" PRIu64 "\n", snapshot->period);
    write_totals(&report, snapshot, with_freed);
    for (size_t i = 0; i < snapshot->site_count; i++) {
        const struct profile_snapshot_site *site = &snapshot->site[i];

        if (site->live == 0 && !with_freed) continue;
        /* Without an address jeprof takes the site before for it. */
        report_text(&report, site->depth != 0 ? "@" : "@ 0x1");
        for (uint32_t at = 0; at < site->depth; at++)
            report_print(&report, " 0x%" PRIx64, (uint64_t)site->return_address[at]);
        report_text(&report, "\n");
        write_counts(&report, counts_of(site, with_freed));
    }
    report_text(&report, "\nMAPPED_LIBRARIES:\n");
    report_flush(&report);
    write_maps(snapshot->out);
}
