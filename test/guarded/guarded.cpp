// guarded.cpp - does wrong with guarded blocks, one way a run; guarded_run.py says what must come of it.
// SPDX-License-Identifier: MIT
#include "../blackbox/blackbox.h"

#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

namespace {

// ---- which blocks are guarded ----

size_t const page_bytes = (size_t)sysconf(_SC_PAGESIZE);

bool can_be_read(char const *address)
{
    char byte;
    iovec here = { &byte, 1 }, there = { (void *)address, 1 };

    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

char *page_of(char const *block) { return (char *)((uintptr_t)block & ~(page_bytes - 1)); }

bool is_guarded(char const *block)
{
    char const *page = page_of(block);

    return can_be_read(page) && !can_be_read(page - 1) && !can_be_read(page + page_bytes);
}

enum side { ANY, LEFT, RIGHT };

bool is_wanted(char const *block, side wanted)
{
    return is_guarded(block) && (wanted == ANY || (wanted == LEFT) == (block == page_of(block)));
}

// The compiler knows nothing of it.
char *hidden(char *block)
{
    __asm__ volatile("" : "+r"(block) : : "memory");
    return block;
}

// What is not guarded stays, so that magazines run empty; a guarded one at the wrong side does not, for a site
// gets only so many. NULL: there is none.
char *find_guarded(size_t size, side wanted, void *(*take)(size_t))
{
    for (int i = 0; i < 20000; i++) {
        char *block = (char *)take(size);
        must(block != NULL);
        if (is_wanted(block, wanted)) return block;
        if (is_guarded(block)) free(hidden(block));
    }
    return NULL;
}

char *guarded_block(size_t size, side wanted = ANY, void *(*take)(size_t) = malloc)
{
    char *block = find_guarded(size, wanted, take);

    if (block == NULL) give_up("no block of %zu bytes is guarded", size);
    return block;
}

void write_to(char *address) { *(char volatile *)hidden(address) = 1; }
void read_from(char *address) { (void)*(char volatile *)hidden(address); }

size_t usable_bytes(char *block) { return malloc_usable_size(block); }

// ---- accesses ----

void overflow()
{
    char *block = guarded_block(200, RIGHT);
    write_to(block + usable_bytes(block));
}

void underflow() { read_from(guarded_block(200, LEFT) - 3); }

void use_after_free()
{
    char *block = guarded_block(200);
    free(hidden(block));
    write_to(block + 8);
}

void read_after_realloc()
{
    char *block = guarded_block(200);
    must(realloc(hidden(block), 5000) != NULL);
    read_from(block);
}

void *take_there(void *block)
{
    *(char **)block = guarded_block(200);
    dprintf(1, "taken %ld\n", (long)syscall(SYS_gettid));
    return NULL;
}

void *free_there(void *block)
{
    free(*(char **)block);
    dprintf(1, "freed %ld\n", (long)syscall(SYS_gettid));
    return NULL;
}

void run_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, body, argument) == 0);
    must(pthread_join(thread, NULL) == 0);
}

void use_across_threads()
{
    char *block;
    run_thread(take_there, &block);
    run_thread(free_there, &block);
    dprintf(1, "done %ld\n", (long)syscall(SYS_gettid));
    write_to(block);
}

void copies_out_of_bounds()
{
    char *block = guarded_block(200, RIGHT);
    size_t volatile length = usable_bytes(block) + 1;
    memset(hidden(block), 1, length);
}

// ---- bad calls ----

void double_free()
{
    char *block = guarded_block(200);
    free(hidden(block));
    free(hidden(block));
}

void free_interior() { free(hidden(guarded_block(200) + 16)); }

void realloc_freed()
{
    char *block = guarded_block(200);
    free(hidden(block));
    must(realloc(hidden(block), 300) != NULL);
}

void usable_size_freed()
{
    char *block = guarded_block(200);
    free(hidden(block));
    must(malloc_usable_size(hidden(block)) == 0);
}

// ---- sized deletes ----

void *take_new(size_t size) { return operator new(size); }

void use_after_sized_delete()
{
    char *block = guarded_block(200, ANY, take_new);
    operator delete(hidden(block), (size_t)200);
    write_to(block);
}

void sized_delete_twice()
{
    char *block = guarded_block(200, ANY, take_new);
    operator delete(hidden(block), (size_t)200);
    operator delete(hidden(block), (size_t)200);
}

void sized_delete_wrong()
{
    char *block = guarded_block(200, ANY, take_new);
    operator delete(hidden(block), (size_t)100);
}

// Nobody looks at sized deletes any more after so many.
void end_watch()
{
    for (int i = 0; i < 20000; i++) operator delete(hidden((char *)operator new(200)), (size_t)200);
}

// It is an ordinary block of its size then, and comes back to its cell when caches drain.
void use_after_unwatched_delete()
{
    char *block = guarded_block(200, ANY, take_new);

    end_watch();
    must(is_guarded(block));
    must(operator new(200) != NULL); // leaves room in its magazine
    operator delete(hidden(block), (size_t)200);
    must(is_guarded(block));
    must(operator new(200) == block);
    memset(block, 1, usable_bytes(block));
    operator delete(hidden(block), (size_t)200);
    malloc_trim(0);
    for (int i = 0; i < 1000 && can_be_read(block); i++) must(malloc(3000) != NULL);
    write_to(block);
}

// Nor does the look at the end of the process, or at what changes hands, take it for a mistake.
void unwatched_at_end()
{
    char *block = guarded_block(200, ANY, take_new);

    end_watch();
    must(operator new(200) != NULL); // leaves room in its magazine
    operator delete(hidden(block), (size_t)200);
}

// The walkers do not, where it lies in a depot.
void unwatched_in_depot()
{
    static char *held[600]; // more than two magazines
    char *block;

    for (int round = 0; round < 10; round++) {
        for (char *&one : held) one = (char *)operator new(200);
        for (char *one : held) operator delete(hidden(one), (size_t)200);
    }
    for (char *&one : held) one = (char *)operator new(200);
    block = guarded_block(200, ANY, take_new);
    end_watch();
    for (int i = 0; i < 10; i++) operator delete(hidden(held[i]), (size_t)200);
    operator delete(hidden(block), (size_t)200);
    for (int i = 10; i < 600; i++) {
        operator delete(hidden(held[i]), (size_t)200);
        if (i % 50 == 0) walk_heap();
    }
}

void overflow_unwatched()
{
    char *block = guarded_block(200, RIGHT, take_new);
    end_watch();
    write_to(block + usable_bytes(block));
}

// All that a C++ program does with sizes, for a while; no cell is lost.
void sized_churn()
{
    static char *held[200];

    for (int i = 0; i < 300000; i++) {
        char **place = &held[i * 7919L % 200];
        size_t size = 16 + (size_t)(place - held) * 5;
        if (*place != NULL) operator delete(*place, size);
        *place = (char *)operator new(size);
        memset(*place, 1, size);
    }
    for (int i = 0; i < 200; i++) operator delete(held[i], (size_t)(16 + i * 5));
    malloc_trim(0);
    walk_heap();
    must(guarded_block(3000) != NULL);
}

// ---- handlers ----

jmp_buf back;
int volatile handled; // by any thread

void say_and_leave(int, siginfo_t *info, void *)
{
    dprintf(1, "handler %p\n", info->si_addr);
    _exit(5);
}

void jump_back(int)
{
    handled++;
    siglongjmp(back, 1);
}

void set_handler(void (*plain)(int), void (*with_info)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {};
    if (with_info != NULL) action.sa_sigaction = with_info;
    else action.sa_handler = plain;
    action.sa_flags = flags | (with_info != NULL ? SA_SIGINFO : 0);
    must(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
}

void chained()
{
    set_handler(NULL, say_and_leave, 0);
    use_after_free();
}

// A handler that comes back by a jump, several times.
void chained_jump()
{
    set_handler(jump_back, NULL, 0);
    char *block = guarded_block(200);
    free(hidden(block));
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0) write_to(block);
    must(handled == 3);
}

void chained_once()
{
    set_handler(jump_back, NULL, (int)SA_RESETHAND);
    char *block = guarded_block(200);
    free(hidden(block));
    for (int i = 0; i < 2; i++)
        if (sigsetjmp(back, 1) == 0) write_to(block);
}

void ignored()
{
    set_handler(SIG_IGN, NULL, 0);
    use_after_free();
}

// Ours is not there any more.
void replaced()
{
    (void)guarded_block(200);
    set_handler(NULL, say_and_leave, 0);
    use_after_free();
}

// Of a library that passes on what is not its own, to what was there when it was last told to begin.
struct sigaction passed_to;

void pass_on(int signal, siginfo_t *info, void *context)
{
    must(++handled < 100);
    if (passed_to.sa_handler == SIG_DFL) must(sigaction(signal, &passed_to, NULL) == 0);
    else passed_to.sa_sigaction(signal, info, context);
}

void begin_to_pass_on()
{
    struct sigaction action = {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO;
    must(sigaction(SIGSEGV, &action, &passed_to) == 0);
}

void installed_twice()
{
    begin_to_pass_on();
    (void)guarded_block(200);
    begin_to_pass_on();
    use_after_free();
}

void installed_after()
{
    (void)guarded_block(200);
    begin_to_pass_on();
    use_after_free();
}

// Where ours is about to be put, by another thread, as far as ours can tell.
bool installs_between;

void installed_between()
{
    installs_between = true;
    use_after_free();
}

void null_access()
{
    (void)guarded_block(200);
    write_to(NULL);
}

void null_access_chained()
{
    set_handler(NULL, say_and_leave, 0);
    (void)guarded_block(200);
    write_to(NULL);
}

void sent()
{
    (void)guarded_block(200);
    kill(getpid(), SIGSEGV);
    pause();
}

void sent_ignored()
{
    set_handler(SIG_IGN, NULL, 0);
    (void)guarded_block(200);
    kill(getpid(), SIGSEGV);
}

// What the kernel tells of a page that nobody has touched yet: no access comes again.
void sent_by_kernel()
{
    siginfo_t info = {};
    (void)guarded_block(200);
    info.si_signo = SIGBUS;
    info.si_code = BUS_MCEERR_AO;
    must(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGBUS, &info) == 0);
}

int reading[2];
volatile int reader_number; // of the thread; 0: it has not begun

void *read_there(void *result)
{
    char byte;
    reader_number = (int)syscall(SYS_gettid);
    *(int *)result = read(reading[0], &byte, 1) == 1 ? 0 : errno;
    return NULL;
}

// Until the thread waits in its read.
void await_reader()
{
    char path[64], text[512] = "";
    do {
        sleep_ms(1);
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", reader_number);
        FILE *file = reader_number != 0 ? fopen(path, "r") : NULL;
        if (file == NULL) continue;
        (void)!fread(text, 1, sizeof text - 1, file);
        (void)fclose(file);
    } while (strstr(text, ") S ") == NULL);
}

// How a read ends in the middle of which the signal comes; 0: as if it had not come. The byte comes when the
// handler of the test was called so often.
int error_of_read(int calls)
{
    pthread_t reader;
    int error = -1;
    must(pipe(reading) == 0 && pthread_create(&reader, NULL, read_there, &error) == 0);
    await_reader();
    must(pthread_kill(reader, SIGSEGV) == 0);
    if (calls == 0) sleep_ms(100);
    for (int tries = 0; handled < calls && tries < 20000; tries++) sleep_ms(1);
    must(write(reading[1], "", 1) == 1 && pthread_join(reader, NULL) == 0);
    return error;
}

void sent_ignored_to_reader()
{
    set_handler(SIG_IGN, NULL, 0);
    (void)guarded_block(200);
    must(error_of_read(0) == 0);
}

void count(int) { handled++; }

void sent_chained_to_reader()
{
    set_handler(count, NULL, SA_RESTART);
    (void)guarded_block(200);
    must(error_of_read(1) == 0 && handled == 1);
}

void sent_interrupts_reader()
{
    set_handler(count, NULL, 0);
    (void)guarded_block(200);
    must(error_of_read(1) == EINTR && handled == 1);
}

void sent_chained()
{
    set_handler(NULL, say_and_leave, 0);
    (void)guarded_block(200);
    kill(getpid(), SIGSEGV);
    pause();
}

// On a stack of the least size, when the thread's own is used up.
int fill_stack(char volatile *above)
{
    char volatile piece[4096];
    piece[0] = above != NULL ? above[0] : 0;
    return fill_stack(piece) + piece[1];
}

void set_small_stack()
{
    static char stack[16384];
    stack_t small = {};
    small.ss_sp = stack;
    small.ss_size = sizeof stack;
    must(sigaltstack(&small, NULL) == 0);
}

void stack_overflow()
{
    set_small_stack();
    set_handler(NULL, say_and_leave, SA_ONSTACK);
    (void)guarded_block(200);
    must(fill_stack(NULL) != 0);
}

void small_stack()
{
    set_small_stack();
    set_handler(NULL, say_and_leave, SA_ONSTACK);
    use_after_free();
}

// ---- forks ----

int status_of(pid_t child)
{
    int status;
    must(waitpid(child, &status, 0) == child);
    return status;
}

void forked()
{
    char *block = guarded_block(200);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        free(block);
        free(guarded_block(300));
        write_to(block);
        _exit(0);
    }
    int status = status_of(child);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    must(is_guarded(block));
    free(block);
    walk_heap();
}

bool stop;

void *churn(void *)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        char *blocks[40];
        for (int i = 0; i < 40; i++) blocks[i] = (char *)malloc((size_t)(i + 1) * 16);
        for (int i = 0; i < 40; i++) free(blocks[i]);
    }
    return NULL;
}

// While other threads are anywhere.
void forked_often()
{
    pthread_t threads[3];
    for (auto &thread : threads) must(pthread_create(&thread, NULL, churn, NULL) == 0);
    for (long i = 0; i < scaled(100); i++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            alarm(patience(20));
            for (int k = 0; k < 300; k++) free(malloc(500));
            for (int k = 0; k < 300; k++) must(malloc(700) != NULL);
            walk_heap();
            _exit(0);
        }
        must(status_of(child) == 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (auto &thread : threads) must(pthread_join(thread, NULL) == 0);
    walk_heap();
}

// While another thread is at one of the steps in which the pool opens: the child opens its own.
bool (*is_step)(int signal, bool reads); // NULL: none, or it was reached

bool is_first_step(int signal, bool reads) { return signal == SIGSEGV && reads; }
bool is_last_step(int signal, bool reads) { return signal == SIGBUS && !reads; }

void *fork_there(void *)
{
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) use_after_free();
    must(WEXITSTATUS(status_of(child)) == 5);
    return NULL;
}

void fork_at_step(int signal, bool reads)
{
    if (is_step == NULL || !is_step(signal, reads)) return;
    is_step = NULL;
    run_thread(fork_there, NULL);
}

void forked_at(bool (*step)(int, bool))
{
    set_handler(NULL, say_and_leave, 0);
    is_step = step;
    (void)guarded_block(200);
    must(is_step == NULL);
}

void forked_at_first_step() { forked_at(is_first_step); }
void forked_at_last_step() { forked_at(is_last_step); }

// ---- without anything wrong ----

bool is_watched()
{
    struct sigaction action;
    must(sigaction(SIGSEGV, NULL, &action) == 0);
    return action.sa_handler != SIG_DFL;
}

void nothing()
{
    for (int i = 0; i < 3000; i++) must(malloc(16 + (size_t)i % 500) != NULL);
    must(!is_watched());
}

void in_the_end()
{
    for (int i = 0; i < 5000000 && !is_watched(); i++) must(malloc(500) != NULL);
    must(is_watched());
}

void off() { must(find_guarded(200, ANY, malloc) == NULL && !is_watched()); }

// Two blocks, three mistakes with each.
void several()
{
    for (int i = 0; i < 2; i++) {
        char *block = guarded_block(200, RIGHT);
        write_to(block + usable_bytes(block));
        free(hidden(block));
        write_to(block);
        free(hidden(block));
    }
    walk_heap();
}

// Also where the report cannot be written. On some processors it is the C library that tries, and sets errno.
void errno_is_kept()
{
    char *block = guarded_block(200, RIGHT);
    close(2);
    errno = 0x5eed;
    write_to(block + usable_bytes(block));
    must(errno == 0x5eed);
}

struct {
    char const *name;
    void (*body)();
} const deeds[] = {
#define DEED(name) { #name, name }
    DEED(overflow), DEED(underflow), DEED(use_after_free), DEED(read_after_realloc),
    DEED(use_across_threads), DEED(copies_out_of_bounds), DEED(double_free), DEED(free_interior),
    DEED(realloc_freed), DEED(usable_size_freed), DEED(use_after_sized_delete),
    DEED(sized_delete_twice), DEED(sized_delete_wrong), DEED(use_after_unwatched_delete),
    DEED(overflow_unwatched), DEED(unwatched_at_end), DEED(unwatched_in_depot), DEED(sized_churn), DEED(chained), DEED(chained_jump),
    DEED(chained_once), DEED(ignored), DEED(replaced), DEED(installed_twice),
    DEED(installed_after), DEED(installed_between), DEED(null_access),
    DEED(null_access_chained), DEED(sent), DEED(sent_ignored), DEED(sent_chained),
    DEED(sent_by_kernel), DEED(sent_ignored_to_reader), DEED(sent_chained_to_reader),
    DEED(sent_interrupts_reader),
    DEED(stack_overflow), DEED(small_stack), DEED(forked), DEED(forked_often),
    DEED(forked_at_first_step), DEED(forked_at_last_step), DEED(nothing),
    DEED(in_the_end), DEED(off), DEED(several), DEED(errno_is_kept),
};

} // namespace

// The C library's, which prairie calls too.
extern "C" int sigaction(int signal, struct sigaction const *action, struct sigaction *before)
{
    static auto const real = (int (*)(int, struct sigaction const *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
    int result = real(signal, action, before);

    if (installs_between && signal == SIGSEGV && action == NULL) {
        installs_between = false;
        set_handler(NULL, say_and_leave, 0);
    }
    fork_at_step(signal, action == NULL);
    return result;
}

int main(int argc, char **argv)
{
    require_prairie();
    for (auto const &deed : deeds) {
        if (argc == 2 && strcmp(argv[1], deed.name) == 0) {
            deed.body();
            return 0;
        }
        if (argc == 1) puts(deed.name);
    }
    return argc == 1 ? 0 : 2;
}
