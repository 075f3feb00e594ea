#!/usr/bin/env python3
"""profile.py - runs the program `profile`, reads what it dumped, and compares with what is true.

Usage: profile.py PROGRAM LIBRARY. The program prints, for each function that takes blocks, its name,
its address and the bytes that it holds. Both formats must tell as much, within what chance allows.
SPDX-License-Identifier: MIT
"""

import gzip
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

PERIOD_LG = 10
SAMPLE_TYPES = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
NAMES = {"who takes", "who fills"}  # of the program's thread, one after the other
FUNCTION_BYTES = 400


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
        shift += 7


def fields(data):
    """Yields (number, value) of a message: numbers as int, everything else as bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            sys.exit(f"profile: a field of kind {key & 7}")
        yield key >> 3, value


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def read_pprof(path):
    """Samples as (addresses, bytes held, bytes of a block), and facts about the rest."""
    with gzip.open(path) as file:  # checks length and checksum
        data = file.read()
    types, samples, locations, mappings, strings, labels = [], [], {}, {}, [], set()
    for number, value in fields(data):
        if number == 1:
            types.append(dict(fields(value)))
        elif number == 2:
            parts = [(n, v) for n, v in fields(value)]
            ids = packed(dict(parts)[1]) if 1 in dict(parts) else []
            label = [dict(fields(v)) for n, v in parts if n == 3]
            labels |= {entry[2] for entry in label if 2 in entry}
            samples.append((ids, packed(dict(parts)[2]), label[0][3]))
        elif number == 3:
            mapping = dict(fields(value))
            mappings[mapping[1]] = mapping
        elif number == 4:
            location = dict(fields(value))
            locations[location[1]] = location
        elif number == 6:
            strings.append(value.decode())
    if strings[0] != "":
        sys.exit("profile: the first string is not empty")
    if [(strings[kind[1]], strings[kind[2]]) for kind in types] != SAMPLE_TYPES:
        sys.exit("profile: not the four numbers of a heap profile")
    addresses = [locations[i + 1][3] for i in range(len(locations))]
    if addresses != sorted(set(addresses)):
        sys.exit("profile: locations are not in order, each once")
    for location in locations.values():
        mapping = mappings[location[2]]
        if not mapping[2] <= location[3] < mapping[3]:
            sys.exit("profile: a location outside its mapping")
    stacks = [([locations[i][3] for i in ids], values, size) for ids, values, size in samples]
    names = {strings[m[5]]: strings[m[6]] for m in mappings.values()}
    return stacks, names, {strings[label] for label in labels}


def read_jeprof(path):
    """The same out of the text format, scaled as jeprof does."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head, _, maps = text.partition("\nMAPPED_LIBRARIES:\n")
    lines = head.splitlines()
    if lines[0] != f"heap_v2/{1 << PERIOD_LG}" or "libprairie" not in maps:
        sys.exit(f"profile: {path}: not what jeprof reads")
    stacks = []
    for stack, counts in zip(lines[2::2], lines[3::2]):
        numbers = re.fullmatch(r"  t\*: (\d+): (\d+) \[(\d+): (\d+)\]", counts)
        live, live_bytes, taken, taken_bytes = map(int, numbers.groups())
        size = live_bytes // live if live else taken_bytes // taken
        weight = 1 / (1 - math.exp(-size / (1 << PERIOD_LG)))
        values = [taken * weight, taken_bytes * weight, live * weight, live_bytes * weight]
        stacks.append(([int(word, 16) - 1 for word in stack.split()[1:]], values, size))
    return stacks


def held_by(stacks, start):
    """Bytes that live, taken in the function at `start`, and the deviation that chance may give it."""
    held = variance = 0.0
    for stack, values, size in stacks:
        if any(start <= address < start + FUNCTION_BYTES for address in stack[:3]):
            held += values[3]
            probability = 1 - math.exp(-size / (1 << PERIOD_LG))
            variance += values[2] * size * size * (1 - probability) / probability
    return held, math.sqrt(variance)


def compare(what, stacks, truth):
    for name, (start, true_bytes) in truth.items():
        held, deviation = held_by(stacks, start)
        print(f"{what}: {name}: {held:.0f} of {true_bytes:.0f} bytes, deviation {deviation:.0f}")
        if abs(held - true_bytes) > 5 * deviation + 64:
            sys.exit(f"profile: {what} tells something else about {name}")


def main():
    program, library = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        setting = f"prof:true,lg_prof_sample:{PERIOD_LG},prof_accum:true"
        environment = dict(os.environ, MALLOC_CONF=setting, LD_PRELOAD=library)
        done = subprocess.run(
            [program, "tell", folder], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        truth = {}
        for line in done.stdout.splitlines():
            if line.startswith("take_by_"):
                name, address, true_bytes = line.split()
                # The functions lie one after the other.
                truth[name] = (int(address, 16), float(true_bytes))
        starts = sorted(start for start, _ in truth.values())
        global FUNCTION_BYTES
        FUNCTION_BYTES = min(b - a for a, b in zip(starts, starts[1:]))
        if len(truth) != 4:
            sys.exit("profile: the program told nothing")
        stacks, mappings, names = read_pprof(os.path.join(folder, "held.pb.gz"))
        if names != NAMES:
            sys.exit(f"profile: samples of threads with the names {names}")
        compare("pprof", stacks, truth)
        compare("jeprof", read_jeprof(os.path.join(folder, "held.heap")), truth)
        if not re.fullmatch(r"[0-9a-f]{16,64}", mappings[os.path.realpath(program)]):
            sys.exit("profile: the program has no build id")
        if max(len(stack) for stack, _, _ in stacks) < 3:
            sys.exit("profile: no stack has a caller's caller")
        # In the child the blocks of malloc are gone, those of new are not.
        child = read_jeprof(os.path.join(folder, "child.heap"))
        if held_by(child, truth["take_by_malloc"][0])[0] != 0:
            sys.exit("profile: a child's frees were missed")
        compare("child", child, {"take_by_new": truth["take_by_new"]})
        freed = read_pprof(os.path.join(folder, "freed.pb.gz"))[0]
        for name, (start, _) in truth.items():
            if held_by(freed, start)[0] != 0:
                sys.exit(f"profile: what {name} took is free, and is told to be held")
        if shutil.which("jeprof"):
            text = subprocess.run(
                ["jeprof", "--text", program, os.path.join(folder, "held.heap")],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
            ).stdout
            for name in truth:
                if name not in text:
                    sys.exit(f"profile: jeprof does not tell of {name}")
        else:
            print("profile: no jeprof here, its format was read by hand only")


if __name__ == "__main__":
    main()
