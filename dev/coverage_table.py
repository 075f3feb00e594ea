#!/usr/bin/env python3
# coverage_table.py - reads what gcov counted and prints lines and branches of each file of src.
# SPDX-License-Identifier: MIT
"""Usage: coverage_table.py FOLDER [--missing FILE]... [--record FILE] [--json FILE]
          coverage_table.py --programs FOLDER     which of the folder's targets the tests on standard input need

A line counts as executed when it was in any of the compilations that were made to count, a branch likewise.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

# What cannot be executed here, and why.
LEFT_OUT = (
    (r"os/(windows|darwin|bsd|freebsd|netbsd|unix|no_).*", "os/: windows, darwin, bsd, freebsd, netbsd, unix, no_*",
     "other kernels"),
    (r"(windows|darwin)/.*", "windows/, darwin/", "other systems"),
    (r"libc/copies\.c", "libc/copies.c", "is in one library of its own, whose tests are attack.copies and programs.answers"),
    (r"os/linux_early\.c", "os/linux_early.c", "runs while the loader relocates, before anything can be counted"),
)
STATEMENT = re.compile(r"\b(check|require)\(")


def programs(folder):
    """A program that contains the library has its test's name; scripts start programs that only they know, and programs
    load libraries."""
    wanted = {f"test/bin/{test['name']}" for test in json.load(sys.stdin)["tests"]}
    targets = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True, text=True,
                             check=True).stdout
    known = {line.split(": ")[0] for line in targets.splitlines()}
    more = {name for name in known if re.fullmatch(r"test/bin/(lib)?(contract|crash|guest|start|story|stress|sequence|served"
                                                   r"|guarded)[^@]*", name)}
    print("\n".join(sorted((wanted & known) | more)))


def excluded_branches(path):
    """The lines that belong to a check() or require(), whose branches say nothing."""
    lines = set()
    depth = 0
    for number, text in enumerate(path.read_text().splitlines(), 1):
        begins = STATEMENT.search(text) if depth == 0 else None
        if begins or depth > 0:
            lines.add(number)
            part = text[begins.start():] if begins else text
            depth += part.count("(") - part.count(")")
            depth = max(depth, 0)
    return lines


def is_left_out(name):
    return next((why for pattern, _, why in LEFT_OUT if re.fullmatch(pattern, name)), None)


def read_counts(folder):
    """{file: {line: [count, [taken...]]}} over all compilations."""
    files = {}
    for data in sorted(Path(folder).rglob("*.gcda")):
        # What was counted before its object was compiled anew cannot be read, and says nothing.
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", data.resolve()],
                              capture_output=True, cwd=folder)
        for document in done.stdout.splitlines() if done.returncode == 0 else ():
            for file in json.loads(document)["files"]:
                path = (Path(folder) / file["file"]).resolve()
                if SOURCE not in path.parents:
                    continue
                merge(files.setdefault(str(path.relative_to(SOURCE)), {}), file["lines"])
    return files


def merge(known, lines):
    here = {}
    for line in lines:
        taken = [branch["count"] for branch in line["branches"] if not branch["throw"]]
        entry = here.setdefault(line["line_number"], [0, []])
        entry[0] += line["count"]
        # A function that was compiled twice in one file has its branches twice.
        entry[1] = [a + b for a, b in zip(entry[1], taken)] if len(entry[1]) == len(taken) else max(
            entry[1], taken, key=sum)
    for number, (count, taken) in here.items():
        entry = known.setdefault(number, [0, []])
        entry[0] += count
        if len(entry[1]) == len(taken):
            entry[1] = [a + b for a, b in zip(entry[1], taken)]
        elif share(taken) > share(entry[1]):
            entry[1] = taken


def share(taken):
    return sum(count > 0 for count in taken) / len(taken) if taken else -1


def print_missing(name, lines, excluded):
    text = (SOURCE / name).read_text().splitlines()
    for number, (count, taken) in sorted(lines.items()):
        if count == 0:
            print(f"{name}:{number}: not executed: {text[number - 1].strip()}")
        elif number not in excluded and any(one == 0 for one in taken):
            print(f"{name}:{number}: branches {taken}: {text[number - 1].strip()}")


def share_text(some, all_of):
    return f"{some:6}/{all_of:<6} {100 * some / all_of if all_of else 100:6.1f}"


def main(arguments):
    if arguments[0] == "--programs":
        programs(Path(arguments[1]))
        return
    missing = [arguments[i + 1] for i, word in enumerate(arguments) if word == "--missing"]
    record = [arguments[i + 1] for i, word in enumerate(arguments) if word == "--record"]
    files = read_counts(arguments[0])
    rows, sums = [], [0, 0, 0, 0]
    for name, lines in sorted(files.items()):
        if is_left_out(name):
            continue
        excluded = excluded_branches(SOURCE / name)
        branches = [one for number, (_, taken) in lines.items() if number not in excluded for one in taken]
        row = [sum(count > 0 for count, _ in lines.values()), len(lines), sum(one > 0 for one in branches), len(branches)]
        sums = [a + b for a, b in zip(sums, row)]
        rows.append(f"{name:34} {share_text(row[0], row[1])} {share_text(row[2], row[3])}")
        if name in missing or "all" in missing:
            print_missing(name, lines, excluded)
    head = [f"{'file':34} {'lines':>13} {'%':>6} {'branches':>13} {'%':>6}"]
    end = [f"{'all':34} {share_text(sums[0], sums[1])} {share_text(sums[2], sums[3])}"]
    print("\n".join(head + rows + end))
    if record:
        left = [f"left out: {names}: {why}" for _, names, why in LEFT_OUT]
        Path(record[0]).write_text("What the tests execute of src, as `make coverage` counted it.\n\n"
                                   + "\n".join(line.rstrip() for line in head + rows + end) + "\n\n" + "\n".join(left)
                                   + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
