/* quiet.cpp - prairie.hpp in a program without exceptions and without types at run time. */
/* SPDX-License-Identifier: MIT */
#include "../require.hpp"

#include <prairie/prairie.hpp>

#include <cstdio>

namespace
{

int handler_calls;
void count_handler()
{
    if (++handler_calls == 3) std::set_new_handler(nullptr);
}

void refusals_are_null()
{
    const std::size_t too_many = ~std::size_t{ 0 } / 2;
    using made = prairie::inline_new;

    REQUIRE(made::operator new(too_many, std::nothrow) == nullptr);
    std::set_new_handler(count_handler);
    REQUIRE(made::operator new (too_many, std::align_val_t{ 64 }, std::nothrow) == nullptr);
    REQUIRE(handler_calls == 3);
}

#if PRAIRIE_HAS_MEMORY_RESOURCE
/* Of nobody's: it is equal to itself only, or to whatever it hands requests on to. */
class other_resource : public std::pmr::memory_resource
{
  public:
    explicit other_resource(std::pmr::memory_resource *upstream) : upstream_(upstream) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t align) override
    {
        return upstream_->allocate(bytes, align);
    }
    void do_deallocate(void *block, std::size_t bytes, std::size_t align) override
    {
        upstream_->deallocate(block, bytes, align);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }

    std::pmr::memory_resource *upstream_;
};

void heap_resources_are_equal()
{
    prairie::heap_resource one, two;
    std::pmr::memory_resource *usual = prairie::resource();
    prairie::arena_resource apart;
    other_resource other(usual);

    REQUIRE(one == two && two == one && *usual == one && two == *usual && one == one);
    REQUIRE(one != apart && *usual != apart && apart != *usual && apart == apart);
    REQUIRE(one != other && other != one && *usual != other);
    REQUIRE(one != *std::pmr::new_delete_resource() && *std::pmr::null_memory_resource() != *usual);
}
#endif

} // namespace

int main()
{
    refusals_are_null();
#if PRAIRIE_HAS_MEMORY_RESOURCE
    heap_resources_are_equal();
#endif
    std::printf("ok: without exceptions and types at run time\n");
    return 0;
}
