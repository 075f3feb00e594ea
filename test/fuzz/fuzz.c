/* fuzz.c - runs inputs in children, and looks for new ones by what they reach.
 * SPDX-License-Identifier: MIT
 *
 * A library that was compiled with -fsanitize-coverage=trace-pc calls __sanitizer_cov_trace_pc at
 * each edge; the pairs of places that follow one another are counted in memory which the child
 * shares with its parent. Without that the program replays only. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { EDGES = 1 << 16, INPUTS_MAX = 20000, CHILD_SECONDS = 20, CHANGES_MAX = 6 };

struct input {
    uint8_t *bytes;
    size_t length;
    size_t edges; /* reached by it, for the choice of a small corpus */
    uint8_t *reached;
};

static uint8_t *edges;      /* counts of this run, shared with the child */
static uint8_t seen[EDGES]; /* a bit for each magnitude of each count so far */
static struct input inputs[INPUTS_MAX];
static size_t input_count;
static uint64_t runs;

/* ---- what the library calls ---- */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    static uintptr_t previous;
    uintptr_t here = (uintptr_t)__builtin_return_address(0) * 0x9e3779b97f4a7c15u >> 16;
    size_t edge = (here ^ previous) % EDGES;

    previous = here >> 1;
    if (edges != NULL && edges[edge] < UINT8_MAX) edges[edge]++;
}

/* ---- one input ---- */

static void run_here(const uint8_t *bytes, size_t length)
{
    random_from(bytes, length);
    fuzz_one();
}

/* How the child ended, as waitpid tells it. */
static int run_in_child(const uint8_t *bytes, size_t length, bool speaks)
{
    struct rlimit none = { 0, 0 };
    int status = 0;
    pid_t child;

    runs++;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &none);
        if (!speaks && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
            _exit(3);
        alarm(CHILD_SECONDS);
        run_here(bytes, length);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        perror("fork");
        exit(2);
    }
    return status;
}

/* ---- corpora ---- */

static uint8_t digit_value(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static size_t bytes_of_digits(const char *digits, uint8_t *bytes)
{
    size_t length = strspn(digits, "0123456789abcdef") / 2;

    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(digit_value(digits[2 * i]) << 4 | digit_value(digits[2 * i + 1]));
    return length;
}

static void print_digits(FILE *file, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) fprintf(file, "%02x", bytes[i]);
    fputc('\n', file);
}

static void keep(const uint8_t *bytes, size_t length)
{
    struct input *input = &inputs[input_count];

    if (input_count == INPUTS_MAX) return;
    input->bytes = malloc(length + 1);
    memcpy(input->bytes, bytes, length);
    input->length = length;
    input_count++;
}

static void read_corpus(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;

    if (file == NULL) return;
    while (getline(&line, &room, file) > 0) {
        uint8_t *bytes = malloc(strlen(line));
        if (line[0] != '#') keep(bytes, bytes_of_digits(line, bytes));
        free(bytes);
    }
    free(line);
    fclose(file);
}

/* ---- replay ---- */

static int replay(char *const *paths, int count)
{
    unsigned failed = 0;

    for (int i = 0; i < count; i++) read_corpus(paths[i]);
    for (size_t i = 0; i < input_count; i++) {
        if (run_in_child(inputs[i].bytes, inputs[i].length, true) == 0) continue;
        failed++;
        printf("input %zu fails: ", i + 1);
        print_digits(stdout, inputs[i].bytes, inputs[i].length);
    }
    printf("%zu inputs, %u fail\n", input_count, failed);
    return input_count == 0 || failed != 0;
}

/* ---- fuzzing ---- */

static uint64_t random_state;

static uint64_t draw(uint64_t end)
{
    uint64_t word = random_state += 0x9e3779b97f4a7c15;

    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return (word ^ (word >> 31)) % end;
}

static uint8_t magnitude(uint8_t count)
{
    if (count == 0) return 0;
    if (count < 4) return (uint8_t)(1 << (count - 1));
    return (uint8_t)(count < 8 ? 8 : count < 16 ? 16 : count < 32 ? 32 : count < 128 ? 64 : 128);
}

static bool reaches_new(void)
{
    bool new = false;

    for (size_t i = 0; i < EDGES; i += 8) {
        if (*(uint64_t *)(edges + i) == 0) continue;
        for (size_t j = i; j < i + 8; j++) {
            uint8_t bit = magnitude(edges[j]);
            new |= (bit & ~seen[j]) != 0;
            seen[j] |= bit;
        }
    }
    return new;
}

static int try_input(const uint8_t *bytes, size_t length)
{
    memset(edges, 0, EDGES);
    return run_in_child(bytes, length, false);
}

static size_t change(uint8_t *bytes, size_t length)
{
    size_t at = length > 0 ? draw(length) : 0, count = 1 + draw(8);
    const struct input *other = &inputs[draw(input_count)];

    switch (draw(8)) {
    case 0:
    case 1:
        if (length > 0) bytes[at] = (uint8_t)draw(256);
        return length;
    case 2:
        if (length > 0) bytes[at] ^= (uint8_t)(1 << draw(8));
        return length;
    case 3:
        if (length > 0) bytes[at] = (uint8_t)(bytes[at] + draw(9) - 4);
        return length;
    case 4: /* leaves some out */
        if (at + count > length) return length;
        memmove(bytes + at, bytes + at + count, length - at - count);
        return length - count;
    case 5: /* adds some */
        if (length + count > fuzz_bytes_max) return length;
        memmove(bytes + at + count, bytes + at, length - at);
        for (size_t i = at; i < at + count; i++) bytes[i] = (uint8_t)draw(256);
        return length + count;
    case 6: { /* repeats some */
        size_t copied = 1 + draw(32);
        if (at + copied > length || length + copied > fuzz_bytes_max) return length;
        memmove(bytes + at + copied, bytes + at, length - at);
        return length + copied;
    }
    default: /* goes on as another one */
        if (other->length == 0) return length;
        count = draw(other->length);
        at = at < length ? at : length;
        if (at + other->length - count > fuzz_bytes_max) return length;
        memcpy(bytes + at, other->bytes + count, other->length - count);
        return at + other->length - count;
    }
}

/* Leaves out what the failure does not need, half of it first. */
static size_t shorten(uint8_t *bytes, size_t length)
{
    uint8_t *shorter = malloc(length + 1);

    for (size_t piece = length / 2; piece > 0; piece /= 2)
        for (size_t at = 0; at + piece <= length;) {
            memcpy(shorter, bytes, at);
            memcpy(shorter + at, bytes + at + piece, length - at - piece);
            if (run_in_child(shorter, length - piece, false) != 0) {
                length -= piece;
                memcpy(bytes, shorter, length);
            } else {
                at += piece;
            }
        }
    free(shorter);
    return length;
}

static int fails(uint8_t *bytes, size_t length)
{
    length = shorten(bytes, length);
    printf("after %llu runs an input fails: ", (unsigned long long)runs);
    print_digits(stdout, bytes, length);
    (void)run_in_child(bytes, length, true);
    return 1;
}

/* The fewest and shortest, more or less: the shortest first, and none whose edges are all known. */
static int by_length(const void *a, const void *b)
{
    const struct input *one = a, *other = b;

    return (one->length > other->length) - (one->length < other->length);
}

static void write_corpus(const char *path)
{
    FILE *file;
    size_t kept = 0, bytes = 0;

    qsort(inputs, input_count, sizeof inputs[0], by_length);
    memset(seen, 0, sizeof seen);
    file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    for (size_t i = 0; i < input_count; i++) {
        (void)try_input(inputs[i].bytes, inputs[i].length);
        /* How often an edge is passed matters while one looks, and not for what is kept. */
        for (size_t edge = 0; edge < EDGES; edge++) edges[edge] = edges[edge] != 0;
        if (!reaches_new()) continue;
        print_digits(file, inputs[i].bytes, inputs[i].length);
        kept++;
        bytes += inputs[i].length;
    }
    fclose(file);
    printf("%zu inputs kept, %zu bytes\n", kept, bytes);
}

static size_t edges_seen(void)
{
    size_t count = 0;

    for (size_t i = 0; i < EDGES; i++) count += seen[i] != 0;
    return count;
}

static int fuzz(const char *path, unsigned seconds, uint64_t seed)
{
    time_t end = time(NULL) + seconds;
    uint8_t *bytes = malloc(fuzz_bytes_max);

    random_state = seed;
    edges = mmap(NULL, EDGES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    read_corpus(path);
    if (input_count == 0) keep((const uint8_t *)"", 0);
    for (size_t i = 0; i < input_count; i++) {
        if (try_input(inputs[i].bytes, inputs[i].length) != 0)
            return fails(inputs[i].bytes, inputs[i].length);
        (void)reaches_new();
    }
    while (time(NULL) < end) {
        const struct input *from = &inputs[draw(input_count)];
        size_t length = from->length;

        if (length > fuzz_bytes_max) continue;
        memcpy(bytes, from->bytes, length);
        for (uint64_t changes = 1 + draw(CHANGES_MAX); changes > 0; changes--)
            length = change(bytes, length);
        if (try_input(bytes, length) != 0) return fails(bytes, length);
        if (reaches_new()) keep(bytes, length);
    }
    printf("%llu runs, %zu edges, ", (unsigned long long)runs, edges_seen());
    write_corpus(path);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    if (argc >= 3 && strcmp(argv[1], "replay") == 0) return replay(argv + 2, argc - 2);
    if (argc >= 4 && strcmp(argv[1], "fuzz") == 0)
        return fuzz(argv[2], (unsigned)atoi(argv[3]),
                    argc > 4 ? strtoull(argv[4], NULL, 0) : (uint64_t)time(NULL));
    if (argc == 3 && strcmp(argv[1], "one") == 0) {
        uint8_t *bytes = malloc(strlen(argv[2]) + 1);
        run_here(bytes, bytes_of_digits(argv[2], bytes));
        return 0;
    }
    fprintf(stderr, "%s: replay FILE... | fuzz FILE SECONDS [SEED] | one HEX\n", argv[0]);
    return 2;
}
