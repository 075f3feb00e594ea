/* guarded.c - taking, giving back and finding guarded blocks.
 * SPDX-License-Identifier: MIT
 */
#include "guarded.h"

#include "../base/bits.h"
#include "../base/port.h"
#include "../space/commit.h"
#include "../space/meta.h"
#include "../space/page_map.h"

/* How many of a site's blocks are held at once: this part of the pool, and at least one. */
enum { SITE_SHARE = 8, SITE_CALLERS = 4 };
/* This part of the pool is kept for blocks that came back. */
enum { QUARANTINE_SHARE = 4 };
/* Sized frees that look, after a block was taken. */
enum { WATCHED_FREES = 8192 };
enum { LOCK_WAITS_MAX = 100, LOCK_WAIT_MS = 1 };

struct lock guarded_lock = { .state = LOCK_FREE, .rank = LOCK_GUARDED };

static struct {
    unsigned count;                    /* constant once guarded_pool.first is published */
    unsigned held, held_max;           /* under lock; U2 */
    unsigned made;                     /* under lock: cells below it have a record */
    uint32_t watch;                    /* under lock: counts the ends of watches */
    uint64_t random;                   /* under lock */
    unsigned first_freed, freed;       /* under lock: of the queue; U1 */
    uint16_t queue[GUARDED_CELLS_MAX]; /* under lock; U1 */
    struct guarded_cell *cell[GUARDED_CELLS_MAX]; /* each constant once made */
    uint32_t guard_is_open[GUARDED_CELLS_MAX
                           + 1]; /* atomic: a report opened the guard before that cell */
} pool SPARSE;
struct guarded_numbers guarded_numbers SPARSE;

/* ---- cells ---- */

static char *page_of_cell(unsigned number)
{
    return guarded_pool.first + ((size_t)(2 * number + 1) << space.page_shift);
}

static struct os_range one_page(char *base) { return (struct os_range){ base, page_bytes() }; }

bool guarded_start(unsigned cells)
{
    struct os_range range;

    if (cells > GUARDED_CELLS_MAX) cells = GUARDED_CELLS_MAX;
    if (cells == 0 || class_map.mask == 0) return false;
    range = os_reserve((size_t)(2 * cells + 1) << space.page_shift, page_bytes());
    if (range.base == NULL) return false;
    if (regions_share_slots(range)) {
        os_release(range);
        return false;
    }
    lock_take(&guarded_lock);
    pool.held_max = cells - cells / QUARANTINE_SHARE;
    pool.random = os_wall_ns() ^ (uintptr_t)range.base;
    pool.count = cells;
    guarded_pool.bytes = range.bytes;
    __atomic_store_n(&guarded_pool.first, range.base, __ATOMIC_RELEASE);
    lock_give(&guarded_lock);
    return true;
}

static uint64_t pool_random(void)
{
    pool.random ^= pool.random << 13;
    pool.random ^= pool.random >> 7;
    pool.random ^= pool.random << 17;
    return pool.random += pool.random == 0;
}

/* The pages of all of them count as taken. */
static void count_held(int step)
{
    pool.held += (unsigned)step;
    RELAXED_STORE(commit.guarded_bytes, (size_t)pool.held << space.page_shift);
}

/* The last to be used again. */
static void queue_up(unsigned number)
{
    pool.queue[(pool.first_freed + pool.freed++) % GUARDED_CELLS_MAX] = (uint16_t)number;
    pool.cell[number]->state = GUARDED_FREED;
    count_held(-1);
}

/* ---- giving ---- */

/* Without the lock; nothing else is done with the cell meanwhile. A page that cannot be closed
 * stays open. */
static void close_cell(unsigned number, bool is_drained)
{
    (void)os_close(one_page(page_of_cell(number)));
    lock_take(&guarded_lock);
    if (is_drained) pool.cell[number]->given.thread = pool.cell[number]->given.depth = 0;
    queue_up(number);
    lock_give(&guarded_lock);
}

/* Takes the block of a cell out, under the lock. */
static void begin_going(unsigned number)
{
    struct guarded_cell *cell = pool.cell[number];

    cell->state = GUARDED_GOING;
    cell->mover = port_thread_mark();
    guarded_numbers.held[cell->class_index]--;
    RELAXED_STORE(guarded_pool.block[number], NULL);
    (void)stray_fetch(number);
    if (cell->watch == pool.watch) sized_free_look(cell->class_index, -1);
}

/* The cells whose blocks were drained out of magazines. Another thread may fetch one between the
 * look at its bit and the lock. */
static void fetch_strays(void)
{
    if (__atomic_load_n(&guarded_pool.first, __ATOMIC_ACQUIRE) == NULL) return;
    for (unsigned word = 0; word * 64 < pool.count; word++) {
        uint64_t came;

        while ((came = RELAXED_LOAD(guarded_pool.came[word])) != 0) {
            unsigned number = word * 64 + lowest_bit(came);
            bool is_there;

            BETWEEN_READS(fetch_strays);
            lock_take(&guarded_lock);
            is_there = stray_fetch(number) && pool.cell[number]->state == GUARDED_HELD;
            if (is_there) begin_going(number);
            lock_give(&guarded_lock);
            if (is_there) close_cell(number, true);
        }
    }
}

/* The number of the cell whose page the address is on; GUARDED_CELLS_MAX: it is on none, or on none that
 * was used. */
static unsigned cell_at(const void *address)
{
    size_t page;

    if (!guarded_pool_has(address)) return GUARDED_CELLS_MAX;
    page = guarded_pool_page_of(address);
    return page % 2 != 0 && page / 2 < pool.made ? (unsigned)(page / 2) : GUARDED_CELLS_MAX;
}

bool guarded_give(const void *block, const struct guarded_trace *given)
{
    unsigned number;
    bool is_there;

    lock_take(&guarded_lock);
    number = cell_at(block);
    is_there = number != GUARDED_CELLS_MAX && pool.cell[number]->state == GUARDED_HELD
            && pool.cell[number]->block == block;
    if (is_there) {
        begin_going(number);
        pool.cell[number]->given = *given;
    }
    lock_give(&guarded_lock);
    if (is_there) close_cell(number, false);
    return is_there;
}

/* ---- taking ---- */

static uint32_t callers_hash(const struct guarded_trace *trace)
{
    unsigned depth = trace->depth < SITE_CALLERS ? trace->depth : SITE_CALLERS;

    return (uint32_t)stack_hash(0, trace->return_address, depth);
}

static bool site_has_enough(uint32_t site)
{
    unsigned most = (unsigned)max_size(pool.count / SITE_SHARE, 1), held = 0;

    for (unsigned i = 0; i < pool.made; i++)
        held += pool.cell[i]->state != GUARDED_FREED && pool.cell[i]->site == site;
    return held >= most;
}

/* One that was never used, else the one that was given back first. GUARDED_CELLS_MAX: none. */
static unsigned choose_cell(void)
{
    unsigned number;

    if (pool.held >= pool.held_max) return GUARDED_CELLS_MAX;
    if (pool.made < pool.count) {
        struct guarded_cell *cell = meta_take(sizeof *cell);

        if (cell != NULL) {
            pool.cell[pool.made] = cell;
            return pool.made++;
        }
    }
    if (pool.freed == 0) return GUARDED_CELLS_MAX;
    number = pool.queue[pool.first_freed];
    pool.first_freed = (pool.first_freed + 1) % GUARDED_CELLS_MAX;
    pool.freed--;
    return number;
}

/* Closes a page that a report opened. What is exchanged is a word, because bytes are exchanged by a
 * library of the compiler's where the processor has no instruction for them (riscv64). */
static void close_again(uint32_t *is_open, char *page)
{
    if (__atomic_exchange_n(is_open, false, __ATOMIC_RELAXED)) (void)os_close(one_page(page));
}

/* Without the lock. False: no memory. */
static bool open_cell(struct guarded_cell *cell, unsigned number)
{
    char *page = page_of_cell(number);

    close_again(&pool.guard_is_open[number], page - page_bytes());
    close_again(&pool.guard_is_open[number + 1], page + page_bytes());
    close_again(&cell->page_is_open, page);
    return os_commit(one_page(page));
}

/* What guarded_take was called with. */
struct guarded_request {
    size_t size, align;
    unsigned class_index;
    const struct guarded_trace *taken;
};

static size_t choose_offset(const struct guarded_request *request)
{
    if (pool_random() % 2 == 0) return 0;
    return round_down(page_bytes() - class_bytes[request->class_index], request->align);
}

/* The class is watched before the block is anybody's. U4 */
static void *hold_cell(unsigned number, const struct guarded_request *request)
{
    struct guarded_cell *cell = pool.cell[number];

    cell->state = GUARDED_HELD;
    cell->block = page_of_cell(number) + choose_offset(request);
    cell->size = request->size;
    cell->class_index = (uint8_t)request->class_index;
    cell->taken = *request->taken;
    cell->given = (struct guarded_trace){ .thread = 0 };
    cell->watch = pool.watch;
    cell->is_told = false;
    RELAXED_STORE(cell->page_is_open, false);
    RELAXED_STORE(guarded_pool.class_index[number], cell->class_index);
    RELAXED_STORE(guarded_pool.block[number], cell->block);
    guarded_numbers.held[cell->class_index]++;
    guarded_numbers.taken[cell->class_index]++;
    sized_free_look(cell->class_index, 1);
    RELAXED_STORE(sized_frees_left, WATCHED_FREES);
    return cell->block;
}

/* The cell tells of its last block until it has another one. GUARDED_CELLS_MAX: none comes. */
static unsigned begin_coming(const struct guarded_trace *taken)
{
    uint32_t site = callers_hash(taken);
    unsigned number = site_has_enough(site) ? GUARDED_CELLS_MAX : choose_cell();
    struct guarded_cell *cell;

    if (number == GUARDED_CELLS_MAX) return number;
    count_held(1);
    cell = pool.cell[number];
    cell->state = GUARDED_COMING;
    cell->mover = port_thread_mark();
    cell->site = site;
    return number;
}

void *guarded_take(size_t size, size_t align, unsigned class_index,
                   const struct guarded_trace *taken)
{
    struct guarded_request request = { size, align, class_index, taken };
    unsigned number;
    void *block = NULL;
    bool is_open;

    if (class_bytes[class_index] > page_bytes() || align > page_bytes()) return NULL;
    fetch_strays();
    lock_take(&guarded_lock);
    number = begin_coming(taken);
    lock_give(&guarded_lock);
    if (number == GUARDED_CELLS_MAX) return NULL;
    is_open = open_cell(pool.cell[number], number);
    lock_take(&guarded_lock);
    if (is_open) block = hold_cell(number, &request);
    else queue_up(number);
    lock_give(&guarded_lock);
    return block;
}

void guarded_end_watch(void)
{
    lock_take(&guarded_lock);
    for (unsigned i = 0; i < pool.made; i++)
        if (pool.cell[i]->state == GUARDED_HELD && pool.cell[i]->watch == pool.watch)
            sized_free_look(pool.cell[i]->class_index, -1);
    pool.watch++;
    lock_give(&guarded_lock);
}

/* ---- finding ---- */

/* For those who may have interrupted anybody. The lock may stay taken, by a thread that a signal
 * interrupted: what is read then may be half of one thing and half of another. */
static bool pool_take_anywhere(void)
{
    for (unsigned waits = 0; waits < LOCK_WAITS_MAX; waits++) {
        if (lock_try_anywhere(&guarded_lock)) return true;
        os_pause(LOCK_WAIT_MS);
    }
    return false;
}

static void pool_give_anywhere(bool taken)
{
    if (taken) lock_give_anywhere(&guarded_lock);
}

static bool cell_is_held(unsigned number)
{
    return number < pool.made && pool.cell[number]->state == GUARDED_HELD;
}

/* On a guard page: of the two blocks beside it the one that is held, or the nearer one. */
static unsigned beside_guard(const char *address, size_t page)
{
    unsigned right = (unsigned)(page / 2), left = right - 1; /* beyond `made`: none */
    const char *left_end, *right_start;

    if (!cell_is_held(left) || !cell_is_held(right)) {
        if (cell_is_held(right)) return right;
        if (cell_is_held(left) || right >= pool.made) return left;
        return left < pool.made && guarded_pool_page_of(address + page_bytes() / 2) == page ? left
                                                                                            : right;
    }
    left_end = pool.cell[left]->block + class_bytes[pool.cell[left]->class_index];
    right_start = pool.cell[right]->block;
    return address - left_end < right_start - address ? left : right;
}

static enum guarded_kind kind_at(const struct guarded_cell *cell, unsigned number,
                                 const char *address)
{
    const char *page = page_of_cell(number);

    if (cell->block == NULL) return GUARDED_NONE;
    if (cell->state != GUARDED_HELD) return GUARDED_GONE;
    if (address == cell->block) return GUARDED_BLOCK;
    if (address < page) return GUARDED_BEFORE;
    return address >= page + page_bytes() ? GUARDED_BEHIND : GUARDED_INSIDE;
}

static unsigned cell_for(const void *address)
{
    size_t page = guarded_pool_page_of(address);

    return page % 2 != 0 ? (unsigned)(page / 2) : beside_guard(address, page);
}

/* Of an address in the pool. */
static struct guarded_finding finding_of(const void *address)
{
    struct guarded_finding finding = { .kind = GUARDED_NONE };
    unsigned number = cell_for(address);

    if (number >= pool.made) return finding;
    finding.cell = *pool.cell[number];
    finding.kind = kind_at(&finding.cell, number, address);
    finding.is_watched = finding.cell.watch == pool.watch || finding.cell.given.depth != 0;
    return finding;
}

struct guarded_finding guarded_find(const void *address)
{
    struct guarded_finding finding = { .kind = GUARDED_NONE };

    if (!guarded_pool_has(address)) return finding;
    lock_take(&guarded_lock);
    finding = finding_of(address);
    lock_give(&guarded_lock);
    return finding;
}

struct guarded_finding guarded_find_anywhere(const void *address)
{
    struct guarded_finding finding = { .kind = GUARDED_NONE };
    bool taken;

    if (!guarded_pool_has(address)) return finding;
    taken = pool_take_anywhere();
    finding = finding_of(address);
    pool_give_anywhere(taken);
    return finding;
}

bool guarded_tell_once(const struct guarded_finding *finding)
{
    unsigned number = cell_at(finding->cell.block);

    return number != GUARDED_CELLS_MAX
        && !__atomic_exchange_n(&pool.cell[number]->is_told, true, __ATOMIC_RELAXED);
}

/* The first cell beside an open guard that is taken closes it. */
static void note_open(size_t page)
{
    unsigned number = (unsigned)(page / 2);

    if (page % 2 == 0) RELAXED_STORE(pool.guard_is_open[number], true);
    else if (number < pool.made) RELAXED_STORE(pool.cell[number]->page_is_open, true);
}

bool guarded_let_pass(const void *address)
{
    size_t page = guarded_pool_page_of(address);
    bool taken = pool_take_anywhere(), done = true;

    /* Somebody may have taken the page meanwhile. */
    if (page % 2 == 0 || !cell_is_held((unsigned)(page / 2)))
        done = os_commit(one_page(guarded_pool.first + (page << space.page_shift)));
    if (done) note_open(page);
    pool_give_anywhere(taken);
    return done;
}

bool guarded_holds(const void *address)
{
    struct guarded_finding finding = guarded_find(address);
    const struct guarded_cell *cell = &finding.cell;

    return (finding.kind == GUARDED_BLOCK || finding.kind == GUARDED_INSIDE)
        && (size_t)((const char *)address - cell->block) < class_bytes[cell->class_index];
}

void guarded_set_size(const void *block, size_t size)
{
    unsigned number;

    lock_take(&guarded_lock);
    number = cell_at(block);
    if (number != GUARDED_CELLS_MAX && pool.cell[number]->state == GUARDED_HELD)
        pool.cell[number]->size = size;
    lock_give(&guarded_lock);
}

void guarded_trace_from(struct guarded_trace *trace, const void *frame)
{
    trace->thread = os_thread_id();
    trace->depth = frame != NULL ? unwind_from(frame, trace->return_address, GUARDED_DEPTH) : 0;
}

/* ---- the whole pool ---- */

void guarded_count(struct guarded_numbers *numbers)
{
    *numbers = (struct guarded_numbers){ .held = { 0 } };
    if (RELAXED_LOAD(guarded_pool.first) == NULL) return;
    fetch_strays();
    lock_take(&guarded_lock);
    *numbers = guarded_numbers;
    lock_give(&guarded_lock);
}

/* Those of threads that are not there, in the middle of a call. This one may have forked in a
 * signal handler in the middle of its own, and goes on with it. */
void guarded_forget_others(void)
{
    for (unsigned i = 0; i < pool.made; i++) {
        struct guarded_cell *cell = pool.cell[i];

        if (cell->state != GUARDED_COMING && cell->state != GUARDED_GOING) continue;
        if (cell->mover == port_thread_mark()) continue;
        (void)os_close(one_page(page_of_cell(i)));
        queue_up(i);
    }
}

void guarded_check(void)
{
    struct guarded_numbers numbers = guarded_numbers;
    uint64_t queued[GUARDED_CELLS_MAX / WORD_BITS] = { 0 };
    unsigned held = 0, freed = 0;

    for (unsigned i = 0; i < pool.made; i++) {
        const struct guarded_cell *cell = pool.cell[i];

        held += cell->state != GUARDED_FREED;
        numbers.held[cell->class_index] -= cell->state == GUARDED_HELD; /* U5 */
        freed += cell->state == GUARDED_FREED;
        require((cell->state == GUARDED_HELD ? cell->block : NULL)
                == guarded_pool.block[i]); /* U3 */
        if (cell->state == GUARDED_HELD && cell->watch == pool.watch)
            require(sized_free_looks(cell->class_index)); /* U4 */
    }
    for (unsigned class_index = 0; class_index < CLASS_COUNT; class_index++)
        require(numbers.held[class_index] == 0);         /* U5 */
    require(held == pool.held && held <= pool.held_max); /* U2 */
    require(commit.guarded_bytes == (size_t)held << space.page_shift);
    require(freed == pool.freed); /* U1 */
    for (unsigned i = 0; i < pool.freed; i++) {
        unsigned number = pool.queue[(pool.first_freed + i) % GUARDED_CELLS_MAX];

        require(pool.cell[number]->state == GUARDED_FREED);                          /* U1 */
        require(!bit_test_and_set(&queued[number / WORD_BITS], number % WORD_BITS)); /* U1 */
    }
}
