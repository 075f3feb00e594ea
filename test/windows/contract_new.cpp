/* contract_new.cpp - C++'s operators, containers and exceptions, on prairie's blocks. */
/* SPDX-License-Identifier: MIT */
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "windows_test.h"

static int handler_calls;

static void count_handler()
{
    if (++handler_calls == 3) std::set_new_handler(nullptr);
}

struct alignas(256) wide {
    char bytes[300];
};

static void operators()
{
    volatile std::size_t huge = SIZE_MAX / 2;
    bool thrown = false;

    must(_msize(hidden(new char[100])) == 112);
    delete[] new char[100000];
    delete new int(7);
    delete new wide;
    must(((uintptr_t)hidden(std::make_unique<wide>().get()) & 255) == 0);
    must(new (std::nothrow) char[huge] == nullptr);
    std::set_new_handler(count_handler);
    try {
        delete[] static_cast<char *>(hidden(new char[huge]));
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    must(thrown && handler_calls == 3);
}

static void containers()
{
    std::map<std::string, std::vector<std::string>> words;

    for (int i = 0; i < 20000; i++)
        words["word number " + std::to_string(i % 1000)].push_back(std::string(i % 100, 'x'));
    must(words.size() == 1000 && words["word number 7"].size() == 20);
}

static void exceptions()
{
    int caught = 0;

    for (int i = 0; i < 1000; i++) {
        try {
            throw std::string("a text that is too long to lie in the object itself");
        } catch (const std::string &text) {
            caught += text.size() > 40;
        }
    }
    must(caught == 1000);
}

int main()
{
    must(is_served());
    operators();
    containers();
    exceptions();
    return 0;
}
