"""machine.py - says on what machine figures were measured: no names, only what figures depend on.

SPDX-License-Identifier: MIT
"""

import os
import platform
import re
import subprocess


def describe():
    return {
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": re.match(r"[\d.]+", platform.release()).group(),
        "libc": " ".join(platform.libc_ver()),
        "compiler": _first_line(["cc", "--version"]),
        "nice": os.nice(0),
    }


def _processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def _first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "none"
    return done.stdout.splitlines()[0] if done.stdout else "none"
