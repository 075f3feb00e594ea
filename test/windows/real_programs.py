"""real_programs.py - real programs for Windows: where each comes from, its input, how it is run.

Three were built by others, with another compiler, and come inside of packages of the Python index (programs/wheels.txt).
Three are built here by mingw-w64 from sources inside of crates (programs/crates). Versions and checksums are pinned
there; everything lies in build/windows/programs. Node.js and Go's programs are not among them: the former has the C
library inside, the latter have no malloc, so nobody could serve them.
SPDX-License-Identifier: MIT
"""
import fcntl
import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "build" / "windows" / "programs"
BENCH = ROOT / "bench" / "programs"
COMPILER = "x86_64-w64-mingw32-gcc"


class Absent(Exception):
    """A program cannot be had here; the text says why."""


def run(words, log, **more):
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / log, "w", encoding="utf-8") as out:
        return subprocess.run([str(word) for word in words], stdout=out, stderr=subprocess.STDOUT, check=False,
                              **more).returncode == 0


def is_up_to_date(mark, *sources):
    """Were these files the same when the mark was made? Marks them when asked again by `mark.write_text`."""
    wanted = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return mark.is_file() and mark.read_text(encoding="ascii") == wanted, wanted


# Getting them

def wheel(name, member):
    """A program out of a wheel; None: no wheel to be had."""
    listed = next((line for line in (HERE / "programs/wheels.txt").read_text(encoding="utf-8").splitlines()
                   if line.startswith(f"{name}==")))
    chosen = FOLDER / f"{name}.txt"
    chosen.parent.mkdir(parents=True, exist_ok=True)
    chosen.write_text(listed + "\n", encoding="utf-8")
    folder = FOLDER / name
    done, mark = is_up_to_date(FOLDER / f"{name}.done", chosen)
    if not done:
        shutil.rmtree(folder, ignore_errors=True)
        if not run([sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--platform",
                    "win_amd64", "--require-hashes", "-r", chosen, "-d", folder], f"{name}.log"):
            raise Absent(f"pip did not get {listed.split()[0]}, see {FOLDER / name}.log")
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
            archive.extractall(folder)
        (FOLDER / f"{name}.done").write_text(mark, encoding="ascii")
    return next(folder.glob(member))


def crates():
    """The folder of all crates' sources."""
    lock = HERE / "programs/crates/Cargo.lock"
    done, mark = is_up_to_date(FOLDER / "crates.done", lock)
    if not done:
        if shutil.which("cargo") is None:
            raise Absent("no cargo to get its sources")
        if not run(["cargo", "vendor", "--locked", "--versioned-dirs", "--manifest-path", lock.with_name("Cargo.toml"),
                    FOLDER / "crates"], "crates.log"):
            raise Absent(f"cargo did not get its sources, see {FOLDER}/crates.log")
        (FOLDER / "crates.done").write_text(mark, encoding="ascii")
    return FOLDER / "crates"


def built(name, folder, sources, *flags):
    """A program of sources in a crate, and maybe of one here."""
    folder = crates() / folder
    here = HERE / f"programs/{name}.c"
    files = [path for source in sources for path in sorted(folder.glob(source))]
    files += [here] if here.is_file() else []
    program = FOLDER / f"{name}.exe"
    done, mark = is_up_to_date(FOLDER / f"{name}.done", *files)
    if not done or not program.is_file():
        if not run(["nice", COMPILER, "-O2", "-w", "-static", f"-I{folder}", *flags, *files, "-o", program, "-lpthread"],
                   f"{name}.log"):
            raise Absent(f"{COMPILER} did not build it, see {FOLDER / name}.log")
        (FOLDER / f"{name}.done").write_text(mark, encoding="ascii")
    return program


# Their inputs, the same as on Linux (bench/suites/programs.toml) where it has them

def prepared(what, per_cent):
    subprocess.run([BENCH / "prepare.sh", what, str(per_cent), FOLDER], check=True)


def z3(per_cent):
    subprocess.run([sys.executable, BENCH / "puzzle.py", str(per_cent), FOLDER / "puzzle.smt2"], check=True)
    return [wheel("z3-solver", "*/data/bin/z3.exe"), "puzzle.smt2"]


def clang_format(per_cent):
    program = wheel("clang-format", "clang_format/data/bin/clang-format.exe")
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.c")))
    (FOLDER / "format.c").write_text(text[: len(text) * per_cent // 100], encoding="utf-8")
    return [program, "--style=GNU", "format.c"]


def ffmpeg(per_cent):
    program = wheel("imageio-ffmpeg", "imageio_ffmpeg/binaries/ffmpeg-win-*.exe")
    frames = max(10, 250 * per_cent // 100)
    return [program, "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25",
            "-frames:v", str(frames), "-c:v", "libx264", "-threads", "2", "-f", "md5", "-"]


def sqlite(per_cent):
    program = built("sqlite", "libsqlite3-sys-0.40.0/sqlite3", ["sqlite3.c"], "-DSQLITE_THREADSAFE=0")
    prepared("orders", per_cent)
    return [program, "orders.sql"]


def lua(per_cent):
    program = built("lua", "lua-src-551.1.0/lua-5.4.9", ["*.c"])
    shutil.copy(BENCH / "trees.lua", FOLDER)
    return [program, "trees.lua", str(per_cent)]


def quickjs(per_cent):
    names = ["qjs", "quickjs", "quickjs-libc", "libregexp", "libunicode", "dtoa", "cutils", "gen/repl", "gen/standalone"]
    program = built("quickjs", "rquickjs-sys-0.11.0/quickjs", [f"{name}.c" for name in names], "-D_GNU_SOURCE",
                    "-DQUICKJS_NG_BUILD")
    prepared("script", per_cent)
    return [program, "script.js"]


PROGRAMS = {
    "z3": (z3, "200 problems of logic, by Visual C++"),
    "clang-format": (clang_format, "a large C file formatted, by Visual C++"),
    "ffmpeg": (ffmpeg, "a film made and encoded by two threads, by mingw-w64 of others"),
    "sqlite": (sqlite, "orders in memory: indexes, joins, JSON"),
    "lua": (lua, "trees, strings, tables and closures"),
    "quickjs": (quickjs, "text, JSON, patterns, maps, sorted objects"),
}


def command(name, per_cent):
    """The command line of a program in FOLDER, after it was made ready. Raises Absent."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program, *words = PROGRAMS[name][0](per_cent)
        return [str(program.relative_to(FOLDER)), *words]
