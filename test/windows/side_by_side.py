#!/usr/bin/env python3
"""side_by_side.py - Windows programs under wine, on the C library's malloc and on prairie.

    side_by_side.py test NAME             a real program (real_programs.py): same output, and prairie served it; 77: skipped
    side_by_side.py bench [--help]        those programs and the patterns of bench/micro: ratios of time and memory

Processor time and peak memory of a real program are read in /proc, where wine's processes are processes like others,
every few milliseconds while it runs. A pattern tells its own. wine's clock, heap and kernel are not those of Windows: the
ratios tell what prairie costs on its way through wine, and no more.
SPDX-License-Identifier: MIT
"""
import argparse
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import real_programs

ROOT = real_programs.ROOT
BUILD = ROOT / "build" / "windows"
WINE = ROOT / "dev" / "wine"
SKIPPED = 77
TICKS = os.sysconf("SC_CLK_TCK")
REFILLS_MIN = 50                # magazines: far fewer than any of the programs needs, far more than wine's own libraries
KEPT_SECONDS = 60               # after the last program
EACH_PROGRAM_S = 600
EACH_PATTERN_S = 120            # wine's heap needs hours for some
BUSY_S_MIN = 0.3                # of processor time, counted in ticks of 10 ms


def words_of(command, served):
    """Under wine a path from the root begins with Z:."""
    return [str(WINE), *(["Z:" + str(BUILD / "prairie-run.exe")] if served else []), *map(str, command)]


def environment(served, **more):
    clean = {name: value for name, value in os.environ.items() if name not in ("PRAIRIE_CONF", "MALLOC_CONF")}
    return {**clean, **(more if served else {})}


def keep_wine():
    """Or else each program would start wine anew, and wait for it."""
    if shutil.which("wineserver") is not None:
        prefix = os.environ.get("WINEPREFIX", str(ROOT / "build" / "wine"))
        Ended(["wineserver", f"-p{KEPT_SECONDS}"], env={**os.environ, "WINEPREFIX": prefix})


class Ended:
    """How a program ended, and what it wrote. Into files: wine's own processes inherit a pipe, and outlive the program."""

    def __init__(self, words, watch=None, limit_s=EACH_PROGRAM_S, **more):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            with subprocess.Popen([str(word) for word in words], stdout=out, stderr=errors, stdin=subprocess.DEVNULL,
                                  **more) as running:
                if watch is not None:
                    watch(running)
                try:
                    self.code = running.wait(limit_s)
                except subprocess.TimeoutExpired:
                    running.kill()
                    self.code = None
            out.seek(0)
            errors.seek(0)
            self.out, self.errors = out.read(), errors.read()


# One run, measured

def processes_called(name):
    """The numbers of the processes whose program is called so; Linux keeps 15 letters."""
    found = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if Path(entry.path, "comm").read_text(encoding="utf-8").rstrip("\n") == name[:15]:
                    found.add(entry.name)
            except OSError:
                pass
    return found


def usage_of(process):
    """Seconds of processor time and MB at the peak, until now; None: it has ended."""
    try:
        times = Path("/proc", process, "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc", process, "status").read_text(encoding="utf-8"))
    except OSError:
        return None
    return ((int(times[11]) + int(times[12])) / TICKS, int(peak.group(1)) / 1024) if peak else None


def measured(command, served):
    """Output, processor seconds and peak MB of one run."""
    name = Path(command[0]).name
    before, usage = processes_called(name), None

    def watch(running):
        nonlocal usage
        process = None
        while running.poll() is None:
            if process is None:
                process = next(iter(processes_called(name) - before), None)
            else:
                usage = usage_of(process) or usage
            time.sleep(0.003)

    ended = Ended(words_of(command, served), watch, cwd=real_programs.FOLDER, env=environment(served))
    if ended.code != 0 or usage is None:
        sys.exit(f"side_by_side: {name}{' on prairie' if served else ''} ended with {ended.code}")
    return {"output": ended.out, "time": usage[0], "peak": usage[1]}


def measured_pattern(pattern, served, rounds):
    """ns for each operation, by both clocks, and peak MB; None: it took too long."""
    before = processes_called("micro.exe")
    ended = Ended(words_of(["Z:" + str(BUILD / "micro.exe"), "--pattern", pattern, "--rounds", rounds, "--json"], served),
                  limit_s=EACH_PATTERN_S, env=environment(served))
    if ended.code is None:
        for process in processes_called("micro.exe") - before:
            os.kill(int(process), signal.SIGKILL)
        return None
    if ended.code != 0:
        sys.exit(f"side_by_side: {pattern} ended with {ended.code}: {ended.errors}")
    told = json.loads(ended.out)
    owner = told["served_by"].rpartition("/")[2].lower()
    if (owner == "prairie.dll") != served:
        sys.exit(f"side_by_side: {pattern}: malloc is that of {owner}")
    busy_s = sum(told["cpu_ns"]) * told["operations"] / 1e9 if told["clock"] == "cpu" else 0
    return {"cpu": statistics.mean(told["cpu_ns"]), "wall": min(told["wall_ns"]), "busy_s": busy_s,
            "peak": told["peak_kb"] / 1024}


def choose_clock(row):
    """Processor time is counted in ticks: all rounds together tell it, where they are long. What is short, or has threads,
    is told by its quickest round."""
    runs = row.runs[False] + row.runs[True]
    if row.is_whole:
        row.clock = "cpu" if min(run["busy_s"] for run in runs) >= BUSY_S_MIN else "wall"
        for run in runs:
            run["time"] = run[row.clock]


# Tests

def test(name):
    try:
        command = real_programs.command(name, 10)
    except real_programs.Absent as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    done = {}
    for served in (False, True):
        done[served] = Ended(words_of(command, served), cwd=real_programs.FOLDER,
                             env=environment(served, PRAIRIE_CONF="stats_print:true"))
    refills = [re.search(rb"prairie: +refills +(\d+)", done[served].errors) for served in (False, True)]
    counted = int(refills[1].group(1)) if refills[1] else 0
    print(f"{name}: {len(done[True].out)} bytes of output, {counted} magazines filled")
    if (done[False].code, done[True].code) != (0, 0):
        print(f"exit codes {done[False].code} and on prairie {done[True].code}: {done[True].errors}")
    elif done[False].out != done[True].out or not done[True].out:
        print(f"the output differs: {done[False].out[-200:]} and on prairie {done[True].out[-200:]}")
    elif refills[0] or counted < REFILLS_MIN:
        print("it was not prairie that served the one, or the C library the other")
    else:
        return 0
    return 1


# The comparison

def text_of(ratio):
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


class Row:
    """One pattern or program, several rounds on both."""

    def __init__(self, name):
        self.name = name
        self.clock = "cpu"
        self.runs = {False: [], True: []}

    @property
    def is_whole(self):
        return None not in self.runs[False] + self.runs[True]

    def figure(self, what, served):
        return statistics.median(run[what] for run in self.runs[served])

    def ratio(self, what):
        return self.figure(what, True) / self.figure(what, False)

    def spread(self, what):
        """The ratios of the single rounds: where these are far apart, the machine was busy."""
        ratios = [ours[what] / theirs[what] for theirs, ours in zip(self.runs[False], self.runs[True])]
        return f"{text_of(min(ratios))} to {text_of(max(ratios))}"


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(value) for value in values))


def print_table(title, unit, rows):
    if not rows:
        return
    digits = 1 if unit == "ns" else 2
    print(f"\n### {title}\n", flush=True)
    print(f"| | {unit}, C library | prairie | clock | ratio of time | in single rounds | MB, C library | prairie | "
          "ratio of memory |")
    print("|---|---|---|---|---|---|---|---|---|")
    whole = [row for row in rows if row.is_whole]
    for row in whole:
        time_cells = [f"{row.figure('time', served):.{digits}f}" for served in (False, True)]
        peak_cells = [f"{row.figure('peak', served):.1f}" for served in (False, True)]
        print(f"| {row.name} | {time_cells[0]} | {time_cells[1]} | {row.clock} | {text_of(row.ratio('time'))} | {row.spread('time')} | "
              f"{peak_cells[0]} | {peak_cells[1]} | {row.ratio('peak'):.2f} |")
    if whole:
        means = [geometric_mean([row.ratio(what) for row in whole]) for what in ("time", "peak")]
        print(f"| geometric mean | | | | {text_of(means[0])} | | | | {text_of(means[1])} |")
    for row in rows:
        if not row.is_whole:
            print(f"\n{row.name}: not ended after {EACH_PATTERN_S} s on "
                  f"{'prairie' if None in row.runs[True] else 'the C library'}; in no mean")


def progress(*words):
    if sys.stderr.isatty():
        print("\r\033[K" + " ".join(map(str, words)), end="", file=sys.stderr, flush=True)


def compare(rows, rounds, run):
    """`run(row, served)` for each, the two after one another, in turns who is first."""
    for number in range(rounds):
        for row in rows:
            for served in ((False, True), (True, False))[number % 2]:
                progress(f"round {number + 1} of {rounds}:", row.name, "on prairie" if served else "")
                if row.is_whole:
                    row.runs[served].append(run(row, served))
    progress()
    return rows


def all_patterns():
    listed = Ended([WINE, BUILD / "micro.exe", "--list"]).out.decode()
    return [line.split()[0] for line in listed.splitlines()]


def chosen(text, everything):
    names = [name for name in text.split(",") if name and name != "none"] if text else list(everything)
    unknown = [name for name in names if name not in everything]
    if unknown:
        sys.exit(f"side_by_side: there is no {', '.join(unknown)}")
    return names


def programs_at_hand(names, per_cent):
    """Commands, and why others are missing."""
    commands, absent = {}, []
    for name in names:
        progress("making", name)
        try:
            commands[name] = real_programs.command(name, per_cent)
        except real_programs.Absent as reason:
            absent.append(f"{name}: skipped: {reason}")
    progress()
    return commands, absent


def bench(options):
    version = subprocess.run(["wine", "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    print(f"{version}, Linux {os.uname().release}, {os.cpu_count()} cores, {options.rounds} rounds; load "
          f"{os.getloadavg()[0]:.1f} at the start")
    keep_wine()
    commands, absent = programs_at_hand(chosen(options.programs, real_programs.PROGRAMS), options.scale)
    patterns = [Row(name) for name in chosen(options.patterns, all_patterns())]
    programs = [Row(name) for name in commands]
    compare(patterns, options.rounds,
            lambda row, served: measured_pattern(row.name, served, options.pattern_rounds))
    for row in patterns:
        choose_clock(row)
    print_table("Patterns of bench/micro", "ns", patterns)
    compare(programs, options.rounds, lambda row, served: measured(commands[row.name], served))
    print_table("Real programs", "s", programs)
    for line in absent:
        print(f"\n{line}")
    for row in programs:
        if len({run["output"] for served in (False, True) for run in row.runs[served]}) != 1:
            sys.exit(f"side_by_side: the output of {row.name} is not always the same")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("test", help="one real program")
    one.add_argument("name", choices=real_programs.PROGRAMS)
    both = what.add_parser("bench", help="ratios of time and memory")
    both.add_argument("--rounds", type=int, default=3, help="processes of each on both (3)")
    both.add_argument("--pattern-rounds", type=int, default=10, help="rounds of a pattern in each process (10)")
    both.add_argument("--scale", type=int, default=50, help="per cent of the programs' work (50)")
    both.add_argument("--patterns", default="", help="names, separated by commas; `none`")
    both.add_argument("--programs", default="", help="names, separated by commas; `none`")
    options = parser.parse_args()
    return test(options.name) if options.what == "test" else bench(options)


if __name__ == "__main__":
    sys.exit(main())
