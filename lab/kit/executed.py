"""executed.py - which instructions of which object a program executed, and how often.

Callgrind counts every instruction on its own; objdump says which of them are atomic. So atomic
read-modify-writes and calls of lock functions are counted in any library, without its help and
without changing it. What a lock is, an instruction does not say: a compare-and-swap may also push
onto a list.
SPDX-License-Identifier: MIT
"""

import functools
import os
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from kit.count import CountError

MUTEX_CALLS = (
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_spin_lock",
    "pthread_spin_trylock",
)

# A locked instruction, or an exchange with memory, which locks without saying so.
ATOMIC = re.compile(r"^\s*([0-9a-f]+):\s+(?:xacquire |xrelease )?(?:lock\b|xchg\s[^#\n]*\()", re.M)
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+\S", re.M)


class Stretch:
    """What was executed between two dumps."""

    def __init__(self):
        self.executed = defaultdict(Counter)  # object -> address -> times
        self.calls = Counter()  # function -> times called

    def instructions(self, path=None):
        """All of them, or those of one object."""
        chosen = self.executed.values() if path is None else [self.executed[str(path)]]
        return sum(sum(addresses.values()) for addresses in chosen)

    def atomics(self):
        """object -> atomic read-modify-writes, of objects that executed some."""
        found = {}
        for path, addresses in self.executed.items():
            if not os.path.isfile(path):
                continue
            atomic = _listing(path)[0]
            times = sum(count for address, count in addresses.items() if address in atomic)
            if times:
                found[path] = times
        return found

    def unknown(self):
        """Executed addresses at which the listing of their object has no instruction: none."""
        return sum(
            sum(1 for address in addresses if address not in _listing(path)[1])
            for path, addresses in self.executed.items()
            if os.path.isfile(path)
        )

    def mutex_calls(self):
        return sum(self.calls[name] for name in MUTEX_CALLS)


def stretches(command, env=None, options=()):
    """Runs a program that dumps callgrind's counts: (label -> Stretch, standard output). What comes
    after the last dump is labelled 'rest'."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        flags = ["--dump-instr=yes", "--compress-pos=no", "--compress-strings=no", *options]
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={out}",
                *flags,
                *map(str, command),
            ],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if line and not line.startswith("==")]
            raise CountError(
                f"exit {done.returncode} under callgrind: {' '.join(said) or 'it said nothing'}"
            )
        found = {}
        for path in sorted(Path(folder).iterdir()):
            label, stretch = _read(path)
            found[label] = stretch
        return found, done.stdout


def _read(path):
    label, stretch = "rest", Stretch()
    owner, called, skip = None, None, False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line[0] == "0":
                if skip:  # what a call cost altogether; it is counted where it was executed
                    skip = False
                    continue
                position, _, count = line.split()[:3]
                stretch.executed[owner][int(position, 16)] += int(count)
            elif line.startswith("ob="):
                owner = line[3:].strip()
            elif line.startswith("cfn="):
                called = re.sub(r"@.*|'\d+$", "", line[4:].strip())
            elif line.startswith("calls="):
                stretch.calls[called] += int(line[6:].split()[0])
                skip = True
            elif line.startswith("desc: Trigger: Client Request: "):
                label = line.split("Request: ", 1)[1].strip()
    return label, stretch


@functools.lru_cache(maxsize=None)
def _listing(path):
    """Addresses of an object's atomic instructions, and of all of them."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True
    ).stdout
    return (
        frozenset(int(address, 16) for address in ATOMIC.findall(text)),
        frozenset(int(address, 16) for address in INSTRUCTION.findall(text)),
    )
