"""How figures for print look: their widths, type, text and legend, and the same bytes for the same figure.

Lines and marks are sized by matplotlib's own settings, so that `paper`, `slide` or a notebook's style
holds.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterable
from typing import Any

from isoscope.errors import IsoscopeError
from isoscope.show.charts import NULL
from isoscope.show.colours import INK, SOFT

WIDTHS = {"single": 3.3, "double": 6.9}  # inches of a figure: one column of a paper, and its page
STYLES = ("paper", "slide")
KINDS = ("pdf", "svg", "png")
MOST_KEYS = 16
_MOST_LETTERS = 34
_TYPE = {"paper": 7.5, "slide": 11.0}  # points
_DOTS = 300  # an inch of a PNG
_LETTER = 0.52  # of the size of type: the width of a letter, on average
_MARK = 4.2  # sizes of type that the mark of a key and its room take
_LINE = 1.55  # sizes of type that a line of the key takes


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
        "ytick.color": ink, "figure.facecolor": "white", "axes.facecolor": "white", "savefig.dpi": _DOTS,
        "svg.fonttype": "none", "pdf.fonttype": 42,  # text stays text
        "svg.hashsalt": "isoscope",  # the same figure, the same file
    }  # fmt: skip


def saved(figure: Any, kind: str) -> bytes:
    """The bytes of a figure; the same for the same figure. Letters that the type has not are boxes."""
    body = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": None}[kind]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        figure.draw_without_rendering()
        # the solver of the layout differs in last bits between calls, and ids in an SVG are hashes of places
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position([round(float(side), 5) for side in axes.get_position(original=True).bounds])
        figure.savefig(body, format=kind, metadata=metadata)
    return body.getvalue()


def plain(text: str, most: int = _MOST_LETTERS) -> str:
    r"""A name as a figure can show it, in one line, at most so many letters, its end kept.

    >>> plain("a$b_c$"), plain("_hidden"), plain("organisation/model-of-a-very-long-name", 20)
    ('a\\$b_c\\$', ' _hidden', '…of-a-very-long-name')
    """
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip() or "–"
    line = line if len(line) <= most else f"…{line[-most + 1 :]}"
    return (" " if line.startswith("_") else "") + line.replace("$", r"\$")


def folded(text: str, letters: int) -> str:
    """Words in lines of at most so many letters, as a title or the name of an axis takes them."""
    lines = text.split("\n")
    return "\n".join(textwrap.fill(plain(x, 4 * letters), letters) if x.strip() else "" for x in lines)


def pen(part: float = 1.0) -> float:
    """The width of a line, as a part of the usual one."""
    import matplotlib as mpl

    return float(mpl.rcParams["lines.linewidth"]) * part


def dot(part: float = 1.0) -> float:
    """The size of a mark, as a part of the usual one."""
    import matplotlib as mpl

    return float(mpl.rcParams["lines.markersize"]) * part


def small(part: float = 0.8) -> float:
    """The size of type, as a part of the usual one."""
    import matplotlib as mpl

    return float(mpl.rcParams["font.size"]) * part


def keys_of(axes: Iterable[Any]) -> dict[str, Any]:
    """The marks of a legend of these axes by name; of very many the first, and how many more."""
    from matplotlib.lines import Line2D

    found: dict[str, Any] = {}
    for axis in axes:
        for mark, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(str(name), mark)
    if NULL in found:  # last, whatever was drawn first
        found[NULL] = found.pop(NULL)
    if len(found) > MOST_KEYS:
        more = len(found) - MOST_KEYS + 1
        found = dict(list(found.items())[: MOST_KEYS - 1])
        found[f"and {more} more"] = Line2D([], [], lw=0)
    return found


def legend_below(figure: Any, axes: Iterable[Any], inches: float) -> float:
    """One key for all of these axes, under them; gives its height. None where there is one name only."""
    keys, size = keys_of(axes), small(1.0) / 72
    if len(keys) < 2:
        return 0.0
    columns = max(1, min(len(keys), int(inches / (size * (_MARK + _LETTER * max(map(len, keys)))))))
    marks = list(keys.values()), list(keys)
    figure.legend(*marks, loc="outside lower center", ncols=columns, frameon=False)
    return -(-len(keys) // columns) * _LINE * size + 0.1


def no_matplotlib() -> IsoscopeError:
    """What is said where it is not installed."""
    return IsoscopeError("matplotlib is not installed, and figures take it: `pip install matplotlib`.")
