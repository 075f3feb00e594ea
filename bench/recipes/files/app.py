"""app.py - a web application: each request reads a document, filters and sorts it, and writes it back.

SPDX-License-Identifier: MIT
"""
import json
import random

SOURCE = random.Random(20060620)
WORDS = ["".join(SOURCE.choices("etaoinshrdlu", k=SOURCE.randint(2, 10))) for _ in range(500)]
DOCUMENT = json.dumps([
    {"id": number, "title": " ".join(SOURCE.choices(WORDS, k=3)), "price": SOURCE.randint(1, 99999) / 100,
     "tags": SOURCE.choices(WORDS, k=SOURCE.randint(0, 5))} for number in range(600)])


def app(environ, start_response):
    rows = [row for row in json.loads(DOCUMENT) if row["price"] > 100]
    rows.sort(key=lambda row: (row["title"], row["id"]))
    lines = ["%s;%s;%.2f" % (row["title"].upper(), ",".join(sorted(row["tags"])), row["price"]) for row in rows]
    body = (json.dumps(rows) + "\n".join(lines)).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
