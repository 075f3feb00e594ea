#!/usr/bin/env python3
# check_words.py - fails on empty names, and on places that one machine or network has.
# SPDX-License-Identifier: MIT
"""Usage: check_words.py [ROOT]

W1  no identifier or file name says only that it helps: see SUFFIXES, PREFIXES and EMPTY_NAMES
W2  no text names a place that exists on one machine or in one network only
"""
import re
import sys
from pathlib import Path

from check_style import is_c, is_script, repository_files

SUFFIXES = ("_ex", "_slow", "_inner", "_impl", "_internal", "_helper")
PREFIXES = ("do_", "handle_")
EMPTY_NAMES = ("util", "utils", "misc", "helper", "helpers", "common")

# Names that others chose, which we must spell their way.
FOREIGN_NAMES = {"LOCK_EX", "handle_starttag", "do_GET"}

# A letter in brackets keeps a pattern from finding itself here.
MACHINE = [re.compile(pattern) for pattern in (
    r"(?<![\w.$}])/(?:hom[e]|User[s]|roo[t])/\w",
    r"\b(?:10\.\d+|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d+\.\d+\b",
    r"https?://[\w.-]+\.(?:interna[l]|loca[l]|cor[p]|la[n])\b",
)]

IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
TEXT_SUFFIXES = {".c", ".h", ".cc", ".cpp", ".py", ".sh", ".cmake", ".in", ".md", ".txt", ".toml",
                 ".rs", ".yml", ".yaml", ".json", ""}


def is_empty_name(word):
    if word in FOREIGN_NAMES:
        return False
    lower = word.lower()
    parts = [part for part in lower.split("_") if part]
    return (lower.endswith(SUFFIXES) or lower.startswith(PREFIXES)
            or any(name in parts for name in EMPTY_NAMES[:3]))


def check_file_name(name):
    for part in Path(name).parts:
        stem = part.split(".")[0].lower()
        if stem in EMPTY_NAMES or (stem and is_empty_name(stem)):
            yield 1, f"W1: the name {part} says nothing"


def check_identifiers(text):
    code = COMMENT_OR_TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for number, line in enumerate(code.splitlines(), 1):
        if line.lstrip().startswith("#include"):
            continue
        for word in IDENTIFIER.findall(line):
            if is_empty_name(word):
                yield number, f"W1: the name {word} says nothing"


def check_text(text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in MACHINE:
            found = pattern.search(line)
            if found:
                yield number, f"W2: '{found.group()}'"


def check_file(root, name):
    yield from check_file_name(name)
    if Path(name).suffix not in TEXT_SUFFIXES:
        return
    try:
        text = (root / name).read_text()
    except UnicodeDecodeError:
        return
    if is_c(name) or (is_script(name) and name.endswith(".py")):
        yield from check_identifiers(text)
    yield from check_text(text)


def main():
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        print(__doc__)
        return 2
    root = Path(sys.argv[1] if len(sys.argv) == 2 else Path(__file__).parent.parent).resolve()
    names = repository_files(root)
    problems = 0
    for name in names:
        for number, problem in check_file(root, name):
            print(f"{name}:{number}: {problem}")
            problems += 1
    if not names:
        print("check_words: no files found")
    return 1 if problems or not names else 0


if __name__ == "__main__":
    sys.exit(main())
