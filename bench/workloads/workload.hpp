/* workload.hpp - the C++ side of workload.h: a list of workloads that the C front can read.
 * SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_BENCH_WORKLOAD_HPP
#define PRAIRIE_BENCH_WORKLOAD_HPP

#include "sizes.h"

/* Defines the list that table_cpp.c names, from the file's array `workloads`. */
#define WORKLOAD_LIST(name)                                                                \
    extern "C" {                                                                           \
    extern const struct workload_list name;                                                \
    const struct workload_list name = { workloads, sizeof workloads / sizeof *workloads }; \
    }

#endif
