#!/usr/bin/env python3
"""Samples how much of jsc's processor time is spent in the allocator, with perf's clock.

  bench/war/share.py RESULTS [--scale PER_CENT] [--samples N]

callgrind is too slow for code that a JIT writes, and counters of instructions are missing in many virtual
machines, but a clock is everywhere. A suite runs until it has so many samples of user time. The allocators
are those of RESULTS/time/compare.json whose calls were counted there; the shares of user time, and the
kernel's share of all time, are written to RESULTS/share/share.json. The share of libpas cannot be told: it
lies in the engine's own library, whose symbols are stripped.
"""
# SPDX-License-Identifier: MIT

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "bench" / "war"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench" / "peers"))

from recipes import without_settings  # noqa: E402

PACKAGES = ROOT / "build" / "war" / "packages"
SUITES = ("v8", "parse", "minify", "compile")
HERTZ = 999
# glibc's malloc lies in one file with all else, and is told by its functions.
FAMILY = re.compile(r"^(__libc_|__GI___libc_|_int_|__)?(malloc|cfree|free|calloc|realloc|memalign|mid_memalign|"
                    r"posix_memalign|aligned_alloc|malloc_usable_size)(@.*)?$|"
                    r"^(malloc_consolidate|sysmalloc|systrim|unlink_chunk|tcache_.*|heap_.*|arena_.*|"
                    r"_mid_memalign|_int_free_merge_chunk|_int_free_create_chunk|new_heap|grow_heap|mtrim)"
                    r"(\.\w+)*$")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--scale", default="100")
    parser.add_argument("--samples", type=int, default=5000)
    options = parser.parse_args()
    timed = options.results / "time" / "compare.json"
    if not timed.is_file():
        sys.exit(f"share.py: {timed} is missing: it says which rows to sample, and the pass `time` makes it")
    compared = json.loads(timed.read_text())
    wanted = {item["name"] for item in compared["workloads"]}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for suite in SUITES:
            if f"jsc-{suite}" not in wanted:
                continue
            proved = [allocator for allocator in compared["allocators"] if not allocator.get("own_heap")
                      and is_proved(compared["runs"], f"jsc-{suite}", allocator["name"])]
            if not proved:
                continue
            script = Path(folder) / f"{suite}.js"
            subprocess.run(["node", HERE / "bundle.mjs", PACKAGES, suite, options.scale, script], check=True)
            for allocator in proved:
                rows.append(sampled(suite, allocator, script, Path(folder), options.samples))
                print("share: {workload} {allocator} {share:.1%} ± {share_error:.1%}".format(**rows[-1]),
                      flush=True)
    out = options.results / "share"
    out.mkdir(exist_ok=True)
    (out / "share.json").write_text(json.dumps(rows, indent=1) + "\n")


def is_proved(runs, workload, allocator):
    """Whether the row's calls were counted, and all of its runs went well."""
    of_row = [run for run in runs if (run["workload"], run["allocator"]) == (workload, allocator)]
    if any(run.get("counts_calls") for run in of_row) and all(run["outcome"] == "right" for run in of_row):
        return True
    print(f"share: {workload} {allocator}: not sampled: its calls were not counted, or a run failed", flush=True)
    return False


def sampled(suite, allocator, script, folder, wanted):
    inside = user = everything = 0
    while user < wanted:
        more = one_run(allocator, script, folder)
        if more[1] == 0:
            sys.exit(f"share.py: no samples of jsc under {allocator['name']}")
        inside, user, everything = inside + more[0], user + more[1], everything + more[2]
    share = inside / user
    return {"workload": f"jsc-{suite}", "allocator": allocator["name"], "share": share,
            "share_error": (share * (1 - share) / user) ** 0.5,
            "kernel_share": (everything - user) / everything, "samples": everything}


def one_run(allocator, script, folder):
    """Samples in the allocator, of user time, and of all time."""
    library = allocator["path"] and (ROOT / allocator["path"]).resolve()
    data = folder / "perf.data"
    environment = {**without_settings(os.environ), **allocator["env"]}
    # Only the engine is to be preloaded, not perf.
    preload = ["env", f"LD_PRELOAD={library}"] if library else []
    done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ), "-o", data, "--",
                           *preload, HERE / "jsc.sh", script], env=environment,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"share.py: perf record: {done.stderr.strip()}")
    said = subprocess.run(["perf", "script", "-i", data, "-F", "comm,ip,sym,dso"], capture_output=True,
                          text=True, check=True).stdout
    inside = user = everything = 0
    for line in said.splitlines():
        found = re.match(r"\s*(\S.*?)\s+([0-9a-f]+) (.*) \((.*)\)$", line)
        if not found or found[1] != "jsc":
            continue
        symbol, place = found[3], found[4]
        everything += 1
        if "kernel" in place or place == "[unknown]" and found[2].startswith("ffff"):
            continue
        user += 1
        if library:
            inside += Path(place).name == library.name
        else:
            inside += Path(place).name.startswith("libc.so") and bool(FAMILY.match(symbol))
    return inside, user, everything


if __name__ == "__main__":
    main()
