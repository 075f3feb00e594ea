/* map.cpp - std::map and std::set: equal nodes made and dropped in the order of their keys.
 * SPDX-License-Identifier: MIT
 *
 * Idea: the C++ programs in Detlefs, Dosser and Zorn's measurements: each element is a node of its
 * own, an insertion or removal touches its neighbours in the tree, and the map dies node by node.
 * */
#include "workload.hpp"

#include <map>
#include <set>
#include <string>

static outcome run_map(const job *job)
{
    uint64_t operations = scaled(job, 1600000), sum = 0, random = random_start(job->seed, 0);
    std::map<uint64_t, std::string> texts;
    std::set<uint32_t> numbers;
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t key = random_below(&random, 200000);
        auto found = texts.find(key);
        if (found == texts.end()) {
            texts.emplace(key, std::string(8 + key % 56, static_cast<char>('a' + key % 26)));
        } else {
            sum = sum * 3 + static_cast<unsigned char>(found->second[0]) + found->second.size();
            texts.erase(found);
        }
        uint32_t number = random_below(&random, 100000);
        if (!numbers.insert(number).second) numbers.erase(number);
        if (i % 400000 == 399999) numbers.clear();
    }
    for (const auto &[key, text] : texts) sum = sum * 3 + key + text.size();
    return { sum + numbers.size(), operations * 2 };
}

static const workload workloads[] = {
    { "cpp-map", "containers",
      "a map of 100,000 texts and a set of numbers, elements come and go at random",
      "Detlefs, Dosser and Zorn's C++ programs", 1, nullptr, run_map, SUITE_TIMED, nullptr,
      nullptr },
};

WORKLOAD_LIST(map_list)
