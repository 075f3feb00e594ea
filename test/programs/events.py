#!/usr/bin/env python3
"""A program that lives from malloc: reads a log of events and reports on it. `make run` runs it.

  events.py make FILE MEBIBYTES      writes a log, the same bytes for the same size
  events.py report FILE              reads it and prints a report
"""
# SPDX-License-Identifier: MIT

import collections
import hashlib
import json
import random
import sqlite3
import sys

VISITS_LIVE = 40_000      # visits that are remembered at a time; older ones are freed
BATCH = 5_000             # events that go into the database at once


def make(path, size_bytes):
    """One JSON object a line: who did what, when, with which tags and words."""
    source = random.Random(20080725)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(source.choices(letters, k=source.randint(3, 12))) for _ in range(5000)]
    weights = [1 / (rank + 8) for rank in range(len(words))]
    written = number = 0
    with open(path, "w", encoding="ascii") as file:
        while written < size_bytes:
            text = source.choices(words, weights, k=40_000)
            while len(text) > 60:
                length, tag_count = source.randint(8, 60), source.randint(0, 5)
                event = {"id": number, "visitor": f"v{source.randrange(90_000):05d}",
                         "at": 1_216_900_800 + number * 3 + source.randrange(3),
                         "page": "/" + "/".join(text[-3:]), "price": source.randrange(10**6) / 100,
                         "tags": text[-tag_count:] if tag_count else [],
                         "from": {"host": text[0] + ".example", "port": source.randrange(65536)},
                         "text": " ".join(text[-length:])}
                del text[-length:]
                written += file.write(json.dumps(event) + "\n")
                number += 1


class Report:
    def __init__(self):
        self.visits = collections.OrderedDict()       # visitor → events, the oldest visitor first
        self.words = collections.Counter()
        self.pages = {}                                # page → [count, sum of prices, visitors]
        self.closed = hashlib.sha256()
        self.batch = []
        self.database = sqlite3.connect(":memory:")
        self.database.execute("create table tags(tag text, host text, price real, remark text)")
        self.database.execute("create index tags_tag on tags(tag, price)")

    def add(self, event):
        self.visits.setdefault(event["visitor"], []).append(event)
        self.visits.move_to_end(event["visitor"])
        if len(self.visits) > VISITS_LIVE:
            self.close(*self.visits.popitem(last=False))
        if event["id"] % 4 == 0:
            self.words.update(event["text"].split())
        page = self.pages.setdefault(event["page"].rsplit("/", 1)[0], [0, 0.0, set()])
        page[0] += 1
        page[1] += event["price"]
        page[2].add(event["visitor"])
        for tag in event["tags"][:2]:
            self.batch.append((tag, event["from"]["host"], event["price"], event["text"][:60]))
        if len(self.batch) > BATCH:
            self.store()

    def close(self, visitor, events):
        trail = " > ".join(event["page"] for event in events)
        self.closed.update(f"{visitor} {len(events)} {trail}\n".encode())

    def store(self):
        self.database.executemany("insert into tags values (?, ?, ?, ?)", self.batch)
        self.batch = []

    def write(self):
        self.store()
        while self.visits:
            self.close(*self.visits.popitem(last=False))
        print(f"visits   {self.closed.hexdigest()}")
        print(f"words    {len(self.words)} different")
        for word, count in sorted(self.words.items(), key=lambda item: (-item[1], item[0]))[:12]:
            print(f"  {word:14}{count:10}")
        pages = sorted(self.pages.items(), key=lambda item: (-item[1][1], item[0]))
        print(f"pages    {len(pages)} different")
        for name, (count, total, visitors) in pages[:12]:
            print(f"  {name:28}{count:8}{total:14.2f}{len(visitors):8}")
        question = """select tag, count(*), count(distinct host), round(avg(price), 3), max(remark)
                      from tags group by tag order by 2 desc, 1 limit 12"""
        for tag, count, hosts, price, remark in self.database.execute(question):
            print(f"  {tag:14}{count:8}{hosts:8}{price:10.3f}  {remark}")


def main(words):
    if len(words) == 3 and words[0] == "make" and words[2].isdigit():
        make(words[1], int(words[2]) << 20)
    elif len(words) == 2 and words[0] == "report":
        report = Report()
        with open(words[1], encoding="ascii") as file:
            for line in file:
                report.add(json.loads(line))
        report.write()
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
