"""The prairie memory allocator under a Python program, and what it says of itself.

    python -m prairie run script.py         the script, with every object from prairie

    import prairie
    prairie.stats()["allocated"]            bytes that the program holds
    with prairie.memory() as used: ...      used.allocated, used.peak, used.kept
    prairie.profile("heap.prof")            who holds it, for jeprof and pprof

SPDX-License-Identifier: MIT
"""
from ._library import NotServing, is_serving, library_path, version
from ._heap import jemalloc_stats, mallctl, memory, metrics, profile, profile_on, purge, stats

__all__ = ["NotServing", "is_serving", "jemalloc_stats", "library_path", "mallctl", "memory", "metrics", "profile",
           "profile_on", "purge", "stats", "version"]
