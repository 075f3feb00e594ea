/* step.c - counts what a marked call executes, by stepping through it under ptrace.
 * SPDX-License-Identifier: MIT
 *
 * usage: step [--preload LIBRARY] -- PROGRAM ARGUMENTS...
 * The program runs under ptrace at full speed up to a mark (mark.h); then it is stepped one
 * instruction at a time until the marked function returns to its caller. So the figures are exact,
 * and the clock, other processes and the cost of the stepping itself have no part in them. One line
 * of JSON for each mark goes to stdout; other signals are passed on.
 *
 * What is counted, over everything that the call executes down to its return:
 *   instructions  from the first of the function to its ret, both included
 *   loads         memory operands that are read
 *   stores        memory operands that are written
 *   branches      conditional jumps
 *   stack         push and pop; return addresses are counted nowhere
 *   jumps         unconditional ones
 *   calls, atomics (locked instructions, exchanges with memory), syscalls
 * A read-modify-write operand is a load and a store. A repeated string instruction is one
 * instruction. */
#define _GNU_SOURCE
#include "mark.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE_BYTES = 16, NAME_BYTES = 128, STEPS_MAX = 100000000, APPROACH_MAX = 1000 };

struct counts {
    unsigned long instructions, loads, stores, branches, stack, jumps, calls, atomics, syscalls;
};

static csh decoder;
static cs_insn *decoded;

static void die(const char *what)
{
    fprintf(stderr, "step: %s: %s\n", what, strerror(errno));
    exit(2);
}

static struct user_regs_struct registers_of(pid_t child)
{
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, child, NULL, &registers) != 0) die("cannot read registers");
    return registers;
}

static void read_memory(pid_t child, unsigned long address, void *target, size_t bytes)
{
    unsigned char *out = target;
    for (size_t done = 0; done < bytes; done += sizeof(long)) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKDATA, child, (void *)(address + done), NULL);
        if (errno != 0 && done == 0) die("cannot read memory");
        if (errno != 0) word = 0; /* an instruction may end where its mapping ends */
        memcpy(out + done, &word, sizeof word);
    }
}

static void count_operands(const cs_insn *instruction, struct counts *counts)
{
    const cs_x86 *x86 = &instruction->detail->x86;
    if (instruction->id == X86_INS_LEA || instruction->id == X86_INS_NOP) return;
    for (unsigned i = 0; i < x86->op_count; i++) {
        if (x86->operands[i].type != X86_OP_MEM) continue;
        if (x86->operands[i].access & CS_AC_READ) counts->loads++;
        if (x86->operands[i].access & CS_AC_WRITE) counts->stores++;
        if (x86->prefix[0] == X86_PREFIX_LOCK || instruction->id == X86_INS_XCHG) counts->atomics++;
    }
}

static void count_instruction(pid_t child, unsigned long address, struct counts *counts)
{
    uint8_t code[CODE_BYTES];
    read_memory(child, address, code, sizeof code);
    const uint8_t *at = code;
    size_t left = sizeof code;
    uint64_t virtual_address = address;
    if (!cs_disasm_iter(decoder, &at, &left, &virtual_address, decoded))
        die("an instruction is not decoded");
    if (getenv("STEP_TRACE") != NULL)
        fprintf(stderr, "%lx  %s %s\n", address, decoded->mnemonic, decoded->op_str);

    counts->instructions++;
    if (cs_insn_group(decoder, decoded, CS_GRP_CALL)) counts->calls++;
    else if (decoded->id == X86_INS_JMP) counts->jumps++;
    else if (cs_insn_group(decoder, decoded, CS_GRP_JUMP)) counts->branches++;
    if (decoded->id == X86_INS_SYSCALL) counts->syscalls++;
    if (decoded->id == X86_INS_PUSH || decoded->id == X86_INS_POP) counts->stack++;
    count_operands(decoded, counts);
}

/* One instruction; false when the program ended instead. */
static bool step_once(pid_t child)
{
    int status;
    int number = 0;
    for (;;) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, number) != 0) die("cannot step");
        if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return false;
        if (WSTOPSIG(status) == SIGTRAP) return true;
        number = WSTOPSIG(status);
        if (number == SIGSEGV || number == SIGABRT) die("the program crashed in a marked call");
    }
}

/* Steps to the function's first instruction, then counts up to its return. */
static struct counts count_call(pid_t child, unsigned long entry)
{
    struct counts counts = { 0 };
    struct user_regs_struct registers = registers_of(child);
    for (unsigned i = 0; registers.rip != entry; i++) {
        if (i == APPROACH_MAX || !step_once(child)) die("the marked call did not come");
        registers = registers_of(child);
    }
    unsigned long return_address, stack = registers.rsp, last = 0;
    read_memory(child, stack, &return_address, sizeof return_address);

    for (unsigned long i = 0; i < STEPS_MAX; i++) {
        if (registers.rip != last) count_instruction(child, registers.rip, &counts);
        last = registers.rip;
        if (!step_once(child)) die("the program ended in a marked call");
        registers = registers_of(child);
        if (registers.rip == return_address && registers.rsp == stack + sizeof(long)) return counts;
    }
    die("a marked call does not return");
    return counts;
}

static void count_mark(pid_t child, const struct user_regs_struct *registers)
{
    char name[NAME_BYTES];
    read_memory(child, registers->rdi, name, sizeof name - sizeof(long));
    name[NAME_BYTES - 1] = '\0';
    struct counts counts = count_call(child, registers->rsi);
    printf("{\"name\": \"%s\", \"instructions\": %lu, \"loads\": %lu, \"stores\": %lu, "
           "\"branches\": %lu, "
           "\"stack\": %lu, \"jumps\": %lu, \"calls\": %lu, \"atomics\": %lu, \"syscalls\": %lu}\n",
           name, counts.instructions, counts.loads, counts.stores, counts.branches, counts.stack,
           counts.jumps, counts.calls, counts.atomics, counts.syscalls);
    fflush(stdout);
}

static pid_t start(const char *preload, char **command)
{
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child > 0) return child;
    personality(ADDR_NO_RANDOMIZE);
    setenv("LD_BIND_NOW", "1", 1); /* the loader's symbol search is not part of a call */
    if (preload != NULL) setenv("LD_PRELOAD", preload, 1);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) die("cannot be traced");
    execvp(command[0], command);
    die(command[0]);
    return -1;
}

/* The program's exit code; its death by a signal is 1. */
static int follow(pid_t child)
{
    int status, number = 0;
    if (waitpid(child, &status, 0) != child) die("the program did not start");
    for (;;) {
        if (ptrace(PTRACE_CONT, child, NULL, number) != 0) die("cannot continue");
        if (waitpid(child, &status, 0) != child) die("the program is lost");
        if (WIFEXITED(status)) return WEXITSTATUS(status);
        if (WIFSIGNALED(status)) {
            fprintf(stderr, "step: the program died of signal %d\n", WTERMSIG(status));
            return 1;
        }
        number = WSTOPSIG(status);
        if (number != SIGTRAP) continue;
        number = 0;
        struct user_regs_struct registers = registers_of(child);
        if (registers.rax == MARK_MAGIC) count_mark(child, &registers);
    }
}

int main(int argc, char **argv)
{
    const char *preload = NULL;
    int at = 1;
    if (at + 1 < argc && strcmp(argv[at], "--preload") == 0) {
        preload = argv[at + 1];
        at += 2;
    }
    if (at + 1 >= argc || strcmp(argv[at], "--") != 0) {
        fprintf(stderr, "usage: step [--preload LIBRARY] -- PROGRAM ARGUMENTS...\n");
        return 2;
    }
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder) != CS_ERR_OK) die("no decoder");
    cs_option(decoder, CS_OPT_DETAIL, CS_OPT_ON);
    decoded = cs_malloc(decoder);
    return follow(start(preload, argv + at + 1));
}
