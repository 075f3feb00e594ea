/* attack.cpp - what a bug or an attacker does with a heap, one function for each.
 *
 *      attack NAME      does it; exit code 0: nothing stopped it
 *      attack --list    names all
 *
 * A function returns when its misuse did what was hoped for. `stopped` is for those that can see
 * that it was in vain: what was read is no longer there, the block did not come back. All else that
 * ends the process by a signal is a stop, too. attack_run.py counts them.
 *
 * Sizes: small blocks lie beside others of their class; medium ones are whole pages, from a
 * thread's cache perhaps; large ones are past that.
 * SPDX-License-Identifier: MIT
 */
#include "../blackbox/blackbox.h"

#include <algorithm>
#include <iterator>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <sys/mman.h>

extern "C" void free_sized(void *block, size_t size) __attribute__((weak));

namespace {

enum { SMALL = 64, MEDIUM = 20000, LARGE = 256 * 1024, HUGE_ONE = 8 << 20 };
enum { EXIT_STOPPED = 3, CROWD = 20000 };

using bytes = volatile unsigned char;

[[noreturn]] void stopped() { _exit(EXIT_STOPPED); }

/* The compiler no longer knows where it came from. */
void *hidden(const volatile void *pointer)
{
    void *result = (void *)(uintptr_t)pointer;
    __asm__ volatile("" : "+r"(result) : : "memory");
    return result;
}

bytes *taken(size_t size)
{
    bytes *block = (bytes *)hidden(malloc(size));

    must(block != nullptr);
    return block;
}

void given(const volatile void *block) { free(hidden(block)); }

void *crowd[CROWD];

/* What any busy program does: it makes caches trade and drain. */
void go_on(size_t size)
{
    size_t count = size <= SMALL ? CROWD : 200;

    for (size_t i = 0; i < count; i++) {
        crowd[i] = malloc(size);
        must(crowd[i] != nullptr);
    }
    for (size_t i = 0; i < count; i++) free(crowd[i]);
}

/* ---- giving back twice ---- */

void double_free(size_t size)
{
    bytes *block = taken(size);

    given(block);
    given(block);
}

void double_free_between(size_t size)
{
    bytes *block = taken(size), *other = taken(size);

    given(block);
    given(other);
    given(block);
}

void double_free_after_some(size_t size)
{
    bytes *block = taken(size), *others[10];

    for (auto &other : others) other = taken(size);
    given(block);
    for (auto &other : others) given(other);
    given(block);
}

void double_free_reused(size_t size)
{
    bytes *block = taken(size), *first, *second;

    given(block);
    given(block);
    first = taken(size);
    second = taken(size);
    if (first != second) stopped();
}

void double_free_later(size_t size)
{
    bytes *block = taken(size);

    given(block);
    go_on(size);
    given(block);
    go_on(size);
}

void *give_there(void *block)
{
    free(hidden(block));
    return nullptr;
}

void double_free_by_thread(size_t size)
{
    pthread_t thread;
    bytes *block = taken(size);

    given(block);
    must(pthread_create(&thread, nullptr, give_there, (void *)block) == 0);
    must(pthread_join(thread, nullptr) == 0);
}

void double_delete()
{
    auto *object = (long *)hidden(new long[8]);

    delete[] object;
    delete[](long *) hidden(object);
}

void double_free_aligned()
{
    void *block = hidden(aligned_alloc(256, 256));

    given(block);
    given(block);
}

void realloc_after_free(size_t size)
{
    bytes *block = taken(size);

    given(block);
    must(realloc(hidden(block), size * 3) != nullptr);
}

void free_after_realloc(size_t size)
{
    bytes *block = taken(size), *behind = taken(size);
    void *moved = realloc(hidden(block), size * 4);

    (void)behind;
    must(moved != nullptr && moved != block);
    given(block);
}

void usable_size_after_free(size_t size)
{
    bytes *block = taken(size);

    given(block);
    if (malloc_usable_size(hidden(block)) == 0) stopped();
}

/* ---- pointers that never were blocks ---- */

char static_bytes[4096];

void free_at(size_t size, size_t offset) { given(taken(size) + offset); }

void free_stack()
{
    char here[256] = { 0 };

    given(here);
}

void free_static() { given(static_bytes + 64); }
void free_code() { given((void *)&free_static); }
void free_literal() { given("a string"); }
void free_unmapped() { given((void *)0x123456789000); }
void free_low() { given((void *)0x10); }
void free_kernel() { given((void *)0xffff800000000010); }

void free_mapped()
{
    given(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* Beyond the last block that was ever handed out there. */
void free_never_used(size_t size) { given(taken(size) + (16 << 20)); }

void uninitialised_free(size_t size)
{
    void **block = (void **)taken(size);

    given(block);
    block = (void **)taken(size);
    free(hidden(block[1]));
    if (block[1] == nullptr) stopped();
}

void realloc_at(size_t size, size_t offset)
{
    must(realloc(hidden(taken(size) + offset), size * 2) != nullptr);
}

void realloc_stack()
{
    char here[256] = { 0 };

    must(realloc(hidden(here), 1000) != nullptr);
}

void usable_size_at(size_t size, size_t offset)
{
    if (malloc_usable_size(hidden(taken(size) + offset)) == 0) stopped();
}

void usable_size_stack()
{
    char here[256] = { 0 };

    if (malloc_usable_size(hidden(here)) == 0) stopped();
}

/* ---- past the ends ---- */

void write_past_end(size_t size, size_t past, size_t count)
{
    bytes *block = taken(size);

    for (size_t i = 0; i < count; i++) block[size + past + i] = 0x41;
    given(block);
}

/* Past all that malloc_usable_size allows. */
void write_past_usable(size_t size, size_t count)
{
    bytes *block = taken(size);
    size_t usable = malloc_usable_size((void *)block);

    for (size_t i = 0; i < count; i++) block[usable + i] = 0x41;
    given(block);
}

void write_before(size_t size, size_t count)
{
    bytes *block = std::max(taken(size), taken(size)); /* not the first of a slab */

    for (size_t i = 1; i <= count; i++) *(block - i) = 0x41;
    given(block);
}

/* Into a live neighbour, which is given back instead. */
void write_into_neighbour(size_t size)
{
    bytes *block[32], **lower = nullptr;

    for (auto &each : block) each = taken(size);
    std::sort(std::begin(block), std::end(block));
    for (size_t i = 0; i + 1 < 32 && lower == nullptr; i++)
        if ((size_t)(block[i + 1] - block[i]) < 3 * size) lower = &block[i];
    if (lower == nullptr) stopped();
    for (bytes *at = lower[0] + size; at < lower[1] + 8; at++) *at = 0x41;
    given(lower[1]);
}

void read_past_end(size_t size)
{
    bytes *block = taken(size);
    unsigned sum = 0;

    for (size_t i = 0; i < 64 * 1024; i++) sum += block[size + i];
    if (sum == 0) return;
}

void string_past_end()
{
    char *text = (char *)taken(24);

    memset(text, 'a', 24); /* and no end */
    if (strlen((char *)hidden(text)) == 24) stopped();
}

void memset_past_end(size_t size)
{
    bytes *block = taken(size);

    memset(hidden(block), 0x41, size + 16 + size / 8);
    given(block);
}

void copy_past_end(void *(*copy)(void *, const void *, size_t), size_t size)
{
    bytes *block = taken(size), *from = taken(size * 2);

    copy(hidden(block), hidden(from), size + 16 + size / 8);
    given(block);
}

void memcpy_read_past_end(size_t size)
{
    bytes *from = taken(size), *block = taken(size * 2);

    memcpy(hidden(block), hidden(from), size + 16 + size / 8);
}

void write_past_new()
{
    auto *object = (bytes *)hidden(new char[40]);

    object[40] = 0x41;
    delete[](char *) object;
}

/* ---- after the end of life ---- */

enum { MARK = 0x5a };

bytes *marked_and_given(size_t size)
{
    bytes *block = taken(size);

    memset((void *)block, MARK, size);
    given(block);
    return block;
}

/* Beyond its first bytes, where the allocator may keep something. */
void look_for_mark(const bytes *block, size_t size)
{
    for (size_t i = 32; i < size; i++)
        if (block[i] == MARK) return;
    stopped();
}

void read_after_free(size_t size) { look_for_mark(marked_and_given(size), size); }

void write_after_free(size_t size)
{
    bytes *block = taken(size);

    given(block);
    block[size / 2] = 0x41;
    go_on(size);
}

void write_after_free_reused(size_t size)
{
    bytes *block = taken(size), *next;

    given(block);
    block[size / 2] = 0x41;
    next = taken(size);
    if (next != block || next[size / 2] != 0x41) stopped();
}

/* What the next one gets still says what the last one wrote. */
void read_uninitialised(size_t size)
{
    (void)marked_and_given(size);
    look_for_mark(taken(size), size);
}

void reuse_at_once(size_t size)
{
    bytes *block = taken(size);

    given(block);
    if (taken(size) != block) stopped();
}

void reuse_soon(size_t size)
{
    bytes *block = taken(size), *others[12];

    given(block);
    for (auto &other : others) other = taken(size);
    if (std::find(std::begin(others), std::end(others), block) == std::end(others)) stopped();
}

/* Two blocks of one size, taken one after the other, lie side by side. */
void lie_in_order(size_t size)
{
    bytes *block[5];
    ptrdiff_t step;

    for (auto &each : block) each = taken(size);
    step = block[1] - block[0];
    for (int i = 2; i < 5; i++)
        if (block[i] - block[i - 1] != step) stopped();
}

/* ---- nothing at all ---- */

void read_zero(void *block)
{
    bytes value = *(bytes *)hidden(block);
    (void)value;
}

void write_zero(void *block)
{
    *(bytes *)hidden(block) = 0x41;
    given(block);
}

void zero_twice()
{
    void *block = hidden(malloc(0));

    given(block);
    given(block);
}

void zero_same()
{
    if (hidden(malloc(0)) != hidden(malloc(0))) stopped();
}

/* ---- of another kind, or size ---- */

void new_then_free() { given(new long); }
void new_array_then_free() { given(new long[8]); }
void malloc_then_delete() { delete (long *)hidden(malloc(sizeof(long))); }
void malloc_then_delete_array() { delete[](long *) hidden(malloc(64)); }
void new_then_delete_array() { delete[](long *) hidden(new long); }
void new_array_then_delete() { delete (long *)hidden(new long[8]); }

void delete_other_size(size_t size, size_t told)
{
    operator delete(hidden(operator new(size)), told);
}

void delete_other_align()
{
    operator delete(hidden(operator new(100, std::align_val_t(256))), 100);
}

void free_other_size(size_t size, size_t told)
{
    if (free_sized == nullptr) return;
    free_sized(hidden(malloc(size)), told);
}

/* ---- the allocator's own words ---- */

/* Where lists run through free blocks, a word there leads to a block of the attacker's choice. */
void forge_list(size_t size, size_t word)
{
    void **block = (void **)taken(size), *wanted = static_bytes + 1024;

    given(taken(size));
    given(block);
    block[word] = wanted;
    for (int i = 0; i < 200; i++)
        if (malloc(size) == wanted) return;
    stopped();
}

/* Where sizes stand before blocks, one that is too large makes two blocks overlap. */
void forge_size(size_t size)
{
    size_t *block = (size_t *)taken(size), *next = (size_t *)taken(size);
    bytes *later;

    block[-1] = (size * 4) | 1;
    given(block);
    later = taken(size * 4 - 16);
    if (!((char *)later <= (char *)next && (char *)next < (char *)later + size * 4)) stopped();
}

struct attack {
    const char *name;
    void (*make)();
};

#define ATTACK(name, call) { name, [] { call; } }

const attack attacks[] = {
    ATTACK("double_free_small", double_free(SMALL)),
    ATTACK("double_free_small_16", double_free(16)),
    ATTACK("double_free_small_1000", double_free(1000)),
    ATTACK("double_free_small_10000", double_free(10000)),
    ATTACK("double_free_medium", double_free(MEDIUM)),
    ATTACK("double_free_large", double_free(LARGE)),
    ATTACK("double_free_huge", double_free(HUGE_ONE)),
    ATTACK("double_free_between_small", double_free_between(SMALL)),
    ATTACK("double_free_between_medium", double_free_between(MEDIUM)),
    ATTACK("double_free_between_large", double_free_between(LARGE)),
    ATTACK("double_free_after_some_small", double_free_after_some(SMALL)),
    ATTACK("double_free_after_some_large", double_free_after_some(LARGE)),
    ATTACK("double_free_reused_small", double_free_reused(SMALL)),
    ATTACK("double_free_reused_small_1000", double_free_reused(1000)),
    ATTACK("double_free_reused_large", double_free_reused(LARGE)),
    ATTACK("double_free_later_small", double_free_later(SMALL)),
    ATTACK("double_free_later_medium", double_free_later(MEDIUM)),
    ATTACK("double_free_later_large", double_free_later(LARGE)),
    ATTACK("double_free_by_thread_small", double_free_by_thread(SMALL)),
    ATTACK("double_free_by_thread_large", double_free_by_thread(LARGE)),
    ATTACK("double_delete", double_delete()),
    ATTACK("double_free_aligned", double_free_aligned()),
    ATTACK("realloc_after_free_small", realloc_after_free(SMALL)),
    ATTACK("realloc_after_free_large", realloc_after_free(LARGE)),
    ATTACK("free_after_realloc_small", free_after_realloc(SMALL)),
    ATTACK("free_after_realloc_large", free_after_realloc(LARGE)),
    ATTACK("usable_size_after_free_small", usable_size_after_free(SMALL)),
    ATTACK("usable_size_after_free_large", usable_size_after_free(LARGE)),

    ATTACK("free_unaligned_small", free_at(SMALL, 1)),
    ATTACK("free_unaligned_medium", free_at(MEDIUM, 1)),
    ATTACK("free_unaligned_large", free_at(LARGE, 1)),
    ATTACK("free_interior_small", free_at(SMALL, 16)),
    ATTACK("free_interior_small_1000", free_at(1000, 512)),
    ATTACK("free_interior_medium", free_at(MEDIUM, 4096)),
    ATTACK("free_interior_large", free_at(LARGE, 65536)),
    ATTACK("free_stack", free_stack()),
    ATTACK("free_static", free_static()),
    ATTACK("free_code", free_code()),
    ATTACK("free_literal", free_literal()),
    ATTACK("free_unmapped", free_unmapped()),
    ATTACK("free_low", free_low()),
    ATTACK("free_kernel", free_kernel()),
    ATTACK("free_mapped", free_mapped()),
    ATTACK("free_never_used", free_never_used(SMALL)),
    ATTACK("uninitialised_free_small", uninitialised_free(SMALL)),
    ATTACK("uninitialised_free_large", uninitialised_free(LARGE)),
    ATTACK("realloc_unaligned_small", realloc_at(SMALL, 1)),
    ATTACK("realloc_interior_small", realloc_at(SMALL, 16)),
    ATTACK("realloc_unaligned_large", realloc_at(LARGE, 1)),
    ATTACK("realloc_interior_large", realloc_at(LARGE, 65536)),
    ATTACK("realloc_stack", realloc_stack()),
    ATTACK("usable_size_unaligned_small", usable_size_at(SMALL, 1)),
    ATTACK("usable_size_interior_large", usable_size_at(LARGE, 65536)),
    ATTACK("usable_size_stack", usable_size_stack()),

    ATTACK("write_1_past_end_small", write_past_end(SMALL - 7, 0, 1)),
    ATTACK("write_1_past_whole_small", write_past_end(SMALL, 0, 1)),
    ATTACK("write_8_past_end_small", write_past_end(SMALL, 0, 8)),
    ATTACK("write_1_past_usable_small", write_past_usable(SMALL, 1)),
    ATTACK("write_8_past_usable_small", write_past_usable(SMALL, 8)),
    ATTACK("write_8_past_usable_1000", write_past_usable(1000, 8)),
    ATTACK("write_1_past_end_medium", write_past_end(MEDIUM, 0, 1)),
    ATTACK("write_8_past_usable_medium", write_past_usable(MEDIUM, 8)),
    ATTACK("write_1_past_end_large", write_past_end(LARGE, 0, 1)),
    ATTACK("write_8_past_usable_large", write_past_usable(LARGE, 8)),
    ATTACK("write_page_past_usable_large", write_past_usable(LARGE, 4096)),
    ATTACK("write_8_past_usable_huge", write_past_usable(HUGE_ONE, 8)),
    ATTACK("write_1_before_small", write_before(SMALL, 1)),
    ATTACK("write_8_before_small", write_before(SMALL, 8)),
    ATTACK("write_8_before_medium", write_before(MEDIUM, 8)),
    ATTACK("write_8_before_large", write_before(LARGE, 8)),
    ATTACK("write_into_neighbour_small", write_into_neighbour(SMALL)),
    ATTACK("write_into_neighbour_1000", write_into_neighbour(1000)),
    ATTACK("read_past_end_small", read_past_end(SMALL)),
    ATTACK("read_past_end_large", read_past_end(LARGE)),
    ATTACK("string_past_end", string_past_end()),
    ATTACK("memset_past_end_small", memset_past_end(SMALL)),
    ATTACK("memset_past_end_large", memset_past_end(LARGE)),
    ATTACK("memcpy_past_end_small", copy_past_end(memcpy, SMALL)),
    ATTACK("memcpy_past_end_large", copy_past_end(memcpy, LARGE)),
    ATTACK("memmove_past_end_small", copy_past_end(memmove, SMALL)),
    ATTACK("memcpy_read_past_end_small", memcpy_read_past_end(SMALL)),
    ATTACK("memcpy_read_past_end_large", memcpy_read_past_end(LARGE)),
    ATTACK("write_past_new", write_past_new()),

    ATTACK("read_after_free_small", read_after_free(SMALL)),
    ATTACK("read_after_free_small_1000", read_after_free(1000)),
    ATTACK("read_after_free_medium", read_after_free(MEDIUM)),
    ATTACK("read_after_free_large", read_after_free(LARGE)),
    ATTACK("read_after_free_huge", read_after_free(HUGE_ONE)),
    ATTACK("write_after_free_small", write_after_free(SMALL)),
    ATTACK("write_after_free_medium", write_after_free(MEDIUM)),
    ATTACK("write_after_free_large", write_after_free(LARGE)),
    ATTACK("write_after_free_reused_small", write_after_free_reused(SMALL)),
    ATTACK("write_after_free_reused_large", write_after_free_reused(LARGE)),
    ATTACK("read_uninitialised_small", read_uninitialised(SMALL)),
    ATTACK("read_uninitialised_medium", read_uninitialised(MEDIUM)),
    ATTACK("read_uninitialised_large", read_uninitialised(LARGE)),
    ATTACK("reuse_at_once_small", reuse_at_once(SMALL)),
    ATTACK("reuse_at_once_medium", reuse_at_once(MEDIUM)),
    ATTACK("reuse_at_once_large", reuse_at_once(LARGE)),
    ATTACK("reuse_soon_small", reuse_soon(SMALL)),
    ATTACK("reuse_soon_large", reuse_soon(LARGE)),
    ATTACK("lie_in_order_small", lie_in_order(SMALL)),

    ATTACK("read_zero_malloc", read_zero(malloc(0))),
    ATTACK("write_zero_malloc", write_zero(malloc(0))),
    ATTACK("write_zero_calloc", write_zero(calloc(0, 8))),
    ATTACK("write_zero_new", write_zero(new char[0])),
    ATTACK("write_zero_aligned", write_zero(aligned_alloc(16, 0))),
    ATTACK("zero_twice", zero_twice()),
    ATTACK("zero_same", zero_same()),

    ATTACK("new_then_free", new_then_free()),
    ATTACK("new_array_then_free", new_array_then_free()),
    ATTACK("malloc_then_delete", malloc_then_delete()),
    ATTACK("malloc_then_delete_array", malloc_then_delete_array()),
    ATTACK("new_then_delete_array", new_then_delete_array()),
    ATTACK("new_array_then_delete", new_array_then_delete()),
    ATTACK("delete_smaller_size", delete_other_size(200, 40)),
    ATTACK("delete_larger_size", delete_other_size(40, 200)),
    ATTACK("delete_large_as_small", delete_other_size(LARGE, 40)),
    ATTACK("delete_small_as_large", delete_other_size(40, LARGE)),
    ATTACK("delete_other_align", delete_other_align()),
    ATTACK("free_sized_smaller", free_other_size(200, 40)),
    ATTACK("free_sized_larger", free_other_size(40, 200)),

    ATTACK("forge_list_small", forge_list(SMALL, 0)),
    ATTACK("forge_list_small_second", forge_list(SMALL, 1)),
    ATTACK("forge_list_large", forge_list(LARGE, 0)),
    ATTACK("forge_size_small", forge_size(SMALL)),
    ATTACK("forge_size_large", forge_size(LARGE)),
};

} // namespace

int main(int argc, char **argv)
{
    must(argc == 2);
    for (const attack &each : attacks) {
        if (strcmp(argv[1], "--list") == 0) {
            puts(each.name);
        } else if (strcmp(argv[1], each.name) == 0) {
            each.make();
            return 0;
        }
    }
    return strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
