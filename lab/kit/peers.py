"""peers.py - the allocators to compare with: those that are here, and which are not and why.

SPDX-License-Identifier: MIT
"""

import os
import sys
from dataclasses import dataclass, field

from kit.part import ROOT

sys.path.insert(0, str(ROOT / "bench" / "peers"))
from present import Peer, peers  # noqa: E402
from recipes import without_settings  # noqa: E402


@dataclass
class Allocator:
    name: str
    label: str
    path: str | None  # of the library to preload; None: the C library's own malloc
    env: dict = field(default_factory=dict)

    def environment(self, **more):
        """The environment of a program that runs on it, without settings of other allocators."""
        kept = without_settings(os.environ)
        kept.update(self.env, **more)
        if self.path:
            kept["LD_PRELOAD"] = self.path
        return kept

    def variant(self, name, label, **env):
        return Allocator(name, label, self.path, {**self.env, **env})


def allocators(part):
    """Prairie, the C library, and every peer that is here; the others are named as absent."""
    library = ROOT / "build" / "libprairie.so"
    if not library.exists():
        sys.exit(f"lab {part.name}: {library} is not there; make builds it")
    found = [
        Allocator("prairie", "prairie", str(library)),
        Allocator("glibc", "C library " + _libc_version(), None),
    ]
    for recipe, here in peers():
        if isinstance(here, Peer):
            found.append(Allocator(here.name, here.label, here.path, here.env))
        else:
            part.absent(recipe.title if not recipe.is_debian else recipe.origin, here)
    return found


def _libc_version():
    return os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
