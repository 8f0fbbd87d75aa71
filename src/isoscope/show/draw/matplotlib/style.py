"""How figures for print look: their widths, type, text and legend, and the same bytes for the same figure.

Lines and marks are sized by matplotlib's own settings, so that `paper`, `slide` or a notebook's style
holds.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from isoscope.show.colours import INK, SOFT

_MOST_LETTERS = 34
_TYPE = {"paper": 7.5, "slide": 11.0}  # points


def style(name: str = "paper") -> Any:
    """The settings of matplotlib for a style, for `matplotlib.rc_context`."""
    size = _TYPE[name]
    pen = size / _TYPE["paper"]
    line, tick, ink = 0.6 * pen, 2.5 * pen, INK[0]
    return {
        "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"],  # it comes with matplotlib
        "font.size": size, "axes.labelsize": size, "legend.fontsize": size, "axes.titlesize": 1.1 * size,
        "xtick.labelsize": 0.93 * size, "ytick.labelsize": 0.93 * size,
        "lines.linewidth": 1.1 * pen, "lines.markersize": 2.8 * pen, "axes.linewidth": line,
        "xtick.major.width": line, "ytick.major.width": line, "xtick.major.size": tick,
        "ytick.major.size": tick, "axes.spines.top": False, "axes.spines.right": False,
        "axes.edgecolor": SOFT[0], "axes.labelcolor": ink, "text.color": ink, "xtick.color": ink,
        "ytick.color": ink, "figure.facecolor": "white", "axes.facecolor": "white", "savefig.dpi": 300,
        "svg.fonttype": "none", "pdf.fonttype": 42,  # text stays text
        "svg.hashsalt": "isoscope",  # the same figure, the same file
    }  # fmt: skip


def plain(text: str, most: int = _MOST_LETTERS) -> str:
    """A name as a figure can show it, in one line, at most so many letters, its end kept."""
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip() or "–"
    line = line if len(line) <= most else f"…{line[-most + 1 :]}"
    return (" " if line.startswith("_") else "") + line.replace("$", r"\$")


def folded(text: str, letters: int) -> str:
    """Words in lines of at most so many letters, as a title or the name of an axis takes them."""
    lines = text.split("\n")
    return "\n".join(textwrap.fill(plain(x, 4 * letters), letters) if x.strip() else "" for x in lines)


def pen(part: float = 1.0) -> float:
    """The width of a line, as a part of the usual one."""
    return _usual("lines.linewidth", part)


def dot(part: float = 1.0) -> float:
    """The size of a mark, as a part of the usual one."""
    return _usual("lines.markersize", part)


def small(part: float = 0.8) -> float:
    """The size of type, as a part of the usual one."""
    return _usual("font.size", part)


def _usual(setting: Any, part: float) -> float:
    import matplotlib as mpl

    return float(mpl.rcParams[setting]) * part
