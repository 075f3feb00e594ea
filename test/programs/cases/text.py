"""Deterministic text for programs that read text: words by frequency, lines, keys, numbers."""
# SPDX-License-Identifier: MIT

import random

WORD_COUNT = 6000


def words(source):
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(source.choices(letters, k=source.randint(2, 11))) for _ in range(WORD_COUNT)]


def write_lines(path, size_bytes, seed):
    """Lines of a key, a number and 4 to 16 words. Few words are frequent and most are rare."""
    source = random.Random(seed)
    vocabulary = words(source)
    weights = [1.0 / (rank + 1) for rank in range(WORD_COUNT)]
    written = 0
    with open(path, "w", encoding="ascii") as file:
        while written < size_bytes:
            pool = source.choices(vocabulary, weights, k=40000)
            while len(pool) > 16:
                count = source.randint(4, 16)
                line = f"{source.getrandbits(48):012x}\t{source.randint(-10**6, 10**6)}\t" \
                       f"{' '.join(pool[-count:])}\n"
                del pool[-count:]
                written += file.write(line)
