"""What the heap of this process says, and what it can be told.

Names and types are those of the control tree, which are jemalloc's: exporters that know them need nothing else.
SPDX-License-Identifier: MIT
"""
import ctypes
import errno
import os
import signal
import threading

from ._library import library

# Kinds of values by how many bytes they have are not enough: who asks says what it is.
KINDS = {bool: ctypes.c_bool, int: ctypes.c_size_t, str: ctypes.c_char_p}
# Those of other widths than size_t, by the ends of their names.
UINT64 = ("epoch", "thread.allocated", "thread.deallocated", "thread.peak.read", "uptime", "nmalloc", "ndalloc",
          "nfills", "nflushes", "nslabs", "npurge", "nmadvise", "purged", "num_ops", "num_wait", "num_spin_acq",
          "total_wait_time", "max_wait_time", "num_runs", "run_interval", "nrequests")
TEXTS = ("version", "malloc_conf", ".dss", ".thp", "prof_prefix", "prof.prefix", "thread.prof.name", "stats_print_opts",
         "stats_interval_opts", "opt.zero_realloc", "opt.junk", "opt.metadata_thp", "opt.percpu_arena",
         "opt.hpa_hugify_style", "opt.prof_time_resolution")
SSIZE = ("decay_ms", "opt.lg_prof_interval", "opt.lg_san_uaf_align", "opt.lg_tcache_nslots_mul",
         "opt.prof_recent_alloc_max", "opt.experimental_hpa_max_purge_nhp")
INT64 = ("opt.stats_interval", "opt.mutex_max_spin")
ARENA_NAME_BYTES = 64  # the library writes 32 at most
UINT32 = ("narenas", "nbins", "nhbins", "nlextents", "nregs", "nshards", "nthreads", "thread.arena", "max_num_thds")


class Stats(ctypes.Structure):
    """struct prairie_stats of prairie.h."""
    _fields_ = ([(name, ctypes.c_size_t) for name in (
        "struct_bytes", "allocated", "active", "cached", "dirty", "clean", "metadata", "mapped", "large_allocated")]
        + [(name, ctypes.c_uint64) for name in (
            "large_count", "purged", "purges", "refills", "overflows", "slab_fills", "slab_drains", "depot_trades",
            "run_leases", "run_returns", "arena_hops", "lock_acquired", "lock_contended", "lock_waits")]
        + [("arenas", ctypes.c_uint), ("threads", ctypes.c_uint)]
        + [(name, ctypes.c_size_t) for name in ("reserve_cur", "reserve_min")]
        + [(name, ctypes.c_uint64) for name in (
            "reserve_uses", "reserve_refills", "events_low", "events_crit", "event_calls")])


def stats():
    """The numbers of now, as a dictionary; sizes in bytes."""
    read = Stats(struct_bytes=ctypes.sizeof(Stats))
    function = library().prairie_stats_read
    function.restype = ctypes.c_bool
    if not function(ctypes.byref(read)):
        raise RuntimeError("the package and the library that serves this process are of different releases")
    return {name: getattr(read, name) for name, _ in Stats._fields_ if name != "struct_bytes"}


def _kind_of(name, value):
    if value is not None and not isinstance(value, int):
        return KINDS[type(value)]
    if isinstance(value, bool):
        return ctypes.c_bool
    if name.endswith(TEXTS) or name.startswith("opt.malloc_conf."):
        return ctypes.c_char_p
    if name.endswith(UINT64):
        return ctypes.c_uint64
    if name.endswith(UINT32):
        return ctypes.c_uint
    if name.endswith(SSIZE):
        return ctypes.c_ssize_t
    if name.endswith(INT64):
        return ctypes.c_int64
    return ctypes.c_size_t


def _call(name, old, new):
    function = library().mallctl
    function.restype = ctypes.c_int
    length = ctypes.c_size_t(ctypes.sizeof(old) if old is not None else 0)
    error = function(name.encode(), None if old is None else ctypes.byref(old),
                     None if old is None else ctypes.byref(length), None if new is None else ctypes.byref(new),
                     ctypes.c_size_t(0 if new is None else ctypes.sizeof(new)))
    if error != 0:
        raise OSError(error, os.strerror(error), name)
    return length.value


def _name_of_arena(name):
    """The library writes it where the pointer that it gets leads."""
    text = ctypes.create_string_buffer(ARENA_NAME_BYTES)
    _call(name, ctypes.c_void_p(ctypes.addressof(text)), None)
    return os.fsdecode(text.value)


_ABSENT = object()


def mallctl(name, value=_ABSENT, kind=None):
    """Reads a name of the control tree, or writes `value`, None being nothing at all, as for `arena.0.purge`.

    `kind` is a type of ctypes, where the name does not tell.
    """
    if value is None:
        return _call(name, None, None)
    if value is not _ABSENT:
        if isinstance(value, str):
            value = os.fsencode(value)  # paths need not be text
        if isinstance(value, bytes):
            return _call(name, None, ctypes.c_char_p(value))
        return _call(name, None, (kind or _kind_of(name, value))(value))
    if name.startswith("arena.") and name.endswith(".name"):
        return _name_of_arena(name)
    for each in (kind,) if kind else (_kind_of(name, None), ctypes.c_bool, ctypes.c_uint, ctypes.c_uint64):
        old = each()
        try:
            _call(name, old, None)
            return os.fsdecode(old.value) if isinstance(old.value, bytes) else old.value
        except OSError as error:
            if error.errno != errno.EINVAL:  # it has another length
                raise
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name)


def jemalloc_stats():
    """The six sums that jemalloc's exporters show, under jemalloc's names, from one moment."""
    _call("epoch", None, ctypes.c_uint64(1))
    return {name: mallctl(name) for name in ("stats.allocated", "stats.active", "stats.metadata", "stats.resident",
                                             "stats.mapped", "stats.retained")}


def metrics():
    """The numbers of now as OpenMetrics text, which Prometheus reads."""
    pieces = []
    write = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(lambda _, text: pieces.append(text))
    function = library().prairie_stats_metrics
    function.restype = ctypes.c_bool
    if not function(write, None):
        raise MemoryError
    return b"".join(pieces).decode()


def purge():
    """Gives free memory back to the kernel now. Returns bytes given back."""
    function = library().prairie_purge
    function.restype = ctypes.c_size_t
    return function()


class _Blocks(threading.local):
    """Blocks of code that a thread is in, with what it held at their beginnings, and when its peak was last forgotten."""

    def __init__(self):
        self.open, self.held = [], 0


_blocks = _Blocks()


def _note_peak():
    """For all of them: an inner one makes the library forget it."""
    if _blocks.open:
        most = _blocks.held + mallctl("thread.peak.read")
        for block, held in _blocks.open:
            block.peak = max(block.peak, most - held)


class memory:  # pylint: disable=invalid-name
    """What this thread takes and gives back in a block of code.

    `allocated` and `deallocated` are sums of bytes, `kept` their difference, `peak` the most that it held at once beyond
    what it held at the beginning; `grown` is what all of the process holds more than before. Blocks may be within others.
    """

    def __enter__(self):
        self._held = stats()["allocated"]
        _note_peak()
        mallctl("thread.peak.reset", None)
        self._taken, self._given = mallctl("thread.allocated"), mallctl("thread.deallocated")
        self.peak, _blocks.held = 0, self._taken - self._given
        _blocks.open.append((self, _blocks.held))
        return self

    def __exit__(self, *failure):
        taken, given = mallctl("thread.allocated"), mallctl("thread.deallocated")
        _note_peak()
        _blocks.open = [(block, held) for block, held in _blocks.open if block is not self]
        self.allocated, self.deallocated = taken - self._taken, given - self._given
        self.kept = self.allocated - self.deallocated
        self.grown = stats()["allocated"] - self._held
        return False

    def __repr__(self):
        known = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return f"prairie.memory({', '.join(f'{name}={value}' for name, value in sorted(known.items()))})"


def profile(file):
    """Writes who holds memory now, as far as it was sampled: the process must have begun with `prof:true`, as with
    `python -m prairie run --profile`."""
    try:
        mallctl("prof.dump", os.fsencode(file))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise RuntimeError("this process takes no samples: start it with `python -m prairie run --profile PREFIX`, or "
                               "with prof:true in MALLOC_CONF") from None
        raise OSError(error.errno, "the profile was not written", os.fspath(file)) from None


def profile_on(number=signal.SIGUSR2, prefix="prairie"):
    """From now on the signal writes PREFIX.PID.N.heap: a profile of the running interpreter, as often as one likes.
    One that cannot be written is told on the standard error, and the program goes on."""
    count = 0

    def write(_number, _frame):
        nonlocal count
        try:
            profile(f"{prefix}.{os.getpid()}.{count}.heap")
            count += 1
        except (OSError, RuntimeError) as error:
            # Not by sys.stderr, in which the signal may have come.
            os.write(2, f"prairie: {error}\n".encode(errors="replace"))

    signal.signal(number, write)
