/* table_cpp.c - the workloads of the C++ executable, in the order of --list.
 * SPDX-License-Identifier: MIT
 *
 * They stand apart so that the C workloads do not load the C++ library, which allocates at start.
 * */
#include "workload.h"

extern const struct workload_list map_list, hash_list, text_list, vectors_list, objects_list;

const struct workload_list *const workload_lists[] = { &map_list, &hash_list, &text_list,
                                                       &vectors_list, &objects_list };
const unsigned workload_list_count = sizeof workload_lists / sizeof *workload_lists;
const char workload_executable[] = "workloads-cpp";
