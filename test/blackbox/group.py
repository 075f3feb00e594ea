# group.py - a control group of our own, with a limit of memory, below the one we run in.
# SPDX-License-Identifier: MIT
"""Group(bytes) makes one, or raises NoGroup with the reason; leave it with close().

Both versions of control groups will do. The group is a child of the process's own one, so whatever
is allowed to us stays so for it.
"""
import os
from pathlib import Path

TREE = Path("/sys/fs/cgroup")


class NoGroup(Exception):
    """This machine or this container lets us make no group."""


def own_folder():
    """The folder of our own memory group, and the file that limits a group there."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return TREE / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
    for number, _, path in lines:
        if number == "0":
            return TREE / path.lstrip("/"), "memory.max"
    raise NoGroup("/proc/self/cgroup names no group")


class Group:
    def __init__(self, limit_bytes):
        try:
            own, limit = own_folder()
            self.folder = own / f"prairie-test-{os.getpid()}"
            self.folder.mkdir()
        except OSError as error:
            raise NoGroup(f"no group can be made: {error}") from error
        try:
            if not (self.folder / limit).exists():
                raise NoGroup(f"{own} does not hand its memory controller on")
            (self.folder / limit).write_text(str(limit_bytes))
            for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
                if (self.folder / swap).exists():
                    value = limit_bytes if "memsw" in swap else 0
                    (self.folder / swap).write_text(str(value))
        except OSError as error:
            self.close()
            raise NoGroup(f"the limit cannot be set: {error}") from error
        except NoGroup:
            self.close()
            raise

    def enter(self):
        """For a child that has just been forked: moves it in."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        self.folder.rmdir()
