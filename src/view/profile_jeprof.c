/* profile_jeprof.c - samples in the text format that jeprof reads.
 * SPDX-License-Identifier: MIT
 */
#include "profile.h"

/* jeprof scales what it reads by itself, from the period in the first line; a line is of one
 * size. */
static void write_counts(struct profile_out *out, const struct profile_snapshot_site *site,
                         bool with_freed)
{
    uint64_t taken = with_freed ? site->taken : 0;

    out_text(out, "  t*: ");
    out_number(out, site->live);
    out_text(out, ": ");
    out_number(out, site->live * site->bytes);
    out_text(out, " [");
    out_number(out, taken);
    out_text(out, ": ");
    out_number(out, taken * site->bytes);
    out_text(out, "]\n");
}

static void write_totals(struct profile_out *out, const struct profile_snapshot *snapshot,
                         bool with_freed)
{
    uint64_t live = 0, live_bytes = 0, taken = 0, taken_bytes = 0;

    for (size_t i = 0; i < snapshot->site_count; i++) {
        const struct profile_snapshot_site *site = &snapshot->site[i];

        live += site->live;
        live_bytes += site->live * site->bytes;
        taken += with_freed ? site->taken : 0;
        taken_bytes += with_freed ? site->taken * site->bytes : 0;
    }
    out_text(out, "  t*: ");
    out_number(out, live);
    out_text(out, ": ");
    out_number(out, live_bytes);
    out_text(out, " [");
    out_number(out, taken);
    out_text(out, ": ");
    out_number(out, taken_bytes);
    out_text(out, "]\n");
}

static void write_maps(struct profile_out *out)
{
    int file = os_file_open("/proc/self/maps");
    char piece[512];
    size_t got;

    out_text(out, "\nMAPPED_LIBRARIES:\n");
    if (file < 0) return;
    while ((got = os_file_read(file, piece, sizeof piece)) > 0) out_bytes(out, piece, got);
    os_file_close(file);
}

void profile_write_jeprof(const struct profile_snapshot *snapshot, bool with_freed)
{
    struct profile_out *out = snapshot->out;

    out_text(out, "heap_v2/");
    out_number(out, snapshot->period);
    out_text(out, "\n");
    write_totals(out, snapshot, with_freed);
    for (size_t i = 0; i < snapshot->site_count; i++) {
        const struct profile_snapshot_site *site = &snapshot->site[i];

        if (site->live == 0 && !with_freed) continue;
        out_text(out, "@");
        for (uint32_t at = 0; at < site->depth; at++) {
            out_text(out, " ");
            out_hex(out, site->return_address[at]);
        }
        out_text(out, "\n");
        write_counts(out, site, with_freed);
    }
    write_maps(out);
}
