/* crt.c - what Windows' C libraries promise of their heap functions, on prairie's blocks.
 *
 * A block that is not prairie's was taken from a C library before prairie came, or by the C library
 * inside of itself (_fullpath, _dupenv_s). free, realloc and _msize find its heap by themselves
 * (os_other_free). An aligned block of a C library begins somewhere inside of one of its heap's
 * blocks, where only that C library finds it: so these functions exist once for each.
 * SPDX-License-Identifier: MIT
 */
#include "crt.h"

#include "../heap/doors.h"

#include <errno.h>

/* ---- the C libraries ---- */

/* NULL: the C library answers itself. */
#define ANSWERS_OF_ALL                                                                            \
    ANSWER(malloc, "malloc", crt_malloc, crt_malloc)                                              \
    ANSWER(calloc, "calloc", crt_calloc, crt_calloc)                                              \
    ANSWER(realloc, "realloc", crt_realloc, crt_realloc)                                          \
    ANSWER(free, "free", prairie_free, prairie_free)                                              \
    ANSWER(malloc_base, "_malloc_base", crt_malloc, crt_malloc)                                   \
    ANSWER(calloc_base, "_calloc_base", crt_calloc, crt_calloc)                                   \
    ANSWER(realloc_base, "_realloc_base", crt_realloc, crt_realloc)                               \
    ANSWER(free_base, "_free_base", prairie_free, prairie_free)                                   \
    ANSWER(msize, "_msize", crt_msize, crt_msize)                                                 \
    ANSWER(msize_base, "_msize_base", crt_msize, crt_msize)                                       \
    ANSWER(expand, "_expand", crt_expand, crt_expand)                                             \
    ANSWER(recalloc, "_recalloc", crt_recalloc, crt_recalloc)                                     \
    ANSWER(recalloc_base, "_recalloc_base", crt_recalloc, crt_recalloc)                           \
    ANSWER(strdup, "_strdup", crt_strdup, crt_strdup)                                             \
    ANSWER(mbsdup, "_mbsdup", crt_strdup, crt_strdup)                                             \
    ANSWER(wcsdup, "_wcsdup", crt_wcsdup, crt_wcsdup)                                             \
    ANSWER(aligned_malloc, "_aligned_malloc", crt_aligned_malloc, crt_aligned_malloc)             \
    ANSWER(aligned_free, "_aligned_free", ucrtbase_aligned_free, msvcrt_aligned_free)             \
    ANSWER(aligned_realloc, "_aligned_realloc", ucrtbase_aligned_realloc, msvcrt_aligned_realloc) \
    ANSWER(aligned_recalloc, "_aligned_recalloc", ucrtbase_aligned_recalloc,                      \
           msvcrt_aligned_recalloc)                                                               \
    ANSWER(aligned_msize, "_aligned_msize", ucrtbase_aligned_msize, msvcrt_aligned_msize)         \
    ANSWER(aligned_offset_malloc, "_aligned_offset_malloc", NULL, NULL)                           \
    ANSWER(aligned_offset_realloc, "_aligned_offset_realloc", ucrtbase_offset_realloc,            \
           msvcrt_offset_realloc)                                                                 \
    ANSWER(aligned_offset_recalloc, "_aligned_offset_recalloc", ucrtbase_offset_recalloc,         \
           msvcrt_offset_recalloc)                                                                \
    ANSWER(operator_new, "??2@YAPEAX_K@Z", ucrtbase_new, msvcrt_new)                              \
    ANSWER(operator_new_array, "??_U@YAPEAX_K@Z", ucrtbase_new, msvcrt_new)                       \
    ANSWER(operator_delete, "??3@YAXPEAX@Z", prairie_free, prairie_free)                          \
    ANSWER(operator_delete_array, "??_V@YAXPEAX@Z", prairie_free, prairie_free)

enum answer {
#define ANSWER(id, name, in_ucrtbase, in_msvcrt) ANSWER_##id,
    ANSWERS_OF_ALL
#undef ANSWER
        ANSWER_COUNT
};

/* The system's own libraries import from ucrtbase.dll under names that begin with _o_. */
enum { NAME_PLAIN, NAME_OF_SYSTEM, NAME_KINDS };

static struct crt {
    HMODULE module;                                      /* atomic; NULL: not there yet */
    windows_function original[NAME_KINDS][ANSWER_COUNT]; /* before module; NULL: it has none */
    int *(*errno_place)(void);                           /* before module */
    void *(*heap_handle)(void);                          /* before module; NULL: it has none */
    void *heap;                                          /* atomic; NULL: not known yet */
} crts[CRT_COUNT];

static bool crt_is_there(const struct crt *crt)
{
    return __atomic_load_n(&crt->module, __ATOMIC_ACQUIRE) != NULL;
}

/* ---- refusals ---- */

/* Which of them the caller asks for errno is not known. */
static COLD void *refuse(int error)
{
    for (unsigned i = 0; i < CRT_COUNT; i++)
        if (crt_is_there(&crts[i]) && crts[i].errno_place != NULL) *crts[i].errno_place() = error;
    return NULL;
}

/* ---- malloc and its kind ---- */

static NOINLINE void *malloc_missed(size_t size)
{
    void *block = prairie_malloc(size);

    return likely(block != NULL) ? block : refuse(ENOMEM);
}

static void *crt_malloc(size_t size)
{
    void *block;

    if (unlikely(size > TABLE_BYTES_MAX)) return malloc_missed(size);
    block = malloc_hit(thread_word(), size);
    return likely(block != NULL) ? block : malloc_missed(size);
}

static void *crt_calloc(size_t count, size_t size)
{
    void *block = prairie_calloc(count, size);

    return likely(block != NULL) ? block : refuse(ENOMEM);
}

static void *crt_realloc(void *block, size_t size)
{
    void *resized;

    if (size == 0 && block != NULL) return prairie_realloc(block, 0); /* as zero_realloc says */
    resized = prairie_realloc(block, size);
    return likely(resized != NULL) ? resized : refuse(ENOMEM);
}

static size_t crt_msize(const void *block)
{
    if (block != NULL) return prairie_usable_size(block);
    (void)refuse(EINVAL);
    return SIZE_MAX;
}

static bool is_ours(const void *block)
{
    uint32_t page;

    return class_at(block) != 0 || pointer_kind(block, &page) != POINTER_FOREIGN;
}

/* In place or not at all. */
static void *crt_expand(void *block, size_t size)
{
    if (block == NULL) return refuse(EINVAL);
    if (size <= prairie_usable_size(block)) return block;
    if (is_ours(block) && prairie_xallocx(block, size, 0, 0) >= size) return block;
    return refuse(ENOMEM);
}

/* All bytes of the block beyond what the caller had read as zero, so that the next call may
 * believe so of all that is usable. What the caller had is the usable length: no other is known. So
 * of a block that malloc gave, the bytes between what was asked for and what is usable stay as they
 * are. */
static void *clear_gained(char *block, size_t held_bytes)
{
    size_t usable = prairie_usable_size(block);

    if (usable > held_bytes) __builtin_memset(block + held_bytes, 0, usable - held_bytes);
    return block;
}

static void *crt_recalloc(void *block, size_t count, size_t size)
{
    size_t bytes, old_bytes = block != NULL ? prairie_usable_size(block) : 0;
    void *resized;

    if (__builtin_mul_overflow(count, size, &bytes)) return refuse(ENOMEM);
    if (block == NULL) return crt_calloc(count, size);
    resized = crt_realloc(block, bytes);
    if (resized == NULL) return NULL;
    return clear_gained(resized, bytes < old_bytes ? bytes : old_bytes);
}

static void *copy_of(const void *bytes, size_t count)
{
    void *copy = crt_malloc(count);

    return copy != NULL ? __builtin_memcpy(copy, bytes, count) : NULL;
}

static char *crt_strdup(const char *text)
{
    return text != NULL ? copy_of(text, __builtin_strlen(text) + 1) : NULL;
}

static wchar_t *crt_wcsdup(const wchar_t *text)
{
    size_t length = 0;

    if (text == NULL) return NULL;
    while (text[length] != 0) length++;
    return copy_of(text, (length + 1) * sizeof *text);
}

/* ---- the aligned ones ---- */

static void *crt_aligned_malloc(size_t size, size_t align)
{
    void *block;

    if (!is_power_of_two(align)) return refuse(EINVAL);
    block = prairie_aligned_alloc(align, size);
    return likely(block != NULL) ? block : refuse(ENOMEM);
}

static void *aligned_realloc(void *block, size_t size, size_t align)
{
    size_t old_bytes;
    void *resized;

    if (block == NULL) return crt_aligned_malloc(size, align);
    if (size == 0) {
        prairie_free(block);
        return NULL;
    }
    if (!is_power_of_two(align)) return refuse(EINVAL);
    old_bytes = prairie_usable_size(block);
    if (size <= old_bytes && size > old_bytes - old_bytes / 4
        && is_aligned((uintptr_t)block, align))
        return block;
    resized = prairie_rallocx(block, size, (int)lowest_bit(align));
    return likely(resized != NULL) ? resized : refuse(ENOMEM);
}

static void *aligned_recalloc(void *block, size_t count, size_t size, size_t align)
{
    size_t bytes, old_bytes = block != NULL ? prairie_usable_size(block) : 0;
    void *resized;

    if (__builtin_mul_overflow(count, size, &bytes)) return refuse(ENOMEM);
    resized = aligned_realloc(block, bytes, align);
    if (resized == NULL) return NULL;
    return clear_gained(resized, bytes < old_bytes ? bytes : old_bytes);
}

/* Of a C library whose blocks may come back. */
#define ORIGINAL(crt, id, type) ((type)crts[crt].original[NAME_PLAIN][ANSWER_##id])

typedef void (*free_function)(void *block);
typedef void *(*new_function)(size_t size);
typedef void *(*aligned_realloc_function)(void *block, size_t size, size_t align);
typedef void *(*aligned_recalloc_function)(void *block, size_t count, size_t size, size_t align);
typedef size_t (*aligned_msize_function)(void *block, size_t align, size_t offset);
typedef void *(*offset_malloc_function)(size_t size, size_t align, size_t offset);
typedef void *(*offset_realloc_function)(void *block, size_t size, size_t align, size_t offset);
typedef void *(*offset_recalloc_function)(void *block, size_t count, size_t size, size_t align,
                                          size_t offset);

static void aligned_free_in(unsigned crt, void *block)
{
    if (block == NULL || is_ours(block)) prairie_free(block);
    else ORIGINAL(crt, aligned_free, free_function)(block);
}

/* Only the C library aligns at an offset. A block of ours that is to be aligned so moves into one
 * of the C library's. `fill`: what it gains reads as zero. */
static void *move_to_offset(unsigned crt, void *block, size_t size, size_t align, size_t offset,
                            bool fill)
{
    size_t old_bytes = prairie_usable_size(block);
    void *moved;

    if (size == 0) {
        prairie_free(block);
        return NULL;
    }
    moved = ORIGINAL(crt, aligned_offset_malloc, offset_malloc_function)(size, align, offset);
    if (moved == NULL) return NULL;
    copy_contents(moved, block, old_bytes, size);
    if (fill && size > old_bytes) __builtin_memset((char *)moved + old_bytes, 0, size - old_bytes);
    prairie_free(block);
    return moved;
}

static void *offset_realloc_in(unsigned crt, void *block, size_t size, size_t align, size_t offset)
{
    if (block == NULL || !is_ours(block))
        return ORIGINAL(crt, aligned_offset_realloc, offset_realloc_function)(block, size, align,
                                                                              offset);
    if (offset == 0) return aligned_realloc(block, size, align);
    return move_to_offset(crt, block, size, align, offset, false);
}

static void *offset_recalloc_in(unsigned crt, void *block, size_t count, size_t size, size_t align,
                                size_t offset)
{
    size_t bytes;

    if (block == NULL || !is_ours(block))
        return ORIGINAL(crt, aligned_offset_recalloc, offset_recalloc_function)(block, count, size,
                                                                                align, offset);
    if (offset == 0) return aligned_recalloc(block, count, size, align);
    if (__builtin_mul_overflow(count, size, &bytes)) return refuse(ENOMEM);
    return move_to_offset(crt, block, bytes, align, offset, true);
}

/* A refused new is the C library's: it calls the program's handler, and throws. */
static void *new_in(unsigned crt, size_t size)
{
    void *block = prairie_malloc(size);

    return likely(block != NULL) ? block : ORIGINAL(crt, operator_new, new_function)(size);
}

static void *aligned_realloc_in(unsigned crt, void *block, size_t size, size_t align)
{
    if (block == NULL || is_ours(block)) return aligned_realloc(block, size, align);
    return ORIGINAL(crt, aligned_realloc, aligned_realloc_function)(block, size, align);
}

static void *aligned_recalloc_in(unsigned crt, void *block, size_t count, size_t size, size_t align)
{
    if (block == NULL || is_ours(block)) return aligned_recalloc(block, count, size, align);
    return ORIGINAL(crt, aligned_recalloc, aligned_recalloc_function)(block, count, size, align);
}

static size_t aligned_msize_in(unsigned crt, void *block, size_t align, size_t offset)
{
    if (block == NULL || is_ours(block)) return crt_msize(block);
    return ORIGINAL(crt, aligned_msize, aligned_msize_function)(block, align, offset);
}

static void ucrtbase_aligned_free(void *block) { aligned_free_in(CRT_UCRTBASE, block); }
static void msvcrt_aligned_free(void *block) { aligned_free_in(CRT_MSVCRT, block); }
static void *ucrtbase_new(size_t size) { return new_in(CRT_UCRTBASE, size); }
static void *msvcrt_new(size_t size) { return new_in(CRT_MSVCRT, size); }

static void *ucrtbase_aligned_realloc(void *block, size_t size, size_t align)
{
    return aligned_realloc_in(CRT_UCRTBASE, block, size, align);
}

static void *msvcrt_aligned_realloc(void *block, size_t size, size_t align)
{
    return aligned_realloc_in(CRT_MSVCRT, block, size, align);
}

static void *ucrtbase_aligned_recalloc(void *block, size_t count, size_t size, size_t align)
{
    return aligned_recalloc_in(CRT_UCRTBASE, block, count, size, align);
}

static void *msvcrt_aligned_recalloc(void *block, size_t count, size_t size, size_t align)
{
    return aligned_recalloc_in(CRT_MSVCRT, block, count, size, align);
}

static size_t ucrtbase_aligned_msize(void *block, size_t align, size_t offset)
{
    return aligned_msize_in(CRT_UCRTBASE, block, align, offset);
}

static size_t msvcrt_aligned_msize(void *block, size_t align, size_t offset)
{
    return aligned_msize_in(CRT_MSVCRT, block, align, offset);
}

static void *ucrtbase_offset_realloc(void *block, size_t size, size_t align, size_t offset)
{
    return offset_realloc_in(CRT_UCRTBASE, block, size, align, offset);
}

static void *msvcrt_offset_realloc(void *block, size_t size, size_t align, size_t offset)
{
    return offset_realloc_in(CRT_MSVCRT, block, size, align, offset);
}

static void *ucrtbase_offset_recalloc(void *block, size_t count, size_t size, size_t align,
                                      size_t offset)
{
    return offset_recalloc_in(CRT_UCRTBASE, block, count, size, align, offset);
}

static void *msvcrt_offset_recalloc(void *block, size_t count, size_t size, size_t align,
                                    size_t offset)
{
    return offset_recalloc_in(CRT_MSVCRT, block, count, size, align, offset);
}

/* ---- who answers whom ---- */

static const struct {
    char name[25];
    windows_function answer[CRT_COUNT];
} answers[ANSWER_COUNT] = {
#define ANSWER(id, name, in_ucrtbase, in_msvcrt) \
    { name, { (windows_function)in_ucrtbase, (windows_function)in_msvcrt } },
    ANSWERS_OF_ALL
#undef ANSWER
};

/* A heap handle that is not told is that of a block. */
static void *heap_by_trial(struct crt *crt)
{
    void *(*take)(size_t) = (void *(*)(size_t))crt->original[NAME_PLAIN][ANSWER_malloc];
    void (*give)(void *) = (void (*)(void *))crt->original[NAME_PLAIN][ANSWER_free];
    void *block = take != NULL && give != NULL ? take(1) : NULL;
    void *heap;

    if (block == NULL) return NULL;
    heap = windows_heap_search(block);
    give(block);
    return heap;
}

static void *heap_of_crt(struct crt *crt)
{
    void *heap = RELAXED_LOAD(crt->heap);

    if (heap != NULL) return heap;
    heap = crt->heap_handle != NULL ? crt->heap_handle() : heap_by_trial(crt);
    RELAXED_STORE(crt->heap, heap);
    return heap;
}

static void *heap_of_ucrtbase(void) { return heap_of_crt(&crts[CRT_UCRTBASE]); }
static void *heap_of_msvcrt(void) { return heap_of_crt(&crts[CRT_MSVCRT]); }

static void find_originals(struct crt *crt, HMODULE module)
{
    char name[3 + sizeof answers[0].name] = "_o_";

    for (unsigned i = 0; i < ANSWER_COUNT; i++) {
        crt->original[NAME_PLAIN][i] = (windows_function)GetProcAddress(module, answers[i].name);
        __builtin_memcpy(name + 3, answers[i].name, sizeof answers[i].name);
        crt->original[NAME_OF_SYSTEM][i] = (windows_function)GetProcAddress(module, name);
    }
    crt->errno_place = (int *(*)(void))(windows_function)GetProcAddress(module, "_errno");
    crt->heap_handle =
        (void *(*)(void))(windows_function)GetProcAddress(module, "_get_heap_handle");
}

/* Its functions and its heap are used for good, so it must not go. Its heap is asked for only when
 * a block of it comes: when the loader tells of a library, that has not run yet. */
void crt_find(void)
{
    static const wchar_t *const names[CRT_COUNT] = { L"ucrtbase.dll", L"msvcrt.dll" };
    static void *(*const heaps[CRT_COUNT])(void) = { heap_of_ucrtbase, heap_of_msvcrt };
    DWORD last_error = GetLastError();

    for (unsigned i = 0; i < CRT_COUNT; i++) {
        HMODULE module = !crt_is_there(&crts[i]) ? GetModuleHandleW(names[i]) : NULL, pinned;

        if (module == NULL) continue;
        (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN, names[i], &pinned);
        find_originals(&crts[i], module);
        __atomic_store_n(&crts[i].module, module, __ATOMIC_RELEASE);
        windows_heap_add(heaps[i]);
    }
    SetLastError(last_error);
}

windows_function crt_answer_to(windows_function function)
{
    for (unsigned crt = 0; crt < CRT_COUNT; crt++)
        for (unsigned i = 0; i < ANSWER_COUNT && crt_is_there(&crts[crt]); i++)
            if (crts[crt].original[NAME_PLAIN][i] == function
                || crts[crt].original[NAME_OF_SYSTEM][i] == function)
                return answers[i].answer[crt];
    return NULL;
}
