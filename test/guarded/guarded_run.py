#!/usr/bin/env python3
# guarded_run.py - runs each deed of guarded.cpp, and judges how it ends and what is said.
# SPDX-License-Identifier: MIT
"""
usage: guarded_run.py PROGRAM [DEED...]

PRAIRIE_LIBRARY is preloaded, PRAIRIE_FLAVOUR says which it is. A report is compared line by line with
what is expected: patterns, in which ADDRESS is any address, FRAMES any number of lines with return
addresses, of which the first lies in the program.
"""
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "crash"))
sys.dont_write_bytecode = True
from crash_run import TIMEOUT_S, run  # pylint: disable=wrong-import-position

EACH = "guard_sample:1,guard_interval:0"
GOES_ON = EACH + ",guard_recover:true"
SEGV, BUS, ABRT, TRAP = -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGTRAP
FRAME = r"prairie:     0x[0-9a-f]+ .*\n"
# Without optimisation the library's doors call what they else jump to, and stay on the stack.
UNOPTIMISED = "PRAIRIE_UNOPTIMISED" in os.environ
OWN = r"(?:prairie:     0x[0-9a-f]+ \S*/libprairie\.so[.\d]*\+0x[0-9a-f]+\n)*" if UNOPTIMISED else ""
FRAMES = OWN + r"prairie:     0x[0-9a-f]+ \S*/guarded\+0x[0-9a-f]+\n(?:prairie:     0x.*\n)*"
# Where the C library did it, or prairie's own code: the program comes later, or not at all.
OTHERS_FRAMES = r"(?:prairie:     0x.*\n)+"


def said(what, where, freed=False, by=r"\d+", taken=r"\d+", given=r"\d+", unwatched=False, frames=FRAMES,
         freed_frames=FRAMES):
    """The report of one deed."""
    text = rf"prairie: {what}: 0x[0-9a-f]+\nprairie:   {where} at 0x[0-9a-f]+\n"
    text += rf"prairie:   done by thread {by}:\n{frames}"
    if unwatched:
        text += r"prairie:   if it is freed with its size: it may have been taken again since:\n"
    text += rf"prairie:   taken by thread {taken}:\n{FRAMES}"
    if freed and given is None:
        text += r"prairie:   freed with its size, which nobody saw\n"
    elif freed:
        text += rf"prairie:   freed by thread {given}:\n{freed_frames}"
    return text


BLOCK, FREED = "a block of 200 bytes", "a freed block of 200 bytes"
OVERFLOW = said("overflow of a block", rf"a write \d+ bytes beyond the end of {BLOCK}")
UNDERFLOW = said("underflow of a block", f"a read 3 bytes before the start of {BLOCK}")
USED = said("use after free", f"a write 8 bytes into {FREED}", freed=True)
USED_AT_START = said("use after free", f"a (?:read|write) at the start of {FREED}", freed=True)
TWICE = said("double free", f"the address is at the start of {FREED}", freed=True)
INTERIOR = said("free of an interior pointer", f"the address is 16 bytes into {BLOCK}")
REALLOC = said("realloc of a freed pointer", f"the address is at the start of {FREED}", freed=True,
               frames=OTHERS_FRAMES)
USABLE = said("malloc_usable_size of a freed pointer", f"the address is at the start of {FREED}", freed=True,
              frames=OTHERS_FRAMES)
WRONG_SIZE = said("wrong size in sized delete", f"the address is at the start of {BLOCK}", frames=OTHERS_FRAMES)
HANDLED = r"handler 0x[0-9a-f]+\n"
NOT_PLAIN = "not plain"

# deed, options, how it ends, standard error, standard output, flavours
ROWS = [
    ("overflow", EACH, SEGV, OVERFLOW),
    ("overflow", GOES_ON, 0, OVERFLOW),
    ("underflow", EACH, SEGV, UNDERFLOW),
    ("underflow", GOES_ON, 0, UNDERFLOW),
    ("use_after_free", EACH, SEGV, USED),
    ("use_after_free", GOES_ON, 0, USED),
    ("read_after_realloc", EACH, SEGV, said("use after free", f"a read at the start of {FREED}", freed=True,
                                            freed_frames=OTHERS_FRAMES)),
    ("use_across_threads", EACH, SEGV, said("use after free", f"a write at the start of {FREED}", freed=True,
                                            freed_frames=OTHERS_FRAMES if UNOPTIMISED else FRAMES)),
    ("copies_out_of_bounds", EACH, SEGV,
     said("overflow of a block", rf"a write \d+ bytes beyond the end of {BLOCK}", frames=OTHERS_FRAMES)),
    ("double_free", EACH, ABRT, TWICE),
    ("double_free", GOES_ON, 0, TWICE),
    ("free_interior", EACH, ABRT, INTERIOR),
    ("free_interior", GOES_ON, 0, INTERIOR),
    ("realloc_freed", EACH, ABRT, REALLOC),
    ("realloc_freed", GOES_ON, 0, REALLOC),
    ("usable_size_freed", EACH, ABRT, USABLE),
    ("usable_size_freed", GOES_ON, 0, USABLE),
    ("use_after_sized_delete", EACH, SEGV, USED_AT_START),
    ("sized_delete_twice", EACH, ABRT, TWICE),
    ("sized_delete_wrong", EACH, ABRT, WRONG_SIZE),
    ("sized_delete_wrong", GOES_ON, 0, WRONG_SIZE),
    ("use_after_unwatched_delete", EACH, SEGV,
     said("use after free", f"a write at the start of {FREED}", freed=True, given=None, unwatched=True), "", "plain"),
    ("overflow_unwatched", EACH, SEGV,
     said("overflow of a block", rf"a write \d+ bytes beyond the end of {BLOCK}", unwatched=True), "", "plain"),
    ("sized_churn", EACH, 0, ""),
    ("unwatched_at_end", EACH, 0, ""),
    ("unwatched_in_depot", EACH, 0, ""),
    ("chained", EACH, 5, USED, HANDLED),
    ("chained_jump", EACH, 0, USED_AT_START),
    ("chained_once", EACH, SEGV, USED_AT_START),
    ("ignored", EACH, SEGV, USED),
    ("replaced", EACH, 5, "", HANDLED),
    ("installed_twice", EACH, SEGV, USED),
    ("installed_after", EACH, SEGV, USED),
    ("installed_between", EACH, 5, USED, HANDLED),
    ("null_access", EACH, SEGV, ""),
    ("null_access_chained", EACH, 5, "", r"handler \(nil\)\n"),
    ("sent", EACH, SEGV, ""),
    ("sent_ignored", EACH, 0, ""),
    ("sent_chained", EACH, 5, "", r"handler .*\n"),
    ("sent_by_kernel", EACH, BUS, ""),
    ("sent_ignored_to_reader", EACH, 0, ""),
    ("sent_chained_to_reader", EACH, 0, ""),
    ("sent_interrupts_reader", EACH, 0, ""),
    ("stack_overflow", EACH, 5, "", HANDLED),
    ("small_stack", EACH, 5, USED, HANDLED),
    ("forked", EACH, 0, USED_AT_START),
    ("forked_often", EACH, 0, ""),
    ("forked_at_first_step", EACH, 0, USED, HANDLED),
    ("forked_at_last_step", EACH, 0, USED, HANDLED),
    ("nothing", None, 0, "", "", "plain check"),  # tiny magazines are refilled a thousand times
    ("in_the_end", None, 0, ""),
    ("off", "guard_sample:0", 0, ""),
    ("off", EACH + ",tcache:false", 0, ""),
    ("several", GOES_ON, 0, OVERFLOW + OVERFLOW),
    ("errno_is_kept", GOES_ON, 0, ""),
]


def threads_agree(out, err):
    """What the program says of its threads, and what the report does."""
    return all(re.search(rf"{word} by thread {number}:", err)
               for word, number in re.findall(r"(taken|freed|done) (\d+)\n", out))


def judge(program, row, library):
    deed, options, ending, report, *more = row
    code, out, err = run([program, deed], library, {"MALLOC_CONF": options} if options else {})
    if code is None:
        return f"hung for {TIMEOUT_S} s after {err!r}"
    if code != ending:
        return f"ended with {code}, not {ending}, after {out!r} and\n{err}"
    if not re.fullmatch(report, err):
        return f"said\n{err}instead of\n{report}"
    if deed == "use_across_threads":
        return None if threads_agree(out, err) and len(out.splitlines()) == 3 else f"threads differ: {out!r}\n{err}"
    if not re.fullmatch(more[0] if more else "", out):
        return f"printed {out!r}"
    return None


def main():
    program, wanted = sys.argv[1], sys.argv[2:]
    library, flavour = os.environ["PRAIRIE_LIBRARY"], os.environ.get("PRAIRIE_FLAVOUR", "plain")
    names = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True,
                           env=os.environ | {"LD_PRELOAD": library}).stdout.split()
    failed = 0
    if set(names) != {row[0] for row in ROWS}:
        print(f"the table and the program differ in {sorted(set(names) ^ {row[0] for row in ROWS})}")
        failed += 1
    for row in ROWS:
        if (wanted and row[0] not in wanted) or (len(row) > 5 and flavour not in row[5].split()):
            continue
        fault = judge(program, row, library)
        print(f"{'FAILED' if fault else 'ok':7}{row[0]} {row[1] or ''}")
        if fault:
            print(fault)
        failed += fault is not None
    print(f"{failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
