#!/usr/bin/env python3
# crash_run.py - runs one misuse program and judges it by what the first line of its source expects.
# SPDX-License-Identifier: MIT
"""
usage: crash_run.py PROGRAM SOURCE     judge one program (crash.h says how the first line reads)
       crash_run.py --self-test        prove that wrong endings and wrong words are noticed

PRAIRIE_LIBRARY is preloaded into the program, which PRAIRIE_EMULATOR runs when it is set. Each run
has 30 seconds, PRAIRIE_TEST_SLOWER times.
"""
import os
import re
import resource
import signal
import subprocess
import sys

TIMEOUT_S = 30 * int(os.environ.get("PRAIRIE_TEST_SLOWER", "1"))
EMULATOR = os.environ.get("PRAIRIE_EMULATOR", "").split()
# What qemu says itself about a program that a signal ended.
EMULATORS_WORDS = re.compile(r"^qemu: uncaught target signal.*\n", re.M)
ADDRESS = re.compile(r"^prairie: [a-z_ ]+: 0x[0-9a-f]+$")


def expectation(text):
    """The parts of the first comment: ending, words (None for silence, ended by a newline when they
    are the whole line) and arguments."""
    comment = " ".join(text[:text.index("*/")].replace("\n *", " ").split())
    match = re.match(r'^/\* expect: (?:(abort) (?:(whole )?"([^"]+)"|(silent))|(ok))'
                     r"(?: flavours: [-a-z ]+?)?(?: arguments: (.+))?$", comment)
    if match is None:
        raise SystemExit(f"the first line expects nothing that is known: {comment}")
    abort, whole, words, _, _, arguments = match.groups()
    if whole:
        words += "\n"
    return ("abort" if abort else "ok"), words, (arguments or "").split() or [None]


def address_bits(program):
    """Of a program, as its file says."""
    with open(program, "rb") as file:
        return 32 if file.read(5)[4] == 1 else 64


def judge(ending, words, code, out, err):
    """What is wrong with a run, as a list of sentences."""
    faults = []
    wanted = -signal.SIGABRT if ending == "abort" else 0
    if code != wanted:
        faults.append(f"ended with {code}, not {wanted}")
    if out:
        faults.append(f"printed on stdout: {out!r}")
    if words is None:
        if err:
            faults.append(f"printed on stderr: {err!r}")
        return faults
    lines = err.split("\n")
    if len(lines) != 2 or lines[1] != "":
        return faults + [f"wrote {err!r} instead of one line on stderr"]
    if words.endswith("\n"):
        return faults + ([f"wrote {err!r} instead of {words!r}"] if err != words else [])
    if not lines[0].startswith(words):
        faults.append(f"said {lines[0]!r} instead of {words!r}")
    if not ADDRESS.match(lines[0]):
        faults.append(f"{lines[0]!r} does not end with an address")
    return faults


def run(command, library, settings=None):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | (settings or {})
    if library and EMULATOR:
        environment["QEMU_SET_ENV"] = f"LD_PRELOAD={library}"
    elif library:
        environment["LD_PRELOAD"] = library
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              env=environment, timeout=TIMEOUT_S, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    except subprocess.TimeoutExpired as late:
        return None, "", (late.stderr or b"").decode(errors="replace")
    err = done.stderr.decode(errors="replace")
    return (done.returncode, done.stdout.decode(errors="replace"),
            EMULATORS_WORDS.sub("", err) if EMULATOR else err)


def check_program(program, source, library):
    with open(source, encoding="utf-8") as file:
        ending, words, arguments = expectation(file.read())
    bits = address_bits(program)  # addresses that there cannot be are left out
    arguments = [word for word in arguments if word is None or not word.startswith("0x") or int(word, 16) < 1 << bits]
    failed = 0
    for argument in arguments:
        command = [program] + ([argument] if argument is not None else [])
        code, out, err = run(EMULATOR + command, library)
        faults = judge(ending, words, code, out, err) if code is not None else \
            [f"hung for {TIMEOUT_S} s after {err!r}"]
        name = " ".join([os.path.basename(program)] + command[1:])
        print(f"{'FAILED' if faults else 'ok':7}{name}")
        for fault in faults:
            print(f"         {fault}")
        failed += bool(faults)
    print(f"{len(arguments)} runs, {failed} failed")
    return failed == 0


def self_test():
    """Each row is a small shell program that does almost the right thing."""
    words = "prairie: double free"
    line = words + ": 0x10"
    rows = [
        (True, "abort", words, f"echo {line} >&2; kill -ABRT $$"),
        (False, "abort", words, f"echo {line} >&2; exit 9"),
        (False, "abort", words, f"echo {line} >&2; kill -SEGV $$"),
        (False, "abort", words, f"echo {line} >&2; echo {line} >&2; kill -ABRT $$"),
        (False, "abort", words, f"printf '%s' '{line}' >&2; kill -ABRT $$"),
        (False, "abort", words, f"echo out; echo {line} >&2; kill -ABRT $$"),
        (False, "abort", words, "echo prairie: free of a stack: 0x1 >&2; kill -ABRT $$"),
        (False, "abort", words, "echo prairie: double free >&2; kill -ABRT $$"),
        (False, "abort", words, "kill -ABRT $$"),
        (True, "abort", words + "\n", f"echo {words} >&2; kill -ABRT $$"),
        (False, "abort", words + "\n", f"echo {line} >&2; kill -ABRT $$"),
        (True, "abort", None, "kill -ABRT $$"),
        (False, "abort", None, f"echo {line} >&2; kill -ABRT $$"),
        (True, "ok", None, "exit 0"),
        (False, "ok", None, "exit 1"),
        (False, "ok", None, "echo words >&2"),
    ]
    wrong = 0
    for good, ending, expected, script in rows:
        faults = judge(ending, expected, *run(["sh", "-c", script], None))
        if good != (not faults):
            print(f"judged wrongly: {script}: {faults}")
            wrong += 1
    print(f"{len(rows)} endings, {wrong} judged wrongly")
    return wrong == 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    library = os.environ.get("PRAIRIE_LIBRARY")
    if not library or not os.path.exists(library):
        print(f"PRAIRIE_LIBRARY is not a library: {library}")
        return 2
    return 0 if check_program(sys.argv[1], sys.argv[2], library) else 1


if __name__ == "__main__":
    sys.exit(main())
