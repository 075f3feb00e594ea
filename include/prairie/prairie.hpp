/* prairie.hpp - prairie for C++: an allocator for containers, arenas, and memory resources.
 *
 *      std::vector<int, prairie::allocator<int>> numbers;      sized frees, allocate_at_least
 *      std::pmr::set_default_resource(prairie::resource());    everything of std::pmr
 *      struct node : prairie::inline_new { ... };              new and delete without a call
 *      prairie::arena_resource request;                        memory of its own,
 *      request.release();                                      all of it free at once
 *
 * A program needs none of this to run on prairie: operator new and delete are answered under their
 * usual names. These are for programs that want prairie beside another allocator, that want
 * containers to use all of a block, or that let go of many blocks at once.
 *
 * C++17 and later. All that allocates throws std::bad_alloc when there is no memory, after the
 * program's new_handler was asked; without exceptions it ends the program. (An arena that cannot be
 * made is not asked about: it may be for want of a number.) Arenas need a library that has the
 * control tree: any but one that was built with PRAIRIE_OWN_NAMES or a prefix. Blocks of a size that
 * is known when compiling are taken without a call where inline.h allows it.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PRAIRIE_HPP
#define PRAIRIE_PRAIRIE_HPP

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "prairie.hpp is for C++17 and later: compile with -std=c++17"
#endif

#include "inline.h"
#include "prairie.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#if defined(__has_include)
#if __has_include(<memory_resource>)
#include <memory_resource>
#endif
#endif

#if defined(__cpp_lib_memory_resource) || defined(_LIBCPP_MEMORY_RESOURCE)
#define PRAIRIE_HAS_MEMORY_RESOURCE 1
#else
#define PRAIRIE_HAS_MEMORY_RESOURCE 0
#endif

/* Of the control tree; <jemalloc/jemalloc.h> declares them too, with the same attribute: to clang
 * noexcept would be something else. */
extern "C" {
__attribute__((nothrow)) int mallctl(const char *name, void *old_value, size_t *old_bytes,
                                     void *new_value, size_t new_bytes);
__attribute__((nothrow)) int mallctlnametomib(const char *name, size_t *path, size_t *path_length);
__attribute__((nothrow)) int mallctlbymib(const size_t *path, size_t path_length, void *old_value,
                                          size_t *old_bytes, void *new_value, size_t new_bytes);
}

namespace prairie
{

namespace detail
{

/* What malloc promises: blocks of 16 bytes and more are aligned to 16, all others to 8; where the
 * library was built with PRAIRIE_QUANTUM=8, and the program is, those of a multiple of 16 bytes. */
constexpr bool is_natural(std::size_t bytes, std::size_t align) noexcept
{
#if defined(PRAIRIE_QUANTUM) && PRAIRIE_QUANTUM == 8
    return align <= 8 || (align == 16 && bytes >= 16 && bytes % 16 == 0);
#else
    return align <= 8 || (align == 16 && bytes >= 16);
#endif
}

[[noreturn]] inline void refuse_memory()
{
#if defined(__cpp_exceptions)
    throw std::bad_alloc();
#else
    std::abort();
#endif
}

[[noreturn]] inline void refuse_count()
{
#if defined(__cpp_exceptions)
    throw std::bad_array_new_length();
#else
    std::abort();
#endif
}

/* As the standard has operator new do: the handler is asked until there is memory. nullptr: there
 * is no handler, or no longer one. */
template <class Take> void *take_or_ask(Take take)
{
    for (;;) {
        void *block = take();
        if (block != nullptr) return block;
        std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) return nullptr;
        handler();
    }
}

template <class Take> void *take_with_handler(Take take)
{
    void *block = take_or_ask(take);

    if (block == nullptr) refuse_memory();
    return block;
}

inline void *take_called(std::size_t bytes, std::size_t align) noexcept
{
    return is_natural(bytes, align) ? prairie_malloc(bytes) : prairie_aligned_alloc(align, bytes);
}

inline void *take_again(std::size_t bytes, std::size_t align)
{
    return take_with_handler([=] { return take_called(bytes, align); });
}

/* As operator new(std::nothrow): what a handler throws ends here. */
inline void *take_again_quietly(std::size_t bytes, std::size_t align) noexcept
{
#if defined(__cpp_exceptions)
    try {
        return take_or_ask([=] { return take_called(bytes, align); });
    } catch (...) {
        return nullptr;
    }
#else
    return take_or_ask([=] { return take_called(bytes, align); });
#endif
}

PRAIRIE_ALWAYS_INLINE void *try_take(std::size_t bytes, std::size_t align) noexcept
{
    return is_natural(bytes, align) ? prairie_inline_malloc(bytes)
                                    : prairie_aligned_alloc(align, bytes);
}

PRAIRIE_ALWAYS_INLINE void *take(std::size_t bytes, std::size_t align)
{
    void *block = try_take(bytes, align);

    return block != nullptr ? block : take_again(bytes, align);
}

PRAIRIE_ALWAYS_INLINE void *take_quietly(std::size_t bytes, std::size_t align) noexcept
{
    void *block = try_take(bytes, align);

    return block != nullptr ? block : take_again_quietly(bytes, align);
}

PRAIRIE_ALWAYS_INLINE void give(void *block, std::size_t bytes, std::size_t align) noexcept
{
    if (is_natural(bytes, align)) prairie_inline_free(block, bytes);
    else prairie_free_aligned_sized(block, align, bytes);
}

/* Flags of the functions with x: see <jemalloc/jemalloc.h>. */
constexpr int flags_align(std::size_t align) noexcept
{
    int log = 0;

    while ((std::size_t{ 1 } << log) < align) log++;
    return log;
}

template <class T> std::size_t bytes_for(std::size_t count)
{
    if (count > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T)) refuse_count();
    return count * sizeof(T);
}

} // namespace detail

/* What allocate_at_least returns: the standard's, where it has one. */
#if defined(__cpp_lib_allocate_at_least)
template <class Pointer> using allocation_result = std::allocation_result<Pointer>;
#else
template <class Pointer> struct allocation_result {
    Pointer ptr;
    std::size_t count;
};
#endif

/* For containers: blocks of prairie, whoever answers operator new. All are equal. */
template <class T> class allocator
{
  public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_move_assignment = std::true_type;
    using is_always_equal = std::true_type;

    allocator() noexcept = default;
    template <class Other> constexpr allocator(const allocator<Other> &) noexcept {}

    [[nodiscard]] T *allocate(std::size_t count)
    {
        return static_cast<T *>(detail::take(detail::bytes_for<T>(count), alignof(T)));
    }

    /* As many as the block has room for, at least `count`. It goes back with any number between. */
    [[nodiscard]] allocation_result<T *> allocate_at_least(std::size_t count)
    {
        std::size_t bytes = detail::bytes_for<T>(count), all = bytes;

        if (detail::is_natural(bytes, alignof(T))) all = prairie_nallocx(bytes, 0);
        else all = prairie_nallocx(bytes, detail::flags_align(alignof(T)));
        if (bytes == 0 || all == 0) all = bytes; /* too many: the next line refuses */
        return { static_cast<T *>(detail::take(all / sizeof(T) * sizeof(T), alignof(T))),
                 all / sizeof(T) };
    }

    void deallocate(T *block, std::size_t count) noexcept
    {
        detail::give(block, count * sizeof(T), alignof(T));
    }
};

template <class T, class U>
constexpr bool operator==(const allocator<T> &, const allocator<U> &) noexcept
{
    return true;
}
template <class T, class U>
constexpr bool operator!=(const allocator<T> &, const allocator<U> &) noexcept
{
    return false;
}

/* A base for classes whose objects come and go one by one: new and delete of what is derived from
 * it are the inline ways, where the library is inside of the program (inline.h).
 *
 *      struct node : prairie::inline_new { node *next; int value; };
 */
struct inline_new {
    static PRAIRIE_ALWAYS_INLINE void *operator new(std::size_t bytes)
    {
        return detail::take(bytes, 1);
    }
    static PRAIRIE_ALWAYS_INLINE void operator delete(void *object, std::size_t bytes) noexcept
    {
        detail::give(object, bytes, 1);
    }
    static void *operator new(std::size_t bytes, std::align_val_t align)
    {
        return detail::take(bytes, static_cast<std::size_t>(align));
    }
    static void operator delete(void *object, std::size_t bytes, std::align_val_t align) noexcept
    {
        detail::give(object, bytes, static_cast<std::size_t>(align));
    }
    static void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept
    {
        return detail::take_quietly(bytes, 1);
    }
    static void operator delete(void *object, const std::nothrow_t &) noexcept
    {
        prairie_free(object);
    }
    static void *operator new(std::size_t bytes, std::align_val_t align,
                              const std::nothrow_t &) noexcept
    {
        return detail::take_quietly(bytes, static_cast<std::size_t>(align));
    }
    static void operator delete(void *object, std::align_val_t, const std::nothrow_t &) noexcept
    {
        prairie_free(object);
    }
    static void *operator new(std::size_t, void *place) noexcept { return place; }
    static void operator delete(void *, void *) noexcept {}
};

/* Who takes from an arena and gives back to it: any thread, and each call takes the arena's lock;
 * or one thread at a time, and most calls are served from a cache that belongs to the arena. */
enum class threads { any, one_at_a_time };

/* Memory apart from all other: its blocks share no slab with those of anybody else. They may be
 * given back one by one, also by plain free; reset() frees all that are left, whoever holds them,
 * in time that goes by its slabs and large blocks, not by its blocks; so does the end of the arena.
 * There are at most some 4,000. One that was moved from has no memory: it refuses, and takes back
 * what others gave out. */
class arena
{
  public:
    explicit arena(threads who = threads::any)
    {
        std::size_t bytes = sizeof index_;

        if (mallctl("arenas.create", &index_, &bytes, nullptr, 0) != 0) detail::refuse_memory();
        if (who == threads::any) {
            flags_ = flags_of(index_, no_cache);
            return;
        }
        bytes = sizeof cache_;
        if (mallctl("tcache.create", &cache_, &bytes, nullptr, 0) != 0) {
            cache_ = no_cache;
            end();
            detail::refuse_memory();
        }
        flags_ = flags_of(index_, cache_);
    }
    arena(arena &&other) noexcept
        : index_(std::exchange(other.index_, none)), cache_(std::exchange(other.cache_, no_cache)),
          flags_(std::exchange(other.flags_, flags_of(none, no_cache)))
    {
    }
    arena &operator=(arena &&other) noexcept
    {
        arena taken(std::move(other));

        std::swap(index_, taken.index_);
        std::swap(cache_, taken.cache_);
        std::swap(flags_, taken.flags_);
        return *this;
    }
    arena(const arena &) = delete;
    arena &operator=(const arena &) = delete;
    ~arena() { end(); }

    [[nodiscard]] void *allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t))
    {
        void *block = try_allocate(bytes, align);

        if (block != nullptr) return block;
        if (index_ == none) detail::refuse_memory(); /* a handler could do nothing about it */
        return detail::take_with_handler(
            [this, bytes, align] { return try_allocate(bytes, align); });
    }
    /* nullptr: no memory. */
    [[nodiscard]] void *try_allocate(std::size_t bytes,
                                     std::size_t align = alignof(std::max_align_t)) noexcept
    {
        if (index_ == none) return nullptr;
        return prairie_mallocx(some(bytes), flags_for(some(bytes), align));
    }
    void deallocate(void *block, std::size_t bytes,
                    std::size_t align = alignof(std::max_align_t)) noexcept
    {
        if (block != nullptr) prairie_sdallocx(block, some(bytes), flags_for(some(bytes), align));
    }

    /* Every block of it is free, whoever holds it. No other thread may be in a call for it. */
    void reset() noexcept
    {
        if (index_ == none) return;

        /* Read once: a name is looked for among all others, numbers are direct. */
        static const path of("arena.0.reset");

        flush();
        of.act_on(index_);
    }

    /* The number that control names have for it. */
    unsigned index() const noexcept { return index_; }

    friend bool operator==(const arena &one, const arena &other) noexcept
    {
        return one.index_ == other.index_;
    }
    friend bool operator!=(const arena &one, const arena &other) noexcept
    {
        return !(one == other);
    }

  private:
    static constexpr unsigned none = ~0u;
    static constexpr unsigned no_cache = ~0u;

    struct path {
        std::size_t numbers[3];
        std::size_t length = 3;

        explicit path(const char *name) noexcept { (void)mallctlnametomib(name, numbers, &length); }
        void act_on(unsigned index) const noexcept
        {
            std::size_t those[3] = { numbers[0], index, numbers[2] };
            (void)mallctlbymib(those, 3, nullptr, nullptr, nullptr, 0);
        }
    };

    static std::size_t some(std::size_t bytes) noexcept { return bytes == 0 ? 1 : bytes; }
    static constexpr int flags_of(unsigned index, unsigned cache) noexcept
    {
        return static_cast<int>(((index + 1u) << 20) | ((cache + 2u) << 8));
    }
    int flags_for(std::size_t bytes, std::size_t align) const noexcept
    {
        return detail::is_natural(bytes, align) ? flags_ : flags_ | detail::flags_align(align);
    }
    void flush() noexcept
    {
        if (cache_ != no_cache)
            (void)mallctl("tcache.flush", nullptr, nullptr, &cache_, sizeof cache_);
    }
    void end() noexcept
    {
        static const path of("arena.0.destroy");

        if (index_ == none) return;
        if (cache_ != no_cache)
            (void)mallctl("tcache.destroy", nullptr, nullptr, &cache_, sizeof cache_);
        of.act_on(index_);
    }

    unsigned index_ = none;
    unsigned cache_ = no_cache;
    int flags_ = flags_of(none, no_cache);
};

/* For containers whose blocks come from an arena, which must outlive them. */
template <class T> class arena_allocator
{
  public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    arena_allocator(arena &from) noexcept : arena_(&from) {}
    template <class Other>
    arena_allocator(const arena_allocator<Other> &other) noexcept : arena_(other.from())
    {
    }

    [[nodiscard]] T *allocate(std::size_t count)
    {
        return static_cast<T *>(arena_->allocate(detail::bytes_for<T>(count), alignof(T)));
    }
    void deallocate(T *block, std::size_t count) noexcept
    {
        arena_->deallocate(block, count * sizeof(T), alignof(T));
    }

    arena *from() const noexcept { return arena_; }

  private:
    arena *arena_;
};

template <class T, class U>
bool operator==(const arena_allocator<T> &one, const arena_allocator<U> &other) noexcept
{
    return one.from() == other.from();
}
template <class T, class U>
bool operator!=(const arena_allocator<T> &one, const arena_allocator<U> &other) noexcept
{
    return one.from() != other.from();
}

#if PRAIRIE_HAS_MEMORY_RESOURCE

/* The usual heap, for std::pmr. All are equal. */
class heap_resource : public std::pmr::memory_resource
{
    void *do_allocate(std::size_t bytes, std::size_t align) override
    {
        return detail::take(bytes, align);
    }
    void do_deallocate(void *block, std::size_t bytes, std::size_t align) override
    {
        detail::give(block, bytes, align);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti)
        return dynamic_cast<const heap_resource *>(&other) != nullptr;
#else
        const heap_resource *known = mark();

        return this == &other || &other == known || (this != known && other.is_equal(*known));
#endif
    }

#if !defined(__cpp_rtti)
    /* Without types at run time they know each other by this one: each says that it is equal to it,
     * and no resource of another class does. */
    static const heap_resource *mark() noexcept
    {
        alignas(heap_resource) static unsigned char place[sizeof(heap_resource)];
        static const heap_resource *const one = ::new (static_cast<void *>(place)) heap_resource;

        return one;
    }
#endif
};

/* One of those, which lives until the process ends: no destructor of anybody comes too late. */
inline std::pmr::memory_resource *resource() noexcept
{
    alignas(heap_resource) static unsigned char place[sizeof(heap_resource)];
    static heap_resource *const one = ::new (static_cast<void *>(place)) heap_resource;

    return one;
}

/* An arena for std::pmr. release() frees all blocks at once, as if each had been given back. */
class arena_resource : public std::pmr::memory_resource
{
  public:
    explicit arena_resource(threads who = threads::any) : arena_(who) {}

    void release() noexcept { arena_.reset(); }
    arena &from() noexcept { return arena_; }

  private:
    void *do_allocate(std::size_t bytes, std::size_t align) override
    {
        return arena_.allocate(bytes, align);
    }
    void do_deallocate(void *block, std::size_t bytes, std::size_t align) override
    {
        arena_.deallocate(block, bytes, align);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }

    arena arena_;
};

/* The same for memory that only grows until release(): what is given back before stays. */
class monotonic_arena_resource : public arena_resource
{
  public:
    using arena_resource::arena_resource;

  private:
    void do_deallocate(void *, std::size_t, std::size_t) override {}
};

#endif

} // namespace prairie

#endif
