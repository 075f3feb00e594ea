#!/usr/bin/env python3
"""Tests how the lab's part on page heaps takes what `prairie compare` said of whole programs."""
# SPDX-License-Identifier: MIT

import json
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# In the place of the prairie command: leaves the report that lies beside it, if one does.
COMMAND = """#!/bin/sh
while [ "$1" != --out ]; do shift; done
if [ -e report ]; then mkdir -p "$2" && mv report "$2/compare.json"; fi
echo "prairie: the reason" >&2
exit 125
"""


class Part:
    """Keeps what a part of the lab is told."""

    quick = False

    def __init__(self, folder):
        self.folder, self.checks, self.rows, self.results = folder, [], None, {}

    def check(self, what, passed, found=None):
        self.checks.append((what, passed, found))

    def table(self, title, header, rows, note=None):
        self.rows = rows

    def result(self, key, value):
        self.results[key] = value


def loaded(project):
    """lab/runs/run as a module, in a project of stand-ins."""
    path = ROOT / "lab" / "runs" / "run"
    module = types.ModuleType("runs")
    module.__file__ = str(path)
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), vars(module))
    module.ROOT = project
    for name, text in (("dev/tool", "#!/bin/sh\n"), ("bench/build.sh", "#!/bin/sh\n"),
                       ("build/tool/release/prairie", COMMAND)):
        script = project / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(text, encoding="ascii")
        script.chmod(0o755)
    return module


def main():
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        runs = loaded(project)
        part = Part(project / "results")
        runs.compare_programs(part)
        ((_, passed, found),) = part.checks
        assert not passed and found == "prairie: the reason\n", part.checks

        # One program was wrong with one heap: all others count.
        wrong, *right = runs.workloads()
        libraries = [*runs.HEAPS, *(f"tiny-{heap}" for heap in runs.HEAPS)]
        cells = [{"workload": name, "allocator": library, "time": {"median": 2.0}}
                 for name in (wrong, *right) for library in libraries]
        cells[-1 - len(right) * len(libraries)]["time"] = None
        (project / "report").write_text(json.dumps({"cells": cells}), encoding="ascii")
        part = Part(project / "results")
        runs.compare_programs(part)
        assert [row[0] for row in part.rows] == right, part.rows
        assert list(part.results["program_times"]) == right
    print("all as expected")


if __name__ == "__main__":
    sys.exit(main())
