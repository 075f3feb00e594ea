/* profile_out.h - bytes on their way into a file, as they are or within gzip.
 *
 * What goes into gzip is stored, not compressed: that is a format every reader knows, and needs no
 * memory. Allocates nothing; a failed write is remembered and told at the end.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PROFILE_OUT_H
#define PRAIRIE_PROFILE_OUT_H

#include "../base/attrs.h"

struct profile_out {
    int file;
    bool gzip, broken;
    uint32_t checksum, length; /* of what went into gzip */
    size_t used;
    uint8_t buffer[32768];
};

/* False: the file cannot be made. */
bool out_open(struct profile_out *out, const char *path, bool gzip);
void out_bytes(struct profile_out *out, const void *bytes, size_t count);
/* False: something was not written. */
bool out_close(struct profile_out *out);

#endif
