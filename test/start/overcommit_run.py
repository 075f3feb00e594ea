#!/usr/bin/env python3
# overcommit_run.py - starts programs under vm.overcommit_memory=2, and puts the old value back.
# SPDX-License-Identifier: MIT
"""
usage: overcommit_run.py PROGRAM...

PRAIRIE_LIBRARY is preloaded. Skipped unless PRAIRIE_TEST_SYSCTL=1 and root: the setting is the
whole machine's.
"""
import os
import signal
import subprocess
import sys

SETTING = "/proc/sys/vm/overcommit_memory"
SKIPPED = 77


def read():
    with open(SETTING, encoding="ascii") as file:
        return file.read().strip()


def write(value):
    with open(SETTING, "w", encoding="ascii") as file:
        file.write(value)


def run_all(programs):
    environment = dict(os.environ, LD_PRELOAD=os.environ["PRAIRIE_LIBRARY"])
    failed = 0
    for program in programs:
        done = subprocess.run([program], env=environment, timeout=60, check=False)
        print(f"{'FAILED' if done.returncode else 'ok'} {program}")
        failed += done.returncode != 0
    return failed


def main():
    if os.environ.get("PRAIRIE_TEST_SYSCTL") != "1":
        print("skipped: changes the whole machine; PRAIRIE_TEST_SYSCTL=1 allows it")
        return SKIPPED
    old = read()
    # Every way out but SIGKILL passes through the finally below.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, lambda *_: sys.exit(1))
    signal.alarm(90)
    try:
        write("2")
    except OSError as error:
        print(f"skipped: {SETTING} cannot be set: {error}")
        return SKIPPED
    try:
        print(f"overcommit_memory is {read()}")
        return run_all(sys.argv[1:]) != 0
    finally:
        write(old)


sys.exit(main())
