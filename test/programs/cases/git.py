"""git: a history of many files made, cloned, packed anew and checked; object by object the same."""
# SPDX-License-Identifier: MIT

import random

from cases import text
from cases.case import Case

# No time, name or thread may enter an object or the order of a pack.
WHEN = "2008-07-24T12:00:{:02d}+0000"
WHO = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "C",
       "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_CONFIG_NOSYSTEM": "1"}
CONFIG = ["-c", "init.defaultBranch=main", "-c", "pack.threads=1", "-c", "gc.auto=0",
          "-c", "core.fsync=none", "-c", "protocol.file.allow=always"]


class Git(Case):
    name = "git"
    packages = ("git",)
    programs = ("git",)
    sources = ("cases/text.py",)

    def prepare(self, inputs, quick, work):
        """Versions of a tree: folder `v<n>` holds the files that version n adds or changes."""
        source = random.Random(13)
        file_count, versions = (600, 4) if quick else (12_000, 8)
        vocabulary = text.words(source)
        for version in range(versions):
            for number in range(file_count):
                if version and source.random() > 0.12:
                    continue
                path = inputs / f"v{version}/d{number % 37}/e{number % 11}/f{number}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                keep = random.Random(number)   # most lines of a file are the same in each version
                lines = [" ".join(keep.choices(vocabulary, k=9))
                         for _ in range(keep.randint(3, 120))]
                for _ in range(version):
                    lines[source.randrange(len(lines))] = f"version {version} {source.random()}"
                path.write_text("\n".join(lines) + "\n", encoding="ascii")

    def play(self, on):
        repository = on.folder / "repository"

        def git(*words, folder=repository, when=0, **places):
            settings = {**WHO, "GIT_AUTHOR_DATE": WHEN.format(when),
                        "GIT_COMMITTER_DATE": WHEN.format(when)}
            return on.run(["git", *CONFIG, *words], settings=settings, folder=folder, **places)

        git("init", "-q", str(repository), folder=on.folder)
        for when, version in enumerate(sorted(on.inputs.glob("v*"))):
            on.tool(["cp", "-r", f"{version}/.", repository])
            git("add", "-A")
            git("commit", "-q", "-m", f"take {version.name}", when=when)
        on.note("commit", git("rev-parse", "HEAD").read_text(encoding="ascii"))
        on.note_file("log with patches", git("log", "-p", "--stat", "-M"))
        on.note_file("blame", git("blame", "-s", "d0/e0/f0.txt"))

        clone = on.folder / "clone"
        git("clone", "-q", "--no-local", "--bare", str(repository), str(clone), folder=on.folder)
        git("repack", "-adfq", "--depth=50", "--window=20", folder=clone)
        for pack in sorted((clone / "objects" / "pack").glob("*.pack")):
            on.note_file(pack.name, pack)
        git("fsck", "--full", "--strict", "--no-progress", folder=clone)
        on.note_file("objects", git("rev-list", "--objects", "--all", folder=clone))
        git("-c", "pack.threads=2", "repack", "-adfq", folder=clone)      # delta search by threads
        git("fsck", "--full", folder=clone)
        checked = on.folder / "checked"
        git("clone", "-q", str(clone), str(checked), folder=on.folder)
        on.note("status", git("status", "--porcelain", folder=checked).read_text(encoding="ascii"))
        on.note_file("grep", git("grep", "-n", "version 1", folder=checked))

    def proof_command(self, inputs):
        return ["sh", "-c", "git init -q proof && cd proof && git status && git fsck"]
