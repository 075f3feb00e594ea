/* linked_cxx.cpp - a C++ program linked with prairie: operators, exceptions and containers on
 * its heap. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

#include <map>
#include <new>
#include <prairie/prairie.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static size_t allocated_bytes()
{
    prairie_stats stats = {};
    stats.struct_bytes = sizeof stats;
    must(prairie_stats_read(&stats));
    return stats.allocated;
}

static void fill_containers()
{
    std::map<int, std::string> table;
    for (int i = 0; i < 5000; i++) table[i * 7919 % 5000] = std::string((size_t)i % 200, 'x');
    must(table.size() == 5000);
    for (int i = 0; i < 100; i++) {
        try {
            throw std::runtime_error(std::string(100, 'e'));
        } catch (const std::exception &error) {
            must(std::string(error.what()).size() == 100);
        }
    }
}

static bool handler_ran;

static void give_up()
{
    handler_ran = true;
    std::set_new_handler(nullptr);
}

template <class Take> static void must_be_refused(Take take)
{
    handler_ran = false;
    std::set_new_handler(give_up);
    must(take() == nullptr);
    must(handler_ran);
}

/* Nothing is thrown, also where the runtime that could catch it is in the program. */
static void nothrow_returns_when_handlers_have_given_up()
{
    constexpr size_t bytes = PTRDIFF_MAX;
    constexpr auto align = std::align_val_t(64);

    must_be_refused([] { return operator new(bytes, std::nothrow); });
    must_be_refused([] { return operator new[](bytes, std::nothrow); });
    must_be_refused([] { return operator new(bytes, align, std::nothrow); });
    must_be_refused([] { return operator new[](bytes, align, std::nothrow); });
}

int main()
{
    require_prairie();
    size_t before = allocated_bytes();
    char *block = new char[1000000];
    must(prairie_usable_size(block) >= 1000000);
    must(allocated_bytes() - before >= 1000000);
    delete[] block;
    bool refused = false;
    try {
        block = static_cast<char *>(operator new((size_t)PTRDIFF_MAX));
    } catch (const std::bad_alloc &) {
        refused = true;
    }
    must(refused);
    nothrow_returns_when_handlers_have_given_up();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(fill_containers);
    for (auto &thread : threads) thread.join();
    walk_heap();
    puts("linked_cxx: operators are prairie's");
    return 0;
}
