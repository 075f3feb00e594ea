#!/usr/bin/env python3
"""Makes a suite for `prairie compare` of JavaScript suites that somebody owns a copy of.

  bench/war/own.py FOLDER OUT

Each folder in FOLDER with a file LIST is a suite: LIST has one test in each line, with or without .js, and
the tests run in that order in one engine, whole, whatever the scale. Nothing is copied but the names.
"""
# SPDX-License-Identifier: MIT

import json
import re
import sys
from pathlib import Path

ENGINES = {"qjs": "build/war/qjs-object", "jsc": "bench/war/jsc.sh"}


def main():
    folder, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    last = out / "last.js"
    last.write_text("(typeof print === 'function' ? print : console.log)('all ran');\n")
    lists = sorted(folder.glob("*/LIST"))
    if not lists:
        sys.exit(f"own.py: no folder in {folder} has a file LIST")
    text = ["[suite]", 'name = "own"', "rounds = 5", "quick_rounds = 1", "timeout_s = 900",
            'counter = "build/war/libcalls.so"', "calls_at_least = 100000", ""]
    for found in lists:
        scripts = [script(found.parent, line) for line in found.read_text().split()]
        for engine, program in ENGINES.items():
            text += workload(found.parent.name, engine, program, [*scripts, last.resolve()])
    (out / "own.toml").write_text("\n".join(text))


def script(folder, line):
    path = folder / (line if line.endswith(".js") else f"{line}.js")
    if not path.is_file():
        sys.exit(f"own.py: {path}: LIST names it, and it is not there")
    return path


def workload(name, engine, program, scripts):
    """qjs takes all but the last script as files to include."""
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    words = [program]
    for path in scripts[:-1]:
        words += ["-I", str(path)] if engine == "qjs" else [str(path)]
    words.append(str(scripts[-1]))
    same = [] if engine == "qjs" else [f'same_as = "qjs-{name}"']
    return ["[[workload]]", f'name = "{engine}-{name}"', f'group = "{engine}"',
            f"command = {json.dumps(words)}", *same, ""]


if __name__ == "__main__":
    main()
