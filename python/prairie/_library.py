"""The library in this process: the one that answers malloc, or the file that the package brings.

SPDX-License-Identifier: MIT
"""
import ctypes
import os


class NotServing(RuntimeError):
    """This process does not allocate from prairie."""

    def __init__(self):
        super().__init__("this process does not allocate from prairie: start it with `python -m prairie run`, or with "
                         "LD_PRELOAD=$(python -m prairie path) PYTHONMALLOC=malloc")


def library_path():
    """The file to preload."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libprairie.so")


class _Place(ctypes.Structure):
    """What dladdr tells of an address."""
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def _own_names(process):
    """prairie's functions, whoever else in this process has such names; the process's where it is linked with prairie."""
    place = _Place()
    if not process.dladdr(ctypes.cast(process.prairie_version, ctypes.c_void_p), ctypes.byref(place)):
        return process
    try:
        return ctypes.CDLL(os.fsdecode(place.file))
    except OSError:
        return process


def _serving():
    """The functions of whoever answers malloc here, if that is prairie; else None."""
    process = ctypes.CDLL(None)
    if not hasattr(process, "prairie_version"):
        return None
    prairie = _own_names(process)
    prairie.prairie_version.restype = ctypes.c_char_p
    # Loaded after others, it would be there and answer nobody: is a block of malloc one of its own?
    process.malloc.restype = ctypes.c_void_p
    block = ctypes.c_void_p(process.malloc(ctypes.c_size_t(100)))
    arena, length = ctypes.c_uint(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_uint))
    error = prairie.mallctl(b"arenas.lookup", ctypes.byref(arena), ctypes.byref(length), ctypes.byref(block),
                            ctypes.c_size_t(ctypes.sizeof(block)))
    process.free(block)
    return prairie if error == 0 else None


_process = _serving()


def is_serving():
    """Does malloc of this process come from prairie?"""
    return _process is not None


def library():
    """The functions of the library that serves this process."""
    if _process is None:
        raise NotServing()
    return _process


def version():
    """That of the library which serves this process, or which the package brings."""
    if _process is not None:
        return _process.prairie_version().decode()
    with open(library_path() + ".version", encoding="ascii") as file:
        return file.read().strip()
