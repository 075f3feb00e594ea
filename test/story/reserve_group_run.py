#!/usr/bin/env python3
# reserve_group_run.py - the example cache inside control groups: it lives with callbacks, and dies without.
# SPDX-License-Identifier: MIT
"""
usage: reserve_group_run.py CACHE SECONDS MIB...

CACHE is examples/cache.c, built; PRAIRIE_LIBRARY is preloaded. Exit code 77 and a reason where no
group can be made.
"""
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "blackbox"))

from group import Group, NoGroup  # noqa: E402

REQUESTS_LEAST = 20_000
LONG_SECONDS = "15"


def run(cache, seconds, mebibytes, *words):
    """The exit code, and the last sample."""
    group = Group(mebibytes << 20)
    try:
        done = subprocess.run([cache, "--seconds", seconds, *words], capture_output=True, text=True,
                              check=False, timeout=60, preexec_fn=group.enter,
                              env={**os.environ, "LD_PRELOAD": os.environ["PRAIRIE_LIBRARY"]})
    finally:
        group.close()
    if done.stderr:
        print(done.stderr, end="")
    lines = done.stdout.splitlines()
    return done.returncode, lines[-1].split() if lines else ["0"] * 6


def main():
    if len(sys.argv) < 4:
        print(__doc__)
        return 2
    cache, seconds, *limits = sys.argv[1:]
    failed = 0
    for mebibytes in map(int, limits):
        for span in (seconds, LONG_SECONDS):  # a busy machine serves little in little time
            code, (_, resident_kib, served, _, low, _) = run(cache, span, mebibytes)
            good = code == 0 and int(served) > REQUESTS_LEAST and int(low) > 0
            print(f"{mebibytes} MiB: exit code {code}, {served} requests, {resident_kib} KiB, LOW {low}")
            if code != 0 or good:
                break
        failed += not good
    for span in (seconds, LONG_SECONDS):
        code, _ = run(cache, span, int(limits[0]), "--deaf")
        if code != 0:
            break
    if code != -signal.SIGKILL:
        print(f"the limit is none: without callbacks exit code {code}")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NoGroup as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
