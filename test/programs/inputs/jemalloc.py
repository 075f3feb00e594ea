# jemalloc.py - texts, tables and trees in threads and in a child, and what the allocator says of them.
# SPDX-License-Identifier: MIT
#
# The first line is the allocator's, the others are the same on any.
import ctypes
import hashlib
import os
import random
import threading


def control(name, kind):
    """A value of the control tree; None where there is none."""
    mallctl = getattr(ctypes.CDLL(None), "mallctl", None)
    if mallctl is None:
        return None
    epoch = ctypes.c_uint64(1)
    mallctl(b"epoch", None, None, ctypes.byref(epoch), ctypes.c_size_t(8))
    value, length = kind(), ctypes.c_size_t(8)
    error = mallctl(name, ctypes.byref(value), ctypes.byref(length), None, ctypes.c_size_t(0))
    return None if error else value.value


def tree(depth):
    return "leaf" * 20 if depth == 0 else (tree(depth - 1), tree(depth - 1), "node" * depth)


def work(seed):
    source, table = random.Random(seed), {}
    for number in range(40_000):
        table[f"{source.randrange(8000)}:{number % 7}"] = "x" * source.randrange(400)
        if len(table) > 5000:
            del table[next(iter(table))]
    return hashlib.sha256((repr(table) + repr(tree(10))).encode()).hexdigest()


def main():
    before = control(b"stats.allocated", ctypes.c_size_t)
    live = ["y" * (24 + number % 200) for number in range(200_000)]
    grown = 0 if before is None else control(b"stats.allocated", ctypes.c_size_t) - before
    version = control(b"version", ctypes.c_char_p)
    print("allocator", version.decode() if version else "none", "grown", grown)
    print(hashlib.sha256("".join(live).encode()).hexdigest())

    found = {}
    threads = [threading.Thread(target=lambda seed=seed: found.update({seed: work(seed)}))
               for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(*(found[seed] for seed in range(4)), flush=True)

    child = os.fork()
    if child == 0:
        print(work(99), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


main()
