# redis_inputs.py - writes commands as redis-cli --pipe takes them.
# SPDX-License-Identifier: MIT
"""Usage: redis_inputs.py mix|delete PER_CENT FOLDER"""
import random
import sys
from pathlib import Path

KEYS_MIX = 20_000        # as many as redis-benchmark draws from
KEYS = 220_000           # of the deletion, at 100 per cent
KEPT_ONE_IN = 8


def encoded(*words):
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def write(path, commands):
    with open(path, "wb") as file:
        file.writelines(commands)


def mix(folder, per_cent):
    """All keys of redis-benchmark, which draws 35 times as many: each gets its value."""
    value = b"x" * 120
    write(folder / "commands",
          (encoded(b"SET", b"key:%012d" % number, value)
           for number in range(KEYS_MIX * per_cent // 100)))


def delete(folder, per_cent):
    source = random.Random(20090410)
    count = KEYS * per_cent // 100
    names = [b"user:%d:%d" % (number, source.randrange(100)) for number in range(count)]

    def filled(size_max):
        for number, name in enumerate(names):
            size = min(size_max, int(24 * source.paretovariate(0.9)))
            if number % 40 == 0:
                yield encoded(b"RPUSH", b"l" + name, *[b"v" * size] * 3)
            elif number % 20 == 0:
                yield encoded(b"HSET", b"h" + name, b"name", name, b"text", b"t" * size)
            else:
                yield encoded(b"SET", name, b"%d" % number * (size // 4 + 1))

    write(folder / "commands", filled(1500))
    gone = [name for name in names if source.randrange(KEPT_ONE_IN)]
    source.shuffle(gone)
    write(folder / "deletions",
          (encoded(b"DEL", name, b"l" + name, b"h" + name) for name in gone))
    names = [b"new:%d" % number for number in range(count // 3)]
    write(folder / "more", filled(6000))


def main():
    kind, per_cent, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if kind == "mix":
        mix(folder, per_cent)
    else:
        delete(folder, per_cent)


main()
