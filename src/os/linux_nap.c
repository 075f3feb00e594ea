/* linux_nap.c - is another thread asleep, with no way back into this library on its stack?
 *
 * On x86, where a call leaves its return address in memory: who sleeps inside of a function of
 * prairie's, or in a signal handler that interrupted one, has an address in prairie's code on its
 * stack, for the kernel puts a handler's frame there, too, with the registers of what was
 * interrupted.
 *
 * The files are opened in the background thread's own table of descriptors; without one nobody
 * sleeps. The stack is read through a file as well: it may go away meanwhile.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"

#include "../base/units.h"
#include "os.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

/* Where the program or library that prairie is in begins, by its linker. */
extern PRIVATE const char __ehdr_start[];
#pragma weak __ehdr_start

/* Its code; by the background thread. */
static struct os_range own_code;

static void find_own_code(const char *start)
{
    const ElfW(Ehdr) *file = (const ElfW(Ehdr) *)start;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(start + file->e_phoff);
    uintptr_t first = 0;

    for (unsigned i = 0; i < file->e_phnum; i++) {
        if (segment[i].p_type != PT_LOAD) continue;
        if (segment[i].p_offset == 0) first = segment[i].p_vaddr;
        if ((segment[i].p_flags & PF_X) != 0)
            own_code = (struct os_range){ (char *)start + (segment[i].p_vaddr - first),
                                          segment[i].p_memsz };
    }
}

/* Deeper stacks are not looked through. */
enum { STACK_BYTES_LOOKED_AT = 128 * 1024, NAP_TEXT_BYTES = 256, NUMBER_BYTES = 24 };

/* "/proc/self/task/N/name". */
static long open_of_thread(uint32_t thread, const char *name)
{
    static const char folder[] = "/proc/self/task/";
    char path[64];
    char *at = linux_write_number(path + sizeof folder - 1, thread);

    __builtin_memcpy(path, folder, sizeof folder - 1);
    *at++ = '/';
    __builtin_memcpy(at, name, __builtin_strlen(name) + 1);
    return kernel(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC);
}

/* The text of a small file, and its length; 0: it cannot be read. */
static size_t read_anew(long file, char text[NAP_TEXT_BYTES])
{
    long got;

    if (failed(kernel(SYS_lseek, file, 0, SEEK_SET))) return 0;
    got = kernel(SYS_read, file, (long)text, NAP_TEXT_BYTES - 1);
    if (failed(got)) return 0;
    text[got] = '\0';
    return (size_t)got;
}

/* Where the thread's times and its turns on a processor are written, mixed into one number. It has
 * not run between two looks that find the same one. 0: the kernel does not tell. */
static uint64_t turns_now(const struct os_nap *nap)
{
    char text[NAP_TEXT_BYTES];
    size_t length = read_anew(nap->turns_file, text);
    uint64_t mixed = 1;
    bool any = false;

    for (size_t i = 0; i < length; i++) {
        any |= text[i] >= '1' && text[i] <= '9';
        mixed = (mixed ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    }
    return any ? mixed : 0;
}

static uintptr_t hexadecimal(const char *text)
{
    uintptr_t number = 0;

    for (text += 2;; text++) {
        if (*text >= '0' && *text <= '9') number = number * 16 + (uintptr_t)(*text - '0');
        else if (*text >= 'a' && *text <= 'f') number = number * 16 + (uintptr_t)(*text - 'a' + 10);
        else return number;
    }
}

/* A child that shares the parent's memory, and its word, may run meanwhile. */
static bool may_run_a_child(unsigned long call)
{
    return call == SYS_vfork || call == SYS_clone || call == SYS_clone3 || call == SYS_wait4
        || call == SYS_waitid;
}

/* Blocked in a system call: "number 0xargument ... 0xstack 0xcode". A thread that runs, or that was
 * stopped elsewhere, has no number there. */
static bool sleeps(const struct os_nap *nap, uintptr_t *stack, uintptr_t *place)
{
    char text[NAP_TEXT_BYTES];
    size_t length = read_anew(nap->call_file, text);
    const char *at = text, *word[2] = { NULL, NULL };
    unsigned long call;

    if (length == 0 || text[0] < '0' || text[0] > '9') return false;
    call = (unsigned long)linux_number_at(&at);
    for (size_t i = 0; i + 2 < length; i++)
        if (text[i] == ' ') {
            word[0] = word[1];
            word[1] = &text[i + 1];
        }
    if (word[0] == NULL || may_run_a_child(call)) return false;
    *stack = hexadecimal(word[0]);
    *place = hexadecimal(word[1]);
    return true;
}

static bool is_ours(uintptr_t address)
{
    return address - (uintptr_t)own_code.base < own_code.bytes;
}

/* The first thread's variables lie elsewhere than its stack; the kernel put the program's name
 * above that. 0: it is not that thread's. */
static uintptr_t end_of_stack(const struct os_nap *nap, uintptr_t word)
{
    if (word > nap->stack && word - nap->stack <= STACK_BYTES_LOOKED_AT) return word;
    if (nap->thread != (uint32_t)kernel(SYS_getpid)) return 0;
    word = (uintptr_t)getauxval(AT_EXECFN);
    return word > nap->stack && word - nap->stack <= STACK_BYTES_LOOKED_AT ? word : 0;
}

/* Threads have other numbers in the files of an outer namespace of processes. */
static bool numbers_are_ours(void)
{
    char link[NUMBER_BYTES], number[NUMBER_BYTES];

    *linux_write_number(number, (unsigned long)kernel(SYS_getpid)) = '\0';
    return os_link_text("/proc/self", link, sizeof link) && __builtin_strcmp(link, number) == 0;
}

bool os_naps_are_told(void)
{
    if (&__ehdr_start == NULL || !linux_take_own_files() || !numbers_are_ours()) return false;
    if (own_code.bytes == 0) find_own_code(__ehdr_start);
    return own_code.bytes != 0;
}

bool os_nap_begin(struct os_nap *nap, uint32_t thread, const void *word)
{
    uintptr_t place;

    *nap = (struct os_nap){ .thread = thread, .call_file = -1, .turns_file = -1 };
    if (thread == 0) return false;
    nap->call_file = open_of_thread(thread, "syscall");
    nap->turns_file = open_of_thread(thread, "schedstat");
    if (failed(nap->call_file) || failed(nap->turns_file)) return false;
    nap->turns = turns_now(nap);
    if (nap->turns == 0 || !sleeps(nap, &nap->stack, &place) || is_ours(place)) return false;
    nap->stack_end = end_of_stack(nap, (uintptr_t)word);
    return nap->stack_end != 0;
}

/* What the kernel writes of the segment registers, as one word, where it interrupts a thread for a
 * signal handler: it is the same in all threads, and no address. */
static uintptr_t mark_of_handlers(void)
{
    uint16_t code, stack;

    __asm__("mov %%cs, %0\n\tmov %%ss, %1" : "=r"(code), "=r"(stack));
    return code | (uintptr_t)stack << 48;
}

/* No word from the thread's stack pointer on leads into our code, or into the range; and the thread
 * is in no signal handler, which may run on one part of its stack, and have interrupted another. */
static bool stack_is_clear(const struct os_nap *nap, struct os_range range)
{
    const uintptr_t mark = mark_of_handlers();
    uintptr_t words[512] = { 0 }, at = nap->stack & ~(sizeof(uintptr_t) - 1);
    long file = kernel(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
    bool clear = !failed(file);

    while (clear && at < nap->stack_end) {
        size_t bytes = min_size(nap->stack_end - at, sizeof words);

        clear = !failed(kernel(SYS_lseek, file, (long)at, SEEK_SET))
             && kernel(SYS_read, file, (long)words, (long)bytes) == (long)bytes;
        for (size_t i = 0; clear && i < bytes / sizeof words[0]; i++)
            clear = words[i] != mark && !is_ours(words[i])
                 && words[i] - (uintptr_t)range.base >= range.bytes;
        at += bytes;
    }
    if (!failed(file)) (void)kernel(SYS_close, file);
    return clear;
}

bool os_nap_lasts(const struct os_nap *nap, struct os_range range)
{
    uintptr_t stack, place;

    return stack_is_clear(nap, range) && sleeps(nap, &stack, &place) && stack == nap->stack
        && turns_now(nap) == nap->turns;
}

void os_nap_end(struct os_nap *nap)
{
    if (!failed(nap->call_file)) (void)kernel(SYS_close, nap->call_file);
    if (!failed(nap->turns_file)) (void)kernel(SYS_close, nap->turns_file);
}
