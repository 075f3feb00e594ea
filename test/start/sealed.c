/* sealed.c - in a hardened process a write to what decides ends it, and the controls that change
 * some of it still do. */
/* SPDX-License-Identifier: MIT */
/* usage: sealed          in a hardened process
 *        sealed open     in another one, where the same writes do nothing */
#include "../blackbox/blackbox.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { THREADS = 4, WRITES = 2000, FORKS = 20 };

extern int mallctl(const char *name, void *old, size_t *old_bytes, void *wanted,
                   size_t wanted_bytes) __attribute__((weak));

/* Of the library's own table of symbols, which a stripped one has not got; one that has it has all
 * of these names. */
static const char *const sealed[] = {
    "option_values", "hardening",     "threads_are_hardened", "sealed_is_closed",
    "class_map",     "page_map",      "slab_shape",           "end_hook",
    "error_copy",    "fault_watcher", "offset_of_sized_free", "sampling_hooks",
};
/* What the loader closes, in every process. */
static const char *const constant[] = { "extent_hooks_default", "front_empty", "control_tables" };

static const char *file_name;
static uintptr_t load_base;

static int find_base(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    (void)bytes, (void)unused;
    char path[4096];
    if (info->dlpi_name == NULL || realpath(info->dlpi_name, path) == NULL
        || strcmp(path, file_name) != 0)
        return 0;
    load_base = info->dlpi_addr;
    return 1;
}

static const char *map_library(void)
{
    static char path[4096];
    struct stat status;
    const char *library = getenv("PRAIRIE_LIBRARY");
    must(library != NULL && realpath(library, path) != NULL);
    file_name = path;
    must(dl_iterate_phdr(find_base, NULL) == 1);
    int file = open(path, O_RDONLY);
    must(file >= 0 && fstat(file, &status) == 0);
    const char *image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    must(image != MAP_FAILED);
    close(file);
    return image;
}

static volatile char *address_of(const char *image, const char *name)
{
    const ElfW(Ehdr) *head = (const void *)image;
    const ElfW(Shdr) *section = (const void *)(image + head->e_shoff);
    bool is_stripped = true;
    for (unsigned i = 0; i < head->e_shnum; i++) {
        if (section[i].sh_type != SHT_SYMTAB) continue;
        is_stripped = false;
        const ElfW(Sym) *symbol = (const void *)(image + section[i].sh_offset);
        const char *names = image + section[section[i].sh_link].sh_offset;
        for (size_t n = 0; n < section[i].sh_size / sizeof *symbol; n++)
            if (strcmp(names + symbol[n].st_name, name) == 0)
                return (volatile char *)(load_base + symbol[n].st_value);
    }
    if (is_stripped) skip_test("the library has no symbols");
    give_up("the library has no symbol %s", name);
    return NULL;
}

/* The same value, by a child. */
static bool write_ends_it(volatile char *at)
{
    int status;
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *at = *at;
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child);
    must(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void writes_end_it(const char *image, bool hardened)
{
    for (size_t i = 0; i < sizeof sealed / sizeof sealed[0]; i++)
        if (write_ends_it(address_of(image, sealed[i])) != hardened) {
            fprintf(stderr, "sealed: %s is %s\n", sealed[i], hardened ? "open" : "closed");
            exit(1);
        }
    for (size_t i = 0; i < sizeof constant / sizeof constant[0]; i++)
        must(write_ends_it(address_of(image, constant[i])));
}

static void control(const char *name, void *wanted, void *back, size_t bytes)
{
    int error = mallctl(name, NULL, NULL, wanted, bytes);
    if (error != 0) {
        fprintf(stderr, "sealed: %s: error %d\n", name, error);
        exit(1);
    }
    must(mallctl(name, back, &bytes, NULL, 0) == 0 && memcmp(wanted, back, bytes) == 0);
}

static void hook(const char *path) { (void)path; }

static void controls_work(void)
{
    bool flags[] = { true, false }, flag;
    size_t most[] = { 1, 4 }, got;
    ssize_t decay[] = { 0, -1, 5000 }, was;
    const char *dss = "disabled", *said;
    size_t said_bytes = sizeof said, active_bytes = sizeof flag;
    for (int i = 0; i < 2; i++) control("background_thread", &flags[i], &flag, sizeof flag);
    for (int i = 0; i < 2; i++) control("max_background_threads", &most[i], &got, sizeof got);
    for (int i = 0; i < 3; i++) {
        control("arenas.dirty_decay_ms", &decay[i], &was, sizeof was);
        control("arena.0.muzzy_decay_ms", &decay[i], &was, sizeof was);
    }
    must(mallctl("arena.0.dss", &said, &said_bytes, &dss, sizeof dss) == 0);
    must(mallctl("opt.prof", &flag, &active_bytes, NULL, 0) == 0);
    if (!flag) return;
    void *wanted = (void *)hook, *back;
    control("experimental.hooks.prof_dump", &wanted, &back, sizeof back);
    for (int i = 0; i < 2; i++) control("prof.active", &flags[i], &flag, sizeof flag);
}

static void *keep_writing(void *unused)
{
    for (ssize_t i = 0; i < WRITES; i++) {
        must(mallctl("arenas.dirty_decay_ms", NULL, NULL, &i, sizeof i) == 0);
        free(malloc((size_t)i * 7));
    }
    return unused;
}

/* Children of a fork in the middle of it can write, too. */
static void many_write_at_once(void)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, keep_writing, NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        int status;
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            controls_work();
            _exit(0);
        }
        must(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
}

/* Opening some pages of a mapping takes one mapping more. */
static void no_mapping_is_left(bool hardened)
{
    ssize_t decay = 7, was;
    size_t bytes = sizeof was;
    for (size_t count = 0;; count++) {
        int protection = count % 2 == 0 ? PROT_NONE : PROT_READ;
        if (mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
        if (count > 300000) return;
    }
    int error = mallctl("arenas.dirty_decay_ms", NULL, NULL, &decay, sizeof decay);
    must(error == 0 || (hardened && error == EAGAIN));
    must(mallctl("arenas.dirty_decay_ms", &was, &bytes, NULL, 0) == 0
         && (was == decay) == (error == 0));
}

int main(int argc, char **argv)
{
    (void)argv;
    bool hardened = argc == 1;
    require_prairie();
    const char *image = map_library();
    writes_end_it(image, hardened);
    controls_work();
    writes_end_it(image, hardened);
    many_write_at_once();
    writes_end_it(image, hardened);
    no_mapping_is_left(hardened);
    printf("sealed: %zu values, %s\n", sizeof sealed / sizeof sealed[0],
           hardened ? "closed" : "open");
    return 0;
}
