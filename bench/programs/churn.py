# churn.py - lists, dictionaries, sets, tuples and strings that grow and die; prints a checksum.
# SPDX-License-Identifier: MIT
"""Usage: churn.py PER_CENT"""
import collections
import random
import sys

STEPS = 4_500_000     # at 100 per cent
LIVE = 4000          # containers that live at a time


def grown(source, kind, number):
    """A container of some kind; few are large, as in programs."""
    count = min(400, int(3 * source.paretovariate(1.1)))
    if kind == 0:
        return [number + k for k in range(count)]
    if kind == 1:
        return {f"key {number + k}": k for k in range(count)}
    if kind == 2:
        return {number * 31 + k for k in range(count)}
    if kind == 3:
        return tuple((k, str(number + k)) for k in range(count))
    return collections.deque(f"{number}-{k}" * (k % 5 + 1) for k in range(count))


def weight(container):
    if isinstance(container, dict):
        return sum(container.values()) + len(container)
    return len(container)


def main():
    steps = max(LIVE, STEPS * int(sys.argv[1]) // 100)
    source = random.Random(19450629)
    live = [None] * LIVE
    total, text, number = 0, "", 0
    while number < steps:
        place = source.randrange(LIVE)
        old = live[place]
        if isinstance(old, list) and number % 3:
            old.extend(range(number % 50))
            number += len(old) % 7
            if len(old) > 900:
                total += sum(old[::17])
                live[place] = None
        elif isinstance(old, dict) and number % 3:
            old.update((f"more {number + k}", k) for k in range(8))
            for key in list(old)[:4]:
                del old[key]
        else:
            if old is not None:
                total += weight(old)
            live[place] = grown(source, number % 5, number)
        text = (text + str(number))[-3000:]
        number += 10
    rest = sum(weight(one) for one in live if one is not None)
    print(f"{steps} steps, total {total}, rest {rest}, text {len(text)} {text[:20]}")


main()
