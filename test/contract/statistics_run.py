#!/usr/bin/env python3
# statistics_run.py - the printed statistics have the sections and keys that scripts read.
# SPDX-License-Identifier: MIT
"""usage: statistics_run.py PROGRAM"""
import json
import os
import re
import subprocess
import sys
import tempfile

failures = 0

STATS = {"allocated", "active", "metadata", "metadata_edata", "metadata_rtree", "metadata_thp",
         "resident", "mapped", "retained", "zero_reallocs", "background_thread", "mutexes"}
ARENA = {"name", "nthreads", "uptime_ns", "dss", "dirty_decay_ms", "muzzy_decay_ms", "pactive",
         "pdirty", "pmuzzy", "dirty_npurge", "dirty_nmadvise", "dirty_purged", "muzzy_npurge",
         "muzzy_nmadvise", "muzzy_purged", "small", "large", "mapped", "retained", "base",
         "internal", "metadata_edata", "metadata_rtree", "metadata_thp", "tcache_bytes",
         "tcache_stashed_bytes", "resident", "abandoned_vm", "extent_avail", "mutexes", "bins",
         "lextents", "extents"}
FLOW = {"allocated", "nmalloc", "ndalloc", "nrequests", "nfills", "nflushes"}
BIN = {"nmalloc", "ndalloc", "curregs", "nrequests", "nfills", "nflushes", "nreslabs", "curslabs",
       "nonfull_slabs", "mutex"}
LOCK = {"num_ops", "num_wait", "num_spin_acq", "num_owner_switch", "total_wait_time",
        "max_wait_time", "max_num_thds"}
EXTENT = {"ndirty", "nmuzzy", "nretained", "dirty_bytes", "muzzy_bytes", "retained_bytes"}
CONFIG = {"cache_oblivious", "debug", "fill", "lazy_lock", "malloc_conf", "opt_safety_checks",
          "prof", "prof_libgcc", "prof_libunwind", "prof_frameptr", "stats", "utrace", "xmalloc"}
OPTIONS = {"abort", "abort_conf", "background_thread", "cache_oblivious", "confirm_conf",
           "debug_double_free_max_scan", "dirty_decay_ms", "disable_large_size_classes", "dss",
           "env_var", "experimental_infallible_new", "experimental_tcache_gc", "global_var", "hpa",
           "hpa_dirty_mult", "hpa_hugify_delay_ms", "hpa_sec_nshards", "hpa_slab_max_alloc", "junk",
           "lg_extent_max_active_fit", "lg_tcache_nslots_mul", "metadata_thp", "mutex_max_spin",
           "muzzy_decay_ms", "narenas", "oversize_threshold", "percpu_arena", "retain",
           "stats_interval", "stats_interval_opts", "stats_print", "stats_print_opts", "symlink",
           "tcache", "tcache_gc_incr_bytes", "tcache_max", "tcache_nslots_small_max", "thp", "zero",
           "zero_realloc"}
# What the profiler has, and how jemalloc prints it: with the value of now behind three of them.
PROFILER = {"prof": True, "prof_active": False,
            "prof_thread_active_init": False, "lg_prof_sample": 17, "prof_accum": True,
            "lg_prof_interval": 40, "prof_gdump": True, "prof_final": False, "prof_leak": False,
            "prof_leak_error": False, "prof_bt_max": 20}
# Keys that are kept, have no effect, and are no keys of jemalloc's statistics.
UNSEEN = {"trust_madvise", "narenas_ratio", "calloc_madvise_threshold", "lg_san_uaf_align",
          "san_guard_small", "san_guard_large", "prof_pid_namespace", "prof_sys_thread_name",
          "prof_recent_alloc_max", "prof_stats", "prof_time_resolution"}
ARENAS = {"narenas", "dirty_decay_ms", "muzzy_decay_ms", "quantum", "page", "hugepage",
          "tcache_max", "nbins", "nhbins", "bin", "nlextents", "lextent"}


def expect(what, true):
    global failures
    if not true:
        failures += 1
        print(f"FAILED {what}")


def output(*arguments, **settings):
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": os.environ["PRAIRIE_LIBRARY"],
                   **settings}
    return subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=60,
                          env=environment, check=True).stdout


def has_keys(what, given, wanted):
    expect(f"{what} has {sorted(wanted - given.keys())}", wanted <= given.keys())


def check_arena(what, arena, counts):
    has_keys(what, arena, ARENA - {"name"} if what == "merged" else ARENA)
    has_keys(f"{what}.small", arena["small"], FLOW)
    has_keys(f"{what}.large", arena["large"], FLOW)
    for name in ("large", "extents_dirty", "extents_retained", "base", "tcache_list"):
        has_keys(f"{what}.mutexes.{name}", arena["mutexes"][name], LOCK)
    expect(f"{what}: a bin for each class", len(arena["bins"]) == counts["nbins"])
    expect(f"{what}: an entry for each size", len(arena["lextents"]) == counts["nlextents"])
    for row in arena["bins"]:
        has_keys(f"{what}.bins", row, BIN)
        has_keys(f"{what}.bins.mutex", row["mutex"], LOCK)
    for row in arena["extents"]:
        has_keys(f"{what}.extents", row, EXTENT)
    sizes = [row["size"] for row in counts["bin"]]
    expect(f"{what}: bins add up to small.allocated", arena["small"]["allocated"] == sum(
        row["curregs"] * size for row, size in zip(arena["bins"], sizes)))
    expect(f"{what}: taken and given back", arena["small"]["nmalloc"] == sum(
        row["nmalloc"] for row in arena["bins"]))


def check_json():
    data = json.loads(output("statistics", "J"))["jemalloc"]
    has_keys("the whole", data, {"version", "config", "system", "opt", "prof", "arenas", "stats",
                                 "stats.arenas"})
    has_keys("config", data["config"], CONFIG)
    has_keys("opt", data["opt"], OPTIONS)
    has_keys("arenas", data["arenas"], ARENAS)
    has_keys("stats", data["stats"], STATS)
    for lock in data["stats"]["mutexes"].values():
        has_keys("stats.mutexes", lock, LOCK)
    stats = data["stats"]
    expect("sums are in order", 0 < stats["allocated"] <= stats["active"] <= stats["resident"]
           <= stats["mapped"])
    expect("opt.narenas is a number", isinstance(data["opt"]["narenas"], int))
    expect("opt.junk is a word", data["opt"]["junk"] == "false")
    for number, arena in data["stats.arenas"].items():
        check_arena(number, arena, data["arenas"])
    first = data["stats.arenas"]["0"]
    expect("large blocks are counted by size", sum(
        row["curlextents"] for row in first["lextents"])
        == first["large"]["nmalloc"] - first["large"]["ndalloc"])
    expect("free runs add up to what is dirty", sum(
        row["dirty_bytes"] for row in first["extents"])
        <= first["pdirty"] * data["arenas"]["page"])
    return data


def as_text(value):
    return json.dumps(value)


def check_profiler(folder):
    printed = PROFILER | {"prof_prefix": f"{folder}/it's"}      # it writes a profile at each new peak
    conf = ",".join(f"{key}:{value if isinstance(value, str) else as_text(value)}"
                    for key, value in printed.items())
    data = json.loads(output("statistics", "J", MALLOC_CONF=conf))["jemalloc"]
    expect(f"opt.prof: {data['opt']}", printed.items() <= data["opt"].items())
    expect("prof", data["prof"] == {"thread_active_init": False, "active": False, "gdump": True,
                                    "interval": 1 << 40, "lg_sample": 17})
    text = output("statistics", MALLOC_CONF=conf)
    now = {"prof_active": " (prof.active: false)",
           "prof_thread_active_init": " (prof.thread_active_init: false)",
           "lg_prof_sample": " (prof.lg_sample: 17)"}
    for key, value in printed.items():
        line = f"  opt.{key}: {as_text(value)}{now.get(key, '')}\n"
        expect(f"the line {line}", line in text)
    expect("the section of the profiler", "\nProfiling settings\n"
           "  prof.thread_active_init: false\n  prof.active: false\n  prof.gdump: true\n"
           f"  prof.interval: {1 << 40}\n  prof.lg_sample: 17\nArenas: " in text)
    without = json.loads(output("statistics", "J"))["jemalloc"]
    expect("prof:false", without["opt"]["prof"] is False and without["opt"]["prof_active"] is True
           and without["prof"] == {"thread_active_init": False, "active": False, "gdump": False,
                                   "interval": 0, "lg_sample": 0})
    for key in UNSEEN:
        expect(f"no {key}", key not in without["opt"] and f"opt.{key}:" not in text)


def check_destroyed():
    data = json.loads(output("destroyed", "J"))["jemalloc"]
    gone = data["stats.arenas"]["destroyed"]
    check_arena("merged", gone, data["arenas"])
    expect("what it had counted", gone["small"]["nmalloc"] == gone["small"]["ndalloc"] == 10)
    expect("it holds nothing", gone["pactive"] == gone["small"]["allocated"] == 0)
    expect("nothing is set", gone["dss"] == "N/A" and gone["dirty_decay_ms"] == -1)
    expect("d leaves it out", '"destroyed"' not in output("destroyed", "Jd"))
    expect("in text, too", "\nDestroyed arenas stats:\n" in output("destroyed"))
    expect("none was destroyed", '"destroyed"' not in output("statistics", "J"))


def check_letters():
    for letter, gone in (("g", "config"), ("a", "0"), ("b", "bins"), ("l", "lextents"),
                         ("x", "mutexes"), ("e", "extents")):
        text = output("statistics", "J" + letter)
        json.loads(text)
        expect(f"{letter} leaves {gone} out", f'"{gone}":' not in text)
    merged = json.loads(output("statistics", "Ja"))["jemalloc"]["stats.arenas"]
    expect("without each arena, all of them are merged", list(merged) == ["merged"])
    neither = json.loads(output("statistics", "Jamd"))["jemalloc"]
    expect("neither each nor all", "stats.arenas" not in neither)


def check_text():
    text = output("statistics")
    lines = text.splitlines()
    expect("begins", lines[0] == "___ Begin jemalloc statistics ___")
    expect("ends", lines[-1] == "--- End jemalloc statistics ---")
    expect("version", re.match(r'Version: "5\.3\.\d+-', lines[1]))
    for section in ("Build-time option settings", "Run-time option settings", "arenas[0]:",
                    "Arenas: ", "Quantum size: 16", "Page size: ", "Number of bin size classes: ",
                    'Environment variable MALLOC_CONF: ""',
                    "  opt.background_thread: false (background_thread: true)",
                    "  opt.dirty_decay_ms: 10000 (arenas.dirty_decay_ms: 10000)",
                    "assigned threads: 1", 'dss allocation precedence: "secondary"', "decaying: ",
                    "small: ", "large: ", "total: ", "bins: ", "extents: "):
        expect(f"section {section}", any(line.strip().startswith(section.strip())
                                         for line in lines))
    sums = re.search(r"^Allocated: (\d+), active: (\d+), metadata: (\d+) \(n_thp 0, edata \d+, "
                     r"rtree \d+\), resident: (\d+), mapped: (\d+), retained: (\d+)$", text, re.M)
    expect("the line of sums", sums)
    if sums:
        allocated, active, _, resident, mapped, _ = map(int, sums.groups())
        expect("in order", allocated <= active <= resident <= mapped)
    start = next(i for i, line in enumerate(lines) if line.startswith("bins:"))
    rows = [line.split() for line in lines[start + 1:] if re.match(r" +\d+ +\d+ +\d", line)]
    expect("a row for the smallest blocks", rows and rows[0][:2] == ["8", "0"])
    settings = dict(re.findall(r"^  (opt\.\w+): (\S+)", output("statistics", MALLOC_CONF="narenas:1"),
                               re.M))
    expect("what is set is shown", settings.get("opt.narenas") == "1")


def check_metrics():
    text = output("metrics")
    lines = text.splitlines()
    expect("metrics end", lines[-1] == "# EOF")
    kinds, values = {}, {}
    sample = re.compile(r'^(\w+?)(_total)?(?:\{(\w+)="([^"\\]*)"\})? (\d+)$')
    current = None
    for line in lines[:-1]:
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split()
            expect(f"{current} has one type", current not in kinds)
            kinds[current] = kind
        elif line.startswith("# UNIT "):
            _, _, name, unit = line.split()
            expect(f"{name} ends in its unit", name == current and name.endswith("_" + unit))
        elif line.startswith("# HELP "):
            expect(f"{line} has words", line.split()[2] == current and len(line.split()) > 4)
        else:
            found = sample.match(line)
            expect(f"a sample: {line}", found)
            if found:
                name, total, _, label, value = found.groups()
                expect(f"{name} follows its type", name == current)
                expect(f"{name} is a counter or not", bool(total) == (kinds[name] == "counter"))
                values.setdefault(name, {})[label] = int(value)
    one = {name: rows[None] for name, rows in values.items() if None in rows}
    expect("metrics are in order", 0 < one["prairie_allocated_bytes"]
           <= one["prairie_active_bytes"] <= one["prairie_resident_bytes"]
           <= one["prairie_mapped_bytes"])
    expect("classes and large blocks add up", one["prairie_allocated_bytes"]
           == sum(values["prairie_class_allocated_bytes"].values())
           + one["prairie_large_allocated_bytes"])
    expect("locks have labels", set(values["prairie_lock_taken"]) == {"arenas", "runs", "meta"})


check_json()
check_letters()
with tempfile.TemporaryDirectory() as folder:
    check_profiler(folder)
check_destroyed()
check_text()
check_metrics()
print(f"{failures} failed")
sys.exit(1 if failures else 0)
