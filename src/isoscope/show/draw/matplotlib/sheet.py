"""Panels put together to a figure of a given width, with one key under all of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.show.draw.matplotlib.style import (
    KINDS,
    STYLES,
    WIDTHS,
    keys_of,
    legend_below,
    lines_of_keys,
    no_matplotlib,
    saved,
    small,
    style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Panel = Callable[[Any], object]
"""Draws on the axes that it is given."""

_TALLER = 1.3  # panels of a slide, whose type is larger
_KEY = 1.55  # sizes of type that a line of the key takes
_FULL = 0.9  # of a panel's width that a title may take
_LETTER = 0.56  # of the size of type: the width of a letter, on average


@dataclass(frozen=True)
class Shape:
    """How many panels stand side by side in either width and how many there are at most, and their height."""

    single: int = 1
    double: int = 3
    most_single: int = 3
    most_double: int = 6
    height: float = 1.6
    keyed: bool = True
    lifted: bool = True
    """Whether what the upright axis is called stands over it, where it can be read without turning."""
    aligned: bool = False
    """Whether all panels have the same lines, so that only the first of a row names them."""


@dataclass(frozen=True)
class Offered:
    """A figure that a run has: what it is called, one line on it, and its panels, the first first.

    `alone` where it shows one measure and is called by its name.
    """

    name: str
    says: str
    panels: Sequence[Panel]
    shape: Shape = Shape()
    alone: bool = False

    def draw(self, width: str = "single", look: str = "paper") -> Figure:
        """The figure in this width; a narrow one has the first panels only."""
        if width not in WIDTHS:
            raise unknown_name("width", width, WIDTHS)
        if look not in STYLES:
            raise unknown_name("style", look, STYLES)
        try:
            import matplotlib as mpl
        except ImportError as missing:
            raise no_matplotlib() from missing
        with mpl.rc_context(style(look)):
            return self._draw(width, slide=look == "slide")

    def bytes(self, kind: str = "pdf", width: str = "single", look: str = "paper") -> bytes:
        """The figure as a file holds it: pdf, svg or png; the same bytes each time."""
        if kind not in KINDS:
            raise unknown_name("format", kind, KINDS)
        figure = self.draw(width, look)
        import matplotlib as mpl

        with mpl.rc_context(style(look)):
            return saved(figure, kind)

    def _draw(self, width: str, *, slide: bool) -> Figure:
        from matplotlib.figure import Figure

        shape, wide = self.shape, width == "double"
        across = shape.double if wide else shape.single
        across = max(1, across - 1) if slide and across > 1 and across < shape.most_double else across
        shown = list(self.panels)[: shape.most_double if wide else shape.most_single]
        if not shown:
            raise IsoscopeError(f"there is nothing to draw in {self.name}.")
        across = {(3, 4): 2, (2, 3): 3}.get((across, len(shown)), min(across, len(shown)))
        lines = -(-len(shown) // across)
        figure = Figure(figsize=(WIDTHS[width], 1.0), layout="constrained")
        axes: Any = figure.subplots(lines, across, squeeze=False)
        for panel, ax in zip(shown, axes.flat, strict=False):
            panel(ax)
            if shape.lifted:
                _lift(ax)
            _fold_title(ax, WIDTHS[width] / across)
        for ax in axes[:, 1:].flat if shape.aligned else ():
            ax.set_yticklabels([])
        for ax in list(axes.flat)[len(shown) :]:
            ax.set_axis_off()
        height = lines * shape.height * (_TALLER if slide else 1.0)
        keys = keys_of(axes.flat) if shape.keyed else {}
        if len(keys) > 1:
            legend_below(figure, axes.flat)
            height += lines_of_keys(list(keys), WIDTHS[width])[1] * _KEY * small(1.0) / 72 + 0.1
        figure.set_size_inches(WIDTHS[width], height)
        return figure


def _lift(ax: Any) -> None:
    """Put the name of the upright axis over it, level, where there is no title."""
    name = ax.get_ylabel().replace("\n", " ")
    if name and not ax.get_title(loc="left"):
        ax.set_title(name, loc="left")
        ax.set_ylabel("")


def _fold_title(ax: Any, inches: float) -> None:
    """A title in lines that are no wider than its panel."""
    letters = int(_FULL * inches / (small(1.0) / 72 * _LETTER))
    lines = ax.get_title(loc="left").split("\n")
    whole = "\n".join(textwrap.fill(line, letters) for line in lines)
    ax.set_title(whole, loc="left", fontsize=small(1.0))
