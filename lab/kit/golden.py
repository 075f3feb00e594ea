"""golden.py - compares counted figures with committed ones, which hold for one compiler.

    golden.compare(part, "lab/trees/golden.json", {"insert llrb 1000": 123456}, slack=0.005)

With --renew the figures of now are written instead. On another processor or compiler nothing is
compared, and that is said: counts depend on both.
SPDX-License-Identifier: MIT
"""

import json

from kit.part import ROOT


def add_argument(parser):
    parser.add_argument("--renew", action="store_true", help="commit the counts of now")


def compare(part, name, figures, slack):
    """One check a figure: it is what was committed. The slack, a share of it, is for what is not the
    part's own: the C library, or files of src/ that are measured elsewhere."""
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
        same = old is not None and new is not None and abs(new - old) <= old * slack
        part.check(f"{key}: {old} as committed", same, new)
