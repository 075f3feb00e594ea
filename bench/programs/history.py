# history.py - writes the history of a project's files as git fast-import takes it.
# SPDX-License-Identifier: MIT
"""Usage: history.py PER_CENT > stream"""
import random
import sys

FILES, COMMITS = 400, 800       # at 100 per cent
LINES_MAX = 300


def main():
    per_cent = int(sys.argv[1])
    source = random.Random(20050407)
    words = ["".join(source.choices("aeinorstlm", k=source.randint(2, 9))) for _ in range(1500)]
    out = sys.stdout
    paths = [f"d{n % 23}/e{n % 7}/file{n}.txt" for n in range(max(20, FILES * per_cent // 100))]
    texts = [[" ".join(source.choices(words, k=8)) for _ in range(source.randint(5, LINES_MAX))]
             for _ in paths]
    for number in range(max(10, COMMITS * per_cent // 100)):
        changed = range(len(paths)) if number == 0 else source.sample(range(len(paths)), 4)
        message = f"take {number}: {source.choice(words)}"
        out.write(f"commit refs/heads/main\n"
                  f"committer C <c@example.org> {1120000000 + number} +0000\n"
                  f"data {len(message)}\n{message}\n")
        for place in changed:
            lines = texts[place]
            for _ in range(source.randint(1, 6)):
                at = source.randrange(len(lines))
                lines[at:at + source.randrange(3)] = [" ".join(source.choices(words, k=8))]
            text = "\n".join(lines) + "\n"
            out.write(f"M 100644 inline {paths[place]}\ndata {len(text)}\n{text}\n")
    out.write("done\n")


main()
