#!/usr/bin/env python3
"""count.py - counts what fast paths, page runs and locks cost, and compares with committed figures.

Instructions are counted by stepping through each call (step.c), so the figures are exact and the
same on every x86-64 machine, as long as the compiler is the same. `make count RENEW=1` writes the
figures of now into golden.json. Exit status: 0 nothing grew, 1 a figure grew or is over its budget,
2 something failed.
SPDX-License-Identifier: MIT
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GOLDEN = os.path.join(HERE, "golden.json")

sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
sys.dont_write_bytecode = True
from recipes import without_settings  # noqa: E402

FIELDS = [
    "instructions",
    "loads",
    "stores",
    "branches",
    "stack",
    "jumps",
    "calls",
    "atomics",
    "syscalls",
]
# Instructions, by docs of the design; what is not named here has none.
BUDGETS = {
    "malloc(16)": 15,
    "malloc(48)": 15,
    "malloc(1024)": 15,
    "free(16)": 14,
    "free(48)": 14,
    "free(1024)": 14,
    "sized delete(48)": 12,
}
# Instructions of lease and return together: of the cheapest, which finds a run of just its length,
# and of the dearest, which splits a longer one and merges it again (docs/decisions/0011).
RUN_BUDGET_USUAL = 140
RUN_BUDGET_SPLIT = 400
LOCK_BUDGET = 0.02  # locks per malloc with its free
# Ready to be sampled, but no sample comes meanwhile.
CONF_SAMPLED = "prof:true,lg_prof_sample:40"
# calloc clears by the C library's memset, which has other forms for processors with these: the one that all can run.
SAME_MEMSET = "glibc.cpu.hwcaps=-AVX2,-AVX512VL,-AVX512BW"
# Locks depend a little on when memory goes back to the kernel.
LOCK_SLACK = 1.05
LOCK_SLACK_COUNT = 100


def run_lines(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode != 0:
        print(
            f"count: {' '.join(map(os.path.basename, command))}: exit {done.returncode}",
            file=sys.stderr,
        )
        sys.exit(2)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def count_calls(tools, library, conf="", suffix=""):
    """Per call the cheapest sample, and which calls had samples that differed."""
    lines = run_lines(
        [f"{tools}/step", "--preload", library, "--", f"{tools}/calls"],
        env=dict(without_settings(os.environ), MALLOC_CONF=conf, GLIBC_TUNABLES=SAME_MEMSET),
    )
    owner = lines[0]["served_by"]
    if os.path.realpath(owner) != os.path.realpath(library):
        print(f"count: malloc is answered by {owner}, not by {library}", file=sys.stderr)
        sys.exit(2)
    calls, unsteady = {}, set()
    for line in lines[1:]:
        name = line.pop("name") + suffix
        if name in calls and calls[name] != line:
            unsteady.add(name)
        if name not in calls or line["instructions"] < calls[name]["instructions"]:
            calls[name] = line
    return calls, unsteady


def count_runs(tools):
    """(free runs, pages) to instructions of (lease, return), the dearest sample of each."""
    dearest = {}
    environment = without_settings(os.environ)
    for line in run_lines([f"{tools}/step", "--", f"{tools}/runs"], env=environment):
        if line["syscalls"] != 0:
            print(
                f"count: {line['name']} asked the kernel, so it found no free run", file=sys.stderr
            )
            sys.exit(2)
        verb, free_runs, pages = line["name"].split()
        key = (verb, int(free_runs), int(pages))
        dearest[key] = max(dearest.get(key, 0), line["instructions"])
    return {
        (free_runs, pages): (cost, dearest["return", free_runs, pages])
        for (verb, free_runs, pages), cost in dearest.items()
        if verb == "lease"
    }


def count_locks(tools, library):
    environment = dict(without_settings(os.environ), LD_PRELOAD=library)
    return {line.pop("name"): line for line in run_lines([f"{tools}/locks"], env=environment)}


def compiler_of(library):
    """The compiler that wrote its name into the library."""
    with open(library, "rb") as file:
        found = re.search(rb"GCC: \([^)]*\) [0-9.]+|clang version [0-9.]+", file.read())
    return found.group().decode() if found else "unknown"


def print_calls(calls, unsteady, golden):
    print("### Calls: x86-64, from the symbol to its ret\n")
    print("| call | " + " | ".join(FIELDS) + " | budget | committed |")
    print("|---" * (len(FIELDS) + 3) + "|")
    for name, counts in calls.items():
        budget = BUDGETS.get(name)
        verdict = (
            ""
            if budget is None
            else f"≤ {budget}" + (" **over**" if counts["instructions"] > budget else "")
        )
        committed = golden.get(name, {}).get("instructions", "new")
        print(
            f"| {name}{' (samples differ)' if name in unsteady else ''} | "
            + " | ".join(str(counts[field]) for field in FIELDS)
            + f" | {verdict} | {committed} |"
        )


def size_name(pages):
    size_bytes = pages * 4096
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= size:
            return f"{size_bytes // size} {unit}"
    return str(size_bytes)


def print_runs(runs):
    sizes = sorted({pages for _, pages in runs})
    print(
        "\n### Lease + return of a page run: instructions, dearest of 5 "
        f"(budget together: {RUN_BUDGET_USUAL} for the cheapest, "
        f"{RUN_BUDGET_SPLIT} for the dearest)\n"
    )
    print("| free runs | " + " | ".join(size_name(pages) for pages in sizes) + " |")
    print("|---" * (len(sizes) + 1) + "|")
    for free_runs in sorted({count for count, _ in runs}):
        cells = ("{} + {}".format(*runs[free_runs, pages]) for pages in sizes)
        print(f"| {free_runs} | " + " | ".join(cells) + " |")
    together = [sum(cost) for cost in runs.values()]
    least, most = min(together), max(together)
    over = " **over**" if least > RUN_BUDGET_USUAL or most > RUN_BUDGET_SPLIT else ""
    print(f"\nfrom {least} to {most}{over}")


def print_locks(locks):
    print(f"\n### Locks per malloc and free in steady state (budget {LOCK_BUDGET})\n")
    print("| script | threads | locks per pair | contended | waited |\n|---|---|---|---|---|")
    for name, line in locks.items():
        each = line["acquired"] / line["pairs"]
        over = " **over**" if each > LOCK_BUDGET else ""
        print(
            f"| {name} | {line['threads']} | {each:.5f}{over} | "
            f"{line['contended']} | {line['waits']} |"
        )


def over_budget(calls, runs, locks):
    """What costs more than it may, as lines of text."""
    over = [
        f"{name}: {calls[name]['instructions']} instructions, budget {budget}"
        for name, budget in BUDGETS.items()
        if name in calls and calls[name]["instructions"] > budget
    ]
    together = [sum(cost) for cost in runs.values()]
    for kind, cost, budget in (
        ("cheapest", min(together), RUN_BUDGET_USUAL),
        ("dearest", max(together), RUN_BUDGET_SPLIT),
    ):
        if cost > budget:
            over.append(f"lease and return, the {kind}: {cost} instructions, budget {budget}")
    over += [
        f"locks, {name}: {line['acquired'] / line['pairs']:.5f} for each pair, budget {LOCK_BUDGET}"
        for name, line in locks.items()
        # How often two threads meet is the machine's to say.
        if line["threads"] == 1 and line["acquired"] / line["pairs"] > LOCK_BUDGET
    ]
    return over


def compare(now, golden):
    """What grew and what shrank, as lines of text."""
    grown, shrunk = [], []

    def judge(what, new, old, allowed):
        if new > allowed:
            grown.append(f"{what}: {old} -> {new}")
        elif new < old:
            shrunk.append(f"{what}: {old} -> {new}")

    for name, old in golden["calls"].items():
        if name not in now["calls"]:
            grown.append(f"{name}: no longer counted")
            continue
        for field in FIELDS:
            judge(f"{name} {field}", now["calls"][name][field], old[field], old[field])
    for name, old in golden["runs"].items():
        judge(f"lease and return, {name}", now["runs"].get(name, 10**9), old, old)
    for name, old in golden["locks"].items():
        allowed = old * LOCK_SLACK + LOCK_SLACK_COUNT
        new = now["locks"].get(name, 10**9)
        if new > allowed or new < old / LOCK_SLACK - LOCK_SLACK_COUNT:
            judge(f"locks, {name}", new, old, allowed)
    return grown, shrunk


def main():
    parser = argparse.ArgumentParser(
        description="Count what the fast paths, page runs and locks cost."
    )
    parser.add_argument(
        "--library",
        default=os.path.join(ROOT, "build/libprairie.so"),
        help="count the calls of this one; only prairie is compared",
    )
    parser.add_argument(
        "--tools", default=os.path.join(ROOT, "build/bench/counts"), help="the built programs"
    )
    parser.add_argument("--renew", action="store_true", help="commit the figures of now")
    options = parser.parse_args()
    machine = platform.machine()
    if machine != "x86_64":
        print(f"count: instructions are counted on x86_64 only, not on {machine}")
        return 0

    golden_file = json.load(open(GOLDEN, encoding="utf-8")) if os.path.exists(GOLDEN) else {}
    golden = golden_file.get(machine, {"compiler": None, "calls": {}, "runs": {}, "locks": {}})
    is_prairie = os.path.basename(options.library).startswith("libprairie")
    calls, unsteady = count_calls(options.tools, options.library)
    if is_prairie:
        sampled_calls, sampled_unsteady = count_calls(
            options.tools, options.library, CONF_SAMPLED, ", prof:true"
        )
        calls.update(sampled_calls)
        unsteady |= sampled_unsteady
    print_calls(calls, unsteady, golden["calls"])
    if not is_prairie:
        return 0
    runs = count_runs(options.tools)
    print_runs(runs)
    locks = count_locks(options.tools, options.library)
    print_locks(locks)

    now = {
        "compiler": compiler_of(options.library),
        "calls": calls,
        "runs": {
            f"{free_runs} free runs, {pages} pages": sum(cost)
            for (free_runs, pages), cost in runs.items()
        },
        "locks": {name: line["acquired"] for name, line in locks.items() if line["threads"] == 1},
    }
    over = over_budget(calls, runs, locks)
    for line in over:
        print(f"OVER:   {line}", file=sys.stderr)
    if options.renew:
        golden_file[machine] = now
        with open(GOLDEN, "w", encoding="utf-8") as file:
            json.dump(golden_file, file, indent=1)
            file.write("\n")
        print("\ncount: the committed figures are those of now")
        return 0
    if golden["compiler"] is None:
        print("\ncount: there are no committed figures; make count RENEW=1 makes them")
        return 1
    grown, shrunk = compare(now, golden)
    print()
    for line in shrunk:
        print(f"shrank: {line}")
    for line in grown:
        print(f"GREW:   {line}")
    if shrunk:
        print("count: smaller than committed; make count RENEW=1 keeps that")
    if (grown or over) and golden["compiler"] != now["compiler"]:
        print(
            f"count: not judged: committed with {golden['compiler']}, built with {now['compiler']}"
        )
        return 0
    print(f"count: {len(grown)} figures grew" if grown else "count: nothing grew")
    if over:
        print(f"count: {len(over)} figures are over their budgets")
    return 1 if grown or over else 0


if __name__ == "__main__":
    sys.exit(main())
