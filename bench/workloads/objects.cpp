/* objects.cpp - objects of a few classes, new and sized delete, in two threads that share none.
 * SPDX-License-Identifier: MIT
 *
 * Idea: larson-sized of mimalloc-bench: C++ compilers pass the size to delete, which spares the
 * allocator the search for it. Classes derive from one base; counted pointers add their blocks. */
#include "workload.hpp"

#include <memory>
#include <vector>

namespace
{

struct shape_base {
    uint64_t tag;
    explicit shape_base(uint64_t value) : tag(value) {}
    virtual ~shape_base() = default;
    virtual uint64_t area() const = 0;
};

template <unsigned Words> struct shape_of final : shape_base {
    uint64_t data[Words];
    explicit shape_of(uint64_t value) : shape_base(value)
    {
        data[0] = value;
        data[Words - 1] = value;
    }
    uint64_t area() const override { return data[0] * Words + data[Words - 1]; }
};

struct member {
    uint64_t operations, random, sum;
    char apart[104];
};

constexpr uint32_t live_count = 20000;

std::unique_ptr<shape_base> new_shape(uint64_t *random)
{
    uint64_t value = random_next(random) >> 8;
    switch (value % 8) {
    case 0:
    case 1: return std::make_unique<shape_of<1>>(value);
    case 2:
    case 3: return std::make_unique<shape_of<3>>(value);
    case 4:
    case 5: return std::make_unique<shape_of<6>>(value);
    case 6: return std::make_unique<shape_of<14>>(value);
    default: return std::make_unique<shape_of<30>>(value);
    }
}

void *work(void *argument)
{
    member *self = static_cast<member *>(argument);
    std::vector<std::unique_ptr<shape_base>> shapes(live_count);
    std::vector<std::shared_ptr<uint64_t>> owners(live_count / 8);
    for (uint64_t i = 0; i < self->operations; i++) {
        std::unique_ptr<shape_base> &slot = shapes[random_below(&self->random, live_count)];
        if (slot) self->sum += slot->area();
        slot = new_shape(&self->random);
        if (i % 4 != 0) continue;
        std::shared_ptr<uint64_t> &owner = owners[random_below(&self->random, live_count / 8)];
        if (owner) self->sum += *owner;
        owner = std::make_shared<uint64_t>(i);
    }
    return nullptr;
}

outcome run_objects(const job *job)
{
    static member members[2];
    for (unsigned i = 0; i < 2; i++)
        members[i] = { scaled(job, 13000000), random_start(job->seed, i), 0, {} };
    run_threads(2, work, members, sizeof *members);
    return { members[0].sum + members[1].sum, members[0].operations * 2 };
}

const workload workloads[] = {
    { "cpp-objects", "containers",
      "2 threads replace objects of five classes by new and sized delete, 20,000 live each",
      "larson-sized of mimalloc-bench", 2, nullptr, run_objects, SUITE_TIMED, nullptr, nullptr },
};

} // namespace

WORKLOAD_LIST(objects_list)
