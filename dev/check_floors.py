#!/usr/bin/env python3
# check_floors.py - fails when a file includes a higher floor or a header its floor must not know.
# SPDX-License-Identifier: MIT
"""Usage: check_floors.py [ROOT]

F1  a file includes its own floor or lower ones
F2  what it includes in quotes exists, under src/ or include/
F3  a floor includes only the system headers listed for it here
F4  only src/prairie.c includes .c files: each one once, in floor order
F5  public headers include public headers only
"""
import re
import sys
from pathlib import Path

FLOORS = {"base": 0, "os": 1, "pages": 2, "slabs": 3, "arenas": 4, "cache": 5,
          "guard": 6, "heap": 7, "view": 7, "face": 8}
TOP = max(FLOORS.values()) + 1          # src/prairie.c
PUBLIC_FLOOR = FLOORS["guard"]          # the lowest that may know the public headers

LANGUAGE = {"limits.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h",
            "stdint.h"}
MEMORY = LANGUAGE | {"string.h"}
ANSWER = MEMORY | {"errno.h"}
# System headers a folder may include. Only os/ may name a kernel.
SYSTEM = {
    "base": MEMORY,
    "os": ANSWER | {"dlfcn.h", "elf.h", "fcntl.h", "link.h", "pthread.h", "sched.h", "signal.h", "stdlib.h",
                    "time.h", "unistd.h"},
    "pages": MEMORY, "slabs": MEMORY, "arenas": MEMORY, "cache": MEMORY, "guard": MEMORY,
    "heap": ANSWER, "view": ANSWER,
    "face": ANSWER | {"malloc.h", "stdio.h"},
}
SYSTEM_PREFIXES = {"os": ("linux/", "sys/", "asm/", "bits/", "mach/")}
# Programs expect the C library's own malloc and its siblings to be declared by jemalloc's header, and ffs.
PUBLIC_SYSTEM = LANGUAGE | {"malloc.h", "stdlib.h", "strings.h"}

# Each build takes one file of these folders and leaves the others out.
ALTERNATIVES = {"os"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(.*)$')


def includes(path):
    """Yields (line number, kind, name); kind is quoted, system or unreadable."""
    text = re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found.group()),
                  path.read_text(), flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        what = match.group(1).strip()
        if what.startswith('"') and what.count('"') >= 2:
            yield number, "quoted", what.split('"')[1]
        elif what.startswith("<") and ">" in what:
            yield number, "system", what[1:what.index(">")]
        else:
            yield number, "unreadable", what


def resolve(path, name, roots):
    for folder in [path.parent, *roots]:
        candidate = (folder / name).resolve()
        if candidate.is_file():
            return candidate
    return None


def place(path, src, public):
    """Returns (floor, folder) of a file, or None when it is in neither tree."""
    if src in path.parents:
        parts = path.relative_to(src).parts
        if len(parts) == 1:
            return TOP, None
        return (FLOORS[parts[0]], parts[0]) if parts[0] in FLOORS else None
    if public in path.parents:
        return PUBLIC_FLOOR, "include"
    return None


def check_quoted(path, here, name, src, public):
    target = resolve(path, name, [src, public])
    if target is None:
        return f"F2: {name} does not exist"
    there = place(target, src, public)
    if there is None:
        return f"F2: {name} is neither under src/ nor under include/"
    if here[1] == "include" and there[1] != "include":
        return f"F5: a public header includes {name}"
    if target.suffix == ".c" and here[0] != TOP:
        return f"F4: only src/prairie.c includes .c files, not {name}"
    if there[0] > here[0]:
        return f"F1: {here[1]} (floor {here[0]}) includes {name} of {there[1]} (floor {there[0]})"
    return None


def check_system(here, name):
    folder = here[1]
    if folder is None:
        return f"F3: src/prairie.c includes <{name}>; only its floors do"
    if name.startswith(("prairie/", "jemalloc/")):
        return None if here[0] >= PUBLIC_FLOOR else f"F1: {folder} includes <{name}>"
    allowed = PUBLIC_SYSTEM if folder == "include" else SYSTEM[folder]
    if name in allowed or name.startswith(SYSTEM_PREFIXES.get(folder, ())):
        return None
    return f"F3: {folder} must not include <{name}>"


def check_file(path, src, public):
    here = place(path, src, public)
    if here is None:
        yield 1, "F1: this folder is no floor"
        return
    for number, kind, name in includes(path):
        if kind == "quoted":
            problem = check_quoted(path, here, name, src, public)
        elif kind == "system":
            problem = check_system(here, name)
        else:
            problem = f"F2: cannot read what is included: {name}"
        if problem:
            yield number, problem


def check_unity(unity, src):
    """F4 for the unity file: order and completeness."""
    if not unity.is_file():
        yield 1, "F4: there is no unity file"
        return
    last, seen = 0, set()
    for number, kind, name in includes(unity):
        if kind != "quoted" or not name.endswith(".c"):
            continue
        target = resolve(unity, name, [src])
        if target is None:
            continue                     # F2 has said so
        floor, folder = place(target, src, src) or (0, None)
        if target in seen:
            yield number, f"F4: {name} is included twice"
        if floor < last:
            yield number, f"F4: {name} (floor {floor}) comes after floor {last}"
        last = max(last, floor)
        seen.add(target)
    for path in sorted(src.rglob("*.c")):
        folder = path.relative_to(src).parts[0]
        if path != unity and path not in seen and folder not in ALTERNATIVES:
            yield 1, f"F4: {path.relative_to(src)} is not part of the unity file"


def main():
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        print(__doc__)
        return 2
    root = Path(sys.argv[1] if len(sys.argv) == 2 else Path(__file__).parent.parent).resolve()
    src, public = root / "src", root / "include"
    files = sorted(path for tree in (src, public) for path in tree.rglob("*.[ch]"))
    problems = [(path, number, text)
                for path in files for number, text in check_file(path, src, public)]
    unity = src / "prairie.c"
    problems += [(unity, number, text) for number, text in check_unity(unity, src)]
    for path, number, text in problems:
        print(f"{path.relative_to(root)}:{number}: {text}")
    if not files:
        print("check_floors: no C files found")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
