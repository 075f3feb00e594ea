#!/usr/bin/env python3
"""Usage: judge_crashes.py FOLDER FLAVOUR SOURCE...    runs crash.NAME.exe of the folder under wine, for each source of
test/crash whose first line expects something of this flavour, and judges it as test/crash/crash_run.py does.
"""
# SPDX-License-Identifier: MIT
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test" / "crash"))
sys.dont_write_bytecode = True
from crash_run import expectation, judge  # pylint: disable=wrong-import-position

ABORTED = 0xC0000409 & 0xff     # what a shell sees of the exit code of abort
TIMEOUT_S = 120                 # wine takes its time, and the machine may be busy


def run(command):
    """Into files: wine's own processes inherit a pipe, and outlive the program."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, \
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                             start_new_session=True) as program:
        try:
            code = program.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            return None, "", "it hung"
        out.seek(0)
        errors.seek(0)
        texts = [file.read().decode(errors="replace").replace("\r\n", "\n") for file in (out, errors)]
    return (-signal.SIGABRT if code == ABORTED else code), *texts


def main():
    folder, flavour, *sources = sys.argv[1:]
    count = failed = 0
    for source in map(Path, sources):
        text = source.read_text(encoding="utf-8")
        flavours = re.search(r"flavours: ([-a-z ]+?)(?: arguments|\s*\*/)", text[:text.index("*/") + 2].replace("\n *", " "))
        wanted = flavours.group(1).split() if flavours else [flavour]
        if flavour not in wanted and not (wanted == ["checking"] and flavour != "plain"):
            continue
        ending, words, arguments = expectation(text)
        for argument in arguments:
            command = [ROOT / "dev" / "wine", Path(folder) / f"crash.{source.stem}.exe"]
            command += [argument] if argument is not None else []
            faults = judge(ending, words, *run(command))
            count += 1
            failed += bool(faults)
            print("FAILED" if faults else "ok    ", source.stem, argument or "", *faults, flush=True)
    print(f"{count} runs, {failed} failed")
    return 0 if count > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
