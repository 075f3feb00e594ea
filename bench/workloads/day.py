#!/usr/bin/env python3
"""day.py - draws a server's day: live bytes and what is resident for them, by allocator.

    bench/workloads/day.py day.svg prairie=build/libprairie.so c=            half a minute each
    bench/workloads/day.py --scale 4000 day.svg prairie=build/libprairie.so  twenty minutes each

A label with nothing behind it is the C library. Runs follow one another.
SPDX-License-Identifier: MIT
"""

import argparse
import html
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench" / "peers"))

from recipes import without_settings  # noqa: E402

HOUR, LIVE, RESIDENT = range(3)
LEFT, TOP, WIDTH, HEIGHT = 50, 20, 720, 320
COLOURS = ["#0b5d1e", "#c1440e", "#2b6cb0", "#7b3fa0", "#b58900", "#555555", "#d96ba0", "#1aa6a6"]


def samples_of(library, scale, seed):
    """Rows of hour, live KB and resident KB."""
    program = pathlib.Path(os.environ.get("WORKLOADS", ROOT / "build/bench")) / "workloads"
    environment = without_settings(os.environ)
    if library:
        environment["LD_PRELOAD"] = str(pathlib.Path(library).resolve(strict=True))
    with tempfile.NamedTemporaryFile("r") as file:
        subprocess.run([program, "day", "--scale", str(scale), "--seed", str(seed),
                        "--samples", file.name], env=environment, check=True)
        return [[float(word) for word in line.split()] for line in file]


def path_of(points):
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def draw(rows_of):
    """The text of an SVG picture: megabytes by hour, live bytes as a grey area."""
    most = max(row[RESIDENT] for rows in rows_of.values() for row in rows) / 1024
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000) if most / step <= 8)

    def place(hour, kb):
        return LEFT + hour / 24 * WIDTH, TOP + HEIGHT - kb / 1024 / most * HEIGHT

    live = [place(row[HOUR], row[LIVE]) for row in next(iter(rows_of.values()))]
    parts = [f'<path fill="#dddddd" d="{path_of([place(0, 0), *live, place(24, 0)])}Z"/>']
    for megabytes in range(0, int(most) + 1, step):
        x, y = place(0, megabytes * 1024)
        parts += [f'<path stroke="#cccccc" d="{path_of([(x, y), (x + WIDTH, y)])}"/>',
                  f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{megabytes}</text>']
    for hour in range(0, 25, 4):
        x, y = place(hour, 0)
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{hour}</text>')
    for number, (label, rows) in enumerate(rows_of.items()):
        colour, y = COLOURS[number % len(COLOURS)], TOP + 14 + 16 * number
        points = path_of([place(row[HOUR], row[RESIDENT]) for row in rows])
        parts += [f'<path fill="none" stroke="{colour}" d="{points}"/>',
                  f'<text x="{LEFT + 10}" y="{y}" fill="{colour}">{html.escape(label)}</text>']
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" '
                      f'height="{TOP + HEIGHT + 40}" font-family="sans-serif" font-size="12">',
                      '<rect width="100%" height="100%" fill="white"/>', *parts,
                      f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 34}" '
                      'text-anchor="middle">hour; resident MB, live bytes in grey</text>',
                      "</svg>", ""])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--scale", type=int, default=100)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("picture")
    arguments.add_argument("library", nargs="+", help="label=path")
    given = arguments.parse_args()
    rows_of = {}
    for word in given.library:
        label, _, library = word.partition("=")
        rows = rows_of[label] = samples_of(library, given.scale, given.seed)
        live, resident = sum(row[LIVE] for row in rows), sum(row[RESIDENT] for row in rows)
        print(f"{label}: resident over live {resident / live:.3f}, "
              f"at the end {rows[-1][RESIDENT] / rows[-1][LIVE]:.3f}")
    pathlib.Path(given.picture).write_text(draw(rows_of))


if __name__ == "__main__":
    main()
