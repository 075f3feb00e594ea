#!/usr/bin/env python3
# run.py - does what a page of docs/recipes says: proves it, or starts it as a workload of prairie compare.
# SPDX-License-Identifier: MIT
"""Usage: run.py try LIBRARY NAME...     the page's commands as written, with the library and without
       run.py serve NAME FOLDER        the page's program in this folder, on what is preloaded, or as it was before

*try* starts the command under "Set", waits until the program answers, has some work done, and runs the command
under "See". With the library it must succeed and print something, and the library is in the maps of each of the
program's processes; without, where the same command is run with no library at its place, it must not.
Exit code 77: what the pages need is missing for all of them; for one, it is said.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import page
from places import PLACES, missing_right
from programs import PROGRAMS, Failure, wait_until

ANSWERS_WITHIN_S = 60
SHARE_OF_A_TRY = 0.05


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def words_of(pid):
    """The command line of a process; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def children(pid):
    try:
        return [int(child) for task in Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text().split()]
    except OSError:
        return []


def family(pid):
    """The process and all that came from it, parents first."""
    return [pid, *(one for child in children(pid) for one in family(child))]


def is_called(pid, name):
    """Whether a process is that program: a script is called by its interpreter."""
    return any(Path(word.split(" ")[0].rstrip(":")).name == name for word in words_of(pid)[:2])


def program_of(shell, name):
    """The first process below a shell that is that program, if there is one."""
    return next((pid for pid in family(shell) if is_called(pid, name)), None)


def is_served(pid, library):
    try:
        return str(library) in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def surroundings(folder):
    """PATH as servers need it; Debian's redis-server is redis-check-rdb by another name."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    rdb = shutil.which("redis-check-rdb")
    if rdb and not shutil.which("redis-server") and not (tools / "redis-server").exists():
        (tools / "redis-server").symlink_to(rdb)
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}:/usr/sbin:/sbin"}


def missing_of(needs):
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return [need for need in needs if not shutil.which(need, path=path)]


def see(name, library, port, folder, pid):
    """Whether the page's look at the process finds the library."""
    done = subprocess.run(["sh", "-c", page.command(name, "See", str(library), port)], cwd=folder, text=True,
                          env={**surroundings(folder), "PID": str(pid)}, capture_output=True, check=False, timeout=60)
    return done.returncode == 0 and done.stdout.strip() != "", done.stdout + done.stderr


def end(shell):
    """Ends the shell's group in order, and then whoever is left of it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(shell.pid, sign)
            shell.wait(timeout=15)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def with_library(name, library, folder):
    """Runs the page's program in this folder; what it answered. library "": on the C library's malloc, or its own."""
    program, port = PROGRAMS[name], free_port()
    program.prepare(folder)
    log = open(folder / "log", "wb")
    shell = subprocess.Popen(["sh", "-c", page.command(name, "Set", str(library), port)], cwd=folder, stdout=log,
                             stderr=log, env={**surroundings(folder), "PORT": str(port)}, start_new_session=True)
    try:
        wait_until(lambda: shell.poll() is not None or program.is_ready(folder, port), ANSWERS_WITHIN_S,
                   "the program does not answer")
        if shell.poll() is not None:
            raise Failure(f"the program ended with {shell.returncode}: {(folder / 'log').read_text()[-400:]}")
        answer = program.work(folder, port, SHARE_OF_A_TRY)
        pid = program_of(shell.pid, program.process)
        if pid is None:
            raise Failure(f"no process is called {program.process}")
        found, said = see(name, library or page.LIBRARY, port, folder, pid)
        if found != bool(library):
            raise Failure(f"'See' {'finds' if found else 'does not find'} prairie: {said}")
        for one in family(pid):
            if library and is_called(one, program.process) and not is_served(one, library):
                raise Failure(f"{library} is not in process {one}, {words_of(one)}")
        return answer, len(family(pid))
    finally:
        end(shell)
        log.close()


def try_page(name, library):
    needs = (PROGRAMS.get(name) or PLACES[name]).needs
    missing = missing_of(needs) or ("unshare" in needs and missing_right())
    if missing:
        print(f"{name}: not tried, no {', '.join(missing)}")
        return 77
    if name in PLACES:
        with tempfile.TemporaryDirectory(prefix="recipe.") as scratch:
            os.chmod(scratch, 0o755)
            print(f"{name}: ok, {PLACES[name].attempt(library, Path(scratch))}")
        return 0
    answers = []
    for served in (library, ""):
        with tempfile.TemporaryDirectory(prefix="recipe.") as scratch:
            os.chmod(scratch, 0o755)
            answer, count = with_library(name, served, Path(scratch))
            answers.append(answer)
    if answers[0] != answers[1]:
        raise Failure("it answers otherwise than without prairie")
    print(f"{name}: ok, prairie serves it as the page says, in {count} process{'es' if count > 1 else ''}; "
          "without the line it does not; the answers are the same")
    return 0


def cpu_s(pid):
    """Processor time of a process, of those that came from it, and of those it waited for."""
    ticks = 0
    for one in family(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb(pid, kind):
    """Memory of a process and of those that came from it, added up; kind: VmRSS, or VmHWM for the peaks."""
    return sum(int(line.split()[1]) for one in family(pid)
               for line in Path(f"/proc/{one}/status").read_text().splitlines() if line.startswith(kind + ":")) / 1024


def drive(program, port, server, folder):
    """A measured run: what the server answered. Its time and memory become figures."""
    before = cpu_s(server)
    answer = program.work(folder, port, 1)
    time.sleep(0.05)
    figures = f"cpu {cpu_s(server) - before:.2f} s\npeak {memory_mb(server, 'VmHWM'):.2f} MB\n"
    if hasattr(program, "rest_s"):
        time.sleep(program.rest_s)
        figures += f"rest {memory_mb(server, 'VmRSS'):.2f} MB\n"
    if os.environ.get("PRAIRIE_FIGURES"):
        with open(os.environ["PRAIRIE_FIGURES"], "a", encoding="utf-8") as file:
            file.write(figures)
    return answer


def serve(name, folder):
    """The page's command on what is preloaded into this process, and if that is nothing, the command before the page.

    The clients are not served.
    """
    folder, port, program = Path(folder), free_port(), PROGRAMS[name]
    preload = os.environ.pop("LD_PRELOAD", None)
    program.prepare(folder)
    line = page.command(name, "Set", preload, port) if preload else page.on_port(page.before(name), port)
    shell = subprocess.Popen(["sh", "-c", line], cwd=folder,
                             start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**surroundings(folder), "PORT": str(port)})
    try:
        wait_until(lambda: shell.poll() is not None or program.is_ready(folder, port), ANSWERS_WITHIN_S,
                   "the server does not answer")
        server = program_of(shell.pid, program.process)
        if server is None or (preload and not is_served(server, Path(preload).resolve())):
            raise Failure(f"{preload} does not serve {program.process}")
        print(drive(program, port, server, folder))
        return 0
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    finally:
        end(shell)


def main():
    arguments = sys.argv[1:]
    if len(arguments) >= 3 and arguments[0] == "try":
        library = Path(arguments[1]).resolve()
        unknown = [name for name in arguments[2:] if name not in {**PROGRAMS, **PLACES}]
        if unknown or not library.is_file():
            print("run.py: no", f"recipe {unknown[0]}" if unknown else f"library {library}", file=sys.stderr)
            return 2
        codes = []
        for name in arguments[2:]:
            try:
                codes.append(try_page(name, library))
            except (Failure, LookupError, subprocess.TimeoutExpired) as failure:
                print(f"{name}: FAILED: {failure}")
                codes.append(1)
        return 1 if 1 in codes else min(codes)
    if len(arguments) == 3 and arguments[0] == "serve" and arguments[1] in PROGRAMS:
        return serve(arguments[1], arguments[2])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
