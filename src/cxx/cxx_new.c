/* cxx_new.c - C++'s operator new and delete, under their mangled names.
 *
 * A plain new that finds no memory must call the program's new_handler, and throw std::bad_alloc
 * when there is none. Both live in the C++ runtime, which prairie does not link: the names are
 * weak, and a program without the runtime cannot have called new.
 *
 * A program may have any of the operators itself. The sized and the nothrow ones that it has not
 * call those that it has, as the standard says of them; or blocks of its new would come to our
 * delete.
 * SPDX-License-Identifier: MIT
 */
#include "../heap/doors.h"
#include "../heap/hardened_held.h"
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
REPLACEABLE void *_Znwm(size_t size);
REPLACEABLE void *_Znam(size_t size);
REPLACEABLE void *_ZnwmRKSt9nothrow_t(size_t size, const struct nothrow *nothrow);
REPLACEABLE void *_ZnamRKSt9nothrow_t(size_t size, const struct nothrow *nothrow);
REPLACEABLE void *_ZnwmSt11align_val_t(size_t size, size_t align);
REPLACEABLE void *_ZnamSt11align_val_t(size_t size, size_t align);
REPLACEABLE void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align,
                                                     const struct nothrow *nothrow);
REPLACEABLE void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align,
                                                     const struct nothrow *nothrow);
REPLACEABLE void _ZdlPv(void *block);
REPLACEABLE void _ZdaPv(void *block);
REPLACEABLE void _ZdlPvm(void *block, size_t size);
REPLACEABLE void _ZdaPvm(void *block, size_t size);
REPLACEABLE void _ZdlPvRKSt9nothrow_t(void *block, const struct nothrow *nothrow);
REPLACEABLE void _ZdlPvSt11align_val_t(void *block, size_t align);
REPLACEABLE void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align,
                                                     const struct nothrow *nothrow);
REPLACEABLE void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t align);
REPLACEABLE void _ZdaPvRKSt9nothrow_t(void *block, const struct nothrow *nothrow);
REPLACEABLE void _ZdaPvSt11align_val_t(void *block, size_t align);
REPLACEABLE void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align,
                                                     const struct nothrow *nothrow);
REPLACEABLE void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t align);

/* Our own, by other names: where the plain one differs, the program, or a library before us, has
 * it. Or a program that is not position-independent has its address, and calls lead here by one
 * step more. */
#define OURS(name, ours) static __typeof__(name) ours __attribute__((alias(NAME_OF(name))))
OURS(_Znwm, new_ours);
OURS(_Znam, new_array_ours);
OURS(_ZnwmSt11align_val_t, new_aligned_ours);
OURS(_ZnamSt11align_val_t, new_array_aligned_ours);
OURS(_ZdlPv, delete_ours);
OURS(_ZdaPv, delete_array_ours);
OURS(_ZdlPvSt11align_val_t, delete_aligned_ours);
OURS(_ZdaPvSt11align_val_t, delete_array_aligned_ours);
OURS(_ZdlPvm, delete_sized_ours);
OURS(_ZdaPvm, delete_array_sized_ours);

/* As the C++ standard says: call the handler and try again, until there is memory or no handler.
 * `align` 1: as malloc does. NULL: no handler. */
COLD static void *new_with_handlers(size_t size, size_t align)
{
    void *block = NULL;

    while (block == NULL && is_power_of_two(align)) { /* others are never served */
        new_handler handler = _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL;

        if (handler == NULL) break;
        handler();
        block = align == 1 ? prairie_malloc(size) : prairie_aligned_alloc(align, size);
    }
    return block;
}

COLD static void *new_again(size_t size, size_t align)
{
    void *block = new_with_handlers(size, align);

    if (block != NULL) return block;
    if (_ZSt17__throw_bad_allocv != NULL) _ZSt17__throw_bad_allocv();
    fatal("operator new: out of memory");
}

typedef void any_function(void);
typedef void *new_nothrow(size_t size, const struct nothrow *nothrow);
typedef void *new_aligned_nothrow(size_t size, size_t align, const struct nothrow *nothrow);

/* The C++ runtime's own nothrow new of that name, which is a try block around the plain one, ours
 * or the program's: C cannot catch. NULL: the program has the runtime in it, and what handlers
 * throw must not come out of the plain one. `known` is where its address is kept; atomic. */
COLD static any_function *runtime_new(any_function **known, const char *name)
{
    any_function *next = RELAXED_LOAD(*known);

    if (next == NULL) {
        next = os_next_symbol(name);
        RELAXED_STORE(*known, next);
    }
    return next;
}

static bool there_is_a_handler(void)
{
    return _ZSt15get_new_handlerv != NULL && _ZSt15get_new_handlerv() != NULL;
}

/* In a hardened process a block remembers which kind of new it came from. */
static void *marked(void *block, enum hardened_door door)
{
    if (unlikely(hardening.is_on)) hardened_set_door(block, door);
    return block;
}

/* malloc's other ways, then the standard's. Jumped to. */
static NOINLINE void *new_unready(size_t size, enum hardened_door door)
{
    void *block = alloc_from(FRAME_HERE(), size, 1, false);

    if (unlikely(block == NULL)) block = new_again(size, 1);
    return marked(block, door);
}

INLINE void *new_from(size_t size, enum hardened_door door)
{
    struct front *front = thread_front();
    void *block = NULL;

    if (front->kind == FRONT_HARDENED) block = hardened_take(front, size, 1, door);
    return block != NULL ? block : new_unready(size, door);
}

NOINLINE static void *new_by_kind(size_t size) { return new_from(size, DOOR_NEW); }

NOINLINE static void *new_array_by_kind(size_t size) { return new_from(size, DOOR_NEW_ARRAY); }

/* As malloc_miss. */
NOINLINE static void *new_miss(size_t size, struct front *front, size_t offset)
{
    void *block = front_take_unseen(front, offset);

    if (unlikely(block == NULL)) return new_by_kind(size);
    return CHECKED ? misuse_note_take(block) : block;
}

NOINLINE static void *new_array_miss(size_t size, struct front *front, size_t offset)
{
    void *block = front_take_unseen(front, offset);

    if (unlikely(block == NULL)) return new_array_by_kind(size);
    return CHECKED ? misuse_note_take(block) : block;
}

PUBLIC void *_Znwm(size_t size)
{
    struct front *front = thread_word();
    void *block;

    if (unlikely(size > TABLE_BYTES_MAX)) return new_by_kind(size);
    block = malloc_hit(front, size);
    if (unlikely(block == NULL)) return new_miss(size, front, offset_of_size[size]);
    return block;
}

PUBLIC void *_Znam(size_t size)
{
    struct front *front = thread_word();
    void *block;

    if (unlikely(size > TABLE_BYTES_MAX)) return new_array_by_kind(size);
    block = malloc_hit(front, size);
    if (unlikely(block == NULL)) return new_array_miss(size, front, offset_of_size[size]);
    return block;
}

/* `align` 1: as malloc does. NULL: no memory, or no alignment. */
static void *new_quietly(const void *frame, size_t size, size_t align, enum hardened_door door)
{
    if (unlikely(!is_power_of_two(align))) return prairie_aligned_alloc(align, size); /* refuses */
    return marked(alloc_from(frame, size, align, false), door);
}

PUBLIC void *_ZnwmRKSt9nothrow_t(size_t size, const struct nothrow *nothrow)
{
    static any_function *known;
    new_nothrow *next;
    bool is_ours = _Znwm == new_ours;
    void *block = likely(is_ours) ? new_quietly(FRAME_HERE(), size, 1, DOOR_NEW) : NULL;

    if (likely(block != NULL) || (is_ours && !there_is_a_handler())) return block;
    next = (new_nothrow *)runtime_new(&known, NAME_OF(_ZnwmRKSt9nothrow_t));
    if (next != NULL) return next(size, nothrow);
    return is_ours ? marked(new_with_handlers(size, 1), DOOR_NEW) : _Znwm(size);
}

PUBLIC void *_ZnamRKSt9nothrow_t(size_t size, const struct nothrow *nothrow)
{
    static any_function *known;
    new_nothrow *next;
    bool is_ours = _Znam == new_array_ours;
    void *block = likely(is_ours) ? new_quietly(FRAME_HERE(), size, 1, DOOR_NEW_ARRAY) : NULL;

    if (likely(block != NULL) || (is_ours && !there_is_a_handler())) return block;
    next = (new_nothrow *)runtime_new(&known, NAME_OF(_ZnamRKSt9nothrow_t));
    if (next != NULL) return next(size, nothrow);
    return is_ours ? marked(new_with_handlers(size, 1), DOOR_NEW_ARRAY) : _Znam(size);
}

PUBLIC void *_ZnwmSt11align_val_t(size_t size, size_t align)
{
    void *block = new_quietly(FRAME_HERE(), size, align, DOOR_NEW_ALIGNED);

    return likely(block != NULL) ? block : marked(new_again(size, align), DOOR_NEW_ALIGNED);
}

PUBLIC void *_ZnamSt11align_val_t(size_t size, size_t align)
{
    void *block = new_quietly(FRAME_HERE(), size, align, DOOR_NEW_ARRAY_ALIGNED);

    return likely(block != NULL) ? block : marked(new_again(size, align), DOOR_NEW_ARRAY_ALIGNED);
}

PUBLIC void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align,
                                                const struct nothrow *nothrow)
{
    static any_function *known;
    new_aligned_nothrow *next;
    bool is_ours = _ZnwmSt11align_val_t == new_aligned_ours;
    void *block = likely(is_ours) ? new_quietly(FRAME_HERE(), size, align, DOOR_NEW_ALIGNED) : NULL;

    if (likely(block != NULL) || (is_ours && (!there_is_a_handler() || !is_power_of_two(align))))
        return block;
    next = (new_aligned_nothrow *)runtime_new(&known, NAME_OF(_ZnwmSt11align_val_tRKSt9nothrow_t));
    if (next != NULL) return next(size, align, nothrow);
    return is_ours ? marked(new_with_handlers(size, align), DOOR_NEW_ALIGNED)
                   : _ZnwmSt11align_val_t(size, align);
}

PUBLIC void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align,
                                                const struct nothrow *nothrow)
{
    static any_function *known;
    new_aligned_nothrow *next;
    bool is_ours = _ZnamSt11align_val_t == new_array_aligned_ours;
    void *block =
        likely(is_ours) ? new_quietly(FRAME_HERE(), size, align, DOOR_NEW_ARRAY_ALIGNED) : NULL;

    if (likely(block != NULL) || (is_ours && (!there_is_a_handler() || !is_power_of_two(align))))
        return block;
    next = (new_aligned_nothrow *)runtime_new(&known, NAME_OF(_ZnamSt11align_val_tRKSt9nothrow_t));
    if (next != NULL) return next(size, align, nothrow);
    return is_ours ? marked(new_with_handlers(size, align), DOOR_NEW_ARRAY_ALIGNED)
                   : _ZnamSt11align_val_t(size, align);
}

/* ---- delete ---- */

/* What free and the sized free do, but for a block's door in a hardened process. */

/* Of a block that comes by a slower way. In a hardened process it is looked at once: by what takes
 * it, or, false, its door here, and the rest by the way that must be taken. `size` SIZE_MAX: it is
 * not told. */
INLINE bool given_if_hardened(struct front *front, void *block, size_t size,
                              enum hardened_door door)
{
    if (likely(!hardening.is_on)) return false;
    if (front->kind == FRONT_HARDENED && hardened_give(front, block, size, door)) return true;
    hardened_check_door(block, door);
    return false;
}

NOINLINE static void delete_missed(struct front *front, void *block)
{
    if (given_if_hardened(front, block, SIZE_MAX, DOOR_NEW)) return;
    free_missed(front, block);
}

NOINLINE static void delete_array_missed(struct front *front, void *block)
{
    if (given_if_hardened(front, block, SIZE_MAX, DOOR_NEW_ARRAY)) return;
    free_missed(front, block);
}

PUBLIC void _ZdlPv(void *block)
{
    struct front *front = thread_word();

    if (CHECKED) misuse_note_free(block);
    if (unlikely(!front_put(front, class_map_at(block), block))) delete_missed(front, block);
}

PUBLIC void _ZdaPv(void *block)
{
    struct front *front = thread_word();

    if (CHECKED) misuse_note_free(block);
    if (unlikely(!front_put(front, class_map_at(block), block))) delete_array_missed(front, block);
}

/* What a program frees by its own delete must not come into a magazine. Where the sized one is the
 * program's, too, ours is not called, and nothing has to change. This comes before the program's
 * own constructors, which free already; those of libraries that a preloaded prairie does not know
 * come before it. */
__attribute__((constructor(101))) static void follow_replaced_deletes(void)
{
    if ((_ZdlPv != delete_ours && _ZdlPvm == delete_sized_ours)
        || (_ZdaPv != delete_array_ours && _ZdaPvm == delete_array_sized_ours))
        sized_frees_go_nowhere();
}

/* The program's own delete takes the block. False: it has none. */
static bool program_deletes(void *block)
{
    if (likely(_ZdlPv == delete_ours)) return false;
    _ZdlPv(block);
    return true;
}

static bool program_deletes_array(void *block)
{
    if (likely(_ZdaPv == delete_array_ours)) return false;
    _ZdaPv(block);
    return true;
}

/* Beyond the table, and in the checking flavours. */
NOINLINE static void delete_sized_other(void *block, size_t size)
{
    if (unlikely(program_deletes(block))) return;
    if (given_if_hardened(thread_word(), block, size, DOOR_NEW)) return;
    prairie_free_sized(block, size);
}

NOINLINE static void delete_sized_overflow(struct front *front, void *block, size_t size)
{
    if (unlikely(program_deletes(block))) return;
    if (given_if_hardened(front, block, size, DOOR_NEW)) return;
    free_sized_overflow(front, block, size);
}

PUBLIC void _ZdlPvm(void *block, size_t size)
{
    struct front *front;

    if (unlikely(size > TABLE_BYTES_MAX) || CHECKED) {
        delete_sized_other(block, size);
        return;
    }
    front = thread_word();
    if (unlikely(!front_put(front, offset_of_sized_free[size], block)))
        delete_sized_overflow(front, block, size);
}

NOINLINE static void delete_array_sized_other(void *block, size_t size)
{
    if (unlikely(program_deletes_array(block))) return;
    if (given_if_hardened(thread_word(), block, size, DOOR_NEW_ARRAY)) return;
    prairie_free_sized(block, size);
}

NOINLINE static void delete_array_sized_overflow(struct front *front, void *block, size_t size)
{
    if (unlikely(program_deletes_array(block))) return;
    if (given_if_hardened(front, block, size, DOOR_NEW_ARRAY)) return;
    free_sized_overflow(front, block, size);
}

PUBLIC void _ZdaPvm(void *block, size_t size)
{
    struct front *front;

    if (unlikely(size > TABLE_BYTES_MAX) || CHECKED) {
        delete_array_sized_other(block, size);
        return;
    }
    front = thread_word();
    if (unlikely(!front_put(front, offset_of_sized_free[size], block)))
        delete_array_sized_overflow(front, block, size);
}

/* The second argument says nothing that the address does not. */
PUBLIC void _ZdlPvRKSt9nothrow_t(void *block, const struct nothrow *nothrow)
{
    (void)nothrow;
    _ZdlPv(block);
}

/* `size` as in given_if_hardened; `align` is what its class depends on. */
static void delete_aligned(void *block, size_t size, size_t align, enum hardened_door door)
{
    if (CHECKED && size != SIZE_MAX) misuse_check_told(block, size, align);
    if (given_if_hardened(thread_word(), block, size, door)) return;
    if (size != SIZE_MAX) hardened_expect_told(block, size, align);
    prairie_free(block);
}

PUBLIC void _ZdlPvSt11align_val_t(void *block, size_t align)
{
    delete_aligned(block, SIZE_MAX, align, DOOR_NEW_ALIGNED);
}

PUBLIC void _ZdaPvSt11align_val_t(void *block, size_t align)
{
    delete_aligned(block, SIZE_MAX, align, DOOR_NEW_ARRAY_ALIGNED);
}

PUBLIC void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align,
                                                const struct nothrow *nothrow)
{
    (void)nothrow;
    _ZdlPvSt11align_val_t(block, align);
}

PUBLIC void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t align,
                                                const struct nothrow *nothrow)
{
    (void)nothrow;
    _ZdaPvSt11align_val_t(block, align);
}

PUBLIC void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t align)
{
    if (likely(_ZdlPvSt11align_val_t == delete_aligned_ours))
        delete_aligned(block, size, align, DOOR_NEW_ALIGNED);
    else _ZdlPvSt11align_val_t(block, align);
}

PUBLIC void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t align)
{
    if (likely(_ZdaPvSt11align_val_t == delete_array_aligned_ours))
        delete_aligned(block, size, align, DOOR_NEW_ARRAY_ALIGNED);
    else _ZdaPvSt11align_val_t(block, align);
}

PUBLIC void _ZdaPvRKSt9nothrow_t(void *block, const struct nothrow *nothrow)
{
    (void)nothrow;
    _ZdaPv(block);
}
