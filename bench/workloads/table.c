/* table.c - the workloads of the C executable, in the order of --list.
 * SPDX-License-Identifier: MIT */
#include "workload.h"

extern const struct workload_list pair_list, replace_list, burst_list, tree_list, longlived_list,
    pins_list, phases_list, lru_list, grow_list, large_list, zeroed_list, aligned_list, bignum_list,
    json_list, interpreter_list, server_list, churn_list, producers_list, ring_list, brief_list,
    sharing_list, startup_list, idle_list, crowd_list, growth_list, replay_list, generate_list,
    pulse_list, relay_list, above_list, day_list;

const struct workload_list *const workload_lists[] = {
    &pair_list,     &replace_list, &burst_list,     &tree_list,  &longlived_list,
    &pins_list,     &phases_list,  &lru_list,       &grow_list,  &large_list,
    &zeroed_list,   &aligned_list, &bignum_list,    &json_list,  &interpreter_list,
    &server_list,   &churn_list,   &producers_list, &ring_list,  &brief_list,
    &sharing_list,  &startup_list, &idle_list,      &crowd_list, &growth_list,
    &pulse_list,    &relay_list,   &above_list,     &day_list,   &replay_list,
    &generate_list,
};
const unsigned workload_list_count = sizeof workload_lists / sizeof *workload_lists;
const char workload_executable[] = "workloads";
