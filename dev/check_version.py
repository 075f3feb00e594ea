#!/usr/bin/env python3
# check_version.py - fails when a file says another version than include/prairie/prairie.h.
# SPDX-License-Identifier: MIT
"""Usage: check_version.py [--rewrite] [ROOT]

The header's PRAIRIE_VERSION is the version; what can read it there does. With --rewrite the files that must repeat it get it,
CHANGELOG.md apart, whose sections are written by hand.

V1  the newest section of CHANGELOG.md that has a number has this one; above it may stand Unreleased
V2  what repeats the version because its format cannot read it (REPEATS) says this one
V3  a text that names prairie with a version (NAMED) names this one, or its first two numbers
V4  what can read the header (DERIVES) has no version of its own
"""
import re
import sys
from pathlib import Path

from check_style import repository_files
from check_words import TEXT_SUFFIXES

HEADER = "include/prairie/prairie.h"
CHANGELOG = "CHANGELOG.md"
DEFINED = re.compile(r'^#define PRAIRIE_VERSION "(\d+\.\d+\.\d+)"$', re.M)
SECTION = re.compile(r"^## (\S+)", re.M)

# Files, and patterns that each must find something there.
REPEATS = {
    "meson.build": (r"^project\(.*\bversion: '([\d.]+)'",),
    "tool/Cargo.toml": (r'^version = "([\d.]+)"',),
    "tool/prairie-alloc/Cargo.toml": (r'^prairie-sys = \{ version = "([\d.]+)"',),
    "tool/Cargo.lock": tuple(rf'name = "{name}"\nversion = "([\d.]+)"'
                             for name in ("prairie", "prairie-alloc", "prairie-sys")),
}
NUMBERS = r"([0-9]+\.[0-9]+\.[0-9]+)"
FEWER = r"([0-9]+\.[0-9]+(?:\.[0-9]+)?)\b"
NAMED = re.compile(rf"prairie[_-]malloc[-=]+{FEWER}|\bg?prairie[- ]{NUMBERS}|\bfind_package\(prairie {FEWER}|"
                   rf'\bprairie-(?:alloc|sys) = (?:\{{ version = )?"{FEWER}')
DERIVES = ("CMakeLists.txt", "CMakePresets.json", "MODULE.bazel", "BUILD.bazel", "Makefile", "cmake/", "dev/",
           "packaging/", "python/")
# What was true of an older version stays; tests beside the sources have a version that is none.
RECORDS = ("CHANGELOG.md", "docs/decisions/", "bench/results/", "lab/results/", "test/abi/", "tool/prairie/src/")


def version_of(root):
    found = DEFINED.search((root / HEADER).read_text())
    if not found:
        sys.exit(f'check_version: {HEADER} has no line: #define PRAIRIE_VERSION "x.y.z"')
    return found.group(1)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_changelog(root, version):
    numbered = [name for name in SECTION.findall((root / CHANGELOG).read_text()) if name != "Unreleased"]
    if not numbered or numbered[0] != version:
        yield f"{CHANGELOG}: V1: the newest section is {numbered[0] if numbered else 'missing'}, the version is {version}"


def found_in(name, text):
    """Where a version stands, and what rule has it: {(start, end): rule}."""
    found = {}
    if not name.startswith(RECORDS):
        found = {match.span(match.lastindex): "V3" for match in NAMED.finditer(text)}
    for pattern in REPEATS.get(name, ()):
        found.update({match.span(1): "V2" for match in re.finditer(pattern, text, re.M)})
    return found


def says(text, version):
    return text == version if text.count(".") == 2 else version.startswith(text + ".")


def shortened(version, like):
    return ".".join(version.split(".")[:like.count(".") + 1])


def check_file(root, name, version, rewrite):
    text = (root / name).read_text()
    for pattern in REPEATS.get(name, ()):
        if not re.search(pattern, text, re.M):
            yield f"{name}: V2: nothing matches {pattern!r}"
    places = [place for place in sorted(found_in(name, text).items()) if not says(text[slice(*place[0])], version)]
    # From the end on, so that what is written moves nothing that is still to be.
    for (start, end), rule in reversed(places):
        if rewrite:
            text = text[:start] + shortened(version, text[start:end]) + text[end:]
        else:
            yield f"{name}:{line_of(text, start)}: {rule}: says {text[start:end]}, the version is {version}"
    if rewrite and places:
        (root / name).write_text(text)
        print(f"check_version: {name}: written")
    if name.startswith(DERIVES):
        for found in re.finditer(rf"(?<![\d.]){re.escape(version)}(?![\d.])", text):
            yield f"{name}:{line_of(text, found.start())}: V4: read the version in {HEADER} instead of repeating it"


def main():
    arguments = sys.argv[1:]
    rewrite = "--rewrite" in arguments
    rest = [word for word in arguments if word != "--rewrite"]
    if len(rest) > 1 or any(word.startswith("-") for word in rest):
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(rest[0]) if rest else Path(__file__).resolve().parent.parent
    version = version_of(root)
    problems = list(check_changelog(root, version))
    names = set(repository_files(root))
    problems += [f"{name}: V2: is missing" for name in REPEATS if name not in names]
    for name in sorted(names):
        suffix = Path(name).suffix
        if suffix in TEXT_SUFFIXES or suffix in (".lock", ".bazel", ".build", ".snap", ".hpp"):
            try:
                problems += check_file(root, name, version, rewrite)
            except UnicodeDecodeError:
                continue
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
