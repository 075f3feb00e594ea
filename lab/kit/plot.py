"""plot.py - pictures in one style: small SVG files that come out the same from the same figures.

    with plot.figure(part, "lease", width=7) as axes:
        axes.plot(...)

SPDX-License-Identifier: MIT
"""

import contextlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot  # noqa: E402

# Told apart also without colours, by their lightness.
COLOURS = ["#0b5d1e", "#c1440e", "#2b6cb0", "#7b3fa0", "#b58900", "#555555", "#d96ba0", "#1aa6a6"]
MARKERS = ["o", "s", "^", "D", "v", "x", "P", "*"]

matplotlib.rcParams.update({
    "svg.hashsalt": "prairie",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
})


@contextlib.contextmanager
def figure(part, name, width=6.4, height=3.6, panels=1):
    """Axes to draw on, or a list of them when there are several panels; written at the end."""
    picture, axes = matplotlib.pyplot.subplots(1, panels, figsize=(width, height), squeeze=False)
    yield axes[0][0] if panels == 1 else list(axes[0])
    picture.tight_layout()
    picture.savefig(part.picture(name), metadata={"Date": None, "Creator": None})
    matplotlib.pyplot.close(picture)
