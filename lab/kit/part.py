"""part.py - one part of the lab: its arguments, its tables, its checks, its file of results.

    part = Part("trees", "Five trees, one interface")
    part.table("Times", ["tree", "s"], [["treap", 1.5]])
    part.check("the treap is a treap", True)
    part.absent("jemalloc 5.3.1", "not built; make peers builds it")
    part.result("times", {"treap": 1.5})
    sys.exit(part.finish())

SPDX-License-Identifier: MIT
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

from kit import machine

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build" / "lab" / "bin"
SCHEMA = 1


class Part:
    """Collects what one part found; `finish` writes it down and says whether all checks passed."""

    def __init__(self, name, what, arguments=None, argv=None):
        """arguments: a function that adds arguments of the part's own to an ArgumentParser."""
        parser = argparse.ArgumentParser(prog=f"lab/{name}/run", description=what)
        parser.add_argument("--quick", action="store_true", help="at most a minute, with smaller inputs")
        parser.add_argument("--out", type=Path, metavar="FOLDER", help="of the results (build/lab/)")
        if arguments:
            arguments(parser)
        self.options = parser.parse_args(argv)
        self.name = name
        self.quick = self.options.quick
        self.folder = self.options.out or ROOT / "build" / "lab" / ("quick" if self.quick else "")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.machine = machine.describe()
        self._document = {
            "schema": SCHEMA,
            "part": name,
            "what": what,
            "date": datetime.date.today().isoformat(),
            "quick": self.quick,
            "machine": self.machine,
            "absent": [],
            "checks": [],
            "tables": [],
            "results": {},
        }
        print(f"# lab {name}: {what}{' (quick)' if self.quick else ''}", flush=True)

    def build(self, *targets):
        """Builds programs of lab/; returns their paths. A failure to build ends the part."""
        if subprocess.run([ROOT / "lab" / "build.sh", *targets], check=False).returncode != 0:
            sys.exit(f"lab {self.name}: building {' '.join(targets)} failed")
        return [BIN / target for target in targets]

    def say(self, text):
        print(text, flush=True)

    def table(self, title, header, rows, note=None):
        """Prints a table as Markdown, and keeps it."""
        rows = [[_cell(value) for value in row] for row in rows]
        print(f"\n## {title}\n\n| {' | '.join(header)} |\n{'|---' * len(header)}|")
        for row in rows:
            print(f"| {' | '.join(row)} |")
        if note:
            print(f"\n{note}")
        sys.stdout.flush()
        self._document["tables"].append(
            {"title": title, "header": header, "rows": rows, "note": note}
        )

    def result(self, key, value):
        """Keeps figures under a key of the part's choice."""
        self._document["results"][key] = value

    def absent(self, name, why):
        """Says that something to compare with is not there; never passed over in silence."""
        print(f"absent: {name}: {why}", flush=True)
        self._document["absent"].append({"name": name, "why": why})

    def check(self, what, passed, found=None):
        """One statement that must hold. A failed one is printed now, and fails the part at its end."""
        if not passed:
            print(f"FAILED: {what}" + (f" ({found})" if found is not None else ""), flush=True)
        self._document["checks"].append({"what": what, "passed": bool(passed), "found": found})
        return bool(passed)

    def picture(self, name):
        """The path of a picture of this part."""
        return self.folder / f"{self.name}-{name}.svg"

    def finish(self):
        """Writes PART.json; returns the exit status: 0 when every check passed and there was one."""
        checks = self._document["checks"]
        failed = [check["what"] for check in checks if not check["passed"]]
        path = self.folder / f"{self.name}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._document, file, indent=1)
            file.write("\n")
        passed = len(checks) - len(failed)
        print(f"\n{passed} of {len(checks)} checks passed; {os.path.relpath(path)}", flush=True)
        if not checks:
            print("FAILED: nothing was checked")
        return 1 if failed or not checks else 0


def _cell(value):
    if isinstance(value, float):
        digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
        return f"{value:,.{digits}f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
