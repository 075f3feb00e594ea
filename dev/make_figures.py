#!/usr/bin/env python3
# make_figures.py - writes the figures of make count into the documents, between their marks.
# SPDX-License-Identifier: MIT
"""Usage: make_figures.py [--check]

A figure stands in a page between two marks, of which the first says where it is in the committed
table, bench/counts/golden.json, without the machine:

    <!-- count: calls/malloc(16)/instructions -->12<!-- -->
    <!-- count: runs/10 free runs, 1 pages -->108<!-- -->
    <!-- count: locks/bursts of 100,000 freed in order -->0.017<!-- -->     for each malloc and free

A line must not begin with a mark: Markdown would end the paragraph there.
With --check nothing is written, and the exit code is 1 when a figure is not current.
"""
import json
import re
import sys
from pathlib import Path

from written import is_current

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench" / "counts" / "golden.json"
MACHINE = "x86_64"
LOCKS_COUNTED_FOR = 1_000_000  # pairs of malloc and free in each script of bench/counts/locks.c

FIGURE = re.compile(r"(<!-- count: ([^>]+?) -->)(.*?)(<!-- -->)")


def figure_of(table, path):
    """The text for a path of the table. KeyError: there is no such figure."""
    value = table
    for part in path.split("/"):
        value = value[part]
    if not isinstance(value, int):
        raise KeyError(path)
    if path.startswith("locks/"):
        return f"{float(f'{value / LOCKS_COUNTED_FOR:.2g}'):.6f}".rstrip("0")
    return f"{value:,}"


def current(table, text):
    """The page with the figures of the table."""
    return FIGURE.sub(lambda found: found[1] + figure_of(table, found[2]) + found[4], text)


def pages():
    yield from sorted(ROOT.glob("*.md"))
    for folder in ("docs", "bench", "test", "lab"):
        yield from sorted((ROOT / folder).rglob("*.md"))


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    table = json.loads(TABLE.read_text())[MACHINE]
    stale = False
    for page in pages():
        text = page.read_text()
        try:
            wanted = current(table, text)
        except KeyError as missing:
            print(f"{page.relative_to(ROOT)}: bench/counts/golden.json has no {missing}")
            return 1
        if not is_current(page, wanted, sys.argv[1:] == ["--check"],
                          f"{page.relative_to(ROOT)}: figures are not those of bench/counts/golden.json; "
                          "dev/make_figures.py writes them"):
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
