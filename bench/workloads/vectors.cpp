/* vectors.cpp - std::vector and std::deque: many small ones that grow by doubling, a few large
 * ones.
 * SPDX-License-Identifier: MIT
 *
 * Idea: graphs as adjacency lists, the usual C++ program: growth is a new block, a copy and a free
 * (never realloc), so that every doubling leaves a hole of half the size behind. */
#include "workload.hpp"

#include <deque>
#include <vector>

static outcome run_vectors(const job *job)
{
    uint64_t rounds = scaled(job, 20), sum = 0, edges = 1200000;
    uint64_t random = random_start(job->seed, 0);
    for (uint64_t round = 0; round < rounds; round++) {
        uint32_t nodes = 100000;
        std::vector<std::vector<uint32_t>> neighbours(nodes);
        for (uint64_t i = 0; i < edges; i++) {
            uint32_t from = random_below(&random, nodes), to = random_below(&random, nodes);
            neighbours[from / (1 + i % 3)].push_back(to);
        }
        std::vector<uint32_t> distance(nodes, UINT32_MAX);
        std::deque<uint32_t> queue{ 0 };
        distance[0] = 0;
        while (!queue.empty()) { /* breadth first */
            uint32_t node = queue.front();
            queue.pop_front();
            sum = sum * 3 + node;
            for (uint32_t next : neighbours[node]) {
                if (distance[next] != UINT32_MAX) continue;
                distance[next] = distance[node] + 1;
                queue.push_back(next);
            }
        }
    }
    return { sum, rounds * edges };
}

static const workload workloads[] = {
    { "cpp-vectors", "containers",
      "a graph of 100,000 vectors that grow by doubling, walked breadth first and dropped",
      "graphs as adjacency lists", 1, nullptr, run_vectors, SUITE_TIMED, nullptr, nullptr },
};

WORKLOAD_LIST(vectors_list)
