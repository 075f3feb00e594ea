#!/usr/bin/env python3
# tree.py - writes a tree of text files for ripgrep to search; the same for the same numbers.
# SPDX-License-Identifier: MIT
"""Usage: tree.py FOLDER FILES LINES"""
import random
import sys
from pathlib import Path

LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


def main():
    if len(sys.argv) != 4 or not all(word.isdigit() for word in sys.argv[2:]):
        print(__doc__, file=sys.stderr)
        return 2
    folder, files, lines = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    source = random.Random(20160923)
    words = ["".join(source.choices(LETTERS, k=source.randint(2, 9))) + source.choice(("", "", "ing", "ed", "s"))
             for _ in range(4000)]
    for number in range(files):
        place = folder / f"part{number % 17}" / f"deep{number % 5}"
        place.mkdir(parents=True, exist_ok=True)
        text = "\n".join(" ".join(source.choices(words, k=source.randint(3, 14))) for _ in range(lines))
        (place / f"file{number}.txt").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
