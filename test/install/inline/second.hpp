/* second.hpp - what main.cpp asks second.cpp. */
/* SPDX-License-Identifier: MIT */
#ifndef SECOND_HPP
#define SECOND_HPP

#include <cstddef>

struct functions {
    void *(*take)(std::size_t size);
    void (*give)(void *block, std::size_t size);
};

functions functions_of_second();

#endif
