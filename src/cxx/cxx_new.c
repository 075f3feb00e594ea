/* cxx_new.c - C++'s operator new and delete, under their mangled names.
 *
 * A plain new that finds no memory must call the program's new_handler, and throw std::bad_alloc
 * when there is none. Both live in the C++ runtime, which prairie does not link: the names are
 * weak, and a program without the runtime cannot have called new.
 * SPDX-License-Identifier: MIT
 */
#include "../heap/doors.h"
#include "../heap/hardened.h"
#include "../os/os.h"

typedef void (*new_handler)(void);

/* std::get_new_handler() and std::__throw_bad_alloc() of the C++ runtime. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak, noreturn));

struct nothrow;

/* The names say that size_t is unsigned long, an m. With 32 bits it is unsigned int, a j. */
#if SIZE_MAX == UINT32_MAX
#define _Znwm _Znwj
#define _ZnwmRKSt9nothrow_t _ZnwjRKSt9nothrow_t
#define _ZnwmSt11align_val_t _ZnwjSt11align_val_t
#define _ZnwmSt11align_val_tRKSt9nothrow_t _ZnwjSt11align_val_tRKSt9nothrow_t
#define _Znam _Znaj
#define _ZnamRKSt9nothrow_t _ZnajRKSt9nothrow_t
#define _ZnamSt11align_val_t _ZnajSt11align_val_t
#define _ZnamSt11align_val_tRKSt9nothrow_t _ZnajSt11align_val_tRKSt9nothrow_t
#define _ZdlPvm _ZdlPvj
#define _ZdlPvmSt11align_val_t _ZdlPvjSt11align_val_t
#define _ZdaPvm _ZdaPvj
#define _ZdaPvmSt11align_val_t _ZdaPvjSt11align_val_t
#endif
#define NAME_TEXT(name) #name
#define NAME_OF(name) NAME_TEXT(name)

/* The names as C sees them; no header declares them. */
void *_Znwm(size_t size);
void *_Znam(size_t size);
void *_ZnwmRKSt9nothrow_t(size_t size, const struct nothrow *nothrow);
void *_ZnamRKSt9nothrow_t(size_t size, const struct nothrow *nothrow);
void *_ZnwmSt11align_val_t(size_t size, size_t align);
void *_ZnamSt11align_val_t(size_t size, size_t align);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const struct nothrow *nothrow);
void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const struct nothrow *nothrow);
void _ZdlPv(void *block);
void _ZdaPv(void *block);
void _ZdlPvm(void *block, size_t size);
void _ZdaPvm(void *block, size_t size);
void _ZdlPvRKSt9nothrow_t(void *block, const struct nothrow *nothrow);
void _ZdlPvSt11align_val_t(void *block, size_t align);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const struct nothrow *nothrow);
void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t align);
void _ZdaPvRKSt9nothrow_t(void *block, const struct nothrow *nothrow);
void _ZdaPvSt11align_val_t(void *block, size_t align);
void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align, const struct nothrow *nothrow);
void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t align);

/* `align` 0: as malloc does. */
static void *new_once(size_t size, size_t align)
{
    return align == 0 ? prairie_malloc(size) : prairie_aligned_alloc(align, size);
}

/* As the C++ standard says: call the handler and try again, until there is memory or no handler. */
COLD static void *new_again(size_t size, size_t align)
{
    for (;;) {
        new_handler handler = _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL;
        void *block;

        if (handler == NULL) break;
        handler();
        block = new_once(size, align);
        if (block != NULL) return block;
    }
    if (_ZSt17__throw_bad_allocv != NULL) _ZSt17__throw_bad_allocv();
    fatal("operator new: out of memory");
}

/* A handler may throw, and a nothrow new must then answer NULL. C cannot catch, but the C++
 * runtime's own nothrow new can: it is a try block around the throwing one, which is ours. */
COLD static void *new_again_nothrow(size_t size, size_t align, const struct nothrow *nothrow)
{
    if (_ZSt15get_new_handlerv == NULL || _ZSt15get_new_handlerv() == NULL) return NULL;
    if (align == 0) {
        void *(*next)(size_t, const struct nothrow *) =
            (void *(*)(size_t, const struct nothrow *))os_next_symbol(NAME_OF(_ZnwmRKSt9nothrow_t));
        if (next != NULL) return next(size, nothrow);
    } else {
        void *(*next)(size_t, size_t, const struct nothrow *) =
            (void *(*)(size_t, size_t, const struct nothrow *))os_next_symbol(
                NAME_OF(_ZnwmSt11align_val_tRKSt9nothrow_t));
        if (next != NULL) return next(size, align, nothrow);
    }
    return new_again(size, align); /* a static program: its handler must not throw */
}

/* In a hardened process a block remembers which kind of new it came from. */
static void *marked(void *block, enum hardened_door door)
{
    if (unlikely(hardening.is_on)) hardened_set_door(block, door);
    return block;
}

/* malloc's other ways, then the standard's. */
static void *new_from(const void *frame, size_t size, enum hardened_door door)
{
    struct front *front = thread_front();
    void *block;

    if (front->kind == FRONT_HARDENED) {
        block = hardened_take(front, size, 1, door);
        if (likely(block != NULL)) return block;
    }
    block = alloc_from(frame, size, 1, false);
    if (unlikely(block == NULL)) block = new_again(size, 0);
    return marked(block, door);
}

NOINLINE static void *new_missed(size_t size) { return new_from(FRAME_HERE(), size, DOOR_NEW); }

NOINLINE static void *new_array_missed(size_t size)
{
    return new_from(FRAME_HERE(), size, DOOR_NEW_ARRAY);
}

/* As malloc_miss. */
NOINLINE static void *new_miss(size_t size, struct front *front, size_t offset)
{
    void *block = front_take_unseen(front, offset);

    if (unlikely(block == NULL)) return new_missed(size);
    return CHECKED ? misuse_note_take(block) : block;
}

NOINLINE static void *new_array_miss(size_t size, struct front *front, size_t offset)
{
    void *block = front_take_unseen(front, offset);

    if (unlikely(block == NULL)) return new_array_missed(size);
    return CHECKED ? misuse_note_take(block) : block;
}

PUBLIC void *_Znwm(size_t size)
{
    struct front *front = thread_front();
    void *block;

    if (unlikely(size > TABLE_BYTES_MAX)) return new_missed(size);
    block = malloc_hit(front, size);
    if (unlikely(block == NULL)) return new_miss(size, front, offset_of_size[size]);
    return block;
}

PUBLIC void *_Znam(size_t size)
{
    struct front *front = thread_front();
    void *block;

    if (unlikely(size > TABLE_BYTES_MAX)) return new_array_missed(size);
    block = malloc_hit(front, size);
    if (unlikely(block == NULL)) return new_array_miss(size, front, offset_of_size[size]);
    return block;
}

INLINE void *new_nothrow_from(const void *frame, size_t size, const struct nothrow *nothrow,
                              enum hardened_door door)
{
    void *block = alloc_from(frame, size, 1, false);

    /* The runtime's one is the plain one for all. */
    return marked(likely(block != NULL) ? block : new_again_nothrow(size, 0, nothrow), door);
}

PUBLIC void *_ZnwmRKSt9nothrow_t(size_t size, const struct nothrow *nothrow)
{
    return new_nothrow_from(FRAME_HERE(), size, nothrow, DOOR_NEW);
}

PUBLIC void *_ZnamRKSt9nothrow_t(size_t size, const struct nothrow *nothrow)
{
    return new_nothrow_from(FRAME_HERE(), size, nothrow, DOOR_NEW_ARRAY);
}

static void *aligned_from(const void *frame, size_t align, size_t size, enum hardened_door door)
{
    if (unlikely(!is_power_of_two(align))) return prairie_aligned_alloc(align, size); /* refuses */
    return marked(alloc_from(frame, size, align, false), door);
}

PUBLIC void *_ZnwmSt11align_val_t(size_t size, size_t align)
{
    void *block = aligned_from(FRAME_HERE(), align, size, DOOR_NEW_ALIGNED);

    return likely(block != NULL) ? block : marked(new_again(size, align), DOOR_NEW_ALIGNED);
}

PUBLIC void *_ZnamSt11align_val_t(size_t size, size_t align)
{
    void *block = aligned_from(FRAME_HERE(), align, size, DOOR_NEW_ARRAY_ALIGNED);

    return likely(block != NULL) ? block : marked(new_again(size, align), DOOR_NEW_ARRAY_ALIGNED);
}

PUBLIC void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align,
                                                const struct nothrow *nothrow)
{
    void *block = aligned_from(FRAME_HERE(), align, size, DOOR_NEW_ALIGNED);

    if (likely(block != NULL)) return block;
    return marked(new_again_nothrow(size, align, nothrow), DOOR_NEW_ALIGNED);
}

PUBLIC void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align,
                                                const struct nothrow *nothrow)
{
    void *block = aligned_from(FRAME_HERE(), align, size, DOOR_NEW_ARRAY_ALIGNED);

    if (likely(block != NULL)) return block;
    return marked(new_again_nothrow(size, align, nothrow), DOOR_NEW_ARRAY_ALIGNED);
}

/* ---- delete ---- */

/* What free and the sized free do, but for a block's door in a hardened process. */

/* `size` SIZE_MAX: it is not told. False: another way must be taken. */
static bool given_hardened(struct front *front, void *block, size_t size, enum hardened_door door)
{
    return front->kind == FRONT_HARDENED && hardened_give(front, block, size, door);
}

NOINLINE static void delete_missed(struct front *front, void *block)
{
    if (given_hardened(front, block, SIZE_MAX, DOOR_NEW)) return;
    hardened_expect_door(block, DOOR_NEW);
    free_missed(front, block);
}

NOINLINE static void delete_array_missed(struct front *front, void *block)
{
    if (given_hardened(front, block, SIZE_MAX, DOOR_NEW_ARRAY)) return;
    hardened_expect_door(block, DOOR_NEW_ARRAY);
    free_missed(front, block);
}

PUBLIC void _ZdlPv(void *block)
{
    struct front *front = thread_front();

    if (CHECKED) misuse_note_free(block);
    if (unlikely(!front_put(front, class_map_at(block), block))) delete_missed(front, block);
}

PUBLIC void _ZdaPv(void *block)
{
    struct front *front = thread_front();

    if (CHECKED) misuse_note_free(block);
    if (unlikely(!front_put(front, class_map_at(block), block))) delete_array_missed(front, block);
}

/* Beyond the table, and in the checking flavours. */
NOINLINE static void delete_sized_other(void *block, size_t size)
{
    hardened_expect_door(block, DOOR_NEW);
    prairie_free_sized(block, size);
}

NOINLINE static void delete_sized_overflow(struct front *front, void *block, size_t size)
{
    if (given_hardened(front, block, size, DOOR_NEW)) return;
    hardened_expect_door(block, DOOR_NEW);
    free_sized_overflow(front, block, size);
}

PUBLIC void _ZdlPvm(void *block, size_t size)
{
    struct front *front;

    if (unlikely(size > TABLE_BYTES_MAX) || CHECKED) {
        delete_sized_other(block, size);
        return;
    }
    front = thread_front();
    if (unlikely(!front_put(front, offset_of_sized_free[size], block)))
        delete_sized_overflow(front, block, size);
}

NOINLINE static void delete_array_sized_other(void *block, size_t size)
{
    hardened_expect_door(block, DOOR_NEW_ARRAY);
    prairie_free_sized(block, size);
}

NOINLINE static void delete_array_sized_overflow(struct front *front, void *block, size_t size)
{
    if (given_hardened(front, block, size, DOOR_NEW_ARRAY)) return;
    hardened_expect_door(block, DOOR_NEW_ARRAY);
    free_sized_overflow(front, block, size);
}

PUBLIC void _ZdaPvm(void *block, size_t size)
{
    struct front *front;

    if (unlikely(size > TABLE_BYTES_MAX) || CHECKED) {
        delete_array_sized_other(block, size);
        return;
    }
    front = thread_front();
    if (unlikely(!front_put(front, offset_of_sized_free[size], block)))
        delete_array_sized_overflow(front, block, size);
}

/* The second argument says nothing that the address does not. */
PUBLIC void _ZdlPvRKSt9nothrow_t(void *block, const struct nothrow *nothrow)
{
    (void)nothrow;
    _ZdlPv(block);
}

/* The alignment says nothing that the address does not. */
static void delete_aligned(void *block, enum hardened_door door)
{
    hardened_expect_door(block, door);
    prairie_free(block);
}

PUBLIC void _ZdlPvSt11align_val_t(void *block, size_t align)
{
    (void)align;
    delete_aligned(block, DOOR_NEW_ALIGNED);
}

PUBLIC void _ZdaPvSt11align_val_t(void *block, size_t align)
{
    (void)align;
    delete_aligned(block, DOOR_NEW_ARRAY_ALIGNED);
}

PUBLIC void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align,
                                                const struct nothrow *nothrow)
{
    (void)align;
    (void)nothrow;
    delete_aligned(block, DOOR_NEW_ALIGNED);
}

PUBLIC void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align,
                                                const struct nothrow *nothrow)
{
    (void)align;
    (void)nothrow;
    delete_aligned(block, DOOR_NEW_ARRAY_ALIGNED);
}

PUBLIC void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t align)
{
    (void)align;
    hardened_expect_bytes(block, size);
    delete_aligned(block, DOOR_NEW_ALIGNED);
}

PUBLIC void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t align)
{
    (void)align;
    hardened_expect_bytes(block, size);
    delete_aligned(block, DOOR_NEW_ARRAY_ALIGNED);
}

PUBLIC void _ZdaPvRKSt9nothrow_t(void *block, const struct nothrow *nothrow)
{
    (void)nothrow;
    _ZdaPv(block);
}
