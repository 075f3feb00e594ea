"""Finds a program and says, before it runs, why a library cannot be preloaded into it."""
# SPDX-License-Identifier: MIT

import os
import shutil
import stat
import struct
from pathlib import Path

from measure import Trouble

PT_INTERP = 3
SCRIPT_DEPTH = 4   # a script's interpreter may be a script; the kernel follows as many


def find(name):
    """The file that the shell would run for `name`."""
    if "/" not in name:
        found = shutil.which(name)
        if found:
            return Path(found)
        for folder in os.get_exec_path():
            if (Path(folder) / name).is_file():
                raise Trouble(f"{Path(folder) / name}: not executable", 126)
        raise Trouble(f"{name}: no such program in PATH", 127)
    path = Path(name)
    if not path.exists():
        raise Trouble(f"{name}: no such program", 127)
    if path.is_dir() or not os.access(path, os.X_OK):
        raise Trouble(f"{name}: not an executable file", 126)
    return path


def require_preloadable(path, library):
    """Raises with the reason when the loader would not load `library` into the program `path`."""
    for _ in range(SCRIPT_DEPTH):
        with open(path, "rb") as file:
            head = file.read(1 << 16)
        if head[:2] != b"#!":
            break
        path = find(interpreter_of(head))
    require_same_rights(path)
    if head[:4] != b"\x7fELF":
        return   # the kernel, or a shell, decides what it is
    require_same_machine(path, head, library)
    interpreter = elf_interpreter(path, head)
    if interpreter is None:
        raise Trouble(f"{path} is a static program: it contains its own malloc, so that a library "
                      "cannot be preloaded; link it with libprairie.a instead")


def interpreter_of(head):
    words = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if not words:
        raise Trouble("the script's first line names no interpreter", 126)
    return words[0]


def require_same_rights(path):
    """The loader ignores LD_PRELOAD in a program that gains rights by being started."""
    status = os.stat(path)
    if status.st_mode & stat.S_ISUID and status.st_uid != os.getuid():
        raise Trouble(f"{path} is set-uid: the loader ignores LD_PRELOAD in it")
    if status.st_mode & stat.S_ISGID and status.st_gid not in (os.getgid(), *os.getgroups()):
        raise Trouble(f"{path} is set-gid: the loader ignores LD_PRELOAD in it")
    if os.getuid() != 0 and "security.capability" in os.listxattr(path):
        raise Trouble(f"{path} has file capabilities: the loader ignores LD_PRELOAD in it")


def require_same_machine(path, head, library):
    """Word size, byte order and machine are in bytes 4, 5 and 18 to 19 of an ELF file."""
    with open(library, "rb") as file:
        ours = file.read(20)
    if (head[4:6], head[18:20]) != (ours[4:6], ours[18:20]):
        bits = {1: "32-bit", 2: "64-bit"}.get(head[4], "strange")
        raise Trouble(f"{path} is a {bits} program for another machine than {library}")


def elf_interpreter(path, head):
    """The loader that a 64-bit ELF file asks for; None in a static one."""
    (table_offset,) = struct.unpack_from("<Q", head, 32)
    entry_bytes, entry_count = struct.unpack_from("<HH", head, 54)
    for index in range(entry_count):
        offset = table_offset + index * entry_bytes
        (kind,) = struct.unpack_from("<I", head, offset)
        if kind == PT_INTERP:
            start, = struct.unpack_from("<Q", head, offset + 8)
            length, = struct.unpack_from("<Q", head, offset + 32)
            with open(path, "rb") as file:
                file.seek(start)
                return file.read(length).rstrip(b"\0").decode("utf-8", "replace")
    return None
