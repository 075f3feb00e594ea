# json_text.py - documents of records written as JSON, read back and changed; prints a checksum.
# SPDX-License-Identifier: MIT
"""Usage: json_text.py PER_CENT"""
import json
import random
import sys
import zlib

ROUNDS = 26          # at 100 per cent
RECORDS = 3000       # a document of about 1 MB


def word(source):
    return "".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 11)))


def record(source, words, number):
    return {"id": number, "name": f"{source.choice(words)}-{number}",
            "price": source.randrange(100_000) / 100, "at": None, "on": number % 3 == 0,
            "tags": source.choices(words, k=source.randrange(6)),
            "text": f'{source.choice(words)} "\u00e9\n' * source.randint(1, 20),
            "more": {"list": [number, [number]], "path": {"to": {"it": source.choice(words)}}}}


def main():
    rounds = max(1, ROUNDS * int(sys.argv[1]) // 100)
    source = random.Random(20080725)
    words = [word(source) for _ in range(2000)]
    checksum, kept = 0, []
    for turn in range(rounds):
        records = [record(source, words, number) for number in range(RECORDS)]
        text = json.dumps(records, ensure_ascii=turn % 2 == 0, indent=1 if turn % 4 == 3 else None)
        checksum = zlib.crc32(text.encode(), checksum)
        back = json.loads(text)
        for one in back:
            one["price"] *= 2
            one["tags"].append(one["name"].upper())
        # Every tenth record outlives its document.
        kept = kept[-9 * RECORDS // 10:] + back[::10]
        checksum = zlib.crc32(json.dumps(back, sort_keys=True).encode(), checksum)
    checksum = zlib.crc32(json.dumps(kept).encode(), checksum)
    print(f"{rounds} documents, checksum {checksum:08x}")


main()
