"""peers.py - the allocators to compare with: those that are here, and which are not and why.

SPDX-License-Identifier: MIT
"""

import glob
import json
import os
import sys
from dataclasses import dataclass, field

from kit.part import ROOT

sys.path.insert(0, str(ROOT / "bench" / "peers"))
from recipes import RECIPES  # noqa: E402


@dataclass
class Allocator:
    name: str
    label: str
    path: str | None  # of the library to preload; None: the C library's own malloc
    env: dict = field(default_factory=dict)

    def environment(self, **more):
        """The environment of a program that runs on it, without settings of other allocators."""
        kept = {
            key: value
            for key, value in os.environ.items()
            if key not in ("LD_PRELOAD", "GLIBC_TUNABLES")
            and not key.startswith(("MALLOC_", "PRAIRIE_"))
        }
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
    built = _built()
    for recipe in RECIPES:
        allocator = built.get(recipe.name) or _installed(recipe)
        if allocator:
            found.append(allocator)
        else:
            hint = (
                f"package {recipe.origin} is not installed or was refused"
                if recipe.is_debian
                else "not built"
            )
            part.absent(
                recipe.title if not recipe.is_debian else recipe.origin, f"{hint}; see make peers"
            )
    return found


def _built():
    try:
        with open(ROOT / "build" / "peers" / "peers.json", encoding="utf-8") as file:
            rows = json.load(file)
    except OSError:
        return {}
    return {
        row["name"]: Allocator(
            row["name"], row["label"], str(ROOT / row["path"]), row.get("env", {})
        )
        for row in rows
        if (ROOT / row["path"]).exists()
    }


def _installed(recipe):
    """Debian's, where nobody ran make peers. Those that were proved unfit there stay out."""
    proof = ROOT / "build" / "peers" / recipe.name / "proof.log"
    if not recipe.is_debian or recipe.is_optional or proof.exists():
        return None
    places = sorted(glob.glob(f"/usr/lib/*/{recipe.product}"))
    return Allocator(recipe.name, f"{recipe.title} (Debian)", places[0]) if places else None


def _libc_version():
    return os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
