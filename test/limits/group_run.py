#!/usr/bin/env python3
# group_run.py - a program inside a control group that may have so much memory.
# SPDX-License-Identifier: MIT
"""
usage: group_run.py MIB PROGRAM ARGUMENTS...

PRAIRIE_LIBRARY is preloaded; the program's exit code is ours, 1 when it was killed. Exit code 77 and
a reason where no group can be made.
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "blackbox"))

from group import Group, NoGroup  # noqa: E402


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    group = Group(int(sys.argv[1]) << 20)
    try:
        done = subprocess.run(sys.argv[2:], check=False, timeout=100, preexec_fn=group.enter,
                              env={**os.environ, "LD_PRELOAD": os.environ["PRAIRIE_LIBRARY"]})
    finally:
        group.close()
    print(f"{sys.argv[1]} MiB: exit code {done.returncode}")
    return done.returncode if done.returncode >= 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NoGroup as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
