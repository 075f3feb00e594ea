/* unit.c - forks a child for each test, and tells cmocka how it ended. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdbool.h>

#include "unit.h"

#include "blackbox/emulator.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PASSED_CODE = 17,
    SKIPPED_CODE = 18,
    TEST_SECONDS_MAX = 100, /* of a processor; on a busy machine it waits for one, as ctest does */
    BUSY_TIMES = 3,
    FAKE_PAGE_BYTES = 4096,
    OUTPUT_BYTES_MAX = 1 << 20
};

static uint64_t random_state = 1;

static struct {
    const unsigned char *at, *end; /* at NULL: no bytes were given */
} given;

void random_from(const void *bytes, size_t count)
{
    given.at = bytes;
    given.end = given.at + count;
}

bool random_is_over(void) { return given.at != NULL && given.at == given.end; }

static uint64_t given_number(uint64_t last)
{
    uint64_t number = 0;

    for (; last != 0; last >>= 8) number = number << 8 | (given.at < given.end ? *given.at++ : 0);
    return number;
}

uint64_t random_word(void)
{
    uint64_t word;

    if (given.at != NULL) return given_number(UINT64_MAX);
    word = random_state += 0x9e3779b97f4a7c15;

    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

uint64_t random_below(uint64_t end)
{
    return (given.at != NULL ? given_number(end - 1) : random_word()) % end;
}

bool all_bytes_are(const void *base, unsigned char value, size_t bytes)
{
    const unsigned char *at = base;

    return bytes == 0 || (at[0] == value && memcmp(at, at + 1, bytes - 1) == 0);
}

void wait_until_set(const uint32_t *flag)
{
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) usleep(100);
}

/* ---- children ---- */

struct outcome {
    int status; /* as waitpid tells it */
    char *text; /* both outputs; the caller frees it */
};

static int make_output_file(void)
{
    int file = memfd_create("output", MFD_CLOEXEC);

    if (file < 0) {
        perror("memfd_create");
        exit(1);
    }
    return file;
}

static char *read_output(int file)
{
    char *text = calloc(1, OUTPUT_BYTES_MAX), *emulator;

    if (pread(file, text, OUTPUT_BYTES_MAX - 1, 0) < 0) perror("pread");
    /* What an emulator adds when a signal ends the program. */
    emulator = strstr(text, "qemu: uncaught target signal");
    if (emulator != NULL) *emulator = '\0';
    close(file);
    return text;
}

/* In the child: crashes end it rather than going to cmocka, leave no file, and it ends when it
 * computes for too long, or waits for ever. */
static void become_child(int output_file)
{
    static const int crashes[] = { SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS };
    struct rlimit none = { 0, 0 };
    struct rlimit work = { TEST_SECONDS_MAX * times_slower(), RLIM_INFINITY };

    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) signal(crashes[i], SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &none);
    dup2(output_file, STDOUT_FILENO);
    dup2(output_file, STDERR_FILENO);
    (void)setrlimit(RLIMIT_CPU, &work);
    alarm(BUSY_TIMES * TEST_SECONDS_MAX * times_slower());
}

static struct outcome run_in_child(void (*run)(const void *), const void *context)
{
    int file = make_output_file();
    struct outcome outcome;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        become_child(file);
        run(context);
        fflush(NULL);
        _exit(0);
    }
    if (child < 0) {
        perror("fork");
        exit(1);
    }
    while (waitpid(child, &outcome.status, 0) < 0 && errno == EINTR) {}
    outcome.text = read_output(file);
    return outcome;
}

/* Says what happened and lets go of the text, which cmocka would cut. */
static void describe(const char *who, struct outcome outcome)
{
    if (WIFSIGNALED(outcome.status))
        fprintf(stderr, "%s ended by signal %d (%s) and said:\n", who, WTERMSIG(outcome.status),
                strsignal(WTERMSIG(outcome.status)));
    else fprintf(stderr, "%s ended with code %d and said:\n", who, WEXITSTATUS(outcome.status));
    fputs(outcome.text, stderr);
    free(outcome.text);
}

static void run_body(const void *context)
{
    void (*body)(void);

    memcpy(&body, context, sizeof body);
    body();
}

void expect_abort(void (*body)(void), const char *line_start)
{
    struct outcome outcome = run_in_child(run_body, &body);
    const char *newline = strchr(outcome.text, '\n');
    bool aborted = WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGABRT;
    bool one_line = newline != NULL && newline[1] == '\0';
    bool right = strncmp(outcome.text, line_start, strlen(line_start)) == 0;

    if (!aborted || !one_line || !right) {
        describe("what had to abort", outcome);
        fail_msg("expected one line that starts with '%s', and an abort", line_start);
    }
    free(outcome.text);
}

void expect_abort_at(void (*body)(void), const char *words, const void *address)
{
    char line[120];

    snprintf(line, sizeof line, "prairie: %s: 0x%llx\n", words,
             (unsigned long long)(uintptr_t)address);
    expect_abort(body, line);
}

bool faults_can_be_expected(void) { return sysconf(_SC_PAGESIZE) <= FAKE_PAGE_BYTES; }

void expect_fault(void (*body)(void))
{
    struct outcome outcome;

    if (!faults_can_be_expected()) return;
    outcome = run_in_child(run_body, &body);
    if (!WIFSIGNALED(outcome.status) || WTERMSIG(outcome.status) != SIGSEGV) {
        describe("what had to fault", outcome);
        fail();
    }
    free(outcome.text);
}

static void expect_silent_end(struct outcome outcome)
{
    if (outcome.status != 0 || outcome.text[0] != '\0') {
        describe("what had to end silently", outcome);
        fail();
    }
    free(outcome.text);
}

void expect_survival(void (*body)(void)) { expect_silent_end(run_in_child(run_body, &body)); }

/* ---- a process whose first thread has ended ---- */

static bool (*holds_without_first)(void);

/* It has no memory any more. */
static bool first_has_ended(void)
{
    char pages = '\0';
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL) return false;
    pages = (char)fgetc(file);
    fclose(file);
    return pages == '0';
}

static void *ask_without_first(void *unused)
{
    while (!first_has_ended()) usleep(1000);
    _exit(holds_without_first() ? 0 : 1);
    return unused;
}

static void *stay(void *unused)
{
    for (;;) pause();
    return unused;
}

static void end_first(const void *unused)
{
    pthread_t thread;

    (void)unused;
    if (pthread_create(&thread, NULL, stay, NULL) == 0
        && pthread_create(&thread, NULL, ask_without_first, NULL) == 0)
        (void)syscall(SYS_exit, 0); /* of this thread alone */
    perror("pthread_create");
}

void expect_without_first_thread(bool (*holds)(void))
{
    holds_without_first = holds;
    expect_silent_end(run_in_child(end_first, NULL));
}

/* ---- the group ---- */

static bool is_skipped;

void unit_skip(const char *file, int line)
{
    is_skipped = true;
    _skip(file, line);
}

bool addresses_can_be_had(size_t bytes)
{
    void *range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return range != MAP_FAILED && munmap(range, bytes) == 0;
}

/* With codes of its own: whatever else ends the process has not come to the end of the test. */
static void run_alone(const void *context)
{
    const struct unit_test *test = context;
    const struct CMUnitTest one = { test->name, test->body, NULL, NULL, NULL };
    int failures = _cmocka_run_group_tests(test->name, &one, 1, NULL, NULL);

    fflush(NULL);
    _exit(failures != 0 ? 1 : is_skipped ? SKIPPED_CODE : PASSED_CODE);
}

static void run_forked(void **state)
{
    const struct unit_test *test = *state;
    struct outcome outcome = run_in_child(run_alone, test);
    int code = WIFEXITED(outcome.status) ? WEXITSTATUS(outcome.status) : -1;

    if (code != PASSED_CODE && code != SKIPPED_CODE) {
        describe("the test", outcome);
        fail();
    }
    free(outcome.text);
    if (code == SKIPPED_CODE) _skip(test->name, 0);
}

static bool is_named(const char *name, int argc, char **argv, int first)
{
    for (int i = first; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return first >= argc;
}

int unit_run(int argc, char **argv, const struct unit_test *tests, size_t count)
{
    struct CMUnitTest *group = calloc(count, sizeof *group);
    size_t chosen = 0;
    int first = 1, failures;
    bool alone;

    if (argc > first + 1 && strcmp(argv[first], "--seed") == 0) {
        random_state = strtoull(argv[first + 1], NULL, 0);
        first += 2;
    }
    alone = argc == first + 2 && strcmp(argv[first], "--alone") == 0;
    if (alone) first++;
    for (size_t i = 0; i < count; i++) {
        void *test = (void *)(uintptr_t)&tests[i];
        if (!is_named(tests[i].name, argc, argv, first)) continue;
        group[chosen++] = (struct CMUnitTest){ tests[i].name, run_forked, NULL, NULL, test };
    }
    if (chosen == 0) {
        fprintf(stderr, "no test of that name\n");
        return 2;
    }
    printf("seed: %llu\n", (unsigned long long)random_state);
    if (alone) run_alone(group[0].initial_state);
    failures = alone ? 0 : _cmocka_run_group_tests(argv[0], group, chosen, NULL, NULL);
    free(group);
    return failures != 0;
}
