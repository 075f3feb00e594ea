#!/usr/bin/env python3
# check_style.py - warns where a file outgrows its caps or tests a macro outside the named places.
# SPDX-License-Identifier: MIT
"""Usage: check_style.py [--strict] [ROOT]

Warnings do not fail, because a rule that makes a file worse is to be broken; with --strict they do.
"""
import re
import subprocess
import sys
from pathlib import Path

FILE_LINES_MAX = {".c": 400, ".h": 200}
COLUMNS_MAX = 100
SWITCHES_PER_1000_LINES_MAX = 5

# Where an #if may stand in src/; a name that ends in / is a folder.
SWITCH_PLACES = ("src/base/attrs.h", "src/base/check.h", "src/base/constants.h",
                 "src/os/thread_slot.h", "src/os/port.c", "src/os/port_facts.h",
                 "src/control/conf.c", "src/jemalloc/",
                 "src/prairie.c")
C_FOLDERS = {"src", "include", "test", "bench", "lab"}
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}

SWITCH = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b")
GUARD = re.compile(r"^\s*#\s*ifndef\s+(\w+)\s*\n\s*#\s*define\s+\1\s*$", re.M)


def repository_files(root):
    """Files that are, or would be, committed; all but the built ones without a repository."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        names = [name for name in names if not name.startswith(("build", ".git/"))]
    return sorted(name for name in set(names) if (root / name).is_file())


def is_c(name):
    return Path(name).suffix in FILE_LINES_MAX and Path(name).parts[0] in C_FOLDERS


def is_script(name):
    path = Path(name)
    return path.suffix in SCRIPT_SUFFIXES or (path.parts[0] in ("dev", ".ci") and not path.suffix)


def switches(name, text):
    """Yields line numbers of conditions, the include guard apart."""
    guard = GUARD.search(text) if name.endswith(".h") else None
    guard_line = text.count("\n", 0, guard.start()) + 1 if guard else 0
    for number, line in enumerate(text.splitlines(), 1):
        if SWITCH.match(line) and number != guard_line:
            yield number


def is_switch_place(name):
    return any(name == place or (place.endswith("/") and name.startswith(place))
               for place in SWITCH_PLACES)


def check_head(name, lines):
    """The first line says what the file is, in C after its name; an SPDX line follows near it."""
    start = 1 if lines[:1] and lines[0].startswith("#!") else 0
    first = lines[start] if len(lines) > start else ""
    base = Path(name).name
    if is_c(name) and not re.match(rf"/\* (\S+/)?{re.escape(base)} - \S", first):
        yield start + 1, f"the first line is not '/* {base} - what it is'"
    elif not is_c(name) and not re.match(r'(#|""")\s*\S', first):
        yield start + 1, "the first line does not say what the file is"
    if not any("SPDX-License-Identifier: MIT" in line for line in lines[:60]):
        yield 1, "no SPDX line"


def check_c(name, text, lines):
    suffix = Path(name).suffix
    if len(lines) > FILE_LINES_MAX[suffix]:
        yield 1, f"{len(lines)} lines, more than {FILE_LINES_MAX[suffix]}"
    if name.startswith("src/") and not is_switch_place(name):
        for number in switches(name, text):
            yield number, "an #if outside the named places"


def check_file(root, name):
    text = (root / name).read_text(errors="replace")
    lines = text.splitlines()
    yield from check_head(name, lines)
    wide = [number for number, line in enumerate(lines, 1) if len(line) > COLUMNS_MAX]
    if wide:
        yield wide[0], f"more than {COLUMNS_MAX} columns in {len(wide)} lines"
    spaced = [number for number, line in enumerate(lines, 1) if line != line.rstrip()]
    if spaced:
        yield spaced[0], f"trailing space in {len(spaced)} lines"
    if is_c(name):
        yield from check_c(name, text, lines)


def switch_density(root, names):
    lines = conditions = 0
    for name in names:
        text = (root / name).read_text(errors="replace")
        lines += text.count("\n")
        conditions += sum(1 for _ in switches(name, text))
    return conditions, lines


def main():
    arguments = sys.argv[1:]
    strict = "--strict" in arguments
    rest = [argument for argument in arguments if argument != "--strict"]
    if len(rest) > 1 or any(argument.startswith("-") for argument in rest):
        print(__doc__)
        return 2
    root = Path(rest[0] if rest else Path(__file__).parent.parent).resolve()
    names = [name for name in repository_files(root) if is_c(name) or is_script(name)]
    if not names:
        print("check_style: no files found")
        return 1
    warnings = 0
    for name in names:
        for number, problem in check_file(root, name):
            print(f"{name}:{number}: warning: {problem}")
            warnings += 1
    conditions, lines = switch_density(root, [name for name in names if name.startswith("src/")])
    if conditions * 1000 > lines * SWITCHES_PER_1000_LINES_MAX:
        print(f"src: warning: {conditions} #if lines in {lines}, "
              f"more than {SWITCHES_PER_1000_LINES_MAX} per 1000")
        warnings += 1
    print(f"style: {warnings} warnings in {len(names)} files")
    return 1 if strict and warnings else 0


if __name__ == "__main__":
    sys.exit(main())
