# SPDX-License-Identifier: MIT
"""python -m prairie run [OPTION ...] SCRIPT [ARGUMENT ...]    runs a script on prairie; `-m MODULE` and `-c CODE` too
python -m prairie path                                       the library, for LD_PRELOAD

Options of run:
    --profile PREFIX     take samples; each SIGUSR2 writes PREFIX.PID.N.heap, and the end PREFIX.PID.end.heap
    --stats              print statistics at the end
    --hardened           hardened mode
    --option KEY:VALUE   any option of prairie (MALLOC_CONF)
    --keep-pools         leave objects of up to 512 bytes to Python's own pools
"""
import importlib.machinery
import io
import os
import pkgutil
import runpy
import sys
import types

from . import _heap, _library

STAGE = "PRAIRIE_PYTHON_STAGE"


def usage():
    print(__doc__, end="", file=sys.stderr)
    return 2


def read_options(arguments):
    """Returns what MALLOC_CONF gets, the profile's prefix, whether pools stay, and the rest."""
    conf, prefix, pools = [], None, False
    while arguments and arguments[0].startswith("--"):
        word = arguments.pop(0)
        if word == "--stats":
            conf.append("stats_print:true")
        elif word == "--hardened":
            conf.append("hardened:true")
        elif word == "--keep-pools":
            pools = True
        elif word in ("--profile", "--option") and arguments:
            value = arguments.pop(0)
            if word == "--option":
                conf.append(value)
            else:
                prefix = value
                conf.append("prof:true")
        else:
            return None
    return conf, prefix, pools, arguments


def start(arguments):
    """Begins again as a Python that allocates from prairie."""
    options = read_options(arguments)
    if options is None or not options[3] or options[3] in (["-m"], ["-c"]):
        return usage()
    conf, prefix, pools, rest = options
    if any(letter in _library.library_path() for letter in " :;$"):
        print(f"python -m prairie: {_library.library_path()}: the loader splits a path with a blank, ':', ';' or '$'",
              file=sys.stderr)
        return 1
    environment = dict(os.environ)
    preload = [_library.library_path()] + environment.get("LD_PRELOAD", "").split()
    environment["LD_PRELOAD"] = ":".join(preload)
    if not pools:
        environment["PYTHONMALLOC"] = "malloc"
    if conf:
        environment["MALLOC_CONF"] = ",".join(filter(None, [environment.get("MALLOC_CONF"), *conf]))
    environment[STAGE] = prefix or ""
    os.execve(sys.executable, [sys.executable, *interpreter_flags(), "-m", "prairie", "run", *rest], environment)
    return 1


def interpreter_flags():
    """The flags that this interpreter was given, such as -O or -X dev."""
    given = getattr(sys, "orig_argv", [])  # since Python 3.10
    for at in range(1, len(given)):
        if given[at:at + 2] == ["-m", __package__]:
            return given[1:at]
    import subprocess  # it knows how to write most of them
    return subprocess._args_from_interpreter_flags()  # pylint: disable=protected-access


def go_on(prefix, arguments):
    """Is the script, its module or its code."""
    if not _library.is_serving():
        print("python -m prairie: the loader did not preload the library", file=sys.stderr)
        return 1
    if prefix:
        import atexit
        _heap.profile_on(prefix=prefix)
        atexit.register(lambda: _heap.profile(f"{prefix}.{os.getpid()}.end.heap"))  # a forked one writes its own
    # With -P or -I the first place is not for the script's folder.
    is_safe = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    # It stays the main module to the end: threads and exit handlers outlive its code, and pickle looks names up there.
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if arguments[0] in ("-m", "-c") and len(arguments) > 1:
        kind, what, sys.argv = arguments[0], arguments[1], [arguments[0], *arguments[2:]]
        if not is_safe:
            sys.path[0] = ""
        if kind == "-m":
            run_module(what, True)
        else:
            exec(compile(what, "<string>", "exec"), main.__dict__)  # pylint: disable=exec-used
        return 0
    sys.argv = arguments
    if pkgutil.get_importer(arguments[0]) is not None:  # a folder, or an archive
        if is_safe:
            sys.path.insert(0, arguments[0])
        else:
            sys.path[0] = arguments[0]
        run_module("__main__", False)
        return 0
    if not is_safe:
        sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
    main.__file__ = os.path.abspath(arguments[0])
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", main.__file__)
    exec(code_of(main.__file__), main.__dict__)  # pylint: disable=exec-used
    return 0


def run_module(name, is_named):
    """As the interpreter does with -m, and with a folder or an archive."""
    runpy._run_module_as_main(name, is_named)  # pylint: disable=protected-access


def code_of(path):
    try:
        with io.open_code(path) as file:
            code = pkgutil.read_code(file)  # of a file that was compiled
        if code is not None:
            return code
        with io.open_code(path) as file:
            return compile(file.read(), path, "exec")
    except OSError as error:
        sys.exit(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}")


def main():
    arguments = sys.argv[1:]
    if arguments == ["path"]:
        print(_library.library_path())
        return 0
    if arguments in (["--help"], ["-h"], ["run", "--help"], ["run", "-h"]):
        print(__doc__, end="")
        return 0
    if len(arguments) < 2 or arguments.pop(0) != "run":
        return usage()
    prefix = os.environ.pop(STAGE, None)
    return start(arguments) if prefix is None else go_on(prefix, arguments)


if __name__ == "__main__":
    sys.exit(main())
