/* every_length.h - what the model test of page runs asks about bins, as trees answer it: in the
 * place of page_heap/run_bins.h. They find whatever fits, so that to them every length is a bin of
 * its own. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_EVERY_LENGTH_H
#define PRAIRIE_TEST_EVERY_LENGTH_H
#define PRAIRIE_PAGE_HEAP_RUN_BINS_H

#define bin_of(pages) (pages)
#define bin_fitting(pages) (pages)

#endif
