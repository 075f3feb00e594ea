/* profile.h - heap profiles: who took what lives, and who took what ever was.
 *
 * Samples are taken below (sample/sample.h); here they are written into files, in the text format
 * of jeprof or as gzipped profile.proto of pprof, when somebody asks, every so many bytes, at every
 * new peak, or at the end. Writing allocates nothing and takes no lock that it does not get soon,
 * so it may be asked for in a signal handler: then it answers false when it came in between.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PROFILE_H
#define PRAIRIE_PROFILE_H

#include "profile_snapshot.h"

struct profile {
    bool on;           /* constant once the program runs */
    bool gdump;        /* atomic */
    bool failure_told; /* by the one who dumps: a file that nobody called for was not written */
    uint8_t lg_sample; /* atomic */
    uintptr_t dumping; /* atomic: the mark of the thread that dumps; 0: none */
    uint64_t dumps;    /* by the one who dumps, of all reasons */
    uint64_t interval_dumps, manual_dumps, peak_dumps; /* likewise */
    uint64_t interval_bytes;                           /* constant; 0: none */
    ON_ONE_LINE uint64_t interval_next;                /* atomic */
    size_t peak_bytes;                                 /* atomic */
    char prefix[768];                                  /* by the one who has the turn of dumps */
};
extern PRIVATE struct profile profile;

/* Once, before main, as the options say, by a thread that has a cache. False: not possible; nothing
 * is sampled. */
bool profile_start(void);

/* Writes a file. `name` NULL: one beginning with the prefix. A name that ends in ".pb.gz" or
 * ".pprof" makes it pprof's, any other jeprof's. False: not written. */
bool profile_dump(const char *name);
/* Forgets all samples; from now on one in 2^lg_sample bytes. */
void profile_reset(unsigned lg_sample);

void profile_set_gdump(bool gdump);
/* Copied, unless it is too long, or a dump goes on that does not end soon. */
enum profile_prefix { PREFIX_SET, PREFIX_TOO_LONG, PREFIX_IN_USE };
enum profile_prefix profile_set_prefix(const char *prefix);

/* When sampling_polls says so: writes the files that are due. Threads come here now and then,
 * holding no lock. */
void profile_poll(void);
/* In the child of a fork. */
void profile_forget_dump(void);

/* The two formats. */
void profile_write_pprof(const struct profile_snapshot *snapshot);
void profile_write_jeprof(const struct profile_snapshot *snapshot, bool with_freed);

#endif
