# present.py - which peers are here: built and proved by dev/peers, or installed by Debian.
# SPDX-License-Identifier: MIT
"""For the lab and dev/micro; prairie compare reads build/peers/peers.json itself."""
import glob
import json
from dataclasses import dataclass, field
from pathlib import Path

from recipes import RECIPES

PEERS = Path(__file__).resolve().parents[2] / "build" / "peers"


@dataclass
class Peer:
    name: str                 # of the recipe
    label: str
    path: str                 # of the library to preload
    env: dict = field(default_factory=dict)     # without these it is not what it says


def peers(with_unproved=False):
    """Each recipe with its Peer, or with the reason why there is none.

    Where nobody ran dev/peers, Debian's take part; with_unproved: the optional ones, too.
    """
    built = _built()
    for recipe in RECIPES:
        peer = built.get(recipe.name)
        if peer is None and recipe.is_debian and (with_unproved or not recipe.is_optional):
            peer = _installed(recipe)
        yield recipe, peer or _reason(recipe)


def _built():
    try:
        rows = json.loads((PEERS / "peers.json").read_text(encoding="utf-8"))
    except OSError:
        return {}
    root = PEERS.parents[1]
    found = (Peer(row["name"], row["label"], str(root / row["path"]), row.get("env", {}))
             for row in rows)
    return {peer.name: peer for peer in found if Path(peer.path).exists()}


def _was_refused(recipe):
    """A proof was tried, and dev/peers kept no record of the peer: it keeps those that pass."""
    folder = PEERS / recipe.name
    return (folder / "proof.log").exists() and not (folder / "record.json").exists()


def _installed(recipe):
    folders = ("/usr/lib", "/usr/lib/*", "/usr/lib64")
    places = [] if _was_refused(recipe) else [
        path for folder in folders for path in sorted(glob.glob(f"{folder}/{recipe.product}"))]
    if not places:
        return None
    return Peer(recipe.name, recipe.title.removesuffix(" (Debian)") + " (Debian)", places[0])


def _reason(recipe):
    if not recipe.is_debian:
        return "not built; see make peers"
    if _was_refused(recipe):
        return f"refused, build/peers/{recipe.name}/proof.log says why"
    return f"package {recipe.origin} is not installed; see make peers"
