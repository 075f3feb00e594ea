"""node, JavaScriptCore, QuickJS: one script of JSON, patterns, trees, maps, closures, buffers."""
# SPDX-License-Identifier: MIT

import os
import shutil
import subprocess

import measure
from cases.case import Case, Missing

# The last version whose objects come from malloc one by one; later ones have an arena of their own.
QUICKJS_CRATE, QUICKJS_VERSION = "rquickjs-sys", "0.11.0"
QUICKJS_FILES = """qjs.c quickjs.c quickjs-libc.c libregexp.c libunicode.c cutils.c dtoa.c
gen/repl.c gen/standalone.c""".split()


class Script(Case):
    """The script under one engine. `scale` is how often its parts are done: quick, full."""

    sources = ("inputs/workload.js",)
    scale = (0, 0)

    def prepare(self, inputs, quick, work):
        text = (self.here / "inputs" / "workload.js").read_text(encoding="utf-8")
        scale = self.scale[0 if quick else 1]
        (inputs / "workload.js").write_text(f"const SCALE = {scale};\n{text}", encoding="utf-8")

    def play(self, on):
        command, settings = self.engine(on.inputs)
        out = on.run([*command, on.inputs / "workload.js"], settings=settings)
        for line in out.read_text(encoding="utf-8").splitlines():
            label, _, value = line.partition(" ")
            on.note(label if label not in on.facts else f"{label} again", value)
        on.require(len(on.facts) == 7, f"the script printed {len(on.facts)} of 7 lines")

    def engine(self, inputs):
        """The command before the script's name, and its environment."""
        raise NotImplementedError


class Node(Script):
    name = "node"
    packages = ("nodejs",)
    programs = ("node",)
    scale = (16, 160)

    def engine(self, inputs):
        return ["node"], {}

    def proof_command(self, inputs):
        return ["node", "-e", "console.log(JSON.stringify([1]))"]


class JavaScriptCore(Script):
    """JavaScriptCore has its own allocator; any value of `Malloc` makes it use malloc instead. That
    is to be seen: 57 refills without it, 23,000 with it."""

    name = "jsc"
    packages = ("libjavascriptcoregtk-4.0-bin",)
    programs = ("jsc",)
    scale = (10, 100)
    refills_min = 2000

    def engine(self, inputs):
        # Memory must depend neither on the scheduler nor on how much this machine has.
        flags = ["--useConcurrentGC=0", "--useConcurrentJIT=0", "--numberOfGCMarkers=1"]
        return ["jsc", *flags, "--forceRAMSize=536870912"], {"Malloc": "1"}

    def proof_command(self, inputs):
        return ["env", "Malloc=1", "jsc", inputs / "workload.js"]


class QuickJS(Script):
    name = "quickjs"
    packages = ("cargo",)
    scale = (1, 24)

    def require_installed(self):
        if not shutil.which("cargo"):
            raise Missing("cargo, which fetches QuickJS, is not installed")

    def prepare(self, inputs, quick, work):
        super().prepare(inputs, quick, work)
        shutil.copy(quickjs(work / "quickjs"), inputs / "qjs")

    def engine(self, inputs):
        return [inputs / "qjs"], {}

    def proof_command(self, inputs):
        return [inputs / "qjs", "-e", "print(JSON.stringify([1]))"]


def quickjs(folder):
    """The shell, fetched by cargo (which checks its checksum) and compiled once for both sizes of
    input, each of which is prepared under a lock of its own only."""
    with measure.locked(folder / "lock"):
        shell = folder / "qjs"
        if shell.exists():
            return shell
        crate = folder / "crate"
        (crate / "src").mkdir(parents=True, exist_ok=True)
        (crate / "src" / "lib.rs").touch()
        (crate / "Cargo.toml").write_text(
            '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n\n'
            f'[workspace]\n\n[dependencies]\n{QUICKJS_CRATE} = "={QUICKJS_VERSION}"\n',
            encoding="ascii")
        run(["cargo", "vendor", "--quiet", "vendor"], crate)
        source = crate / "vendor" / QUICKJS_CRATE / "quickjs"
        run([*os.environ.get("CC", "cc").split(), "-O1", "-DNDEBUG", "-D_GNU_SOURCE",
             "-DQUICKJS_NG_BUILD", "-w", "-o", shell.with_suffix(".new"), *QUICKJS_FILES,
             "-lm", "-lpthread", "-ldl"], source)
        shell.with_suffix(".new").rename(shell)
        return shell


def run(command, folder):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Missing(f"QuickJS cannot be had: {command[0]}: {last[0][:120]}")
