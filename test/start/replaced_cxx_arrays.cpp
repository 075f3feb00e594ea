/* replaced_cxx_arrays.cpp - a C++ program that has a new[] and a delete[] of its own, and none of the
 * other forms: the sized and the nothrow ones of arrays call them, all others know nothing of it. */
/* SPDX-License-Identifier: MIT */
#include "marked_blocks.hpp"

#include <string>

void *operator new[](size_t size) { return take_marked(size); }

void operator delete[](void *block) noexcept { give_marked(block); }

namespace
{

void use_arrays(size_t size)
{
    size_t before = taken;

    for (int i = 0; i < 2000; i++) {
        char *plain = new char[size], *quiet = new (std::nothrow) char[size];
        void *raw = operator new[](size);

        must(quiet != nullptr);
        plain[size - 1] = quiet[0] = 1;
        delete[] quiet;
        operator delete[](plain, size);
        operator delete[](raw, std::nothrow);
    }
    must(taken == before + size_t(3) * 2000 && given == taken);
}

/* A form of its own each, which the program has not. */
void use_others(size_t size)
{
    size_t before = taken;

    for (int i = 0; i < 2000; i++) {
        void *single = operator new(size), *quiet = operator new(size, std::nothrow);
        void *aligned = operator new[](size, std::align_val_t(256));

        must(quiet != nullptr && reinterpret_cast<uintptr_t>(aligned) % 256 == 0);
        operator delete(single, size);
        operator delete(quiet);
        operator delete[](aligned, size, std::align_val_t(256));
    }
    must(taken == before && given == taken);
}

} // namespace

int main()
{
    require_prairie();
    /* What a static program needs to throw comes with the containers. */
    must(std::to_string(given).append(100, 'x').size() > 100);
    /* Larger than the table of sized frees, than small blocks, and in between. */
    for (size_t size : { 1, 16, 40, 1000, 1024, 5000, 100000 }) {
        use_arrays(size);
        use_others(size);
    }
    puts("replaced_cxx_arrays: the program's own operators are called");
    return 0;
}
