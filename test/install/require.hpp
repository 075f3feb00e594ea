/* require.hpp - ends a program with the condition that does not hold. */
/* SPDX-License-Identifier: MIT */
#ifndef REQUIRE_HPP
#define REQUIRE_HPP

#include <cstdio>
#include <cstdlib>

#define REQUIRE(condition)                                                      \
    do {                                                                        \
        if (!(condition)) {                                                     \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                       \
        }                                                                       \
    } while (0)

#endif
