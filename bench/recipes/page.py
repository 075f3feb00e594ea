"""page.py - reads a page of docs/recipes: its parts, its commands, its marks.

SPDX-License-Identifier: MIT
"""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "recipes"
# What the pages call by the names that users see, and a run here calls otherwise.
LIBRARY = "/usr/local/lib/libprairie.so"
PORT = "8000"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)


def parts(name):
    """The page's parts by heading, in their order."""
    text = (PAGES / f"{name}.md").read_text()
    pieces = re.split(r"^## (.*)$", text, flags=re.M)
    return dict(zip(pieces[1::2], pieces[2::2]))


def block(name, part, language="sh"):
    """The first block of that language in a part: what a reader types, or writes to a file."""
    for found, text in BLOCK.findall(parts(name)[part]):
        if found == language:
            return text
    raise LookupError(f"{name}: no {language} under {part}")


def before(name):
    """The command under "Set" as it was before the page was read: without what stands before the program."""
    words = block(name, "Set").split()
    while "=" in words[0] or words[0] == "\\":
        words.pop(0)
    return " ".join(words)


def command(name, part, library, port):
    """The block as it is run: with this library, or with none if it is "", and on this port."""
    return on_port(block(name, part).replace(LIBRARY, library), port)


def on_port(text, port):
    return re.sub(rf"\b{PORT}\b", str(port), text)
