"""A Python on prairie: numbers that agree with what it does. SPDX-License-Identifier: MIT"""
import os
import sys

import prairie

assert __name__ == "__main__" and sys.argv == ["script.py", "one", "two"], sys.argv
assert prairie.is_serving()
before = prairie.stats()
held = [bytes(1000 + number) for number in range(10000)]
after = prairie.stats()
assert after["allocated"] - before["allocated"] > 10_000_000, (before, after)
assert after["threads"] >= 1 and after["mapped"] >= after["active"]

sums = prairie.jemalloc_stats()
assert sums["stats.allocated"] <= sums["stats.active"] <= sums["stats.resident"] <= sums["stats.mapped"], sums
assert prairie.metrics().rstrip().endswith("# EOF")
assert prairie.mallctl("opt.narenas") >= 1
assert prairie.mallctl("config.prof") is True
assert prairie.mallctl("arenas.bin.0.size") == 8
assert prairie.mallctl("version").endswith(prairie.version())
prairie.mallctl("arenas.dirty_decay_ms", 1234)
assert prairie.mallctl("arenas.dirty_decay_ms") == 1234
prairie.mallctl("arenas.dirty_decay_ms", -1)
assert prairie.mallctl("arenas.dirty_decay_ms") == -1
assert prairie.mallctl("opt.zero_realloc") == "free"
for signed in ("lg_prof_interval", "lg_san_uaf_align", "stats_interval", "experimental_hpa_max_purge_nhp"):
    assert prairie.mallctl("opt." + signed) == -1, signed
assert prairie.mallctl("opt.mutex_max_spin") == 600
assert prairie.mallctl("arena.0.name") == "auto_0"
prairie.mallctl("arena.0.name", "first")
assert prairie.mallctl("arena.0.name") == "first"
odd = os.fsdecode(b"first\xff")  # no text
prairie.mallctl("arena.0.name", odd)
assert prairie.mallctl("arena.0.name") == odd
try:
    prairie.mallctl("no.such.name")
    raise AssertionError
except OSError as error:
    assert error.filename == "no.such.name"

try:
    prairie.profile("unsampled.heap")
    raise AssertionError
except RuntimeError as error:
    assert "prof:true" in str(error), error

with prairie.memory() as used:
    kept = bytearray(5_000_000)
    for _ in range(10):
        bytearray(2_000_000)
assert used.allocated >= 25_000_000 and 5_000_000 <= used.kept < 6_000_000, vars(used)
assert 7_000_000 <= used.peak < 10_000_000, vars(used)
assert used.grown >= 5_000_000
assert repr(used).startswith(f"prairie.memory(allocated={used.allocated}, ") and f"peak={used.peak})" in repr(used), repr(used)
with prairie.memory() as outer:
    bytearray(8_000_000)
    with prairie.memory() as inner:
        bytearray(2_000_000)
assert 8_000_000 <= outer.peak < 9_000_000 and 2_000_000 <= inner.peak < 3_000_000, (vars(outer), vars(inner))
with prairie.memory() as outer:
    beneath = bytearray(3_000_000)
    with prairie.memory() as inner:
        bytearray(4_000_000)
    bytearray(1_000_000)
assert 7_000_000 <= outer.peak < 8_000_000 and 4_000_000 <= inner.peak < 5_000_000, (vars(outer), vars(inner))
del held, kept, beneath
assert prairie.purge() >= 0
