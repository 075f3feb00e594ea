/* sequence.c - random sequences over the special cases of the allocator and their seams, against a
 * model.
 * SPDX-License-Identifier: MIT
 *
 * Manual arenas, hooks that supply memory and refuse it, explicit caches, no caches, limits, the
 * reserve, samples, forks: each is tested by itself elsewhere. Here a random sequence goes through
 * all of them, so that any two meet. After each step the model must agree (blocks.c, controls.c,
 * hosts.c say in what).
 *
 * One player repeats exactly from its seed. When a check fails, the last steps are printed in
 * words; --shrink then leaves out what the failure does not need, and --say prints all steps.
 *
 * Exit status: 0 passed, 1 a violation (one line on stderr says which), 2 wrong usage. */
#define _GNU_SOURCE
#include "../blackbox/blackbox.h"
#include "hosts.h"
#include "shrink.h"

#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>

#pragma weak prairie_check_all

enum { EXIT_USAGE = 2, CHILD_STEPS = 300 };

struct world world;
_Thread_local struct player *me;

static struct player players[PLAYERS_MAX];
static unsigned forks; /* steps between two, about; 0: none */
static unsigned space_mb;

/* ---- chance ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

uint32_t below(uint32_t bound)
{
    return (uint32_t)(((random_next(&me->random) >> 32) * bound) >> 32);
}

bool chance(unsigned percent) { return below(100) < percent; }

size_t log_uniform(size_t least, size_t most)
{
    unsigned low = 63 - (unsigned)__builtin_clzll(least);
    unsigned high = 63 - (unsigned)__builtin_clzll(most);
    size_t base = (size_t)1 << (low + below(high - low + 1));
    size_t bytes = base + below((uint32_t)base);
    return bytes < least ? least : bytes > most ? most : bytes;
}

/* ---- words ---- */

/* Without stdio, which allocates. */
static void write_line(int file, const char *format, ...)
{
    char text[LINE_CHARS + 40];
    va_list arguments;

    va_start(arguments, format);
    int used = vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    if (used >= (int)sizeof text - 1) used = (int)sizeof text - 2;
    text[used] = '\n';
    if (used > 0 && write(file, text, (size_t)used + 1) < 0) _exit(EXIT_USAGE);
}

static void add_words(const char *format, va_list arguments)
{
    char *line = me->line[me->line_used % LINES];
    size_t used = strlen(line);
    vsnprintf(line + used, LINE_CHARS - used, format, arguments);
}

void say(const char *format, ...)
{
    if (world.says_steps) write_line(1, "%s", me->line[me->line_used % LINES]);
    me->line_used++;
    me->line[me->line_used % LINES][0] = '\0';
    va_list arguments;
    va_start(arguments, format);
    add_words(format, arguments);
    va_end(arguments);
}

void add(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_words(format, arguments);
    va_end(arguments);
}

void print_lines(int file)
{
    if (me == NULL) return;
    for (unsigned i = me->line_used < LINES ? 0 : me->line_used - LINES + 1; i <= me->line_used;
         i++)
        if (me->line[i % LINES][0] != '\0') write_line(file, "    %s", me->line[i % LINES]);
}

static void last_words(const char *text)
{
    note_kind(text);
    write_line(2, "the last steps of player %u (seed %llu):", me != NULL ? me->index : 0,
               (unsigned long long)world.seed);
    print_lines(2);
    write_line(2, "repeat with --seed %llu and what this run had, shorten with --shrink",
               (unsigned long long)world.seed);
}

static void report_signal(int number)
{
    char text[] = "signal A";
    text[7] = (char)('A' + number);
    write_line(2, "sequence: signal %d", number);
    last_words(text);
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_signals(void)
{
    static const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP };
    struct sigaction action = { .sa_handler = report_signal, .sa_flags = SA_NODEFER };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---- playing ---- */

static void make_step(uint64_t step)
{
    me->step = step;
    me->random = mix(world.seed * 0x9E3779B97F4A7C15ull + mix(step + ((uint64_t)me->index << 56)));
    whereabouts.step = step;
    say("%llu: ", (unsigned long long)step);
    unsigned kind = below(100);
    if (kind < 88) step_blocks();
    else if (kind < 97 || world.players == 1) step_controls();
    else if (!blocks_hand_over()) blocks_take_over();
    check_totals();
}

static void fork_step(uint64_t step)
{
    pid_t child = fork();

    if (child < 0) return;
    if (child == 0) {
        alarm(patience(CHILD_SECONDS));
        say("in a child:");
        for (uint64_t i = 0; i < CHILD_STEPS; i++) make_step((step << 20) + i);
        check_all_blocks();
        check_statistics(true);
        prairie_check_all();
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0) violation("a child ended with status 0x%x", (unsigned)status);
}

static void play(struct player *player)
{
    me = player;
    whereabouts.lane = player->index;
    whereabouts.action = "sequence";
    for (uint64_t step = 0; step < world.steps; step++) {
        if (kept != NULL) {
            if (!kept->keep[step]) continue;
            kept->step = step;
        }
        make_step(step);
        if (forks != 0 && below(forks) == 0) fork_step(step);
    }
}

static void *play_thread(void *player)
{
    play(player);
    say("the end: ");
    leave_everything();
    return NULL;
}

/* What other players hand over after a player has left. */
static void empty_boxes(void)
{
    for (unsigned i = 0; i < world.players; i++) {
        struct player *player = &players[i];
        while (player->box_count > 0) {
            struct block block = player->box[--player->box_count].block;
            oracle_verify(&block, block.stamped_bytes, "in a box at the end");
            oracle_release(&block);
            free(block.base);
            me->counted -= (int64_t)block.usable_bytes;
        }
    }
}

static const char *option_text(const char *name)
{
    const char *text = "";
    return number_of(name, sizeof text, &text) == 0 ? text : "";
}

static bool option_flag(const char *name)
{
    bool flag = false;
    return number_of(name, sizeof flag, &flag) == 0 && flag;
}

static void learn_world(void)
{
    const char *junk = option_text("opt.junk");
    uint64_t epoch = 1;

    world.clears = option_flag("opt.zero");
    world.junks = !world.clears && (strcmp(junk, "alloc") == 0 || strcmp(junk, "true") == 0);
    world.samples = option_flag("opt.prof");
    world.hardened = option_flag("opt.hardened");
    world.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (number_of("opt.narenas", sizeof world.automatic_arenas, &world.automatic_arenas) != 0)
        give_up("sequence: opt.narenas cannot be read");
    world.player = players;
    for (unsigned i = 0; i < PLAYERS_MAX; i++) {
        players[i].index = i;
        players[i].bound = ARENA_ANY;
        pthread_mutex_init(&players[i].box_lock, NULL);
    }
    me = &players[0];
    hosts_start();
    (void)mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    world.base_bytes = size_of("stats.allocated");
    world.base_active = active_now();
}

/* Which arena a new thread gets may depend on the core. The library has counted the cores by
 * now. */
static void stay_on_one_core(void)
{
    cpu_set_t cores, one;

    if (world.players > 1 || sched_getaffinity(0, sizeof cores, &cores) != 0) return;
    unsigned chosen = (unsigned)(world.seed % (unsigned)CPU_COUNT(&cores));
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &cores) && chosen-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            (void)sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

static int run(void)
{
    pthread_t thread[PLAYERS_MAX];

    stay_on_one_core();
    catch_signals();
    oracle_start(world.seed);
    oracle_last_words = last_words;
    learn_world();
    for (unsigned i = 1; i < world.players; i++)
        if (pthread_create(&thread[i], NULL, play_thread, &players[i]) != 0)
            give_up("sequence: no thread");
    play(&players[0]);
    say("the end: ");
    check_statistics(true);
    for (unsigned i = 1; i < world.players; i++) pthread_join(thread[i], NULL);
    empty_boxes();
    leave_everything();
    check_statistics(true);
    prairie_check_all();
    check_nothing_left();
    say("%s", "");
    uint64_t calls = 0, refusals = 0;
    for (unsigned i = 0; i < world.players; i++) {
        calls += players[i].calls;
        refusals += players[i].refusals;
    }
    printf("%llu steps of %u players, %llu calls, %llu refused\n", (unsigned long long)world.steps,
           world.players, (unsigned long long)calls, (unsigned long long)refusals);
    return 0;
}

/* ---- the beginning ---- */

static void usage(void)
{
    dprintf(2,
            "usage: sequence [--seed N] [--steps N] [--threads N] [--forks STEPS] [--space MIB]\n"
            "                [--say] [--shrink]\n"
            "--forks: about one in so many steps. --space: RLIMIT_AS.\n");
    exit(EXIT_USAGE);
}

/* Addresses repeat, and the limit holds from the first page on, in a program that begins anew. */
static void begin_anew(char **argv)
{
    int before = personality(0xffffffff);
    bool again = world.players == 1 && before >= 0 && (before & ADDR_NO_RANDOMIZE) == 0
              && personality((unsigned long)before | ADDR_NO_RANDOMIZE) >= 0;
    struct rlimit now;

    if (space_mb != 0) {
        world.has_space_limit = true;
        getrlimit(RLIMIT_AS, &now);
        if (now.rlim_cur != (rlim_t)space_mb << 20) {
            again = true;
            now.rlim_cur = (rlim_t)space_mb << 20;
            setrlimit(RLIMIT_AS, &now);
        }
        world.address_bytes = (size_t)space_mb << 20;
    }
    if (again) execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    bool shrinks = false;
    int kept_file = -1;

    world.players = 1;
    world.steps = 100000;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(word, "--say") == 0) world.says_steps = true;
        else if (strcmp(word, "--shrink") == 0) shrinks = true;
        else if (i++, i == argc) usage();
        else if (strcmp(word, "--seed") == 0) setenv("PRAIRIE_TEST_SEED", value, 1);
        else if (strcmp(word, "--steps") == 0) world.steps = strtoull(value, NULL, 0);
        else if (strcmp(word, "--threads") == 0) world.players = (unsigned)atoi(value);
        else if (strcmp(word, "--forks") == 0) forks = (unsigned)atoi(value);
        else if (strcmp(word, "--space") == 0) space_mb = (unsigned)atoi(value);
        else if (strcmp(word, "--kept") == 0) kept_file = atoi(value);
        else usage();
    }
    if (world.players < 1 || world.players > PLAYERS_MAX || world.steps == 0) usage();
    require_prairie();
    /* Wherever the output goes, it takes no block. */
    static char output[4096];
    setvbuf(stdout, output, _IOLBF, sizeof output);
    setenv("PRAIRIE_TEST_SEED", "1", 0);
    if (shrinks) return shrink(argc, argv);
    begin_anew(argv);
    world.seed = seed_of_run();
    if (kept_file >= 0) map_kept(kept_file);
    return run();
}
