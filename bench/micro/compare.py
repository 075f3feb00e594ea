#!/usr/bin/env python3
"""compare.py - runs the allocator patterns under several allocators, interleaved, as a table.

Every pattern runs under every allocator in a process of its own, so that peak memory and faults
belong to it. A pass runs each pair once, in shuffled order; passes are repeated. A figure counts
only when the process itself reported that the expected object owned malloc. The table goes to
stdout as Markdown, every raw result to a JSON file.
SPDX-License-Identifier: MIT
"""

import argparse
import hashlib
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
sys.dont_write_bytecode = True
from present import Peer, peers  # noqa: E402
from recipes import RECIPES, without_settings  # noqa: E402

PRAIRIE = os.path.join(ROOT, "build/libprairie.so")
NAMES = ["glibc", "prairie", *(recipe.name for recipe in RECIPES)]
# Ratios are to the first of each that takes part.
BASELINES = (("jemalloc", "jemalloc530"), ("mimalloc3", "mimalloc2", "mimalloc209"))


class Allocator:
    """path: the library to preload; None: the C library's own malloc."""

    def __init__(self, name, path, env=None):
        self.name, self.path, self.env = name, path, env or {}
        if path and re.search(r"[\s:]", path):
            sys.exit(
                f"compare.py: {path} cannot be preloaded: the loader splits at blanks and colons"
            )

    def environment(self):
        preload = {"LD_PRELOAD": self.path} if self.path else {}
        return {**without_settings(os.environ), **self.env, **preload}

    def describe(self):
        if self.path is None:
            return f"{self.name}: C library {platform.libc_ver()[1]}, no preload"
        real = os.path.realpath(self.path)
        with open(real, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()[:12]
        return f"{self.name}: {os.path.basename(real)}, sha256 {digest}"


def find_allocators(wanted, extra):
    """The allocators that are present, in table order, and why the others are not."""
    present, absent = [Allocator("glibc", None)], []
    if os.path.exists(PRAIRIE):
        present.append(Allocator("prairie", PRAIRIE))
    else:
        absent.append(("prairie", "build/libprairie.so is not there; make builds it"))
    for recipe, here in peers(with_unproved=True):
        if isinstance(here, Peer):
            present.append(Allocator(here.name, here.path, here.env))
        else:
            absent.append((recipe.name, here))
    if wanted:
        present = [allocator for allocator in present if allocator.name in wanted]
        absent = [(name, reason) for name, reason in absent if name in wanted]
    for item in extra:
        name, _, path = item.partition("=")
        if not os.path.exists(path):
            sys.exit(f"compare.py: --extra {item}: no such file")
        present.append(Allocator(name, path))
    return present, absent


def list_patterns(program, wanted):
    lines = subprocess.run(
        [program, "--list"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    patterns = dict(line.split(None, 1) for line in lines)
    unknown = [name for name in wanted if name not in patterns]
    if unknown:
        sys.exit(f"compare.py: no such pattern: {', '.join(unknown)}")
    return {name: patterns[name] for name in patterns if not wanted or name in wanted}


def run_once(program, pattern, allocator, rounds, timeout):
    """One process. A failure is a result too: it is kept with its reason and shown in the table."""
    command = [program, "--pattern", pattern, "--rounds", str(rounds), "--json"]
    try:
        done = subprocess.run(
            command, env=allocator.environment(), capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return {"pattern": pattern, "failure": f"no end after {timeout} s"}
    if done.returncode != 0:
        return {
            "pattern": pattern,
            "failure": f"exit {done.returncode}: {done.stderr.strip()[-200:]}",
        }
    result = json.loads(done.stdout)
    owner = os.path.basename(os.path.realpath(result["served_by"]))
    wanted = (
        "libc.so.6"
        if allocator.path is None
        else os.path.basename(os.path.realpath(allocator.path))
    )
    if owner != wanted:
        return {"pattern": pattern, "failure": f"malloc is owned by {result['served_by']}"}
    return result


def run_all(program, patterns, allocators, options):
    order = random.Random(options.seed)
    results = []
    for number in range(options.passes):
        jobs = [(pattern, allocator) for pattern in patterns for allocator in allocators]
        order.shuffle(jobs)
        for done, (pattern, allocator) in enumerate(jobs):
            if sys.stderr.isatty():
                print(
                    f"\rpass {number + 1}/{options.passes}: {done}/{len(jobs)} "
                    f"{pattern:20} {allocator.name:10}",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
            result = run_once(program, pattern, allocator, options.rounds, options.timeout)
            result.update(allocator=allocator.name, number=number)
            results.append(result)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return results


class Summary:
    """All passes of one pattern under one allocator."""

    def __init__(self, results):
        self.failures = [result["failure"] for result in results if "failure" in result]
        good = [result for result in results if "failure" not in result]
        self.good = bool(good) and not self.failures
        if not self.good:
            return
        medians = sorted(result["median_ns"] for result in good)
        self.minimum = min(result["min_ns"] for result in good)
        self.median = statistics.median(medians)
        self.low, self.high = medians[len(medians) // 4], medians[-1 - len(medians) // 4]
        self.peak_kb = statistics.median(result["peak_kb"] for result in good)
        self.faults = statistics.median(
            result["faults_prepare"] + result["faults_rounds"] for result in good
        )


def format_ns(value):
    if value >= 100000:
        return f"{value / 1000:.0f} µs"
    if value >= 10000:
        return f"{value / 1000:.1f} µs"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}"


def ratio_cell(ours, theirs):
    """Median against median, '≈' when the middle halves of the passes overlap: no claim then."""
    if ours is None or theirs is None or not ours.good or not theirs.good:
        return "–"
    overlap = ours.low <= theirs.high and theirs.low <= ours.high
    text = f"{ours.median / theirs.median:.2f} / {ours.minimum / theirs.minimum:.2f}"
    if overlap:
        return "≈ " + text
    return text if ours.median > theirs.median else f"**{text}**"


def print_table(title, patterns, names, cell, extra_columns=()):
    print(f"\n### {title}\n")
    print("| pattern | " + " | ".join(list(names) + [column for column, _ in extra_columns]) + " |")
    print("|---" * (1 + len(names) + len(extra_columns)) + "|")
    for pattern in patterns:
        cells = [cell(pattern, name) for name in names] + [
            function(pattern) for _, function in extra_columns
        ]
        print(f"| {pattern} | " + " | ".join(cells) + " |")


def print_report(patterns, allocators, results, subject):
    names = [allocator.name for allocator in allocators]
    summary = {
        (pattern, name): Summary(
            [r for r in results if r["pattern"] == pattern and r["allocator"] == name]
        )
        for pattern in patterns
        for name in names
    }

    def cell_with(text):
        return lambda pattern, name: (
            text(summary[pattern, name]) if summary[pattern, name].good else "failed"
        )

    bases = [next((name for name in group if name in names), None) for group in BASELINES]
    bases = [base for base in bases if base and base != subject]
    ratios = [
        (
            f"{subject}/{base}",
            lambda pattern, base=base: ratio_cell(
                summary.get((pattern, subject)), summary.get((pattern, base))
            ),
        )
        for base in bases
        if subject in names
    ]
    print_table(
        "Time, ns per operation: median / minimum (ratios likewise; below 1 is faster)",
        patterns,
        names,
        cell_with(lambda s: f"{format_ns(s.median)} / {format_ns(s.minimum)}"),
        ratios,
    )
    print_table(
        "Peak resident memory, MB", patterns, names, cell_with(lambda s: f"{s.peak_kb / 1024:.1f}")
    )
    print_table("Minor page faults", patterns, names, cell_with(lambda s: f"{s.faults:.0f}"))
    failures = [
        f"- {pattern} under {name}: {reason}"
        for (pattern, name), s in summary.items()
        for reason in sorted(set(s.failures))
    ]
    if failures:
        print("\n### Failures\n\n" + "\n".join(failures))
    return not failures


def main():
    parser = argparse.ArgumentParser(
        description="Compare allocators on small patterns, interleaved."
    )
    parser.add_argument(
        "--micro",
        default=os.path.join(ROOT, "build/bench/micro/micro"),
        help="the measuring program",
    )
    parser.add_argument(
        "--passes", type=int, default=5, help="processes per pattern and allocator (5)"
    )
    parser.add_argument("--rounds", type=int, default=10, help="rounds in each process (10)")
    parser.add_argument("--patterns", default="", help="names, separated by commas; all without it")
    parser.add_argument(
        "--allocators",
        default="",
        help="names, separated by commas; all that are present without it",
    )
    parser.add_argument(
        "--extra",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="one more preloadable library",
    )
    parser.add_argument("--subject", default="prairie", help="whose ratios are shown (prairie)")
    parser.add_argument("--seed", type=int, default=None, help="of the order of runs")
    parser.add_argument(
        "--timeout", type=float, default=300, help="seconds that one process may take (300)"
    )
    parser.add_argument(
        "--json",
        default=os.path.join(ROOT, "build/bench/micro.json"),
        help="file of the raw results",
    )
    parser.add_argument("--list", action="store_true", help="name the patterns and stop")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time())

    patterns = list_patterns(options.micro, [name for name in options.patterns.split(",") if name])
    if options.list:
        for name, stresses in patterns.items():
            print(f"{name:20} {stresses}")
        return 0
    wanted = [name for name in options.allocators.split(",") if name]
    known = [*NAMES, *(item.partition("=")[0] for item in options.extra)]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(
            f"compare.py: no such allocator: {', '.join(unknown)}; there are: {' '.join(known)}"
        )
    allocators, absent = find_allocators(wanted, options.extra)

    print(
        f"{len(patterns)} patterns, {options.passes} passes of {options.rounds} rounds, "
        f"order seed {options.seed}, "
        f"{os.cpu_count()} cores, kernel {platform.release()}\n"
    )
    for allocator in allocators:
        print("- " + allocator.describe())
    for name, reason in absent:
        print(f"- {name}: skipped: {reason}")

    results = run_all(options.micro, patterns, allocators, options)
    complete = print_report(patterns, allocators, results, options.subject)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(
            {
                "seed": options.seed,
                "allocators": [a.describe() for a in allocators],
                "results": results,
            },
            file,
        )
    print(f"\nRaw results: {os.path.relpath(options.json)}")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
