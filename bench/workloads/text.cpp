/* text.cpp - std::string: joined, cut, sorted and moved about in vectors.
 * SPDX-License-Identifier: MIT
 *
 * Idea: the text-heavy C++ programs that Berger, Zorn and McKinley used when they composed
 * allocators: most strings just exceed the 15 bytes that fit inside the object and die soon. */
#include "workload.hpp"

#include <algorithm>
#include <string>
#include <vector>

static std::string line(uint64_t *random)
{
    std::string text;
    for (uint32_t i = 2 + random_below(random, 8); i > 0; i--) {
        text += std::string(1 + random_below(random, 9),
                            static_cast<char>('a' + random_below(random, 26)));
        text += ' ';
    }
    return text;
}

static std::vector<std::string> split(const std::string &text)
{
    std::vector<std::string> words;
    for (size_t start = 0, end; (end = text.find(' ', start)) != std::string::npos; start = end + 1)
        words.push_back(text.substr(start, end - start) + "-of-the-line");
    return words;
}

static outcome run_text(const job *job)
{
    uint64_t rounds = scaled(job, 100), sum = 0, words_seen = 0;
    uint64_t random = random_start(job->seed, 0);
    for (uint64_t round = 0; round < rounds; round++) {
        std::vector<std::string> lines;
        for (unsigned i = 0; i < 8000; i++) {
            std::vector<std::string> words = split(line(&random));
            std::string joined;
            std::sort(words.begin(), words.end());
            for (const std::string &word : words) joined += word + ", ";
            words_seen += words.size();
            lines.push_back(std::move(joined));
        }
        std::sort(lines.begin(), lines.end());
        for (size_t i = 0; i < lines.size(); i += 16)
            sum = sum * 31 + lines[i].size() + static_cast<unsigned char>(lines[i][0]);
    }
    return { sum, words_seen };
}

static const workload workloads[] = {
    { "cpp-text", "containers",
      "lines split into words, sorted, joined again, and sorted as 8,000 lines",
      "the text programs of Berger, Zorn and McKinley", 1, nullptr, run_text, SUITE_TIMED, nullptr,
      nullptr },
};

WORKLOAD_LIST(text_list)
