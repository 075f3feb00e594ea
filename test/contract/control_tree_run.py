#!/usr/bin/env python3
# control_tree_run.py - each name of jemalloc's control tree is answered, or is in the list of refused names, where
# there is nothing else.
# SPDX-License-Identifier: MIT
"""usage: control_tree_run.py PROGRAM TREE PAGE"""
import os
import re
import subprocess
import sys

program, tree, page = sys.argv[1:]


def expanded(pattern):
    braces = re.search(r"\{([^}]*)\}", pattern)
    if not braces:
        return [re.sub(r"\b[NM]\b", "0", pattern)]
    return [name for part in braces[1].split(",")
            for name in expanded(pattern[:braces.start()] + part + pattern[braces.end():])]


def names_of_tree():
    with open(tree, encoding="utf-8") as lines:
        return [name for line in lines if line.strip() and not line.startswith("#")
                for name in expanded(line.strip())]


def refused_patterns():
    """The first column of the page's table; * is one part of a name, or what is left of it."""
    with open(page, encoding="utf-8") as text:
        section = text.read().split("### Names that are refused", 1)[1].split("\n#", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [pattern for row in rows for pattern in re.findall(r"`([^`]+)`", row)]


def as_expression(pattern):
    parts = [r"[^.]+" if part == "*" else r"\d+" if part in ("N", "M") else re.escape(part)
             for part in pattern.split(".")]
    if pattern.endswith(".*"):
        parts[-1] = ".+"
    return re.compile(r"\.".join(parts) + "$")


def answered(names):
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": os.environ["PRAIRIE_LIBRARY"]}
    output = subprocess.run([program, "known", *names], capture_output=True, text=True, timeout=60,
                            env=environment, check=True).stdout
    return dict(zip(names, (line == "known" for line in output.split())))


failures = 0
names = names_of_tree()
patterns = {pattern: as_expression(pattern) for pattern in refused_patterns()}
known = answered(names)
for name in names:
    listed = [pattern for pattern, expression in patterns.items() if expression.match(name)]
    if known[name] == bool(listed):
        failures += 1
        print(f"FAILED {name}: " + (f"answered, and refused by {listed}" if known[name]
                                    else "neither answered nor listed as refused"))
for pattern, expression in patterns.items():
    if not any(expression.match(name) for name in names):
        failures += 1
        print(f"FAILED {pattern} is listed as refused, and is no name of jemalloc's")
print(f"{len(names)} names, {sum(known.values())} answered, {failures} failed")
sys.exit(1 if failures or len(names) < 400 or sum(known.values()) < 250 else 0)
