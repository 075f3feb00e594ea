"""The library in this process: the one that answers malloc, or the file that the package brings.

SPDX-License-Identifier: MIT
"""
import ctypes
import os


class NotServing(RuntimeError):
    """This process does not allocate from prairie."""

    def __init__(self):
        super().__init__("this process does not allocate from prairie: start it with `python -m prairie run`, or with "
                         "LD_PRELOAD=$(python -m prairie path)")


def library_path():
    """The file to preload."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libprairie.so")


def _serving():
    """The functions of whoever answers malloc here, if that is prairie; else None."""
    process = ctypes.CDLL(None)
    if not hasattr(process, "prairie_version"):
        return None
    process.prairie_version.restype = ctypes.c_char_p
    # Loaded after others, it would be there and answer nobody: is a block of malloc one of its own?
    process.malloc.restype = ctypes.c_void_p
    block = ctypes.c_void_p(process.malloc(ctypes.c_size_t(100)))
    arena, length = ctypes.c_uint(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_uint))
    error = process.mallctl(b"arenas.lookup", ctypes.byref(arena), ctypes.byref(length), ctypes.byref(block),
                            ctypes.c_size_t(ctypes.sizeof(block)))
    process.free(block)
    return process if error == 0 else None


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
