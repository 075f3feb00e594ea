#!/usr/bin/env python3
# check_test_names.py - fails when a page names a test that does not exist, or a way to break has no test.
# SPDX-License-Identifier: MIT
"""Usage: check_test_names.py BUILD [ROOT]

BUILD is a folder that was configured with tests. A test in a code span of a page is `kind.name`, with a flavour or
without, and with * for several: `story.rights_*`, `stress.oracle@tsan`. In the tables of docs/failures.md the last column of
each row names one.
"""
import json
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

FAILURES = Path("docs/failures.md")
ROWS_LEAST = 60
NAME = re.compile(r"([a-z]+)\.([\w*+-]+)(@[\w-]+)?")
CODE_BLOCK = re.compile(r"^```.*?^```", re.S | re.M)
FILE_ENDINGS = {"c", "h", "cpp", "py", "sh", "txt", "md", "map"}


def names_of_build(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return {test["name"] for test in json.loads(listed.stdout)["tests"]}


def tests_in(text, kinds):
    """What looks like the name of a test in a page's code spans."""
    for span in re.findall(r"`([^`\n]+)`", CODE_BLOCK.sub("", text)):
        found = NAME.fullmatch(span)
        if found and found.group(1) in kinds and found.group(2) not in FILE_ENDINGS:
            yield span


def rows_of(text):
    """Rows of tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    for before, line in zip([""] + lines, lines):
        if not re.match(r"\|-", line) and before and not line.startswith("| what breaks |"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    root = Path(sys.argv[2] if len(sys.argv) == 3 else Path(__file__).parent.parent).resolve()
    names = names_of_build(sys.argv[1])
    bare = {name.split("@")[0] for name in names}
    kinds = {name.split(".")[0] for name in bare if "." in name}
    problems, seen = [], 0
    for path in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "test").rglob("*.md")]):
        for span in tests_in(path.read_text(), kinds):
            seen += 1
            if not any(fnmatchcase(name, span) for name in (names if "@" in span else bare)):
                problems.append(f"{path.relative_to(root)}: there is no test {span}")
    rows = list(rows_of((root / FAILURES).read_text()))
    for row in rows:
        if len(row) != 3 or not any(tests_in(row[-1], kinds)):
            problems.append(f"{FAILURES}: no test holds '{row[0]}'")
    if len(rows) < ROWS_LEAST:
        problems.append(f"{FAILURES}: only {len(rows)} rows were found")
    print("\n".join(problems + [f"{seen} names of tests in pages, {len(rows)} rows, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
