/* new_test.cpp - every form of C++ operator new and delete, in every pair that belongs together. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

#include <initializer_list>
#include <new>

using std::align_val_t;
using std::nothrow;

namespace
{

/* How mangled names say size_t. */
#if SIZE_MAX > UINT32_MAX
#define SIZE_LETTER "m"
#else
#define SIZE_LETTER "j"
#endif

/* The eight ways to ask. Those that throw on refusal are marked. */
struct NewForm {
    const char *name;
    const char *symbol;
    void *(*take)(size_t bytes, size_t align_bytes);
    bool is_array, is_aligned, throws;
};

const NewForm new_forms[] = {
    { "new(n)", "_Znw" SIZE_LETTER, [](size_t n, size_t) { return operator new(n); }, false, false,
      true },
    { "new[](n)", "_Zna" SIZE_LETTER, [](size_t n, size_t) { return operator new[](n); }, true,
      false, true },
    { "new(n, nothrow)", "_Znw" SIZE_LETTER "RKSt9nothrow_t",
      [](size_t n, size_t) { return operator new(n, nothrow); }, false, false, false },
    { "new[](n, nothrow)", "_Zna" SIZE_LETTER "RKSt9nothrow_t",
      [](size_t n, size_t) { return operator new[](n, nothrow); }, true, false, false },
    { "new(n, a)", "_Znw" SIZE_LETTER "St11align_val_t",
      [](size_t n, size_t a) { return operator new(n, align_val_t(a)); }, false, true, true },
    { "new[](n, a)", "_Zna" SIZE_LETTER "St11align_val_t",
      [](size_t n, size_t a) { return operator new[](n, align_val_t(a)); }, true, true, true },
    { "new(n, a, nothrow)", "_Znw" SIZE_LETTER "St11align_val_tRKSt9nothrow_t",
      [](size_t n, size_t a) { return operator new(n, align_val_t(a), nothrow); }, false, true,
      false },
    { "new[](n, a, nothrow)", "_Zna" SIZE_LETTER "St11align_val_tRKSt9nothrow_t",
      [](size_t n, size_t a) { return operator new[](n, align_val_t(a), nothrow); }, true, true,
      false },
};
constexpr size_t new_form_count = sizeof new_forms / sizeof new_forms[0];

/* The twelve ways to give back. */
struct DeleteForm {
    const char *name;
    const char *symbol;
    void (*give)(void *block, size_t bytes, size_t align_bytes);
    bool is_array, is_aligned;
};

const DeleteForm delete_forms[] = {
    { "delete(p)", "_ZdlPv", [](void *p, size_t, size_t) { operator delete(p); }, false, false },
    { "delete[](p)", "_ZdaPv", [](void *p, size_t, size_t) { operator delete[](p); }, true, false },
    { "delete(p, nothrow)", "_ZdlPvRKSt9nothrow_t",
      [](void *p, size_t, size_t) { operator delete(p, nothrow); }, false, false },
    { "delete[](p, nothrow)", "_ZdaPvRKSt9nothrow_t",
      [](void *p, size_t, size_t) { operator delete[](p, nothrow); }, true, false },
    { "delete(p, n)", "_ZdlPv" SIZE_LETTER,
      [](void *p, size_t n, size_t) { operator delete(p, n); }, false, false },
    { "delete[](p, n)", "_ZdaPv" SIZE_LETTER,
      [](void *p, size_t n, size_t) { operator delete[](p, n); }, true, false },
    { "delete(p, a)", "_ZdlPvSt11align_val_t",
      [](void *p, size_t, size_t a) { operator delete(p, align_val_t(a)); }, false, true },
    { "delete[](p, a)", "_ZdaPvSt11align_val_t",
      [](void *p, size_t, size_t a) { operator delete[](p, align_val_t(a)); }, true, true },
    { "delete(p, a, nothrow)", "_ZdlPvSt11align_val_tRKSt9nothrow_t",
      [](void *p, size_t, size_t a) { operator delete(p, align_val_t(a), nothrow); }, false, true },
    { "delete[](p, a, nothrow)", "_ZdaPvSt11align_val_tRKSt9nothrow_t",
      [](void *p, size_t, size_t a) { operator delete[](p, align_val_t(a), nothrow); }, true,
      true },
    { "delete(p, n, a)", "_ZdlPv" SIZE_LETTER "St11align_val_t",
      [](void *p, size_t n, size_t a) { operator delete(p, n, align_val_t(a)); }, false, true },
    { "delete[](p, n, a)", "_ZdaPv" SIZE_LETTER "St11align_val_t",
      [](void *p, size_t n, size_t a) { operator delete[](p, n, align_val_t(a)); }, true, true },
};
constexpr size_t delete_form_count = sizeof delete_forms / sizeof delete_forms[0];

const NewForm &new_form(const struct check *check)
{
    return new_forms[check->other % new_form_count];
}
const DeleteForm &delete_form(const struct check *check)
{
    return delete_forms[check->other / new_form_count];
}

struct check row(void (*run)(const struct check *), size_t new_index, size_t delete_index,
                 size_t bytes, size_t align_bytes)
{
    struct check check = {};
    check.run = run;
    check.other = delete_index * new_form_count + new_index;
    check.bytes = bytes;
    check.align_bytes = align_bytes;
    return check;
}

void round_trip(const struct check *check)
{
    enum { COUNT = 8 };
    void *block[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        errno = SENTINEL;
        block[i] = new_form(check).take(check->bytes, check->align_bytes);
        assert_non_null(block[i]);
        assert_int_equal(errno, SENTINEL);
        assert_true(is_aligned(block[i], align_promised(check->bytes)));
        if (new_form(check).is_aligned) assert_true(is_aligned(block[i], check->align_bytes));
        for (size_t j = 0; j < i; j++) assert_true(block[i] != block[j]);
        stamp(block[i], check->bytes, i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(stamp_holds(block[i], check->bytes, i));
        errno = SENTINEL;
        delete_form(check).give(block[i], check->bytes, check->align_bytes);
        assert_int_equal(errno, SENTINEL);
    }
}

void null_is_given_back(const struct check *check)
{
    errno = SENTINEL;
    delete_form(check).give(nullptr, check->bytes, check->align_bytes);
    assert_int_equal(errno, SENTINEL);
}

int handler_calls;

void handler_gives_up()
{
    if (++handler_calls == 3) std::set_new_handler(nullptr);
}

void handler_throws()
{
    handler_calls++;
    throw std::bad_alloc();
}

/* Refused with an exception or a null pointer, after the new-handler was asked as often as it
 * liked. */
bool refuses(const NewForm &form, size_t bytes, size_t align_bytes)
{
    try {
        return form.take(bytes, align_bytes) == nullptr && !form.throws;
    } catch (const std::bad_alloc &) {
        return form.throws;
    }
}

void absurd(const struct check *check)
{
    double best_ms = 1e9;
    for (int i = 0; i < 3; i++) {
        double start_ms = processor_ms();
        assert_true(refuses(new_form(check), check->bytes, check->align_bytes));
        double spent_ms = processor_ms() - start_ms;
        if (spent_ms < best_ms) best_ms = spent_ms;
    }
    assert_true(best_ms <= ABSURD_MS_MAX);
}

void asks_handler(const struct check *check)
{
    handler_calls = 0;
    std::set_new_handler(handler_gives_up);
    bool refused = refuses(new_form(check), check->bytes, check->align_bytes);
    std::set_new_handler(nullptr);
    assert_true(refused);
    assert_int_equal(handler_calls, 3);
}

/* A handler may throw: the forms that do not throw turn that into a null pointer. */
void survives_handler(const struct check *check)
{
    handler_calls = 0;
    std::set_new_handler(handler_throws);
    bool refused = refuses(new_form(check), check->bytes, check->align_bytes);
    std::set_new_handler(nullptr);
    assert_true(refused);
    assert_int_equal(handler_calls, 1);
}

void belongs_to_prairie(const struct check *check)
{
    const char *symbol =
        check->align_bytes == 0 ? new_form(check).symbol : delete_form(check).symbol;
    void *address = dlsym(RTLD_DEFAULT, symbol);
    assert_non_null(address);
    assert_true(lies_in_prairie(address) || any_allocator_will_do());
}

/* Blocks may cross between the languages: what new gave, free takes, and the other way round. Not in
 * a hardened process. */
void meets_malloc(const struct check *check)
{
    if (flavour_is_hardened()) skip();
    void *block = new_form(check).take(check->bytes, check->align_bytes);
    assert_true(call.malloc_usable_size(block) >= check->bytes);
    call.free(block);
}

/* Expressions as a compiler writes them, with types that are large, over-aligned or have
 * cookies. */
struct alignas(256) Wide {
    char bytes[700];
};
struct Counted {
    static int alive;
    long payload[3];
    Counted() { alive++; }
    ~Counted() { alive--; }
};
int Counted::alive;

void expressions(const struct check *)
{
    for (int i = 0; i < 200; i++) {
        Wide *wide = new Wide;
        Wide *wides = new Wide[3];
        Counted *counted = new Counted[17];
        assert_true(is_aligned(wide, 256) && is_aligned(wides, 256));
        assert_int_equal(Counted::alive, 17);
        delete wide;
        delete[] wides;
        delete[] counted;
        assert_int_equal(Counted::alive, 0);
    }
}

void add_pairs(size_t n, size_t d)
{
    static const size_t sizes[] = { 0,     1,     8,     15,    16,     17,   24,
                                    64,    100,   129,   1000,  4096,   8192, 14335,
                                    14336, 14337, 20000, 65536, 1000000 };
    bool is_aligned = new_forms[n].is_aligned;
    for (size_t bytes : sizes) {
        for (size_t align = is_aligned ? 1 : 16; align <= (is_aligned ? 65536 : 16); align *= 16) {
            struct check check = row(round_trip, n, d, bytes, align);
            if (is_aligned)
                check_add(check, "%s then %s: %zu bytes, aligned to %zu", new_forms[n].name,
                          delete_forms[d].name, bytes, align);
            else
                check_add(check, "%s then %s: %zu bytes", new_forms[n].name, delete_forms[d].name,
                          bytes);
        }
    }
}

void add_refusals(size_t n)
{
    static const size_t sizes[] = {
        (size_t)PTRDIFF_MAX - 1, PTRDIFF_MAX,     (size_t)PTRDIFF_MAX + 1,
        SIZE_MAX - 65536,        SIZE_MAX - 4096, SIZE_MAX - 64,
        SIZE_MAX - 15,           SIZE_MAX - 1,    SIZE_MAX
    };
    for (size_t bytes : sizes)
        for (uint64_t align = 16; align <= (new_forms[n].is_aligned ? (uint64_t)1 << 31 : 16);
             align <<= 15)
            check_add(row(absurd, n, 0, bytes, align), "%s refuses %zu bytes aligned to %zu",
                      new_forms[n].name, bytes, (size_t)align);
    check_add(row(asks_handler, n, 0, SIZE_MAX / 2 + 1, 64), "%s asks the new-handler",
              new_forms[n].name);
    check_add(row(survives_handler, n, 0, SIZE_MAX / 2 + 1, 64), "%s has a new-handler that throws",
              new_forms[n].name);
    check_add(row(asks_handler, n, 0, SIZE_MAX - 8, 64), "%s asks the new-handler near the end",
              new_forms[n].name);
    check_add(row(belongs_to_prairie, n, 0, 0, 0), "%s is prairie's", new_forms[n].name);
    for (size_t bytes : { 1, 50, 5000, 50000 })
        check_add(row(meets_malloc, n, 0, bytes, 128), "%s of %zu bytes, then free",
                  new_forms[n].name, bytes);
}

} // namespace

int main()
{
    checks_begin();
    for (size_t n = 0; n < new_form_count; n++) {
        add_refusals(n);
        for (size_t d = 0; d < delete_form_count; d++)
            if (new_forms[n].is_array == delete_forms[d].is_array
                && new_forms[n].is_aligned == delete_forms[d].is_aligned)
                add_pairs(n, d);
    }
    for (size_t d = 0; d < delete_form_count; d++) {
        check_add(row(belongs_to_prairie, 0, d, 0, 1), "%s is prairie's", delete_forms[d].name);
        for (size_t bytes : { 0, 1, 100, 14336, 100000 })
            check_add(row(null_is_given_back, 0, d, bytes, 64), "%s takes null for %zu bytes",
                      delete_forms[d].name, bytes);
    }
    check_add(row(expressions, 0, 0, 0, 0), "new and delete expressions");
    return checks_run("contract new");
}
