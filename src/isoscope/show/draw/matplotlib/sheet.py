"""Panels put together to a figure of a given width, with one key under all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.charts import draw
from isoscope.show.draw.matplotlib.style import (
    FORMATS,
    KINDS,
    STYLES,
    WIDTHS,
    folded,
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

Panel = Callable[[], Chart]
"""Makes the chart of a panel when it is drawn: a run has hundreds of figures, of which few are asked for."""

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
            chart = panel()
            draw(ax, chart)
            ax.spines[["top", "right"]].set_visible(False)
            if shape.lifted and not chart.title and chart.up.name:  # level, it is read without turning
                chart = replace(chart, title=chart.up.name)
                ax.set_ylabel("")
            _set_title(ax, chart.title, WIDTHS[width] / across)
        for ax in axes[:, 1:].flat if shape.aligned else ():
            ax.tick_params(labelleft=False)
        for ax in list(axes.flat)[len(shown) :]:
            ax.set_axis_off()
        height = lines * shape.height * (_TALLER if slide else 1.0)
        keys = keys_of(axes.flat) if shape.keyed else {}
        if len(keys) > 1:
            legend_below(figure, axes.flat)
            height += lines_of_keys(list(keys), WIDTHS[width])[1] * _KEY * small(1.0) / 72 + 0.1
        figure.set_size_inches(WIDTHS[width], height)
        return figure


def _set_title(ax: Any, title: str, inches: float) -> None:
    """Write a title in lines that are no wider than its panel."""
    letters = int(_FULL * inches / (small(1.0) / 72 * _LETTER))
    ax.set_title(folded(title, letters), loc="left", fontsize=small(1.0))


def printed(
    rows: Sequence[Sequence[Chart | None]],
    size: tuple[float, float],
    *,
    heights: Sequence[float] = (),
    more: tuple[float, float] = (0.0, 0.3),
    below: str = "",
    kinds: Sequence[str] = FORMATS,
) -> dict[str, bytes]:
    """A sheet of charts in rows, in every format by suffix; empty where there is nothing to draw.

    `size` is that of a panel in inches, `heights` those of the rows where they differ, and `more` the room of
    the names and the key. `below` is written under all panels.
    """
    if not any(chart for row in rows for chart in row):
        return {}
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns, heights = max(map(len, rows)), heights or [size[1]] * len(rows)
    with mpl.rc_context(style()):
        inches = size[0] * columns + more[0], sum(heights) + more[1]
        figure = Figure(figsize=inches, layout="constrained")
        axes: Any = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
        for line, row in zip(axes, rows, strict=True):
            for at, ax in enumerate(line):
                chart = row[at] if at < len(row) else None
                if chart is None:
                    ax.set_axis_off()
                else:
                    draw(ax, chart)
                    _set_title(ax, chart.title, size[0])
        legend_below(figure, axes.flat)
        if below:
            figure.supxlabel(below, fontsize=small(1.0))
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once for all formats
        return {kind: saved(figure, kind) for kind in kinds}


def in_rows(charts: Sequence[Chart], across: int) -> list[Sequence[Chart]]:
    """The charts in rows of at most this many."""
    return [charts[at : at + across] for at in range(0, len(charts), across)]


def shown(chart: Chart, ax: Any = None, *, legend: bool = True) -> Any:
    """Draw a chart on these axes, or on those of a new figure, with its key beside them; give the axes."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as missing:
            raise no_matplotlib() from missing
        ax = pyplot.subplots(layout="constrained")[1]
    draw(ax, chart)
    ax.spines[["top", "right"]].set_visible(False)
    keys = keys_of([ax]) if legend else {}
    if len(keys) > 1:
        marks = list(keys.values()), list(keys)
        ax.legend(*marks, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0)
    return ax
