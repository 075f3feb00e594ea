"""Proves which library answers a program's calls of malloc, from the loader's own words.

The loader of the C library, asked by LD_DEBUG=bindings, writes a line for each name that an object
of the process looks up and the object that answers. That covers every process which the program
starts, also those that end without running exit handlers, and does not touch the program's output.
"""
# SPDX-License-Identifier: MIT

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

# Names which every allocator library answers. The rest of the family differs between libraries.
NAMES = frozenset(("malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign",
                   "memalign", "malloc_usable_size", "_Znwm", "_ZdlPv"))
# Objects in memory that are not the program's: what they look up says nothing about the program.
LOADER_OBJECTS = ("ld-linux", "linux-vdso")

BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: \w+ symbol `([^']+)'")


@dataclass
class Proof:
    """What the loader said of all processes of one run."""
    processes: int = 0
    served: int = 0                                       # look-ups answered by the library
    elsewhere: Counter = field(default_factory=Counter)   # "object: name by answerer" → look-ups

    def holds(self):
        return self.served > 0 and not self.elsewhere

    def text(self):
        if self.holds():
            return (f"{self.served} of {self.served} look-ups of malloc's names"
                    f" in {counted(self.processes, 'process', 'processes')}")
        if not self.served and not self.elsewhere:
            return "the loader reported no look-up of malloc"
        first = ", ".join(list(self.elsewhere)[:3])
        return f"{self.served} look-ups answered, {self.elsewhere.total()} not: {first}"


def counted(number, one, many):
    return f"{number:,} {one if number == 1 else many}"


def settings(folder):
    """The environment of a run whose look-ups are wanted; `folder` exists and is empty."""
    return {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(Path(folder) / "look-ups")}


def read(folder, library):
    """What the loader wrote into `folder`. `library` is the path as it was preloaded."""
    proof = Proof()
    for path in sorted(Path(folder).glob("look-ups.*")):
        with open(path, encoding="utf-8", errors="replace") as file:
            found = [found.groups() for found in map(BINDING.search, file) if found]
        count_process(proof, [look_up for look_up in found if look_up[2] in NAMES], str(library))
        path.unlink()
    return proof


def count_process(proof, look_ups, library):
    """Counts the look-ups of one process, each an asker, an answerer and a name.

    A program whose code is not position-independent may answer a name itself, by a stub that jumps
    to where its own look-up of that name led: such an answer is the library's. What the library itself
    looks up, as prairie does to see whether the program has operators of its own, says nothing.
    """
    proof.processes += 1
    look_ups = [look_up for look_up in look_ups if look_up[0] != library]
    stubs = {(asker, name) for asker, answerer, name in look_ups if answerer == library}
    for asker, answerer, name in look_ups:
        if answerer == library or (answerer, name) in stubs:
            proof.served += 1
        elif asker != answerer and not Path(asker).name.startswith(LOADER_OBJECTS):
            proof.elsewhere[f"{Path(asker).name}: {name} by {Path(answerer).name}"] += 1



# What a process prints of prairie's statistics at its end, when PRAIRIE_CONF asks for it.
TITLE = re.compile(r"^prairie: statistics of (prairie \S+)", re.MULTILINE)
STATISTICS = {"PRAIRIE_CONF": "stats_print:true"}
COUNT = re.compile(r"^prairie: +(refills|run leases) +(\d+)", re.MULTILINE)
FEW_REFILLS = 50


def statistics(text):
    """Name with version, and sums over processes that printed statistics into `text`; or None."""
    titles = TITLE.findall(text)
    sums = Counter()
    for name, number in COUNT.findall(text):
        sums[name] += int(number)
    return (titles[0], sums) if titles else None


def statistics_text(text):
    """A sentence about the statistics that processes printed into `text`; None without any."""
    found = statistics(text)
    if found is None:
        return None
    name, sums = found
    few = "; so few that its figures say little" if sums["refills"] < FEW_REFILLS else ""
    return (f"{name} counts {sums['refills']:,} refills of thread caches and "
            f"{sums['run leases']:,} runs of pages{few}")
