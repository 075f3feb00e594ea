/* profile.c - a program that is sampled from its start to its end: what it holds is told, by whom
 * it was taken, in two formats, at every moment, and by every thread. */
/* SPDX-License-Identifier: MIT */
/*
 *      profile tell FOLDER      dumps a heap whose truth is printed, for profile.py to compare
 *      profile signals FOLDER   dumps in a signal handler, a thousand times a second
 *      profile controls FOLDER  every control name of the profiler
 *      profile hooks FOLDER     functions of the program that see samples
 *      profile peaks FOLDER     a dump at each new peak
 *      profile off              the same names without prof:true
 */
#include "../blackbox/use.h"

#include <jemalloc/jemalloc.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

static int (*control)(const char *, void *, size_t *, void *, size_t);
static void (*delete_with_size)(void *, size_t);
static void *(*operator_new)(size_t);
static void *(*take_flagged)(size_t, int);

static int write_text(const char *name, const char *text)
{
    return control(name, NULL, NULL, &text, sizeof text);
}

static int write_flag(const char *name, bool flag)
{
    return control(name, NULL, NULL, &flag, sizeof flag);
}

static bool read_flag(const char *name)
{
    bool flag = false;
    size_t length = sizeof flag;

    must(control(name, &flag, &length, NULL, 0) == 0);
    return flag;
}

static char *path_in(const char *folder, const char *name)
{
    static char path[4][512];
    static unsigned next;
    char *text = path[next++ % 4];

    snprintf(text, sizeof path[0], "%s/%s", folder, name);
    return text;
}

static off_t file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

/* ---- telling ---- */

enum { HELD = 30000 };
static void *held_by_malloc[HELD], *held_by_new[HELD];

#define TAKER __attribute__((noinline, noclone))

TAKER static void *take_by_malloc(size_t size)
{
    void *block = malloc(size);
    must(block != NULL);
    return block;
}

TAKER static void *take_by_new(size_t size)
{
    void *block = operator_new(size);
    must(block != NULL);
    return block;
}

TAKER static void *take_by_realloc(void *block, size_t size)
{
    void *moved = realloc(block, size);
    must(moved != NULL);
    return moved;
}

TAKER static void *take_by_arena(size_t size, unsigned arena)
{
    void *block = take_flagged(size, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
    must(block != NULL);
    return block;
}

static void *free_some(void *unused)
{
    for (unsigned i = 0; i < HELD; i += 3) free(held_by_malloc[i]);
    return unused;
}

static double bytes_held(void **held)
{
    double bytes = 0;

    for (unsigned i = 0; i < HELD; i++) bytes += (double)malloc_usable_size(held[i]);
    return bytes;
}

/* Addresses of return lie behind the function's start, and within its few hundred bytes. */
static void print_truth(const char *name, const void *function, double bytes)
{
    printf("%s %p %.0f\n", name, function, bytes);
}

/* Returns the bytes in it; the arena's number goes to `arena`. */
static double fill_an_arena(uint64_t *random, unsigned *arena)
{
    size_t length = sizeof *arena;
    double bytes = 0;

    must(control("arenas.create", arena, &length, NULL, 0) == 0);
    for (unsigned i = 0; i < 20000; i++) {
        size_t size = random_between(random, 1, i % 50 == 0 ? 40000 : 1000);
        void *block = take_by_arena(size, *arena);

        if (i % 2 == 0) bytes += (double)malloc_usable_size(block);
        else free(block);
    }
    return bytes;
}

static void destroy_arena(unsigned arena)
{
    char name[32];

    snprintf(name, sizeof name, "arena.%u.destroy", arena);
    must(control(name, NULL, NULL, NULL, 0) == 0);
}

static void tell(const char *folder)
{
    uint64_t random = seed_of_run();
    void *grown = NULL;
    pthread_t thread;
    unsigned arena = 0;
    int status = 0;

    must(write_text("thread.prof.name", "who takes") == 0);
    for (unsigned i = 0; i < HELD; i++) {
        held_by_malloc[i] = take_by_malloc(random_between(&random, 1, 600));
        held_by_new[i] = take_by_new(random_between(&random, 1, 1500));
        free(take_by_malloc(48)); /* seen, and gone */
    }
    must(pthread_create(&thread, NULL, free_some, NULL) == 0 && pthread_join(thread, NULL) == 0);
    for (unsigned i = 0; i < HELD; i += 3) held_by_malloc[i] = NULL;
    for (unsigned i = 0; i < HELD; i += 2) {
        size_t size = malloc_usable_size(held_by_new[i]);
        delete_with_size(held_by_new[i], size);
        held_by_new[i] = NULL;
    }
    for (size_t size = 10; size < 9000000; size += size / 3 + 1)
        grown = take_by_realloc(grown, size);
    print_truth("take_by_malloc", (void *)take_by_malloc, bytes_held(held_by_malloc));
    print_truth("take_by_new", (void *)take_by_new, bytes_held(held_by_new));
    print_truth("take_by_realloc", (void *)take_by_realloc, (double)malloc_usable_size(grown));
    must(write_text("thread.prof.name", "who fills") == 0);
    print_truth("take_by_arena", (void *)take_by_arena, fill_an_arena(&random, &arena));
    must(write_text("prof.dump", path_in(folder, "held.heap")) == 0);
    must(write_text("prof.dump", path_in(folder, "held.pb.gz")) == 0);
    fflush(stdout);
    if (fork() == 0) {
        for (unsigned i = 0; i < HELD; i++) free(held_by_malloc[i]);
        must(write_text("prof.dump", path_in(folder, "child.heap")) == 0);
        walk_heap();
        _exit(0);
    }
    must(wait(&status) > 0 && status == 0);
    for (unsigned i = 0; i < HELD; i++) {
        free(held_by_malloc[i]);
        if (held_by_new[i] != NULL)
            delete_with_size(held_by_new[i], malloc_usable_size(held_by_new[i]));
    }
    free(grown);
    destroy_arena(arena);
    must(write_text("prof.dump", path_in(folder, "freed.pb.gz")) == 0);
}

/* ---- signals ---- */

static const char *signal_path;
static volatile sig_atomic_t dumps, refusals;

/* The next one comes a moment after this one is done, so that the program gets on between them. */
static void dump_now(int signal)
{
    static const struct itimerval once = { { 0, 0 }, { 0, 700 } };

    (void)signal;
    if (write_text("prof.dump", signal_path) == 0) dumps++;
    else refusals++;
    setitimer(ITIMER_REAL, &once, NULL);
}

/* The handler comes wherever it likes: into the middle of a sample, of a refill, of a dump. */
static void be_interrupted(const char *folder)
{
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    uint64_t random = seed_of_run();
    time_t end = time(NULL) + 2;
    void *block[100] = { NULL };

    signal_path = path_in(folder, "signals.heap");
    signal(SIGALRM, dump_now);
    dump_now(SIGALRM);
    while (time(NULL) < end && dumps < 300) {
        for (unsigned i = 0; i < 1000; i++) {
            size_t slot = random_between(&random, 0, 99);
            free(block[slot]);
            block[slot] = malloc(random_between(&random, 1, 3000));
        }
    }
    setitimer(ITIMER_REAL, &never, NULL);
    for (unsigned i = 0; i < 100; i++) free(block[i]);
    printf("%d dumps, %d refusals\n", (int)dumps, (int)refusals);
    must(dumps > 0 && file_bytes(signal_path) > 0);
}

/* ---- controls ---- */

static unsigned files_of(const char *folder, const char *part)
{
    char command[600];
    unsigned count = 0;
    FILE *list;

    snprintf(command, sizeof command, "ls %s | grep -c -- '%s'", folder, part);
    list = popen(command, "r");
    must(list != NULL && fscanf(list, "%u", &count) == 1);
    pclose(list);
    return count;
}

static size_t lg_sample(void)
{
    size_t lg = 0, length = sizeof lg;

    must(control("prof.lg_sample", &lg, &length, NULL, 0) == 0);
    return lg;
}

static void *look_unsampled(void *unused)
{
    must(!read_flag("thread.prof.active"));
    return unused;
}

static void churn(size_t bytes)
{
    for (size_t taken = 0; taken < bytes; taken += 1000) free(take_by_malloc(1000));
}

/* So many names that no more can be kept. Each is either there or refused, and then the one before
 * stays. */
static void name_the_thread_often(void)
{
    const char *kept = NULL;
    unsigned refused = 0;

    for (unsigned i = 0; i < 2000; i++) {
        const char *before;
        char name[16];
        size_t length = sizeof kept;
        int error;

        must(control("thread.prof.name", &before, &length, NULL, 0) == 0);
        snprintf(name, sizeof name, "conn-%u", i);
        error = write_text("thread.prof.name", name);
        must(error == 0 || error == EAGAIN);
        refused += error == EAGAIN;
        must(control("thread.prof.name", &kept, &length, NULL, 0) == 0);
        must(strcmp(kept, error == 0 ? name : before) == 0);
    }
    must(refused > 0);
    must(write_text("thread.prof.name", "") == 0);
}

/* As jemalloc has them: up to 15 letters that can be seen, and blanks. */
static void name_the_thread(void)
{
    static const char *const bad[] = { "two\nlines", "\x1b[1m", "\x7f",
                                       "gr\xc3\xbc\xc3\x9f"
                                       "e" };
    const char *name = "both", *before = NULL, *none = NULL;
    size_t length = sizeof before;

    must(write_text("thread.prof.name", "a name of mine") == 0);
    must(control("thread.prof.name", &before, &length, NULL, 0) == 0);
    must(strcmp(before, "a name of mine") == 0);
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        must(write_text("thread.prof.name", bad[i]) == EINVAL);
    must(control("thread.prof.name", NULL, NULL, &none, sizeof none) == EINVAL);
    must(control("thread.prof.name", &before, &length, &name, sizeof name) == EPERM);
    must(control("thread.prof.name", &before, &length, NULL, 0) == 0);
    must(strcmp(before, "a name of mine") == 0);
    must(write_text("thread.prof.name", "tab\tand a long end") == 0);
    must(control("thread.prof.name", &before, &length, NULL, 0) == 0);
    must(strcmp(before, "tab\tand a long ") == 0);
    must(write_text("thread.prof.name", "") == 0);
    must(control("thread.prof.name", &before, &length, NULL, 0) == 0 && before[0] == '\0');
    must(write_text("thread.prof.name", "a name of mine") == 0);
}

static void use_controls(const char *folder)
{
    const char *name = NULL;
    size_t length = sizeof name, lg = 12;
    bool flag = true;
    pthread_t thread;

    must(read_flag("config.prof") && read_flag("opt.prof") && read_flag("prof.active"));
    must(lg_sample() == 10);
    must(write_text("prof.prefix", path_in(folder, "mine")) == 0);
    must(control("prof.dump", NULL, NULL, NULL, 0) == 0);
    must(files_of(folder, "^mine\\..*\\.m[0-9]*\\.heap$") == 1);
    must(control("prof.dump", NULL, NULL, &name, 3) == EINVAL);
    must(control("prof.dump", &name, &length, NULL, 0) == EPERM);
    must(write_text("prof.dump", "/nowhere/at/all") == EFAULT);

    churn(3 << 20);
    must(files_of(folder, "\\.i[0-9]*\\.heap$") >= 2);

    must(write_flag("prof.active", false) == 0 && !read_flag("prof.active"));
    must(control("prof.reset", NULL, NULL, NULL, 0) == 0);
    churn(1 << 20);
    must(write_text("prof.dump", path_in(folder, "quiet.heap")) == 0);
    must(write_flag("prof.active", true) == 0);
    must(control("prof.reset", NULL, NULL, &lg, sizeof lg) == 0 && lg_sample() == 12);

    name_the_thread();
    must(read_flag("thread.prof.active"));
    must(write_flag("prof.thread_active_init", false) == 0);
    must(pthread_create(&thread, NULL, look_unsampled, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);

    must(!read_flag("prof.gdump"));
    must(control("prof.gdump", NULL, NULL, &flag, sizeof flag) == 0 && read_flag("prof.gdump"));
    for (unsigned i = 0; i < 3; i++) must(malloc(100 << 20) != NULL);
    (void)take_by_malloc(1000);
    must(files_of(folder, "\\.u[0-9]*\\.heap$") >= 1);
    must(write_text("prof.dump", path_in(folder, "named.pb.gz")) == 0);
    name_the_thread_often();
}

/* ---- functions of the program ---- */

typedef void walk_hook(void **, unsigned *, unsigned);

/* Volatile: the compiler believes that malloc calls nothing in this file. */
static walk_hook *walk_before;
static volatile unsigned walks, taken_blocks, given_blocks, dumped_files, deepest;
static volatile size_t taken_bytes, given_bytes;
static void *volatile last_taken, *volatile last_caller;
static const void *volatile last_given;
static char last_file[512];

/* Hooks may allocate, and free what they took; that is never a sample. */
static void use_the_heap(void)
{
    void *volatile block = malloc(100000), *volatile small = malloc(100);

    must(block != NULL && small != NULL);
    free(small);
    free(block);
}

static void see_walk(void **stack, unsigned *depth, unsigned most)
{
    use_the_heap();
    must(most == 20);
    walk_before(stack, depth, most);
    must(*depth >= 1 && *depth <= most);
    if (*depth > deepest) deepest = *depth;
    last_caller = stack[0];
    walks++;
}

static void see_taken(const void *block, size_t size, void **stack, unsigned depth, size_t bytes)
{
    use_the_heap();
    must(block != NULL && size <= bytes && depth >= 1 && stack[0] == last_caller);
    must(malloc_usable_size((void *)(uintptr_t)block) == bytes);
    last_taken = (void *)(uintptr_t)block;
    taken_bytes += bytes;
    taken_blocks++;
}

static void see_given(const void *block, size_t bytes)
{
    use_the_heap();
    last_given = block;
    given_bytes += bytes;
    given_blocks++;
}

static void see_dump(const char *path)
{
    use_the_heap();
    errno = EISDIR; /* of no concern to whoever made a dump due */
    snprintf(last_file, sizeof last_file, "%s", path);
    dumped_files++;
}

/* The function before; NULL for those that have none. */
static void *set_hook(const char *name, void *hook)
{
    void *before = NULL;
    size_t length = sizeof before;

    must(control(name, &before, &length, &hook, sizeof hook) == 0);
    return before;
}

static void *address_of(walk_hook *hook)
{
    void *address;

    memcpy(&address, &hook, sizeof address);
    return address;
}

static bool is_in(const void *address, void *(*function)(size_t))
{
    return (uintptr_t)address - (uintptr_t)function < 200;
}

/* Every block is a sample. */
static void use_hooks(const char *folder)
{
    static const size_t sizes[] = { 8, 100, 5000, 14336, 20000, 1000000 };
    const char *walk = "experimental.hooks.prof_backtrace";
    void *nothing = NULL, *default_walk, *block;
    unsigned blocks = 0;

    default_walk = set_hook(walk, address_of(see_walk));
    must(default_walk != NULL);
    memcpy(&walk_before, &default_walk, sizeof walk_before);
    void *taken_hook, *given_hook, *dump_hook;
    *(void (**)(const void *, size_t, void **, unsigned, size_t)) & taken_hook = see_taken;
    *(void (**)(const void *, size_t)) & given_hook = see_given;
    *(void (**)(const char *)) & dump_hook = see_dump;
    must(set_hook("experimental.hooks.prof_sample", taken_hook) == NULL);
    must(set_hook("experimental.hooks.prof_sample_free", given_hook) == NULL);
    must(set_hook("experimental.hooks.prof_dump", dump_hook) == NULL);

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = take_by_malloc(sizes[i]);
        must(taken_blocks == ++blocks && walks == blocks && last_taken == block);
        must(is_in(last_caller, take_by_malloc));
        free(block);
        must(given_blocks == blocks && last_given == block && given_bytes == taken_bytes);
    }
    must(deepest >= 3);
    block = take_by_realloc(take_by_malloc(1000), 300000);
    must(taken_blocks == blocks + 2 && given_blocks == blocks + 1 && last_taken == block);
    block = take_by_realloc(block, 900000);
    must(taken_blocks == blocks + 3 && given_blocks == blocks + 2);
    free(block);
    must(taken_blocks == given_blocks && taken_bytes == given_bytes);

    blocks = taken_blocks;
    errno = 0;
    must(write_text("prof.dump", path_in(folder, "hooked.heap")) == 0);
    must(errno == 0 && taken_blocks == blocks);
    must(dumped_files == 1 && strcmp(last_file, path_in(folder, "hooked.heap")) == 0);
    must(write_text("prof.dump", "/nowhere/at/all") == EFAULT && dumped_files == 1);

    must(control(walk, NULL, NULL, &nothing, sizeof nothing) == EINVAL);
    must(control(walk, NULL, NULL, NULL, 0) == EINVAL);
    must(set_hook(walk, default_walk) == address_of(see_walk));
    must(set_hook("experimental.hooks.prof_sample", NULL) == taken_hook);
    must(set_hook("experimental.hooks.prof_sample_free", NULL) == given_hook);
    must(set_hook("experimental.hooks.prof_dump", NULL) == dump_hook);
    blocks = walks;
    free(take_by_malloc(1000));
    must(write_text("prof.dump", path_in(folder, "quiet.heap")) == 0);
    must(walks == blocks && taken_blocks == given_blocks && dumped_files == 1);
}

/* ---- peaks ---- */

enum { STEPS = 64 };

/* Of this process: the shell's peaks are others. */
static unsigned files_at_peaks(const char *folder)
{
    char part[60];

    free(take_by_malloc(100000)); /* a dump is written by the next call that looks */
    snprintf(part, sizeof part, "^x\\.%d\\..*\\.u[0-9]*\\.heap$", (int)getpid());
    return files_of(folder, part);
}

/* A dump for each megabyte that is new; none while the program breathes below its peak. */
static void reach_peaks(const char *folder)
{
    void *block[STEPS];
    unsigned files = files_at_peaks(folder), more;

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < STEPS; i++) block[i] = take_by_malloc(1 << 20);
        more = files_at_peaks(folder) - files;
        must(round == 0 ? more >= STEPS && more <= STEPS + 4 : more <= 4);
        files += more;
        for (unsigned i = 0; i < STEPS; i++) free(block[i]);
    }
}

static void use_controls_without(void)
{
    bool flag = true;
    void *hook = &flag;

    must(read_flag("config.prof") && !read_flag("opt.prof"));
    must(!read_flag("prof.active") && !read_flag("prof.gdump") && !read_flag("thread.prof.active"));
    must(write_flag("prof.active", true) == ENOENT && write_flag("prof.active", false) == 0);
    must(control("prof.dump", NULL, NULL, NULL, 0) == ENOENT);
    must(control("prof.reset", NULL, NULL, NULL, 0) == ENOENT);
    must(write_text("prof.prefix", "x") == ENOENT);
    must(write_text("thread.prof.name", "x") == ENOENT);
    must(control("thread.prof.active", NULL, NULL, &flag, sizeof flag) == ENOENT);
    must(control("experimental.hooks.prof_sample", NULL, NULL, &hook, sizeof hook) == ENOENT);
}

static uint64_t *total_at(const char *name)
{
    uint64_t *at = NULL;
    size_t length = sizeof at;

    must(control(name, &at, &length, NULL, 0) == 0 && at != NULL);
    return at;
}

/* As programs look for an allocator of this kind: does the number change? */
static void look_at_totals(void)
{
    const uint64_t *taken = total_at("thread.allocatedp"), *given = total_at("thread.deallocatedp");
    uint64_t taken_before = *taken, given_before = *given, now = 0;
    size_t length = sizeof now;
    void *volatile block = malloc(1);

    must(*taken == taken_before + malloc_usable_size(block));
    free(block);
    must(*given - given_before == *taken - taken_before);
    must(control("thread.allocated", &now, &length, NULL, 0) == 0 && now == *taken);
    must(control("thread.deallocated", &now, &length, NULL, 0) == 0 && now == *given);
    must(control("thread.allocated", &now, &length, &now, sizeof now) == EPERM);
}

int main(int argc, char **argv)
{
    require_prairie();
    *(void **)&control = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&delete_with_size = dlsym(RTLD_DEFAULT, sizeof(size_t) > 4 ? "_ZdlPvm" : "_ZdlPvj");
    *(void **)&operator_new = dlsym(RTLD_DEFAULT, sizeof(size_t) > 4 ? "_Znwm" : "_Znwj");
    *(void **)&take_flagged = dlsym(RTLD_DEFAULT, "mallocx");
    must(control != NULL && delete_with_size != NULL && operator_new != NULL && argc >= 2);
    must(take_flagged != NULL);
    if (argc > 2) (void)mkdir(argv[2], 0755);

    if (strcmp(argv[1], "tell") == 0) tell(argv[2]);
    else if (strcmp(argv[1], "signals") == 0) be_interrupted(argv[2]);
    else if (strcmp(argv[1], "controls") == 0) use_controls(argv[2]);
    else if (strcmp(argv[1], "hooks") == 0) use_hooks(argv[2]);
    else if (strcmp(argv[1], "peaks") == 0) reach_peaks(argv[2]);
    else use_controls_without();
    look_at_totals();
    walk_heap();
    return 0;
}
