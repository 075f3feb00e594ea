"""Runs commands through launch.c, with or without a preloaded library, and tells what they used."""
# SPDX-License-Identifier: MIT

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# What would change the C library's malloc, or bring another one, in the runs to compare.
FOREIGN_SETTINGS = ("LD_PRELOAD", "LD_DEBUG", "LD_DEBUG_OUTPUT", "GLIBC_TUNABLES", "MALLOC_CONF",
                    "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_",
                    "MALLOC_TOP_PAD_", "MALLOC_PERTURB_", "MALLOC_CHECK_", "MALLOC_MMAP_MAX_")


class Trouble(Exception):
    """The tool itself cannot go on. `exit_code` follows env(1): 125, 126 or 127."""

    def __init__(self, text, exit_code=125):
        super().__init__(text)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Use:
    """What one run used: its whole tree of processes, as far as somebody waited for them."""
    cpu_s: float
    wall_s: float
    peak_kb: int       # the largest process of the tree
    faults: int        # minor and major page faults


@dataclass(frozen=True)
class Ended:
    """How a run ended. 128 + n stands for signal n, as in a shell."""
    exit_code: int
    use: Use


@contextlib.contextmanager
def locked(path):
    """Holds a file lock, so that tests which run side by side prepare shared files once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def launcher(work):
    """Path of the built launch.c, made when missing or older than its source."""
    source, program = HERE / "launch.c", work / "launch"
    with locked(work / "launch.lock"):
        if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
            return program
        compiler = os.environ.get("CC", "cc").split()
        try:
            subprocess.run([*compiler, "-std=gnu17", "-O2", "-o", program, source], check=True)
        except FileNotFoundError as error:
            raise Trouble(f"no C compiler '{compiler[0]}': dev/setup build installs one") from error
        except subprocess.CalledProcessError as error:
            raise Trouble(f"{source.name} does not compile") from error
    return program


def preloadable(library):
    """The library's path as LD_PRELOAD can hold it, which splits at " " and ":" and expands "$"."""
    path = Path(library).resolve()
    if not path.is_file():
        raise Trouble(f"{library}: no such library; `make` builds it")
    if not any(character in str(path) for character in " :$"):
        return str(path)
    folder = tempfile.mkdtemp(prefix="prairie-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = Path(folder) / path.name
    link.symlink_to(path)
    return str(link)


class Running:
    """A started program; `wait` gives its end. It leads a session of its own, so that all of it can
    be killed."""

    def __init__(self, process, report_fd, name):
        self.process, self.report_fd, self.name = process, report_fd, name

    def wait(self, timeout_s):
        try:
            self.process.wait(timeout_s)
            with open(self.report_fd, encoding="ascii", closefd=False) as report:
                words = report.readline().split()
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"{self.name}: still running after {timeout_s:.0f} s") from error
        finally:
            self.kill()
            os.close(self.report_fd)
        if not words:
            raise Trouble(f"{self.name}: its starter ended without a report")
        if words[0] == "refused":
            raise Trouble(f"{self.name}: {os.strerror(int(words[1]))}", 126)
        return ended_from(words[1:])

    def kill(self):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def ended_from(words):
    status, user_us, system_us, wall_us, peak_kb, minor, major = map(int, words)
    code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return Ended(code, Use((user_us + system_us) / 1e6, wall_us / 1e6, peak_kb, minor + major))


def start(program, command, *, library, env, cwd, stdout, stderr, stdin=subprocess.DEVNULL,
          settings=None):
    """Starts `command` by the built launcher `program`. `library` None means the C library's
    malloc; `settings` are variables for the command alone."""
    report, write_end = os.pipe()
    settings = dict(settings or {}, **({"LD_PRELOAD": library} if library else {}))
    variables = [f"{name}={value}" for name, value in settings.items()]
    words = [program, str(write_end), *variables, "--", *map(str, command)]
    try:
        process = subprocess.Popen(words, stdin=stdin, stdout=stdout, stderr=stderr, env=env,
                                   cwd=cwd, pass_fds=[write_end], start_new_session=True)
    finally:
        os.close(write_end)
    return Running(process, report, Path(str(command[0])).name)


def digest(path):
    """SHA-256 of a file, read in pieces: the driver stays small."""
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def tail(path, lines=6, width=160):
    """The last lines of a file, for an error report."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 4096))
        text = file.read().decode("utf-8", "replace")
    return [line[:width] for line in text.splitlines()[-lines:]]
