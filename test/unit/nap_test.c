/* nap_test.c - which threads sleep where nothing on their stacks leads into the library, on the
 * real kernel. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#define PRAIRIE_KERNEL_GATE
/* Beside the fake kernel's. */
#define os_naps_are_told real_naps_are_told
#define os_nap_begin real_nap_begin
#define os_nap_lasts real_nap_lasts
#define os_nap_end real_nap_end
#define os_link_text read_link
#include "os/linux_nap.c"
#include "os/linux_text.c"

#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

long kernel_gate(long number, long a, long b, long c, long d, long e, long f)
{
    long result = syscall(number, a, b, c, d, e, f);

    return result == -1 ? -errno : result;
}

static unsigned outer_number; /* of the process, in an outer namespace; 0: there is none */

bool read_link(const char *path, char *text, size_t room_bytes)
{
    ssize_t length = readlink(path, text, room_bytes - 1);

    assert_true(length > 0);
    text[length] = '\0';
    if (outer_number != 0) snprintf(text, room_bytes, "%u", outer_number);
    return true;
}

static bool has_own_files = true;

bool linux_take_own_files(void) { return has_own_files; }

/* ---- a thread that sleeps ---- */

/* Stands for the library's code: what lies in this section, which the linker gives a start and an
 * end. */
#define OURS __attribute__((section("ours"), noinline, noclone))
extern const char __start_ours[], __stop_ours[];

static int door[2]; /* a pipe: who reads sleeps until somebody writes */
static _Thread_local int own_word;
static uint32_t sleeper;            /* its number; atomic */
static const void *word_of_sleeper; /* set before that */

static void tell_number(const void *word)
{
    word_of_sleeper = word;
    __atomic_store_n(&sleeper, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

/* Its return is not its last act, so that it is a frame of its own. */
static int sleep_once(void)
{
    char byte = 0;
    ssize_t got = read(door[0], &byte, 1);

    return (int)got + byte;
}

OURS static int sleep_in_ours(void)
{
    int got = sleep_once();

    __asm__ volatile("");
    return got + 1;
}

/* Without a call, so that no address of it is on the stack. */
OURS static void sleep_in_ours_alone(void)
{
    char byte;
    long number = SYS_read;

    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"((long)door[0]), "S"(&byte), "d"(1L)
                     : "rcx", "r11", "memory");
}

static char block[4096]; /* the range that its stack must not lead into */

static void sleep_with(const void *on_stack)
{
    const void *volatile kept = on_stack;

    (void)sleep_once();
    (void)kept;
}

static void sleep_on_signal(int signal)
{
    (void)signal;
    (void)sleep_once();
}

/* On a stack of its own, so that nothing of what was interrupted lies beside the handler's
 * frame. */
static void sleep_in_handler(void)
{
    static char other_stack[64 * 1024];
    stack_t other = { .ss_sp = other_stack, .ss_size = sizeof other_stack }, before;
    struct sigaction action = { .sa_handler = sleep_on_signal, .sa_flags = SA_ONSTACK };

    assert_int_equal(sigaltstack(&other, &before), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    tell_number(other_stack + sizeof other_stack - sizeof(uintptr_t));
    (void)raise(SIGUSR1);
    assert_int_equal(sigaltstack(&before, NULL), 0); /* a sanitizer's */
}

static void wait_for_child(void)
{
    pid_t child = fork();

    if (child == 0) {
        (void)sleep_once();
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
}

enum how { OUTSIDE, TWICE, IN_OURS, IN_OURS_ALONE, WITH_RANGE, IN_HANDLER, FOR_CHILD, NEVER };

static bool runs_on; /* atomic */

static void *sleeper_body(void *how)
{
    if (*(enum how *)how != IN_HANDLER) tell_number(&own_word);
    switch (*(enum how *)how) {
    case TWICE: (void)sleep_once(); __attribute__((fallthrough));
    case OUTSIDE: (void)sleep_once(); break;
    case IN_OURS: (void)sleep_in_ours(); break;
    case IN_OURS_ALONE: sleep_in_ours_alone(); break;
    case WITH_RANGE: sleep_with(block + sizeof block - 1); break;
    case IN_HANDLER: sleep_in_handler(); break;
    case FOR_CHILD: wait_for_child(); break;
    case NEVER:
        while (RELAXED_LOAD(runs_on)) {}
    }
    return NULL;
}

/* What the kernel says of it: 'S' is asleep. */
static char condition_of(uint32_t thread)
{
    char path[64], text[256] = "";
    const char *end;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%u/stat", thread);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    (void)fclose(file);
    end = strrchr(text, ')');
    assert_non_null(end);
    return end[2];
}

static void wait_until_asleep(uint32_t thread)
{
    for (unsigned times = 0; times < 3; times += condition_of(thread) == 'S') usleep(1000);
}

static void begin(void)
{
    if (access("/proc/self/schedstat", R_OK) != 0 || access("/proc/self/syscall", R_OK) != 0)
        skip(); /* a kernel that does not tell */
    own_code = (struct os_range){ (char *)__start_ours, (size_t)(__stop_ours - __start_ours) };
}

static pthread_t begin_sleeper(enum how how)
{
    static enum how kept;
    pthread_t thread;

    begin();
    kept = how;
    RELAXED_STORE(runs_on, true);
    assert_int_equal(pipe(door), 0);
    assert_int_equal(pthread_create(&thread, NULL, sleeper_body, &kept), 0);
    wait_until_set(&sleeper);
    if (how != NEVER) wait_until_asleep(sleeper);
    return thread;
}

static void wake(void) { assert_int_equal(write(door[1], "", 1), 1); }

static void end_sleeper(pthread_t thread)
{
    RELAXED_STORE(runs_on, false);
    wake();
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static const struct os_range range = { block, sizeof block };

static bool begins(struct os_nap *nap) { return os_nap_begin(nap, sleeper, word_of_sleeper); }

/* Whether that thread seems to sleep, when it is asked once. */
static bool seems_to_nap(uint32_t thread, const void *word)
{
    struct os_nap nap;
    bool sleeps_now = os_nap_begin(&nap, thread, word);

    os_nap_end(&nap);
    return sleeps_now;
}

/* Whether it sleeps, and does until it is asked again, with nothing of ours and of the range. */
static bool naps_beside(struct os_range what)
{
    struct os_nap nap;
    bool lasts = begins(&nap) && os_nap_lasts(&nap, what);

    os_nap_end(&nap);
    return lasts;
}

static bool naps(void) { return naps_beside(range); }

/* ---- who sleeps, and who does not ---- */

static void who_sleeps_elsewhere_naps(void **state)
{
    pthread_t thread = begin_sleeper(OUTSIDE);
    int lowest = dup(0);

    (void)state;
    close(lowest);
    for (unsigned i = 0; i < 3; i++) assert_true(naps());
    assert_int_equal(dup(0), lowest); /* no file is left open */
    assert_int_equal(dup(0), lowest + 1);
    end_sleeper(thread);
}

static void who_runs_does_not(void **state)
{
    pthread_t thread = begin_sleeper(NEVER);

    (void)state;
    for (unsigned i = 0; i < 20; i++) assert_false(naps());
    end_sleeper(thread);
}

static void expect_kept_by_our_code(enum how how)
{
    pthread_t thread = begin_sleeper(how);

    assert_false(naps());
    own_code.bytes = 0; /* that was why */
    assert_true(naps());
    end_sleeper(thread);
}

static void who_sleeps_in_our_code_does_not(void **state)
{
    (void)state;
    expect_kept_by_our_code(IN_OURS);
}

static void who_calls_the_kernel_there_does_not(void **state)
{
    (void)state;
    expect_kept_by_our_code(IN_OURS_ALONE);
}

static void who_has_an_address_in_the_range_does_not(void **state)
{
    pthread_t thread = begin_sleeper(WITH_RANGE);

    (void)state;
    assert_false(naps());
    assert_true(naps_beside((struct os_range){ block, sizeof block - 1 }));
    end_sleeper(thread);
}

/* It sleeps in the same place again. */
static void who_woke_meanwhile_does_not(void **state)
{
    pthread_t thread = begin_sleeper(TWICE);
    struct os_nap nap;

    (void)state;
    assert_true(begins(&nap));
    wake();
    wait_until_asleep(sleeper);
    assert_false(os_nap_lasts(&nap, range));
    os_nap_end(&nap);
    assert_true(naps());
    end_sleeper(thread);
}

static void who_is_in_a_signal_handler_does_not(void **state)
{
    pthread_t thread = begin_sleeper(IN_HANDLER);

    (void)state;
    /* It sleeps, and what was interrupted is not on this stack. */
    assert_true(seems_to_nap(sleeper, word_of_sleeper));
    assert_false(naps());
    end_sleeper(thread);
}

static void who_waits_for_a_child_does_not(void **state)
{
    pthread_t thread = begin_sleeper(FOR_CHILD);

    (void)state;
    assert_false(seems_to_nap(sleeper, word_of_sleeper));
    end_sleeper(thread);
}

static void who_is_not_there_does_not(void **state)
{
    pthread_t thread = begin_sleeper(OUTSIDE);

    (void)state;
    assert_false(seems_to_nap(0, word_of_sleeper));
    end_sleeper(thread);
    assert_false(seems_to_nap(sleeper, word_of_sleeper));
}

/* Of another stack nothing is known. */
static void whose_word_lies_elsewhere_does_not(void **state)
{
    pthread_t thread = begin_sleeper(OUTSIDE);
    const char *elsewhere = word_of_sleeper;

    (void)state;
    assert_false(seems_to_nap(sleeper, block));
    assert_false(seems_to_nap(sleeper, elsewhere + STACK_BYTES_LOOKED_AT));
    end_sleeper(thread);
}

static bool first_napped;

static void *look_at_first(void *unused)
{
    wait_until_asleep(sleeper);
    first_napped = naps();
    return unused;
}

/* Its variables are not on its stack. */
static void the_first_thread_naps_as_well(void **state)
{
    pthread_t thread;

    (void)state;
    begin();
    sleeper = (uint32_t)getpid();
    word_of_sleeper = block;
    assert_int_equal(pthread_create(&thread, NULL, look_at_first, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(first_napped);
}

static bool a_sleeper_naps(void)
{
    (void)begin_sleeper(OUTSIDE);
    return naps();
}

static void without_the_first_thread_others_nap(void **state)
{
    (void)state;
    begin();
    expect_without_first_thread(a_sleeper_naps);
}

/* ---- what is ours ---- */

static void our_code_is_found_where_files_tell_of_our_threads(void **state)
{
    union {
        void (*function)(void **state);
        const char *address;
    } here = { our_code_is_found_where_files_tell_of_our_threads };

    (void)state;
    has_own_files = false;
    assert_false(os_naps_are_told());
    has_own_files = true;
    outer_number = (unsigned)getpid() + 1;
    assert_false(os_naps_are_told());
    outer_number = 0;
    assert_true(os_naps_are_told());
    assert_true(is_ours((uintptr_t)here.address));
    assert_true(is_ours((uintptr_t)__start_ours));
    assert_false(is_ours((uintptr_t)block));
    assert_false(is_ours((uintptr_t)state));
}

/* A program that lies where it was linked to has addresses there, and may have its code in its
 * first segment. */
static void our_code_is_found_wherever_the_program_was_linked_to(void **state)
{
    static struct {
        ElfW(Ehdr) head;
        ElfW(Phdr) segment[3];
    } image = { .head = { .e_phoff = sizeof image.head, .e_phnum = 3 } };
    const char *base = (const char *)&image;

    (void)state;
    image.segment[0] = (ElfW(Phdr)){ .p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 0x400000 };
    image.segment[1] = (ElfW(Phdr)){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = 77 };
    image.segment[1].p_offset = 0x1000;
    image.segment[1].p_vaddr = 0x401000;
    image.segment[2] = (ElfW(Phdr)){ .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_X };
    find_own_code(base);
    assert_ptr_equal(own_code.base, base + 0x1000);
    assert_int_equal(own_code.bytes, 77);
    image.segment[0].p_flags |= PF_X;
    image.segment[0].p_memsz = 99;
    image.segment[1].p_flags = PF_R;
    find_own_code(base);
    assert_ptr_equal(own_code.base, base);
    assert_int_equal(own_code.bytes, 99);
}

UNIT_MAIN(UNIT_TEST(who_sleeps_elsewhere_naps), UNIT_TEST(who_runs_does_not),
          UNIT_TEST(who_sleeps_in_our_code_does_not),
          UNIT_TEST(who_calls_the_kernel_there_does_not),
          UNIT_TEST(who_has_an_address_in_the_range_does_not),
          UNIT_TEST(who_woke_meanwhile_does_not), UNIT_TEST(who_is_in_a_signal_handler_does_not),
          UNIT_TEST(who_waits_for_a_child_does_not), UNIT_TEST(who_is_not_there_does_not),
          UNIT_TEST(whose_word_lies_elsewhere_does_not), UNIT_TEST(the_first_thread_naps_as_well),
          UNIT_TEST(without_the_first_thread_others_nap),
          UNIT_TEST(our_code_is_found_where_files_tell_of_our_threads),
          UNIT_TEST(our_code_is_found_wherever_the_program_was_linked_to))
