/* hash.cpp - std::unordered_map: nodes, texts as keys, and tables that are built anew as they grow.
 * SPDX-License-Identifier: MIT
 *
 * Idea: word counts and caches in C++ services: the nodes stay where they are while the table of
 * buckets doubles, which leaves ever larger holes; then everything dies at once. */
#include "workload.hpp"

#include <string>
#include <unordered_map>
#include <vector>

static std::string word(uint64_t number)
{
    std::string text = "word";
    for (; number != 0; number /= 26) text += static_cast<char>('a' + number % 26);
    if (text.size() % 3 == 0) text += " with a longer tail";
    return text;
}

static outcome run_hash(const job *job)
{
    uint64_t rounds = scaled(job, 10), operations = 500000, sum = 0;
    uint64_t random = random_start(job->seed, 0);
    for (uint64_t round = 0; round < rounds; round++) {
        std::unordered_map<std::string, std::vector<uint32_t>> places;
        for (uint32_t i = 0; i < operations; i++) {
            std::vector<uint32_t> &list = places[word(random_below(&random, 150000))];
            list.push_back(i);
            if (list.size() > 6) list = std::vector<uint32_t>{ i };
            if (i % 16 == 0) places.erase(word(random_below(&random, 150000)));
        }
        for (uint32_t i = 0; i < 150000; i += 7) {
            auto found = places.find(word(i));
            if (found != places.end()) sum = sum * 3 + found->second.back();
        }
        sum += places.size();
    }
    return { sum, rounds * operations };
}

static const workload workloads[] = {
    { "cpp-hash", "containers",
      "a hash table from words to lists of numbers grows to 140,000 words and dies, again and "
      "again",
      "word counts; the hash tables of C++ services", 1, nullptr, run_hash, SUITE_TIMED, nullptr,
      nullptr },
};

WORKLOAD_LIST(hash_list)
