"""Charts put together to a figure of a given width, with one key under all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.charts import draw
from isoscope.show.draw.matplotlib.style import (
    KINDS,
    STYLES,
    WIDTHS,
    folded,
    keys_of,
    legend_below,
    no_matplotlib,
    saved,
    small,
    style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 3  # lines of panels that a figure has at most
_SIDES, _TALL = (
    300,
    400,
)  # pixels on the page of the largest panel of which four, or three, stand side by side
_INCHES = 0.5, 1 / 220  # of a line: whatever its panels, and per pixel of the highest of them on the page
_LOWEST, _HIGHEST = 1.2, 3.0
_TALLER = 1.3  # panels of a slide, whose type is larger
_FULL = 0.9  # of a panel's width that a title may take
_LETTER = 0.56  # of the size of type: the width of a letter, on average


@dataclass(frozen=True)
class Offered:
    """A figure of a run: its name, one line on it, and its charts, the first first.

    `alone` where it shows one measure and is called by its name. A `grid` has so many columns in either
    width.
    """

    name: str
    says: str
    charts: Sequence[Chart]
    alone: bool = False
    grid: int = 0

    def draw(self, width: str = "single", look: str = "paper") -> Figure:
        """The figure in this width; a narrow one has the first panels only."""
        for what, asked, names in (("width", width, WIDTHS), ("style", look, STYLES)):
            if asked not in names:
                raise unknown_name(what, asked, names)
        if not self.charts:
            raise IsoscopeError(f"there is nothing to draw in {self.name}.")
        try:
            import matplotlib as mpl
        except ImportError as missing:
            raise no_matplotlib() from missing
        with mpl.rc_context(style(look)):
            return self._draw(WIDTHS[width], wide=width == "double", slide=look == "slide")

    def bytes(self, kind: str = "pdf", width: str = "single", look: str = "paper") -> bytes:
        """The figure as a file holds it: pdf, svg or png; the same bytes each time."""
        if kind not in KINDS:
            raise unknown_name("format", kind, KINDS)
        figure = self.draw(width, look)
        import matplotlib as mpl

        with mpl.rc_context(style(look)):
            return saved(figure, kind)

    def _across(self, *, wide: bool, slide: bool) -> int:
        """How many panels stand side by side."""
        tallest = max(chart.height for chart in self.charts)
        square = all(chart.equal for chart in self.charts) and tallest <= _SIDES
        across = 4 if square else 2 if tallest > _TALL else 3
        across = across - slide if wide else across // 2
        even = 2 if (across, len(self.charts)) == (3, 4) else across  # and not three above one
        return self.grid or min(even, len(self.charts))

    def _draw(self, inches: float, *, wide: bool, slide: bool) -> Figure:
        from matplotlib.figure import Figure

        across = self._across(wide=wide, slide=slide)
        shown = self.charts if self.grid else self.charts[: MOST_LINES * across]
        lines = [shown[at : at + across] for at in range(0, len(shown), across)]
        heights = [max(map(_height, line)) * (_TALLER if slide else 1.0) for line in lines]
        figure = Figure(figsize=(inches, 1.0), layout="constrained")
        axes: Any = figure.subplots(len(lines), across, squeeze=False, height_ratios=heights)
        for chart, ax in zip(shown, axes.flat, strict=False):
            draw(ax, chart)
            ax.spines[["top", "right"]].set_visible(False)
            letters = int(_FULL * inches / across / (small(1.0) / 72 * _LETTER))
            ax.set_title(folded(chart.title, letters), loc="left", fontsize=small(1.0))
        for ax in list(axes.flat)[len(shown) :]:
            ax.set_axis_off()
        figure.set_size_inches(inches, sum(heights) + legend_below(figure, axes.flat, inches))
        return figure


def _height(chart: Chart) -> float:
    """The inches of a panel; of lines with a map below them print has the lines alone."""
    pixels = chart.height * (0.6 if chart.map and chart.series else 1.0)
    return min(max(_INCHES[0] + pixels * _INCHES[1], _LOWEST), _HIGHEST)


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
