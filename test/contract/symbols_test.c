/* symbols_test.c - every name of the malloc family is prairie's, and every block it gives is
 * free's to take. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

/* Names that a program or library may call. `takes` says how the sweep can call it for a block. */
enum shape {
    SIZE,
    COUNT_SIZE,
    OLD_SIZE,
    OLD_COUNT_SIZE,
    ALIGN_SIZE,
    OUT_ALIGN_SIZE,
    GIVE,
    GIVE_SIZE,
    GIVE_ALIGN_SIZE,
    OTHER
};

struct name {
    const char *symbol;
    enum shape shape;
    bool is_optional; /* an alias: if it is exported it has to work */
};

/* The letter of size_t in the names of C++. */
#if SIZE_MAX > UINT32_MAX
#define SIZE_LETTER "m"
#else
#define SIZE_LETTER "j"
#endif

static const struct name names[] = {
    { "malloc", SIZE, false },
    { "calloc", COUNT_SIZE, false },
    { "realloc", OLD_SIZE, false },
    { "reallocarray", OLD_COUNT_SIZE, false },
    { "aligned_alloc", ALIGN_SIZE, false },
    { "memalign", ALIGN_SIZE, false },
    { "posix_memalign", OUT_ALIGN_SIZE, false },
    { "valloc", SIZE, false },
    { "pvalloc", SIZE, false },
    { "free", GIVE, false },
    { "cfree", GIVE, false },
    { "free_sized", GIVE_SIZE, false },
    { "free_aligned_sized", GIVE_ALIGN_SIZE, false },
    { "malloc_usable_size", OTHER, false },
    { "malloc_trim", OTHER, false },
    { "malloc_stats", OTHER, false },
    { "malloc_info", OTHER, false },
    { "mallinfo", OTHER, false },
    { "mallinfo2", OTHER, false },
    { "mallopt", OTHER, false },
    { "_Znw" SIZE_LETTER, SIZE, false },
    { "_Zna" SIZE_LETTER, SIZE, false },
    { "_ZdlPv", GIVE, false },
    { "_ZdaPv", GIVE, false },
    { "_ZdlPv" SIZE_LETTER, GIVE_SIZE, false },
    { "_ZdaPv" SIZE_LETTER, GIVE_SIZE, false },
    { "prairie_malloc", SIZE, false },
    { "prairie_calloc", COUNT_SIZE, false },
    { "prairie_realloc", OLD_SIZE, false },
    { "prairie_free", GIVE, false },
    { "prairie_aligned_alloc", ALIGN_SIZE, false },
    { "prairie_memalign", ALIGN_SIZE, false },
    { "prairie_posix_memalign", OUT_ALIGN_SIZE, false },
    { "prairie_free_sized", GIVE_SIZE, false },
    { "prairie_usable_size", OTHER, false },
    { "prairie_version", OTHER, false },
    { "__libc_malloc", SIZE, true },
    { "__libc_calloc", COUNT_SIZE, true },
    { "__libc_realloc", OLD_SIZE, true },
    { "__libc_free", GIVE, true },
    { "__libc_memalign", ALIGN_SIZE, true },
    { "__libc_valloc", SIZE, true },
    { "__libc_pvalloc", SIZE, true },
};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

/* The C library keeps its own __libc_ names in a shared build; those are not prairie's to
 * answer for. */
static bool is_here(const struct name *name)
{
    void *address = dlsym(RTLD_DEFAULT, name->symbol);
    return address != NULL && (lies_in_prairie(address) || any_allocator_will_do());
}

static void belongs_to_prairie(const struct check *check)
{
    const struct name *name = &names[check->other];
    if (any_allocator_will_do() && dlsym(RTLD_DEFAULT, name->symbol) == NULL) skip();
    assert_true(is_here(name));
}

static void *take_by(const struct name *name, size_t bytes)
{
    void *address = dlsym(RTLD_DEFAULT, name->symbol);
    void *block = NULL;
    switch (name->shape) {
    case SIZE: return ((void *(*)(size_t))address)(bytes);
    case COUNT_SIZE: return ((void *(*)(size_t, size_t))address)(1, bytes);
    case OLD_SIZE: return ((void *(*)(void *, size_t))address)(NULL, bytes);
    case OLD_COUNT_SIZE: return ((void *(*)(void *, size_t, size_t))address)(NULL, 1, bytes);
    case ALIGN_SIZE: return ((void *(*)(size_t, size_t))address)(64, bytes);
    case OUT_ALIGN_SIZE:
        return ((int (*)(void **, size_t, size_t))address)(&block, 64, bytes) == 0 ? block : NULL;
    default: return NULL;
    }
}

static void give_by(const struct name *name, void *block, size_t bytes)
{
    void *address = dlsym(RTLD_DEFAULT, name->symbol);
    switch (name->shape) {
    case GIVE: ((void (*)(void *))address)(block); return;
    case GIVE_SIZE: ((void (*)(void *, size_t))address)(block, bytes); return;
    case GIVE_ALIGN_SIZE: ((void (*)(void *, size_t, size_t))address)(block, 64, bytes); return;
    default: fail_msg("%s gives nothing back", name->symbol);
    }
}

/* A way in and a way out, for blocks of every kind. */
static void round_trip(const struct check *check)
{
    const struct name *in = &names[check->other];
    const struct name *out = &names[check->align_bytes];
    static const size_t sizes[] = { 0, 1, 24, 64, 700, 4096, 14336, 14337, 70000, 1 << 21 };
    if (!is_here(in) || !is_here(out)) skip();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        errno = SENTINEL;
        void *block = take_by(in, sizes[i]);
        assert_non_null(block);
        stamp(block, sizes[i], i);
        assert_true(call.malloc_usable_size(block) >= sizes[i]);
        assert_true(stamp_holds(block, sizes[i], i));
        give_by(out, block, sizes[i]);
        assert_int_equal(errno, SENTINEL);
    }
}

static bool takes(enum shape shape) { return shape <= OUT_ALIGN_SIZE; }
static bool gives(enum shape shape) { return shape >= GIVE && shape <= GIVE_ALIGN_SIZE; }

/* free_aligned_sized is for aligned blocks, the other sized ways for those without a wish. */
static bool belong_together(const struct name *in, const struct name *out)
{
    bool is_aligned = in->shape == ALIGN_SIZE || in->shape == OUT_ALIGN_SIZE;
    if (out->shape == GIVE_ALIGN_SIZE) return is_aligned;
    if (out->shape == GIVE_SIZE)
        return !is_aligned && strstr(in->symbol, "valloc") == NULL
            && strstr(in->symbol, "lloc") != NULL;
    return true;
}

int main(void)
{
    checks_begin();
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (!names[i].is_optional)
            check_add((struct check){ .run = belongs_to_prairie, .other = i }, "%s is prairie's",
                      names[i].symbol);
        for (size_t o = 0; takes(names[i].shape) && o < NAME_COUNT; o++)
            if (gives(names[o].shape) && belong_together(&names[i], &names[o]))
                check_add((struct check){ .run = round_trip, .other = i, .align_bytes = o },
                          "%s, then %s", names[i].symbol, names[o].symbol);
    }
    return checks_run("contract symbols");
}
