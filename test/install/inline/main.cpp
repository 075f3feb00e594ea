/* main.cpp - inline.h at every size up to where it ends, mixed with all other ways. */
/* SPDX-License-Identifier: MIT */
#include "../require.hpp"
#include "second.hpp"

#include <prairie/prairie.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

extern "C" {
void *take_16(void);
void give_16(void *block);
}

namespace
{

/* In a usual process the block that came back last is the next one. */
bool is_usual = true;

template <std::size_t size> void *take() { return prairie_inline_malloc(size); }
template <std::size_t size> void give(void *block) { prairie_inline_free(block, size); }

struct way {
    void *(*take)();
    void (*give)(void *);
};

void every_way(std::size_t size, way inlined)
{
    void *blocks[40];

    for (int i = 0; i < 40; i++) {
        blocks[i] = i % 2 == 0 ? inlined.take() : std::malloc(size);
        REQUIRE(blocks[i] != nullptr);
        REQUIRE(prairie_usable_size(blocks[i]) == prairie_nallocx(size, 0) || size == 0);
        std::memset(blocks[i], i, size);
    }
    for (int i = 0; i < 40; i++) {
        for (std::size_t at = 0; at < size; at++)
            REQUIRE(static_cast<unsigned char *>(blocks[i])[at] == i);
        if (i % 3 == 0) inlined.give(blocks[i]);
        else if (i % 3 == 1) std::free(blocks[i]);
        else prairie_free_sized(blocks[i], size);
    }
    if (is_usual && size != 0) {
        void *block = inlined.take();
        inlined.give(block);
        void *again = std::malloc(size);
        REQUIRE(again == block);
        std::free(again);
        again = inlined.take();
        REQUIRE(again == block);
        std::free(again);
    }
    inlined.give(nullptr);
}

template <std::size_t... sizes> void every_size(std::index_sequence<sizes...>)
{
    static const way ways[] = { way{ take<sizes>, give<sizes> }... };

    for (std::size_t size = 0; size < sizeof...(sizes); size++) every_way(size, ways[size]);
}

struct node : prairie::inline_new {
    explicit node(int value) : value(value) {}
    virtual ~node() = default;
    int value;
};
struct long_node : node {
    using node::node;
    char more[500] = {};
};
struct alignas(128) wide_node : prairie::inline_new {
    char bytes[128];
};

void objects()
{
    for (int i = 0; i < 3000; i++) {
        std::vector<node *> nodes;
        for (int j = 0; j < 50; j++) {
            nodes.push_back(j % 2 == 0 ? new node(j) : new long_node(j));
            REQUIRE(nodes.back()->value == j);
        }
        for (node *one : nodes) delete one;
    }
    wide_node *wide = new wide_node;
    REQUIRE(reinterpret_cast<std::uintptr_t>(wide) % 128 == 0);
    delete wide;
    delete new (std::nothrow) node(1);
    wide = new (std::nothrow) wide_node;
    REQUIRE(reinterpret_cast<std::uintptr_t>(wide) % 128 == 0);
    delete wide;
    std::map<int, int, std::less<int>, prairie::allocator<std::pair<const int, int>>> numbers;
    for (int i = 0; i < 20000; i++) numbers[i * 7919 % 20011] = i;
    REQUIRE(numbers.size() == 20000);
}

/* Inline functions of several files call them, and must mean one. */
void files_mean_the_same_functions()
{
    functions others = functions_of_second();

    REQUIRE(others.take == &prairie_inline_malloc && others.give == &prairie_inline_free);
    others.give(others.take(100), 100);
}

/* What another thread took is given back here, and the other way round. */
void threads_pass_blocks()
{
    std::vector<std::thread> crowd;

    for (int t = 0; t < 3; t++)
        crowd.emplace_back([] {
            for (int round = 0; round < 200; round++) {
                void *blocks[300];
                for (void *&block : blocks) block = prairie_inline_malloc(48);
                std::thread other;
                if (round % 50 == 0)
                    other = std::thread([&] {
                        for (void *block : blocks) prairie_inline_free(block, 48);
                    });
                else
                    for (void *block : blocks) prairie_inline_free(block, 48);
                if (other.joinable()) other.join();
            }
        });
    for (std::thread &one : crowd) one.join();
}

} // namespace

int main(int argc, char **argv)
{
    (void)argv;
    is_usual = argc == 1;
    void *first = take_16(); /* this thread's first call */
    REQUIRE(first != nullptr);
    give_16(first);
    every_size(std::make_index_sequence<1030>());
    objects();
    files_mean_the_same_functions();
    threads_pass_blocks();
    prairie_check_all();
    std::puts("ok");
    return 0;
}
