"""sort: bytes in parallel, numbers, and unique lines."""
# SPDX-License-Identifier: MIT

from cases import text
from cases.case import Case


class Sort(Case):
    name = "sort"
    packages = ("coreutils",)
    programs = ("sort",)
    sources = ("cases/text.py",)

    def prepare(self, inputs, quick, work):
        text.write_lines(inputs / "lines.txt", (24 if quick else 300) << 20, seed=11)

    def play(self, on):
        lines = on.inputs / "lines.txt"
        c = {"LC_ALL": "C"}
        # A small buffer makes sort write and merge temporary files: both ways are taken.
        plays = {"bytes in two threads": (["--parallel=2", "-S", "60%"], c),
                 "merge of small pieces": (["--parallel=2", "-S", "8M"], c),
                 "by number": (["-k2,2n", "-k1,1"], c),
                 "unique by words": (["-u", "-k3"], {"LC_ALL": "C.UTF-8"})}
        for label, (options, settings) in plays.items():
            out = on.run(["sort", *options, lines], settings=settings)
            on.note_file(label, out)
            out.unlink()

    def proof_command(self, inputs):
        return ["sort", "--version"]
