#!/usr/bin/env python3
# conf_run.py - what options do to a program, and the places that they come from; options_run.py has each of them.
# SPDX-License-Identifier: MIT
"""usage: conf_run.py PROGRAM PROGRAM_THAT_DEFINES_MALLOC_CONF [--symlink]

With --symlink: what /etc/malloc.conf says. Where there can be no /etc for this process alone, every program of the
machine reads it meanwhile.
"""
import ctypes
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "blackbox"))

from group import Group, NoGroup  # noqa: E402

LIBRARY = os.environ["PRAIRIE_LIBRARY"]
FLAVOUR = os.environ.get("PRAIRIE_FLAVOUR", "plain")
SKIPPED = 77
SYMLINK = "/etc/malloc.conf"
CLONE_NEWNS = 0x20000
failures = 0


def run(program, arguments, enter=None, **settings):
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": LIBRARY, **settings}
    done = subprocess.run([program, *arguments.split()], capture_output=True, text=True,
                          env=environment, timeout=60, check=False, preexec_fn=enter)
    return done.returncode, done.stdout, done.stderr


def expect(what, given, wanted):
    global failures
    if given != wanted:
        failures += 1
        print(f"FAILED {what}\n  wanted {wanted!r}\n  got    {given!r}")


def conf(arguments, text, out, err="", code=0, program=None, **settings):
    """The program says this on its output and its error when MALLOC_CONF is `text`."""
    if text is not None:
        settings["MALLOC_CONF"] = text
    given = run(program or sys.argv[1], arguments, **settings)
    expect(f"{settings} {arguments}", given, (code, out, err))


def get(text, name, value, err="", **settings):
    conf(f"get {name}", text, f"{name}: {value}\n", err, **settings)


def values():
    """What was set can be read back."""
    get(None, "opt.dirty_decay_ms", 10000)
    get("dirty_decay_ms:5", "opt.dirty_decay_ms", 5)
    get("dirty_decay_ms:5", "arenas.dirty_decay_ms", 5)
    get("dirty_decay_ms:-1", "opt.dirty_decay_ms", -1)
    get("narenas:3", "opt.narenas", 3)
    get("narenas:3", "arenas.narenas", 3)
    get("arenas:3", "opt.narenas", 3)
    get("narenas:1000", "opt.narenas", 256)
    get("background_thread:false", "opt.background_thread", 0)
    get("background_thread:false", "background_thread", 0)
    get("background_thread:true", "opt.background_thread", 1)
    for name in "prof_leak_error", "prof_leak", "prof":
        get("prof_leak_error:true,prof_active:false", f"opt.{name}", 1)
    get("prof_leak:true,prof_active:false", "opt.prof_leak_error", 0)
    get("background_thread:true", "background_thread", 1)
    # Nobody asked for a background thread, and yet there may be one.
    get(None, "opt.background_thread", 0)
    get(None, "background_thread", 1)
    get("junk:alloc", "opt.junk", "alloc")
    get("percpu_arena:phycpu", "opt.percpu_arena", "phycpu")
    get("tcache_max:1024", "opt.tcache_max", 1024)
    get("tcache_max:1024", "arenas.tcache_max", 1024)
    get("lg_tcache_max:10", "arenas.tcache_max", 1024)
    get("tcache_max:1048576", "arenas.tcache_max", 14336)
    get("stats_print_opts:Jm", "opt.stats_print_opts", "Jm")
    get("thp:never", "opt.thp", "never")
    get("hpa_dirty_mult:0.5", "opt.hpa_dirty_mult", 32768)


def containers():
    """Long strings for jemalloc are taken without a word."""
    for text in (
            "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:2,thp:never",
            "percpu_arena:percpu,oversize_threshold:0,muzzy_decay_ms:5000,dirty_decay_ms:5000",
            "metadata_thp:auto,lg_tcache_max:16,abort_conf:true,retain:true,tcache:true",
            "hpa:true,hpa_slab_max_alloc:65536,hpa_sec_bytes_after_flush:1,hpa_hugify_style:none",
            "bin_shards:1-160:16|129-512:4,slab_sizes:1-4096:17,mutex_max_spin:100",
            "prof_prefix:/tmp/x,lg_prof_sample:19,prof_final:false,prof_leak:false",
            "stats_interval:-1,stats_interval_opts:J,zero_realloc:free,dss:disabled,xmalloc:false"):
        conf("", text + ",abort_conf:true", "")


def sources():
    """Later places count more."""
    defines = {"program": sys.argv[2]}
    get(None, "opt.dirty_decay_ms", 11, **defines)
    get(None, "opt.narenas", 3, **defines)
    get("dirty_decay_ms:22", "opt.dirty_decay_ms", 22, **defines)
    get("muzzy_decay_ms:22", "opt.muzzy_decay_ms", 99, **defines)
    get("dirty_decay_ms:22", "opt.dirty_decay_ms", 33, PRAIRIE_CONF="dirty_decay_ms:33")
    get("narenas:2", "opt.malloc_conf.env_var", "narenas:2")
    get(None, "opt.malloc_conf.prairie_conf", "narenas:2", PRAIRIE_CONF="narenas:2")
    get(None, "opt.malloc_conf.global_var_2_conf_harder", "muzzy_decay_ms:99", **defines)
    get(None, "opt.malloc_conf.env_var", "No such file or directory")
    get(None, "opt.malloc_conf.global_var",
        "narenas:3,dirty_decay_ms:11,muzzy_decay_ms:12", **defines)


def take_own_etc(folder):
    """What is written to /etc from now on, by this process, the rest of the machine does not see. False: it does."""
    copy = os.path.join(folder, "etc")
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    try:
        shutil.copytree("/etc", copy, symlinks=True)
        return all(subprocess.run(["mount", *mount], check=False).returncode == 0
                   for mount in (["--make-rprivate", "/"], ["--bind", copy, "/etc"]))
    except (OSError, shutil.Error):
        return False


def link_to(text):
    Path(SYMLINK).unlink(missing_ok=True)
    os.symlink(text, SYMLINK)


def symlink():
    """The link in /etc counts more than the program, and less than its user."""
    defines = {"program": sys.argv[2]}
    try:
        link_to("dirty_decay_ms:44,narenas:4")
        get(None, "opt.dirty_decay_ms", 44)
        get(None, "opt.dirty_decay_ms", 44, **defines)
        get("dirty_decay_ms:22", "opt.dirty_decay_ms", 22)
        get(None, "opt.malloc_conf.symlink", "dirty_decay_ms:44,narenas:4")
        link_to("narenas:3," * 100 + "dirty_decay_ms:45")
        get(None, "opt.dirty_decay_ms", 45)
        try:
            link_to("narenas:3," * 408 + "tcache_max:4096")  # as long as any link
            get(None, "opt.tcache_max", 4096)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            print("the longest link cannot be made here")
    finally:
        Path(SYMLINK).unlink(missing_ok=True)


def messages():
    """What is not understood is said, and the rest counts."""
    said = "prairie: Invalid conf pair: nonsense:1 (MALLOC_CONF)\n"
    get("narenas:2,nonsense:1", "opt.narenas", 2, said)
    get("narenas:x", "opt.dirty_decay_ms", 10000,
        "prairie: Invalid conf value: narenas:x (MALLOC_CONF)\n")
    get("dirty_decay_ms:-2", "opt.dirty_decay_ms", 10000,
        "prairie: Out-of-range conf value: dirty_decay_ms:-2 (MALLOC_CONF)\n")
    get(None, "opt.narenas", 2, "prairie: Invalid conf pair: nonsense:1 (PRAIRIE_CONF)\n",
        PRAIRIE_CONF="narenas:2,nonsense:1")
    abort = "prairie: abort_conf:true, and an option that is not understood\n"
    for text in ("nonsense:1,abort_conf:true", "abort_conf:true,nonsense:1"):
        conf("", text, "", said + abort, -signal.SIGABRT)
    conf("", "abort_conf:true,experimental_nonsense:1", "",
         "prairie: Invalid conf pair: experimental_nonsense:1 (MALLOC_CONF)\n")
    conf("", "confirm_conf:true,narenas:2", "",
         'prairie: malloc_conf malloc_conf: ""\n'
         'prairie: malloc_conf /etc/malloc.conf: ""\n'
         'prairie: malloc_conf MALLOC_CONF: "confirm_conf:true,narenas:2"\n'
         "prairie: -- Set conf value: confirm_conf:true (MALLOC_CONF)\n"
         "prairie: -- Set conf value: narenas:2 (MALLOC_CONF)\n"
         'prairie: malloc_conf PRAIRIE_CONF: ""\n'
         'prairie: malloc_conf malloc_conf_2_conf_harder: ""\n')


def contents(text, new, end, err=""):
    sizes = (8, 100, 1000, 5000, 14336, 100000)
    conf("contents", text, "".join(f"{size}: {new}\n{size}: end {end}\n{size}: calloc zeros\n"
                                   for size in sizes), err)


def fills():
    """Blocks hold what junk and zero say."""
    contents("zero:true", "zeros", "zeros")
    contents("junk:alloc", "junk", "junk")
    contents("junk:true", "junk", "junk")
    contents("zero:true,junk:free", "zeros", "zeros")
    conf("freed", "junk:free", "freed: junk\n")
    conf("freed", "junk:true", "freed: junk\n")
    conf("freed", "junk:alloc", "freed: what was there\n")
    conf("freed", None, "freed: what was there\n")


def caches():
    """Threads hold what tcache and tcache_max allow."""
    conf("cached 100", None, "cached: some\n")
    conf("cached 100", "tcache:false", "cached: none\n")
    conf("cached 4000", "tcache_max:512", "cached: none\n")
    conf("cached 400", "tcache_max:512", "cached: some\n")
    conf("cached 8", "tcache_max:0", "cached: none\n")


def decay():
    """Dirty pages go when dirty_decay_ms says so."""
    for way in ("alone", "thread"):
        conf(f"dirty {way} 0", "dirty_decay_ms:0", "dirty: none\n")
        conf(f"dirty {way} 700", "dirty_decay_ms:-1", "dirty: all\n")
    if "tiny" not in FLAVOUR:
        conf("dirty alone 0", None, "dirty: some\n")
    conf("dirty thread 0", None, "dirty: all\n")
    conf("dirty thread 4000", "dirty_decay_ms:500", "dirty: none\n")
    conf("dirty thread 1500", "dirty_decay_ms:600000", "dirty: all\n")
    if "tiny" not in FLAVOUR:
        conf("dirty thread 0", "background_thread:false", "dirty: some\n")
    conf("oversize 20", "dirty_decay_ms:-1,oversize_threshold:8388608", "dirty: little\n")
    conf("oversize 4", "dirty_decay_ms:-1,oversize_threshold:8388608", "dirty: much\n")
    if "tiny" not in FLAVOUR:  # where so large a block has a mapping of its own
        conf("retained", "retain:true", "kept: the right to use it\n")
        conf("retained", "retain:false", "kept: nothing\n")


def groups():
    """Near the limit of the control group free pages go back at once, unless limit_group says no."""
    try:
        group = Group(64 << 20)
    except NoGroup as reason:
        print(f"without a control group: {reason}")
        return
    try:
        for text, out in (("dirty_decay_ms:-1", "little"), ("dirty_decay_ms:-1,limit_group:false", "much")):
            conf("crowded 58", text, f"dirty: {out}\n", enter=group.enter)
    finally:
        group.close()


def refusals():
    """What is to be done when there is no memory, and for a size of zero."""
    conf("refused", None, "refused: 1\n")
    conf("refused", "xmalloc:true", "", "prairie: xmalloc:true, and there is no memory\n",
         -signal.SIGABRT)
    conf("to_zero", None, "realloc to zero: NULL\n")
    conf("to_zero", "zero_realloc:alloc", "realloc to zero: a block\n")
    conf("to_zero", "zero_realloc:abort", "",
         "prairie: zero_realloc:abort, and realloc was called with size 0\n", -signal.SIGABRT)


def reserves():
    """One that cannot be had is said to be less, and the program runs."""
    for text in (f"reserve_min:{1 << 40}", f"limit_hard:{32 << 20},reserve_min:{64 << 20}"):
        code, out, err = run(sys.argv[1], "get opt.narenas", MALLOC_CONF="narenas:2," + text)
        said = re.fullmatch(r"prairie: reserve_min: only (\d+) of (\d+) bytes could be had\n", err)
        had, wanted = (int(number) for number in said.groups()) if said else (0, 0)
        asked = int(text.split(":")[-1])
        expect(text, (code, out, had < wanted and wanted in (asked, 2**32 - 1)),  # the latter with 32 bits
               (0, "opt.narenas: 2\n", True))
    get(f"narenas:2,reserve_min:{4 << 20}", "opt.narenas", 2)


def statistics():
    """stats_print prints the form that was asked for."""
    for settings, first, last in (
            ({"MALLOC_CONF": "stats_print:true"}, "___ Begin jemalloc statistics ___",
             "--- End jemalloc statistics ---"),
            ({"MALLOC_CONF": "stats_print:true,stats_print_opts:J"}, '{"jemalloc":{', "}}"),
            ({"PRAIRIE_CONF": "stats_print:true,stats_print_opts:J"}, '{"jemalloc":{', "}}"),
            ({"PRAIRIE_CONF": "stats_print:true"}, "prairie: statistics of prairie ",
             "with a cache now")):
        _, out, err = run(sys.argv[1], "", **settings)
        expect(f"{settings} begins and ends",
               (out, err.startswith(first), err.rstrip("\n").endswith(last)), ("", True, True))


def per_core():
    """A program does its work whichever arena its cores give it."""
    for mode in ("percpu", "phycpu"):
        conf("dirty thread 0", f"percpu_arena:{mode},dirty_decay_ms:0", "dirty: none\n")


if "--symlink" in sys.argv:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own_folder:
        if take_own_etc(own_folder):
            Path(SYMLINK).unlink(missing_ok=True)
        if os.geteuid() != 0 or os.path.lexists(SYMLINK):
            print(f"skipped: {SYMLINK} is not ours to make")
            sys.exit(SKIPPED)
        symlink()
    sys.exit(1 if failures else 0)
values()
containers()
sources()
messages()
fills()
caches()
decay()
groups()
refusals()
reserves()
statistics()
per_core()
print(f"{failures} failed")
sys.exit(1 if failures else 0)
