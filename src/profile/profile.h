/* profile.h - heap profiles: who took what lives, and who took what ever was.
 *
 * Samples are taken below (guard/sample.h); here they are written into files, in
 * the text format of jeprof or as gzipped profile.proto of pprof, when somebody asks, every so many
 * bytes, at every new peak, or at the end. Writing allocates nothing and takes no lock that it does
 * not get soon, so it may be asked for in a signal handler: then it answers false when it came in
 * between.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PROFILE_H
#define PRAIRIE_PROFILE_H

#include "profile_snapshot.h"

/* Once, before main, as the options say, by a thread that has a cache. False: not possible; nothing
 * is sampled. */
bool profile_start(void);
bool profile_is_on(void);

/* Writes a file. `name` NULL: one beginning with the prefix. A name that ends in ".pb.gz" or
 * ".pprof" makes it pprof's, any other jeprof's. False: not written. */
bool profile_dump(const char *name);
/* Forgets all samples; from now on one in 2^lg_sample bytes. */
void profile_reset(unsigned lg_sample);
unsigned profile_lg_sample(void);

bool profile_active(void);
void profile_set_active(bool active);
bool profile_gdump(void);
void profile_set_gdump(bool gdump);
uint64_t profile_interval_bytes(void);
/* Copied; cut after some hundred letters. */
void profile_set_prefix(const char *prefix);

/* When sampling_polls says so: writes the files that are due. Threads come here now and then,
 * holding no lock. */
void profile_poll(void);
/* In the child of a fork. */
void profile_forget_dump(void);

/* The two formats. */
void profile_write_pprof(const struct profile_snapshot *snapshot);
void profile_write_jeprof(const struct profile_snapshot *snapshot, bool with_freed);

#endif
