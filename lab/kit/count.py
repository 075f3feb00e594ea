"""count.py - counts instructions and cache misses with callgrind, which executes them one by one.

Counts are the same in every run on the same binary: no clock, no other process has a part in them.
Misses come from cachegrind's model of the caches, which callgrind shares; its sizes are fixed here,
so that they are the same everywhere.
SPDX-License-Identifier: MIT
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

# First-level caches of 32 KiB, 8 ways; last level of 2 MiB, 16 ways: a core of today.
CACHES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64"]


class CountError(Exception):
    """The program failed, or callgrind did."""


def available():
    return shutil.which("valgrind") is not None


def stretches(command, caches=False, env=None):
    """Runs a program that marks stretches (kit/count.h): label -> {event: count}, in order.

    Events: Ir instructions, Dr loads, Dw stores; with caches also D1mr, D1mw (first level) and
    DLmr, DLmw (last level)."""
    events = {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        options = [f"--callgrind-out-file={out}", "--collect-atstart=no", "--instr-atstart=no"]
        _callgrind(options, command, caches, env)
        parts = [path for path in Path(folder).glob("out.*") if path.suffix[1:].isdigit()]
        for path in sorted(parts, key=lambda path: int(path.suffix[1:])):
            label, counts = _read(path)
            if label is not None:
                events[label] = counts
    return events


def whole(command, caches=False, env=None):
    """The whole program's counts, from its first instruction to its last: {event: count}."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        _callgrind([f"--callgrind-out-file={out}"], command, caches, env)
        return _read(out)[1]


def _callgrind(options, command, caches, env):
    if caches:
        options = [*options, "--cache-sim=yes", *CACHES]
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", *options, *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        check=False,
    )
    if done.returncode != 0:
        raise CountError(f"{command[0]} under callgrind: exit {done.returncode}\n{done.stderr}")


def _read(path):
    label, names, totals = None, [], []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if match := re.match(r"desc: Trigger: Client Request: (.*)", line):
                label = match.group(1)
            elif line.startswith("events:"):
                names = line.split()[1:]
            elif line.startswith(("totals:", "summary:")):
                totals = [int(number) for number in line.split()[1:]]
    # Zeros at the end of the line are left out.
    return label, dict(zip(names, totals + [0] * (len(names) - len(totals))))
