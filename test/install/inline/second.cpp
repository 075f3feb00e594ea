/* second.cpp - another file of the program: it means the same functions. */
/* SPDX-License-Identifier: MIT */
#include <prairie/prairie.hpp>

#include "second.hpp"

functions functions_of_second() { return { prairie_inline_malloc, prairie_inline_free }; }
