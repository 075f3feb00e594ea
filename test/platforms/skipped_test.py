#!/usr/bin/env python3
# skipped_test.py - dev/platforms says 77 where nothing could be run, and 1 where something failed.
# SPDX-License-Identifier: MIT
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = (
    (("skipped: no sources of cmocka to be had", "skipped"), 77),
    (("skipped", "3 tests passed"), 0),
    (("1 tests skipped, 2 passed",), 0),
    (("skipped", "1 of 3 tests failed: unit.slab@check"), 1),
    (("skipped", "ended with 1"), 1),
    (("no tests",), 1),
)


def main():
    platforms = runpy.run_path(str(ROOT / "dev" / "platforms"))["main"]
    # What main looks its helpers up in: the rows and what comes of each are ours.
    names = platforms.__globals__
    names["shutil"].which = lambda _: "there"
    bad = 0
    for results, wanted in CASES:
        rows = [(str(number), "", "", True, result) for number, result in enumerate(results)]
        names["read_rows"] = lambda rows=rows: rows
        names["run_row"] = lambda row: row[4]
        got = platforms(["--quick"])
        if got != wanted:
            print(f"{results}: ends with {got}, not with {wanted}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
