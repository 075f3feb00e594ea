#!/usr/bin/env python3
# secure_run.py - a set-user-ID program ignores PRAIRIE_CONF, an ordinary one obeys it.
# SPDX-License-Identifier: MIT
"""usage: secure_run.py PROGRAM     a program with prairie linked in; skipped without root"""
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
NOBODY = 65534


def run(program, **options):
    environment = {"PATH": os.environ["PATH"], "PRAIRIE_CONF": "stats_print:true"}
    done = subprocess.run([program], capture_output=True, text=True, env=environment, timeout=30,
                          check=False, **options)
    return done.returncode, done.stdout, done.stderr


def main():
    if os.geteuid() != 0:
        print("skipped: only root can make a set-user-ID program of root")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(sys.argv[1], folder)
        os.chmod(program, 0o755)
        code, out, err = run(program, user=NOBODY)
        if code != 0 or out != "secure=0\n" or not err:
            print(f"FAILED an ordinary process prints its statistics: {code} {out!r} {err!r}")
            return 1
        os.chmod(program, 0o4755)
        code, out, err = run(program, user=NOBODY)
        if out == "secure=0\n":
            print("skipped: set-user-ID has no effect in this file system")
            return SKIPPED
        if code != 0 or out != "secure=1\n" or err:
            print(f"FAILED a set-user-ID process ignores the options: {code} {out!r} {err!r}")
            return 1
    print("the options are obeyed by an ordinary process and ignored by a set-user-ID one")
    return 0


sys.exit(main())
