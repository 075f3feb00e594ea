#!/usr/bin/env python3
# attack_run.py - which attacks a library stops, beside those that it is said to stop.
# SPDX-License-Identifier: MIT
"""
usage: attack_run.py PROGRAM EXPECTED COLUMN      compare PRAIRIE_LIBRARY with a column of the list
       attack_run.py PROGRAM --table LABEL=LIBRARY[,NAME=VALUE...] ...
                                                  a table of what each library stops; LABEL= alone:
                                                  the C library

EXPECTED has a line for each attack: its name, and for each column `stops`, `-`, or `fence`: stops
where the kernel guards pages without a mapping more (Linux 6.13). A library that
stops more than it is said to is a failure as well: the list is what the documents count.
"""
import mmap
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "crash"))
sys.dont_write_bytecode = True
from crash_run import TIMEOUT_S, run  # pylint: disable=wrong-import-position

EXIT_MISSED, EXIT_SEEN_IN_VAIN = 0, 3


def attacks(program):
    listed = subprocess.run([program, "--list"], stdout=subprocess.PIPE, text=True, check=True)
    return listed.stdout.split()


def stops(program, attack, library, settings):
    """True, False, or what went wrong with the test itself."""
    code, _, err = run([program, attack], library, settings)
    if code is None:
        return f"hung for {TIMEOUT_S} s"
    if code < 0 or code == EXIT_SEEN_IN_VAIN:
        return True
    if code == EXIT_MISSED:
        return False
    return f"ended with {code}: {err.strip()}"


def kernel_has_fences():
    guard_install = 102
    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as pages:
        try:
            pages.madvise(guard_install, mmap.PAGESIZE, mmap.PAGESIZE)
        except (AttributeError, OSError):
            return False
    return True


def expectations(path, column):
    with open(path, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    index = rows[0].index(column)
    stopping = ["stops", "fence"] if kernel_has_fences() else ["stops"]
    return {row[0]: row[index] in stopping for row in rows[1:]}


def compare(program, path, column):
    expected, names, faults = expectations(path, column), attacks(program), []
    library = os.environ["PRAIRIE_LIBRARY"]
    if sorted(expected) != sorted(names):
        faults.append(f"the list and the program differ in {sorted(set(expected) ^ set(names))}")
    stopped = 0
    for name in names:
        outcome = stops(program, name, library, {})
        stopped += outcome is True
        if outcome != expected.get(name):
            faults.append(f"{name}: {'stopped' if outcome is True else outcome or 'not stopped'}")
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"{stopped} of {len(names)} stopped, {len(faults)} not as the list says")
    return not faults and bool(names)


def table(program, columns):
    parsed = []
    for column in columns:
        label, _, rest = column.partition("=")
        library, *settings = rest.split(",")
        parsed.append((label, library, dict(each.split("=", 1) for each in settings)))
    counts = [0] * len(parsed)
    print("attack", *(label for label, _, _ in parsed))
    for name in attacks(program):
        outcomes = [stops(program, name, library, settings) for _, library, settings in parsed]
        counts = [count + (outcome is True) for count, outcome in zip(counts, outcomes)]
        print(name, *("stops" if o is True else "-" if o is False else "?" for o in outcomes),
              flush=True)
    print("# stopped", *counts)
    return True


def main():
    if len(sys.argv) >= 4 and sys.argv[2] == "--table":
        return 0 if table(sys.argv[1], sys.argv[3:]) else 1
    if len(sys.argv) != 4 or not os.path.exists(os.environ.get("PRAIRIE_LIBRARY", "")):
        print(__doc__)
        return 2
    return 0 if compare(*sys.argv[1:]) else 1


sys.exit(main())
