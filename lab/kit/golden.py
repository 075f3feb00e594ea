"""golden.py - compares counted figures with committed ones, which hold for one compiler.

    golden.compare(part, "lab/trees/golden.json", {"insert llrb 1000": 123456})

With --renew the figures of now are written instead. On another processor or compiler nothing is
compared, and that is said: counts depend on both.
SPDX-License-Identifier: MIT
"""

import json

from kit.part import ROOT

SLACK = 0.005  # the C library's share depends on its build


def add_argument(parser):
    parser.add_argument("--renew", action="store_true", help="commit the counts of now")


def compare(part, name, figures):
    """One check a figure: it is what was committed, half a per cent up or down."""
    path = ROOT / name
    where = f"{part.machine['architecture']}, {part.machine['compiler']}"
    committed = json.loads(path.read_text()) if path.exists() else {}
    if part.options.renew:
        committed[where] = figures
        path.write_text(json.dumps(committed, indent=1, sort_keys=True) + "\n")
        part.say(f"{name}: {len(figures)} figures written for {where}")
        return
    if where not in committed:
        part.absent(f"committed counts for {where}", "--renew writes them")
        return
    for key in sorted(committed[where].keys() | figures.keys()):
        old, new = committed[where].get(key), figures.get(key)
        same = old is not None and new is not None and abs(new - old) <= old * SLACK
        part.check(f"{key}: {old} as committed", same, new)
