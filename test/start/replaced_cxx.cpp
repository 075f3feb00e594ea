/* replaced_cxx.cpp - a C++ program that has a new and a delete of its own, and none of the other
 * forms: those that it has not call those that it has. */
/* SPDX-License-Identifier: MIT */
#include "marked_blocks.hpp"

#include <initializer_list>
#include <string>

namespace
{

/* Larger than the table of sized frees, than small blocks, and in between. */
constexpr size_t sizes[] = { 1, 16, 40, 100, 1000, 1024, 5000, 100000 };

template <size_t Bytes> struct object {
    char text[Bytes];
};

} // namespace

void *operator new(size_t size) { return take_marked(size); }

void operator delete(void *block) noexcept { give_marked(block); }

namespace
{

/* A constructor of the program frees before main, and may before prairie's own. */
object<40> *volatile freed_before_main;
const bool used_before_main = [] {
    void *volatile held = malloc(40); /* there is a magazine of that class now, with room for one */
    auto *early = new object<40>;
    freed_before_main = early;
    delete early;
    free(held);
    return true;
}();

/* No block begins behind a header, unless what was freed early came into a magazine. */
void expect_nothing_given_early()
{
    must(used_before_main && given == taken);
    for (int i = 0; i < 1000; i++) must(malloc(40) != static_cast<void *>(freed_before_main));
}

template <size_t Bytes> void use()
{
    size_t before = taken;

    for (int i = 0; i < 2000; i++) {
        auto *plain = new object<Bytes>; /* the compiler's delete of it is a sized one */
        auto *quiet = new (std::nothrow) object<Bytes>;
        void *raw = operator new(Bytes), *raw_quiet = operator new(Bytes, std::nothrow);

        must(quiet != nullptr && raw_quiet != nullptr);
        plain->text[Bytes - 1] = quiet->text[0] = 1;
        delete plain;
        delete quiet;
        operator delete(raw, Bytes);
        operator delete(raw_quiet, std::nothrow);
    }
    must(taken == before + 4 * 2000 && given == taken);
}

/* They have no plain form here that the program has, and go together. */
void use_others()
{
    for (size_t size : sizes) {
        char *array = new char[size], *quiet = new (std::nothrow) char[size];
        void *aligned = operator new(size, std::align_val_t(256));

        must(reinterpret_cast<uintptr_t>(aligned) % 256 == 0 && quiet != nullptr);
        operator delete[](array, size);
        delete[] quiet;
        operator delete(aligned, size, std::align_val_t(256));
        aligned = operator new(size, std::align_val_t(64), std::nothrow);
        operator delete(aligned, std::align_val_t(64), std::nothrow);
    }
}

int handler_calls;

void handle()
{
    if (++handler_calls == 3) std::set_new_handler(nullptr);
}

/* No handler can help there. */
void ask_for_odd_alignments()
{
    std::set_new_handler(handle);
    for (size_t align : { size_t(0), size_t(24) }) {
        bool threw = false;
        try {
            operator delete(operator new(8, std::align_val_t(align)), std::align_val_t(align));
        } catch (const std::bad_alloc &) {
            threw = true;
        }
        must(threw && operator new(8, std::align_val_t(align), std::nothrow) == nullptr);
    }
    must(handler_calls == 0);
    std::set_new_handler(nullptr);
}

} // namespace

int main()
{
    require_prairie();
    expect_nothing_given_early();
    /* What a static program needs to throw comes with the containers. */
    must(std::to_string(given).append(100, 'x').size() > 100);
    use<1>();
    use<16>();
    use<40>();
    use<1000>();
    use<1024>();
    use<5000>();
    use<100000>();
    use_others();
    ask_for_odd_alignments();
    puts("replaced_cxx: the program's own operators are called");
    return 0;
}
