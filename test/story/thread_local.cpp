/* thread_local.cpp - C++ thread_local objects and static ones whose destructors use the heap. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

static std::atomic<long> alive{ 0 }, destroyed{ 0 };

/* Holds memory, and takes and frees more of it while it dies. */
struct Keeper {
    std::map<int, std::string> table;
    std::vector<std::unique_ptr<char[]>> blocks;

    Keeper()
    {
        alive++;
        for (int i = 0; i < 200; i++) table[i] = std::string((size_t)i * 3, 'k');
        for (size_t i = 0; i < 30; i++) blocks.emplace_back(new char[i * 1000 + 1]);
    }
    ~Keeper()
    {
        must(table.size() == 200 && table[199].size() == 597);
        std::vector<std::string> last;
        for (int i = 0; i < 300; i++) last.push_back(std::string((size_t)i * 7, 'z'));
        must(last.back().size() == 299 * 7);
        alive--;
        destroyed++;
    }
};

static thread_local Keeper first;
static thread_local std::unique_ptr<Keeper> second;

static void live(int number)
{
    must(first.table.size() == 200);
    if (number % 2 == 0) second.reset(new Keeper);
    /* One that is made while others are already there dies before them. */
    static thread_local Keeper third;
    must(third.blocks.size() == 30);
}

/* Dies after main has returned, with whatever is left of the C++ runtime. */
struct Last {
    std::vector<std::string> words;
    ~Last()
    {
        words.assign(1000, std::string(500, 'w'));
        must(words.size() == 1000 && alive == 0);
    }
};
static Last last;

int main()
{
    require_prairie();
    long rounds = scaled(60);
    for (long round = 0; round < rounds; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; i++) threads.emplace_back(live, i);
        for (auto &thread : threads) thread.join();
    }
    must(alive == 0 && destroyed == rounds * (8 * 2 + 4));
    last.words.push_back("filled");
    walk_heap();
    printf("thread_local: %ld objects died with their threads\n", destroyed.load());
    return 0;
}
