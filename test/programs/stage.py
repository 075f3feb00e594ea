"""One play of a program under one allocator: a folder, an environment, and what came out."""
# SPDX-License-Identifier: MIT

import shlex
import subprocess
from pathlib import Path

import measure
from measure import Use

PATH = "/usr/bin:/bin"   # the system's programs, not those of version managers


class Failure(Exception):
    """The program did what it must not do."""


class Stage:
    """What a case gets to play on.

    `facts` is what must be the same under every allocator: label → value. Commands run in
    `folder`, which is empty at the start; `inputs` is read-only and shared by all plays.
    """

    def __init__(self, *, launcher, library, inputs, folder, quick, timeout_s):
        self.launcher, self.library, self.inputs = launcher, library, inputs
        self.folder, self.quick, self.timeout_s = folder, quick, timeout_s
        self.facts = {}
        self.use = Use(0.0, 0.0, 0, 0)
        self.last_command = ""   # as a shell would take it, for the report of a failure
        self._count = 0
        for name in ("home", "tmp", "out"):
            (folder / name).mkdir(parents=True)

    @property
    def environment(self):
        return {"PATH": PATH, "HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp"),
                "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def start(self, command, *, stdin=None, stdout=None, settings=None, folder=None):
        """Starts a command; `finish` takes it when it ends."""
        self._count += 1
        out = Path(stdout or self.folder / "out" / f"{self._count}.out")
        err = self.folder / "out" / f"{self._count}.err"
        folder = folder or self.folder
        self.last_command = self._shell_line(command, settings or {}, stdin, folder)
        with (open(stdin or "/dev/null", "rb") as stdin_file, open(out, "wb") as stdout_file,
              open(err, "wb") as stderr_file):
            running = measure.start(self.launcher, command, library=self.library, cwd=folder,
                                    env=self.environment, settings=settings, stdin=stdin_file,
                                    stdout=stdout_file, stderr=stderr_file)
        running.out, running.err = out, err
        return running

    def finish(self, running, exit_codes=(0,)):
        """Waits for a started command and counts what it used. Gives the file of its output."""
        ended = running.wait(self.timeout_s)
        used = ended.use
        self.use = Use(self.use.cpu_s + used.cpu_s, self.use.wall_s + used.wall_s,
                       max(self.use.peak_kb, used.peak_kb), self.use.faults + used.faults)
        if ended.exit_code not in exit_codes:
            last = "\n".join(f"    {line}" for line in measure.tail(running.err))
            raise Failure(f"{running.name} ended with {ended.exit_code}\n{last}")
        return running.out

    def run(self, command, *, exit_codes=(0,), **places):
        return self.finish(self.start(command, **places), exit_codes)

    def tool(self, command, *, stdin=None, folder=None):
        """Runs a tool with the C library's malloc, outside the figures. Gives its output's file."""
        self._count += 1
        out = self.folder / "out" / f"{self._count}.tool"
        with open(stdin or "/dev/null", "rb") as stdin_file, open(out, "wb") as stdout_file:
            done = subprocess.run([str(word) for word in command], stdin=stdin_file,
                                  stdout=stdout_file, stderr=subprocess.STDOUT, check=False,
                                  env=self.environment, cwd=folder or self.folder,
                                  timeout=self.timeout_s)
        if done.returncode != 0:
            last = "\n".join(f"    {line}" for line in measure.tail(out))
            raise Failure(f"{Path(command[0]).name} ended with {done.returncode}\n{last}")
        return out

    def note(self, label, value):
        if label in self.facts:
            raise AssertionError(f"two facts are called '{label}'")
        self.facts[label] = value

    def note_file(self, label, path):
        self.note(label, measure.digest(path))

    def require(self, holds, text):
        if not holds:
            raise Failure(text)

    def _shell_line(self, command, settings, stdin, folder):
        variables = {**settings, **({"LD_PRELOAD": self.library} if self.library else {})}
        words = [f"{name}={shlex.quote(str(value))}" for name, value in variables.items()]
        words += [shlex.quote(str(word)) for word in command]
        return f"cd {folder} && {' '.join(words)} < {stdin or '/dev/null'}"
