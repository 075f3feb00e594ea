/* main.cpp - prairie.hpp, as a program of C++17, 20 or 23 uses it. */
/* SPDX-License-Identifier: MIT */
#include "../require.hpp"

#include <prairie/prairie.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace
{

struct alignas(64) line {
    char bytes[192];
};

/* The number of the arena that a block is of. */
unsigned arena_of(const void *block)
{
    unsigned index = ~0u;
    std::size_t bytes = sizeof index;

    REQUIRE(mallctl("arenas.lookup", &index, &bytes, &block, sizeof block) == 0);
    return index;
}

std::size_t figure_of_arena(unsigned index, const char *what)
{
    std::uint64_t epoch = 1;
    std::size_t value = 0, bytes = sizeof value;
    std::string name = "stats.arenas." + std::to_string(index) + "." + what;

    REQUIRE(mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch) == 0);
    REQUIRE(mallctl(name.c_str(), &value, &bytes, nullptr, 0) == 0);
    return value;
}

std::size_t blocks_of(unsigned index)
{
    return figure_of_arena(index, "small.allocated") + figure_of_arena(index, "large.allocated");
}

void containers_take_and_give()
{
    std::vector<int, prairie::allocator<int>> numbers;
    std::list<std::string, prairie::allocator<std::string>> words;
    std::map<int, line, std::less<int>, prairie::allocator<std::pair<const int, line>>> lines;

    for (int i = 0; i < 10000; i++) {
        numbers.push_back(i);
        words.push_back(std::string(static_cast<std::size_t>(i % 200), 'w'));
        line &placed = lines[i];
        REQUIRE(reinterpret_cast<std::uintptr_t>(&placed) % 64 == 0);
        placed.bytes[191] = 1;
    }
    REQUIRE(numbers[9999] == 9999);
    for (int i = 0; i < 10000; i += 2) lines.erase(i);
    words.clear();
    auto copy = numbers;
    REQUIRE(copy == numbers && copy.get_allocator() == prairie::allocator<char>());
}

/* All of the block may be written, and it goes back with any number between. */
template <class T> void takes_all_of_a_block()
{
    prairie::allocator<T> from;

    for (std::size_t count = 1; count < 3000; count += 1 + count / 7) {
        for (int way = 0; way < 3; way++) {
            auto [block, room] = from.allocate_at_least(count);

            REQUIRE(room >= count);
            REQUIRE(prairie_usable_size(block) >= room * sizeof(T));
            REQUIRE(reinterpret_cast<std::uintptr_t>(block) % alignof(T) == 0);
            std::memset(static_cast<void *>(block), 'a', room * sizeof(T));
            from.deallocate(block, way == 0 ? count : way == 1 ? room : (count + room) / 2);
        }
    }
}

void some_blocks_have_room()
{
    prairie::allocator<char> from;
    auto [block, room] = from.allocate_at_least(100);
    const char *conf = std::getenv("MALLOC_CONF");

    if (conf == nullptr || std::strstr(conf, "hardened:true") == nullptr) REQUIRE(room == 112);
    from.deallocate(block, 100);
}

template <class Error, class Action> bool throws(Action action)
{
    try {
        action();
    } catch (const Error &) {
        return true;
    }
    return false;
}

int handler_calls;
void count_handler()
{
    if (++handler_calls == 3) std::set_new_handler(nullptr);
}

void refusals_throw()
{
    prairie::allocator<int> from;
    prairie::arena arena;
    const std::size_t too_many = ~std::size_t{ 0 } / 2;

    REQUIRE(throws<std::bad_array_new_length>([&] { (void)from.allocate(too_many); }));
    REQUIRE(throws<std::bad_alloc>([&] { (void)from.allocate(too_many / 4 - 1); }));
    REQUIRE(throws<std::bad_alloc>([&] { (void)from.allocate_at_least(too_many / 4 - 1); }));
    REQUIRE(throws<std::bad_alloc>([&] { (void)arena.allocate(too_many); }));
    REQUIRE(arena.try_allocate(too_many) == nullptr);
    std::set_new_handler(count_handler);
    REQUIRE(throws<std::bad_alloc>([&] { (void)from.allocate(too_many / 4 - 1); }));
    REQUIRE(handler_calls == 3);
}

std::size_t limit_of(const char *name)
{
    std::size_t bytes = 0, length = sizeof bytes;

    REQUIRE(mallctl(name, &bytes, &length, nullptr, 0) == 0);
    return bytes;
}

void set_hard_limit(std::size_t bytes)
{
    REQUIRE(mallctl("limit.hard", nullptr, nullptr, &bytes, sizeof bytes) == 0);
}

void handler_that_throws()
{
    handler_calls++;
    throw std::bad_alloc();
}

void handler_that_helps()
{
    handler_calls++;
    set_hard_limit(0);
}

/* As operator new(std::nothrow) does. */
void quiet_new_asks_the_handler()
{
    const std::size_t too_many = ~std::size_t{ 0 } / 2, many = 64 << 20;
    using made = prairie::inline_new;

    for (int aligned = 0; aligned < 2; aligned++) {
        auto take = [aligned](std::size_t bytes) {
            return aligned ? made::operator new (bytes, std::align_val_t{ 64 }, std::nothrow)
                           : made::operator new(bytes, std::nothrow);
        };

        REQUIRE(take(too_many) == nullptr);
        handler_calls = 0;
        std::set_new_handler(count_handler);
        REQUIRE(take(too_many) == nullptr);
        REQUIRE(handler_calls == 3);
        std::set_new_handler(handler_that_throws);
        REQUIRE(take(too_many) == nullptr);
        REQUIRE(handler_calls == 4);
        std::set_new_handler(handler_that_helps);
        set_hard_limit(limit_of("limit.used") + (1 << 20));
        void *block = take(many);
        REQUIRE(block != nullptr && handler_calls == 5);
        std::memset(block, 1, 100);
        prairie_free(block);
        std::set_new_handler(nullptr);
    }
}

/* An arena that was moved from has no memory, and no handler can help it. */
void moved_arenas_are_empty(prairie::threads who)
{
    prairie::arena from(who);
    void *block = from.allocate(100), *large = from.allocate(100000);
    prairie::arena moved(std::move(from));

    REQUIRE(from != moved && !(from == moved));
    REQUIRE(from.try_allocate(100) == nullptr);
    handler_calls = 0;
    std::set_new_handler(handler_that_throws);
    REQUIRE(throws<std::bad_alloc>([&] { (void)from.allocate(100); }));
    REQUIRE(handler_calls == 0);
    std::set_new_handler(nullptr);
    from.reset();
    REQUIRE(arena_of(block) == moved.index());
    from.deallocate(block, 100); /* as containers do that know the old place */
    from.deallocate(large, 100000);
    from.deallocate(nullptr, 1);
    void *next = moved.try_allocate(100); /* the cache is the other one's now */
    REQUIRE(next != nullptr && (next != block || who == prairie::threads::any));
    moved.reset();
    REQUIRE(blocks_of(moved.index()) == 0);
    from = prairie::arena(who);
    (void)moved.allocate(100);
    unsigned index = moved.index();
    moved = std::move(from); /* what it had ends at once, and does not change places */
    REQUIRE(from.try_allocate(100) == nullptr);
    from = prairie::arena(who);
    REQUIRE(from.index() == index); /* the number was free */
    block = from.allocate(100);
    REQUIRE(arena_of(block) == from.index());
}

void arenas_are_apart(prairie::threads who)
{
    prairie::arena one(who), other(who);
    unsigned index = one.index();

    REQUIRE(index != other.index());
    for (std::size_t bytes : { 0, 1, 8, 16, 24, 100, 1024, 5000, 20000, 300000 }) {
        for (std::size_t align = 1; align <= 4096; align *= 2) {
            void *block = one.allocate(bytes, align);

            REQUIRE(reinterpret_cast<std::uintptr_t>(block) % align == 0);
            REQUIRE(arena_of(block) == index);
            std::memset(block, 1, bytes);
            one.deallocate(block, bytes, align);
        }
    }
    one.deallocate(nullptr, 10);
    for (int i = 0; i < 1000; i++) std::memset(one.allocate(200), 1, 200);
    std::memset(one.allocate(100000), 1, 100000);
    void *stays = other.allocate(200);
    REQUIRE(blocks_of(index) >= 300000);
    one.reset();
    REQUIRE(blocks_of(index) == 0);
    REQUIRE(blocks_of(other.index()) >= 200);
    other.deallocate(stays, 200);

    /* Moving leaves nothing behind; the end gives all back. */
    prairie::arena moved(std::move(one));
    REQUIRE(moved.index() == index);
    (void)moved.allocate(48);
    one = std::move(moved);
    REQUIRE(one.index() == index && blocks_of(index) >= 48);
}

void arenas_serve_containers()
{
    prairie::arena arena(prairie::threads::one_at_a_time);

    {
        using pair = std::pair<const int, std::string>;
        std::unordered_map<int, std::string, std::hash<int>, std::equal_to<int>,
                           prairie::arena_allocator<pair>>
            names{ prairie::arena_allocator<pair>(arena) };
        for (int i = 0; i < 1000; i++) names[i] = "name";
        REQUIRE(arena_of(&names[7]) == arena.index());
    }
    arena.reset();
    REQUIRE(blocks_of(arena.index()) == 0);
}

void threads_share_an_arena()
{
    prairie::arena arena;
    std::vector<std::thread> crowd;

    for (int t = 0; t < 4; t++)
        crowd.emplace_back([&arena] {
            for (std::size_t i = 0; i < 5000; i++) {
                void *block = arena.allocate(i % 500);
                if (i % 3 != 0) arena.deallocate(block, i % 500);
            }
        });
    for (std::thread &one : crowd) one.join();
    arena.reset();
    REQUIRE(blocks_of(arena.index()) == 0);
}

#if PRAIRIE_HAS_MEMORY_RESOURCE
template <class Resource> void rounds_reuse_memory()
{
    Resource resource(prairie::threads::one_at_a_time);
    unsigned index = resource.from().index();
    std::size_t active_of_first = 0;

    for (int round = 0; round < 5; round++) {
        {
            std::pmr::map<int, std::pmr::string> texts(&resource);
            for (int i = 0; i < 5000; i++) texts.emplace(i, std::string(100, 't'));
            REQUIRE(arena_of(&texts.begin()->second) == index);
            std::size_t active = figure_of_arena(index, "pactive");
            if (round == 0) active_of_first = active;
            REQUIRE(active <= active_of_first);
        }
        resource.release();
        REQUIRE(blocks_of(index) == 0);
    }
}

void memory_resources()
{
    std::pmr::memory_resource *usual = prairie::resource();
    prairie::heap_resource another;
    prairie::arena_resource apart;

    std::pmr::set_default_resource(usual);
    for (std::size_t bytes : { 0, 1, 8, 16, 24, 100, 1024, 5000, 20000 }) {
        for (std::size_t align = 1; align <= 4096; align *= 2) {
            void *block = usual->allocate(bytes, align);

            REQUIRE(reinterpret_cast<std::uintptr_t>(block) % align == 0);
            std::memset(block, 1, bytes);
            another.deallocate(block, bytes, align);
        }
    }
    std::pmr::vector<std::pmr::string> words;
    for (int i = 0; i < 1000; i++) words.emplace_back("a string that is longer than a short one");
    REQUIRE(arena_of(words[0].data()) != apart.from().index());
    REQUIRE(*usual == another && another == *usual);
    REQUIRE(*usual != apart && apart == apart);
    rounds_reuse_memory<prairie::arena_resource>();
    rounds_reuse_memory<prairie::monotonic_arena_resource>();
    std::pmr::set_default_resource(nullptr);
}
#endif

} // namespace

int main()
{
    containers_take_and_give();
    takes_all_of_a_block<char>();
    takes_all_of_a_block<int>();
    takes_all_of_a_block<std::max_align_t>();
    takes_all_of_a_block<line>();
    some_blocks_have_room();
    refusals_throw();
    quiet_new_asks_the_handler();
    moved_arenas_are_empty(prairie::threads::any);
    moved_arenas_are_empty(prairie::threads::one_at_a_time);
    arenas_are_apart(prairie::threads::any);
    arenas_are_apart(prairie::threads::one_at_a_time);
    arenas_serve_containers();
    threads_share_an_arena();
#if PRAIRIE_HAS_MEMORY_RESOURCE
    memory_resources();
#endif
    std::printf("ok: C++ %ld, %s, memory resources %s, allocate_at_least %s\n", long{ __cplusplus },
#if defined(_LIBCPP_VERSION)
                "libc++",
#else
                "libstdc++",
#endif
                PRAIRIE_HAS_MEMORY_RESOURCE ? "yes" : "no",
#if defined(__cpp_lib_allocate_at_least)
                "the standard's"
#else
                "ours"
#endif
    );
    return 0;
}
