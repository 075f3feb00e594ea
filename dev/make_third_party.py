#!/usr/bin/env python3
# make_third_party.py - the licences of what is in the prairie command besides prairie, and their texts.
# SPDX-License-Identifier: MIT
"""Usage: make_third_party.py [FILE]

Asks cargo which crates the command is linked with on this platform, and takes the files of licences that lie in them, each
text once. Without FILE it prints. Ends with 1 when a crate states no licence, or has no text of it and the licence is none of those
whose usual text stands in another crate.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = re.compile(r"(licen[cs]e|copying|copyright|unlicense|notice)([-_.].*)?", re.I)
HEAD = """\
The command prairie is prairie's own code, under the MIT licence (LICENSE), and the crates of this list, which are compiled into it
unchanged. Each has its licence and the place of its sources; the texts follow, with the crates in which they lie. Where a crate
leaves the choice between licences, any of them may be taken. The library, libprairie, has none of this in it.

The standard library of Rust is in the command, too: MIT OR Apache-2.0, https://github.com/rust-lang/rust
"""


def answer(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked_crates():
    """Packages that the command needs when it is compiled for this platform; those of build scripts and tests are not in it."""
    host = re.search(r"^host: (.*)$", answer("rustc", "-vV"), re.M).group(1)
    metadata = json.loads(answer("cargo", "metadata", "--quiet", "--locked", "--format-version", "1", "--filter-platform", host,
                                 "--manifest-path", str(ROOT / "tool" / "Cargo.toml")))
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = {node["id"]: [link["pkg"] for link in node["deps"] if any(kind["kind"] is None for kind in link["dep_kinds"])]
             for node in metadata["resolve"]["nodes"]}
    reached, waiting = set(), [identity for identity in edges if packages[identity]["name"] == "prairie"]
    while waiting:
        identity = waiting.pop()
        if identity not in reached:
            reached.add(identity)
            waiting += edges[identity]
    return sorted((packages[identity] for identity in reached if packages[identity]["source"]),
                  key=lambda package: (package["name"], package["version"]))


def titled(package):
    return f"{package['name']} {package['version']}"


def texts_of(package):
    folder = Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and NAMES.fullmatch(path.name)]
    for path in files:
        yield path.name, path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip("\n")


def bare(text):
    return " ".join(text.split())


def whole():
    packages = linked_crates()
    lines, texts, without = [HEAD], {}, []
    for package in packages:
        if not package["license"] and not package["license_file"]:
            sys.exit(f"make_third_party: the crate {titled(package)} states no licence")
        lines.append(f"{titled(package)}\n    {package['license'] or package['license_file']}\n"
                     f"    https://crates.io/crates/{package['name']}/{package['version']}")
        if package["authors"]:
            lines.append(f"    by {', '.join(package['authors'])}")
        own = list(texts_of(package))
        for name, text in own:
            texts.setdefault(bare(text), (name, text, []))[2].append(titled(package))
        if not own:
            without.append(package)
    for package in without:
        # The usual text, without a line that names others, is in crates that have it.
        if not re.search(r"\b(MIT|Apache-2\.0)\b", package["license"] or ""):
            sys.exit(f"make_third_party: the crate {titled(package)} has no text of its licence, {package['license']}")
    if without:
        lines.append("\nThese have no file with a licence in them; the text of the one they state is below, with others' names:\n    "
                     + "\n    ".join(titled(package) for package in without))
    for name, text, owners in texts.values():
        lines.append(f"\n{'=' * 100}\n{name} of {', '.join(owners)}\n{'-' * 100}\n{text}")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] in (["--help"], ["-h"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = whole()
    if len(sys.argv) == 2:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
