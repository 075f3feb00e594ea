#!/usr/bin/env python3
"""Tests dev/run: its words and exit codes for programs that agree, differ, fail or cannot run; and
those of dev/run_reserve where a cache cannot be tried."""
# SPDX-License-Identifier: MIT

import os
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
failures = []


def run(*words, program=None, library=None):
    """Runs dev/run on the library of this flavour. Gives the exit code and all that it printed."""
    environment = {**os.environ, "NO_COLOR": "1"}
    environment.pop("PROGRAM", None)
    if program is not None:
        environment["PROGRAM"] = program
    options = ["--rounds", "1", "--library", library or os.environ["PRAIRIE_LIBRARY"]]
    done = subprocess.run([ROOT / "dev" / "run", *options, *map(str, words)], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def expect(what, outcome, exit_code, *texts):
    found, output = outcome
    missing = [text for text in texts if text not in output]
    if found == exit_code and not missing:
        print(f"ok       {what}")
        return
    failures.append(what)
    print(f"FAILED   {what}: exit code {found}, expected {exit_code}; not said: {missing}")
    print(output)


def same_and_different(folder):
    text = folder / "words with spaces.txt"
    text.write_text("b\na\nc\n" * 2000, encoding="ascii")
    expect("a command line from PROGRAM", run(program=f"sort -u '{text}'"), 0,
           "the same in all 6 runs", "by prairie", "cpu time", "page faults")
    expect("a command after --", run("--", "sort", "-u", text), 0, "the same in all 6 runs")
    expect("output that depends on the preload", run(program="sh -c 'echo x$LD_PRELOAD'"), 125,
           "DIFFERS: compare")
    expect("output that never repeats", run("--", "date", "+%N"), 0, "itself")
    expect("a failure under prairie alone", run("--", "sh", "-c", 'test -z "$LD_PRELOAD"'), 125,
           "exit codes [0] and [1]")
    expect("a crash under prairie alone",
           run("--", "sh", "-c", 'test -z "$LD_PRELOAD" || kill -SEGV $$'), 125, "ends by SIGSEGV",
           "gdb")
    expect("input is empty", run("--", "cat"), 0, "0 bytes")


def failing_programs(folder):
    expect("the program's own exit code", run("--", "sh", "-c", "echo why >&2; exit 7"), 7, "why")
    expect("the same, compared", run("--any-exit", "--", "sh", "-c", "exit 7"), 7, "exit code 7")
    expect("a signal", run("--", "sh", "-c", "kill -TERM $$"), 143)
    expect("no such program", run(program="no-such-program-here x"), 127, "no such program")
    expect("no such file", run("--", folder / "nothing"), 127, "no such program")
    plain = folder / "plain"
    plain.write_text("no program\n", encoding="ascii")
    expect("a file that is not executable", run("--", plain), 126, "not an executable file")
    expect("a folder", run("--", folder), 126, "not an executable file")
    expect("an open quote", run(program="echo 'a"), 125, "No closing quotation")
    expect("a pipe without a shell", run(program="ls | wc"), 125, "needs a shell")
    expect("a wrong option", run("--nonsense"), 125, "--nonsense")


def compiled(folder, name, text, *options):
    source, target = folder / f"{name}.c", folder / name
    source.write_text(text, encoding="ascii")
    subprocess.run(["cc", "-o", target, source, *options], check=True)
    return target


def programs_not_served(folder):
    static = compiled(folder, "static", "int main(void) { return 0; }\n", "-static")
    expect("a static program", run("--", static), 125, "static", "libprairie.a")
    script = folder / "script"
    script.write_text(f"#! {static}\n", encoding="ascii")
    script.chmod(0o755)
    expect("a script of a static program", run("--", script), 125, "static")
    expect("a library that is not there", run("--", "true", library=folder / "no.so"), 125,
           "no such library")
    other = compiled(folder, "empty.so", "int nothing;\n", "-shared", "-fPIC")
    expect("a library without malloc", run("--", "sort", "/dev/null", library=other), 125,
           "NOT by prairie")
    text = folder / "text.so"
    text.write_text("no library, but as long as the start of one\n" * 9, encoding="ascii")
    expect("a library that is none", run("--", "true", library=text), 125)
    gone = compiled(folder, "gone.so", "int gone;\n", "-shared", "-fPIC")
    needs = compiled(folder, "needs", "extern int gone; int main(void) { return gone; }\n", gone)
    gone.unlink()
    expect("a program whose library is missing", run("--", needs), 127, "gone.so")
    own = compiled(folder, "own", """#include <stdlib.h>
        static char memory[1 << 20], *next = memory;
        void *malloc(size_t size) { char *p = next; next += (size + 15) / 16 * 16; return p; }
        void *calloc(size_t n, size_t size) { return malloc(n * size); }
        void *realloc(void *p, size_t size) { (void)p; return malloc(size); }
        void free(void *p) { (void)p; }
        int main(void) { free(malloc(7)); return 0; }\n""", "-fno-builtin")
    expect("a program with its own malloc", run("--", own), 125, "NOT by prairie")
    if os.getuid() == 0:
        setuid = folder / "setuid"
        shutil.copy(shutil.which("true"), setuid)
        os.chown(setuid, 65534, 65534)
        setuid.chmod(0o4755)
        expect("a set-uid program", run("--", setuid), 125, "set-uid")


# In the place of the prairie command: runs a program with the library, and compares as it is told.
COMMAND = """#!/bin/sh
verb=$1 library=$3
while [ "$1" != -- ]; do shift; done
shift
[ "$verb" = run ] || exit "$COMPARED"
LD_PRELOAD=$library
export LD_PRELOAD
exec "$@"
"""


def loaded(name):
    """A script of dev/ as a module."""
    path = ROOT / "dev" / name
    module = types.ModuleType(name)
    module.__file__ = str(path)
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), vars(module))
    return module


def by_command(folder):
    dev_run = loaded("run")
    dev_run.COMMAND = folder / "prairie"
    dev_run.COMMAND.write_text(COMMAND, encoding="ascii")
    dev_run.COMMAND.chmod(0o755)

    def code(script, compared=0):
        settings = {"COMPARED": str(compared)}
        library = os.environ["PRAIRIE_LIBRARY"]
        return dev_run.by_command(["sh", "-c", script], settings, "", library), ""

    under_prairie = '[ -z "$LD_PRELOAD" ] || '
    expect("by the command: the same", code("exit 0"), 0)
    expect("by the command: outputs that differ", code("exit 0", compared=1), 125)
    expect("by the command: the comparison fails", code("exit 0", compared=125), 125)
    expect("by the command: the program's own exit code", code("exit 7"), 7)
    expect("by the command: a signal", code("kill -TERM $$"), 143)
    expect("by the command: a failure under prairie alone", code(under_prairie + "exit 7"), 125)
    expect("by the command: a crash under prairie alone",
           code(under_prairie + "kill -SEGV $$"), 125)
    expect("by the command: not found", code("exit 127"), 127)


def reserve(folder):
    dev_run_reserve = loaded("run_reserve")
    dev_run_reserve.WORK = folder / "reserve"

    def no_group(limit_bytes):
        raise dev_run_reserve.NoGroup(f"no group of {limit_bytes} bytes")

    def code(*words, library=os.environ["PRAIRIE_LIBRARY"], group=no_group):
        dev_run_reserve.LIBRARY, dev_run_reserve.Group = Path(library), group
        sys.argv = ["dev/run_reserve", "--no-plot", *words]
        try:
            return dev_run_reserve.main(), ""
        except SystemExit as end:
            return end.code, ""

    expect("a cache without a group", code("--limit-by", "group"), 125)
    expect("a cache that does not start", code("--limit-by", "data", "--limit", "1"), 125)
    expect("a cache without a library", code(library=folder / "no.so"), 125)


def main():
    if not os.environ.get("PRAIRIE_LIBRARY"):
        print("PRAIRIE_LIBRARY is not set: it names the library to test with")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        same_and_different(Path(folder))
        failing_programs(Path(folder))
        programs_not_served(Path(folder))
        by_command(Path(folder))
        reserve(Path(folder))
        spaces = Path(folder) / "a folder: with $signs"
        spaces.mkdir()
        library = shutil.copy(os.environ["PRAIRIE_LIBRARY"], spaces)
        expect("a library whose path LD_PRELOAD cannot hold",
               run("--", "sort", "/dev/null", library=library), 0, "by prairie")
    print(f"{len(failures)} failed" if failures else "all as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
