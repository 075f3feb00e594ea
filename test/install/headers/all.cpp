/* all.cpp - the header for C++, each template and inline function of it compiled. */
/* SPDX-License-Identifier: MIT */
#include <prairie/prairie.hpp>

template class prairie::allocator<char>;
template class prairie::allocator<double>;
template class prairie::arena_allocator<int>;

/* Nothing is done when it is made of another one's. */
constexpr prairie::allocator<char> of_chars;
constexpr prairie::allocator<int> of_numbers{ of_chars };
static_assert(of_numbers == of_chars && !(of_numbers != of_chars), "all are equal");

struct node : prairie::inline_new {
    node *next = nullptr;
};
struct alignas(64) line : prairie::inline_new {
    char bytes[64] = {};
};

bool use_header(prairie::arena &one, prairie::arena &other);

bool use_header(prairie::arena &one, prairie::arena &other)
{
    delete new node;
    delete new (std::nothrow) node;
    delete new line;
    delete new (std::nothrow) line;
    one.deallocate(one.allocate(100), 100);
    one.reset();
#if PRAIRIE_HAS_MEMORY_RESOURCE
    prairie::monotonic_arena_resource resource;
    resource.release();
    return one != other && *prairie::resource() != resource;
#else
    return one != other;
#endif
}
