#!/usr/bin/env python3
# audit_run.py - under LD_AUDIT, with prairie preloaded, programs print what they always print.
# SPDX-License-Identifier: MIT
"""usage: audit_run.py AUDIT_LIBRARY OWN_PROGRAM...     PRAIRIE_LIBRARY is preloaded."""
import os
import subprocess
import sys

COMMANDS = [
    ["true"],
    ["ls", "-l", "/usr"],
    ["sort", "/etc/services"],
    ["sh", "-c", "for i in 1 2 3; do echo $i | tr 1-3 a-c; done"],
    ["grep", "-c", "root", "/etc/passwd"],
    ["awk", "BEGIN { for (i = 0; i < 3000; i++) x[i] = i * i; print x[2999] }"],
    ["sed", "s/a/b/g", "/etc/passwd"],
    ["perl", "-e", "my %h = map { $_ => $_ ** 2 } 1..5000; print $h{5000}, qq(\\n)"],
    ["python3", "-c", "print(sum(len(str(i)) for i in range(20000)))"],
    ["find", "/etc", "-maxdepth", "1", "-name", "host*"],
]


def run(command, **extra):
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_AUDIT")}
    environment.update(extra, PYTHONMALLOC="malloc")
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    audit, own = sys.argv[1], sys.argv[2:]
    library = os.environ["PRAIRIE_LIBRARY"]
    failed = 0
    for command in COMMANDS:
        alone = run(command)
        watched = run(command, LD_PRELOAD=library, LD_AUDIT=audit)
        if alone != watched:
            print(f"FAILED {' '.join(command)}: {alone} became {watched}")
            failed += 1
    for program in own:
        code, out, err = run([program], LD_PRELOAD=library, LD_AUDIT=audit)
        print(out.decode(), end="")
        if code != 0:
            print(f"FAILED {program}: {code} {err.decode()}")
            failed += 1
    print(f"{len(COMMANDS) + len(own)} programs under LD_AUDIT, {failed} failed")
    return failed != 0


sys.exit(main())
