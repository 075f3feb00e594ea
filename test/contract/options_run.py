#!/usr/bin/env python3
# options_run.py - every key of the list of options: it is set, read back, and refused with the words that say why.
# SPDX-License-Identifier: MIT
"""usage: options_run.py PROGRAM

The list is the one that dev/make_options.py makes docs/options.md of. What options do is conf_run.py's and the unit
tests'.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "dev"))

from make_options import is_clipped, mode_of, table  # noqa: E402

LIBRARY = os.environ["PRAIRIE_LIBRARY"]
# With these a program says something when all is well; each has a process of its own.
LOUD = {"stats_print": "___ Begin jemalloc statistics ___", "confirm_conf": "prairie: malloc_conf malloc_conf: "}
# A program has to live with them. Others take the number beside their default.
NUMBERS = {"limit_soft": 100 << 20, "limit_hard": 200 << 20, "reserve_min": 1 << 20}
# jemalloc refuses numbers beyond the limits of these, or has them not. All others without a sign it takes for the limit.
STRICT = {"reserve_min", "limit_soft", "limit_hard", "oversize_threshold", "guard_sample", "guard_interval", "guard_cells",
          "lg_extent_max_active_fit"}
ARENAS_MAX = 256  # opt.narenas is how many there are
TEXT = "two words"
TEXT_BYTES = 4096  # all texts of all sources have this room
failures = 0


def expect(what, given, wanted):
    global failures
    if given != wanted:
        failures += 1
        print(f"FAILED {what}\n  wanted {wanted!r}\n  got    {given!r}")


class Option:
    def __init__(self, row):
        self.name, _, _, self.kind, default, least, most, _, words = row
        self.mode, self.clipped = mode_of(row), is_clipped(row)
        self.default, self.least, self.most = int(default), int(least), int(most)
        self.words = words.split(" ") if self.kind == "CHOICE" else []
        self.text = words if self.kind == "TEXT" else ""

    def is_number(self):
        return self.kind in ("UNSIGNED", "SIZE", "SSIZE", "U64", "I64")

    def standard(self):
        """What is read back when nobody sets it; None: this machine decides."""
        if self.name == "narenas":
            return None
        if self.kind == "BOOL":
            return str(self.default if self.default <= 1 else 0)  # unset reads as false
        if self.kind == "CHOICE":
            return self.words[self.default]
        return self.text if self.kind == "TEXT" else str(self.default)

    def other(self):
        """A value that is not the default, as it is written and as it is read back."""
        if self.kind == "BOOL":
            return ("false", "0") if self.default == 1 else ("true", "1")
        if self.kind == "CHOICE":
            word = self.words[0 if self.default != 0 else 1]
            return word, word
        if self.kind == "TEXT":
            return TEXT, TEXT
        if self.kind == "FRACTION":
            return "0.75", str(65536 * 3 // 4)
        if self.kind == "IGNORED":
            return "any thing|there:is", None
        number = NUMBERS.get(self.name, self.default + 1 if self.default < self.most else self.default - 1)
        return str(number), str(number)

    def refused(self):
        """Values that it does not take, each with what is said."""
        out_of_range, unknown = "Out-of-range conf value", "Invalid conf value"
        if self.kind in ("BOOL", "CHOICE"):
            return [("neither", unknown), ("", unknown)]
        if self.kind == "TEXT":
            return [("x" * TEXT_BYTES, out_of_range)]
        if self.kind == "FRACTION":
            return [("65535", out_of_range), ("half", unknown)]
        if not self.is_number():
            return []
        above = out_of_range if self.most + 1 < 2**64 else unknown
        if self.clipped:
            return [(str(2**64), unknown), ("many", unknown)]
        return [(str(self.least - 1), out_of_range), (str(self.most + 1), above), ("many", unknown)]

    def beyond(self):
        """Values beyond its limits that it takes, each with what it is then."""
        if not self.clipped:
            return []
        most = str(ARENAS_MAX if self.name == "narenas" else self.most)
        below = [(str(self.least - 1), str(self.least))] if self.least > 0 else []
        above = [(str(self.most + 1), most)] if self.most + 1 < 2**64 else []
        return below + above + [("-1", most)]  # as a number without a sign it is the largest


def run(options, pairs):
    """What the program reads back for these options, and what was said meanwhile."""
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": LIBRARY}
    if pairs:
        environment["MALLOC_CONF"] = ",".join(f"{key}:{value}" for key, value in pairs)
    with tempfile.TemporaryDirectory() as folder:  # the profiler writes its files there
        done = subprocess.run([os.path.abspath(sys.argv[1]), "get", *(f"opt.{option.name}" for option in options)],
                              capture_output=True, text=True, env=environment, timeout=60, check=False, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{pairs}: the program ended with {done.returncode} and said\n{done.stderr}")
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    return {name.removeprefix("opt."): value for name, _, value in lines}, done.stderr


def said(what, key, value):
    """A line of the library, which is no longer than 240 bytes."""
    return f"prairie: {what}: {key}:{value} (MALLOC_CONF)"[:239] + "\n"


def standards(options):
    values, err = run(options, [])
    expect("a program without options is silent", err, "")
    for option in options:
        if option.standard() is not None:
            expect(f"the default of {option.name}", values[option.name], option.standard())
    return values


def set_and_read(options):
    """Together, because a key must not stand in another's way either."""
    quiet = [option for option in options if option.name not in LOUD]
    values, err = run(quiet, [(option.name, option.other()[0]) for option in quiet])
    expect("options that are set are silent", err, "")
    for option in quiet:
        expect(f"{option.name} as it was set", values[option.name], option.other()[1])
    for option in (option for option in options if option.name in LOUD):
        values, err = run([option], [(option.name, option.other()[0])])
        expect(f"{option.name} as it was set", values[option.name], option.other()[1])
        expect(f"{option.name} says something", err[:len(LOUD[option.name])], LOUD[option.name])


def refuse(options, before):
    pairs = [(option.name, value, what) for option in options for value, what in option.refused()]
    values, err = run(options, [pair[:2] for pair in pairs])
    for given, wanted in zip(err.splitlines(keepends=True), (said(what, key, value) for key, value, what in pairs)):
        expect("a value that is not taken", given, wanted)
    expect("lines about values that are not taken", err.count("\n"), len(pairs))
    for option in options:
        expect(f"{option.name} after values that it does not take", values[option.name], before[option.name])


def clip(options):
    clipped = [option for option in options if option.beyond()]
    strict = {option.name for option in options if option.is_number() and option.least >= 0} - {o.name for o in clipped}
    expect("options that are not clipped", strict, STRICT)
    for option in clipped:
        for value, wanted in option.beyond():
            values, err = run([option], [(option.name, value)])
            expect(f"{option.name}:{value} is silent", err, "")
            # The program prints numbers of 32 and 64 bits as signed ones.
            same = int(values[option.name]) in (int(wanted), int(wanted) - 2**32, int(wanted) - 2**64)
            expect(f"{option.name}:{value}", values[option.name] if not same else wanted, wanted)


def without_effect(options):
    """Keys of jemalloc that change nothing get no word; those without a value are no names either."""
    kept = [option for option in options if option.mode == "kept"]
    bare = [option for option in kept if option.kind == "IGNORED"]
    values, err = run(bare, [(option.name, option.other()[0]) for option in kept])
    expect("keys without effect are silent", err, "")
    expect("keys without a value", values, {option.name: "No such file or directory" for option in bare})


every = [Option(row) for row in table()]
readable = [option for option in every if option.kind != "IGNORED"]
refuse(readable, standards(readable))
clip(readable)
set_and_read(readable)
without_effect(every)
print(f"{len(every)} options, {failures} failed")
sys.exit(1 if failures else 0)
