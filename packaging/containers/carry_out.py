#!/usr/bin/env python3
# carry_out.py - does in roots of this system what a Dockerfile says, and runs a program in what comes of it.
# SPDX-License-Identifier: MIT
"""Usage: carry_out.py DOCKERFILE CONTEXT FOLDER IMAGE=ROOT... -- PROGRAM ARGUMENT...

There need be no Docker: an image is a folder or a tar file named by IMAGE=ROOT, RUN is done in it by chroot, COPY copies, ENV is
kept. An instruction that is not one of these (FROM, RUN, COPY, ENV) is an error, so that nothing is passed over. A stage that
says what one in FOLDER said is not made again. The program gets the environment of the last stage and PRAIRIE_CONF, and must leave prairie's statistics. Needs root.
"""
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

BASE = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}


def instructions(path):
    """Yields (word, rest) of each instruction; lines that end in a stroke go on."""
    text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            word, rest = line.strip().split(None, 1)
            yield word.upper(), rest


def fail(text):
    sys.exit(f"carry_out: {text}")


class Stage:
    def __init__(self, root, image, known):
        self.root, self.environment = root, {}
        self.was_there = root.exists()
        if image not in known:
            fail(f"no root is known for {image}")
        if self.was_there:
            return
        source = Path(known[image])
        if source.is_dir():
            shutil.copytree(source, root, symlinks=True)
        else:
            root.mkdir(parents=True)
            subprocess.run(["tar", "-xf", source, "-C", root], check=True)

    def inside(self, command, **more):
        def enter():
            os.chroot(self.root)
            os.chdir("/")

        return subprocess.run(command, env={**BASE, **self.environment, **more}, text=True, capture_output=True, check=False,
                              preexec_fn=enter)

    def run(self, command):
        if self.was_there:
            return
        done = self.inside(["/bin/sh", "-c", command])
        if done.returncode != 0:
            fail(f"RUN {command}\n{(done.stdout + done.stderr)[-2000:]}")

    def copy(self, words, context, stages):
        if self.was_there:
            return
        base = context
        if words[0].startswith("--from="):
            base = stages[words.pop(0).removeprefix("--from=")].root
        *sources, target = words
        for name in sources:
            source, place = base / name.lstrip("/"), self.root / target.lstrip("/")
            # As Docker: what a link of the last part leads to is copied.
            source = follow(base, source)
            if source.is_dir():
                shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True, ignore=ignored(context, base))
                continue
            if target.endswith("/"):
                place = place / Path(name).name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)


def follow(base, source):
    while source.is_symlink():
        to = os.readlink(source)
        source = base / to.lstrip("/") if to.startswith("/") else source.parent / to
    return source


def ignored(context, base):
    """What .dockerignore leaves out of the context: names in its first folder."""
    if base != context:
        return None
    patterns = [line.lstrip("/") for line in (context / ".dockerignore").read_text().split()]
    some = shutil.ignore_patterns(*patterns)
    return lambda folder, names: some(folder, names) if Path(folder) == context else set()


def main():
    if "--" not in sys.argv or len(sys.argv) < 6:
        print(__doc__, file=sys.stderr)
        return 2
    at = sys.argv.index("--")
    program = sys.argv[at + 1:]
    recipe, context, folder = (Path(word).resolve() for word in sys.argv[1:4])
    known = dict(word.split("=", 1) for word in sys.argv[4:at])
    stages, stage = {}, None
    said = list(instructions(recipe))
    for number, (word, rest) in enumerate(said):
        if word == "FROM":
            image, _, name = re.fullmatch(r"(\S+)( AS (\S+))?", rest).groups()
            rests = [i for i in range(number + 1, len(said)) if said[i][0] == "FROM"] or [len(said)]
            key = hashlib.sha256(repr(said[number:rests[0]]).encode()).hexdigest()[:12]
            stage = Stage(folder / key, image, known)
            stages[name or "last"] = stage
        elif word == "RUN":
            stage.run(rest)
        elif word == "COPY":
            stage.copy(shlex.split(rest), context, stages)
        elif word == "ENV":
            name, value = rest.split("=", 1)
            stage.environment[name] = json.loads(value) if value.startswith('"') else value
        else:
            fail(f"{recipe.name}: {word} is not understood")
    done = stage.inside(program, PRAIRIE_CONF="stats_print:true")
    if done.returncode != 0 or not done.stderr.startswith("prairie: statistics"):
        fail(f"{recipe.name}: {program} ended with {done.returncode}: {done.stderr[:500]}")
    # Without what the recipe sets it is not prairie that answers.
    stage.environment.clear()
    if "prairie" in stage.inside(program, PRAIRIE_CONF="stats_print:true").stderr:
        fail(f"{recipe.name}: the program is served without the recipe")
    print(f"{recipe.name}: {len(stages)} stages carried out; {' '.join(program)} runs on prairie")
    return 0


if __name__ == "__main__":
    sys.exit(main())
