#!/usr/bin/env python3
# answers_run.py - programs of the system answer --version and --help as they do without prairie.
# SPDX-License-Identifier: MIT
"""
usage: answers_run.py LIBRARY... [--all] [--conf CONF] [--folder FOLDER]

Each program of FOLDER (/usr/bin) is asked for --version, and for --help if it refuses that, without a library, twice; one that
answers twice the same is asked once more with each LIBRARY preloaded, and must say and return the same. Without --all every sixth
one is asked. Programs that start others with rights of their own are not.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TIMEOUT_S, LEAST_ASKED = 20, 20
# They read or write the terminal, wait for somebody, or leave a server behind, as all of wine does. PHP opens its
# libraries past whatever is preloaded (docs/switching.md).
NOT_ASKED = {"script", "scriptlive", "su", "login", "newgrp", "sg", "screen", "tmux", "watch", "reset", "tset"}


def ask(program, question, environment, folder):
    """Exit code and both outputs, their lines in one order, for programs of several processes write in any; None: no answer in time."""
    try:
        done = subprocess.run([program, question], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S,
                              env=environment, cwd=folder, check=False, start_new_session=True)
    except (subprocess.TimeoutExpired, OSError):
        return None
    return done.returncode, sorted(done.stdout.splitlines()), sorted(done.stderr.splitlines())


def try_program(program, plain, libraries, folder):
    """None: it cannot be asked; else what differs: nothing, where it answers the same with each library."""
    for question in ("--version", "--help"):
        first = ask(program, question, plain, folder)
        if first is None:
            return None
        if first[0] != 0:
            continue
        if first != ask(program, question, plain, folder):
            return None
        faults = []
        for library in libraries:
            answer = ask(program, question, dict(plain, **library), folder)
            if answer == first:
                continue
            said = "no answer in time" if answer is None else f"ends with {answer[0]}, and says {answer[1][-3:]!r} {answer[2][-3:]!r}"
            faults.append(f"{library['LD_PRELOAD']}: {program} {question}: {said}")
        return faults
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", nargs="+")
    parser.add_argument("--folder", default="/usr/bin")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--conf", default="")
    arguments = parser.parse_args()
    programs = sorted(str(path) for path in Path(arguments.folder).iterdir()
                      if path.is_file() and os.access(path, os.X_OK) and path.name not in NOT_ASKED
                      and not path.name.startswith(("wine", "php"))
                      and not path.stat().st_mode & 0o6000)
    if not arguments.all:
        programs = programs[::6]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        plain = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder, "LC_ALL": "C", "TERM": "dumb"}
        libraries = [{"LD_PRELOAD": os.path.abspath(library)} for library in arguments.library]
        if arguments.conf:
            libraries = [dict(library, PRAIRIE_CONF=arguments.conf) for library in libraries]
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(lambda program: try_program(program, plain, libraries, folder), programs))
    asked = [outcome for outcome in outcomes if outcome is not None]
    faults = [fault for outcome in asked for fault in outcome]
    for fault in faults:
        print("FAILED", fault)
    print(f"{len(programs)} programs, {len(asked)} asked, {len(faults)} answers otherwise")
    return 1 if faults or len(asked) < LEAST_ASKED else 0


sys.exit(main())
