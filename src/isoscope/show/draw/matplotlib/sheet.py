"""Charts put together to a figure of a given width, with one key under all of them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.show.charts import NULL, Chart
from isoscope.show.draw.matplotlib.charts import draw
from isoscope.show.draw.matplotlib.style import folded, small, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS = {"single": 3.3, "double": 6.9}  # inches of a figure: one column of a paper, and its page
STYLES = ("paper", "slide")
KINDS = ("pdf", "svg", "png")
MOST_KEYS = 16
MOST_LINES = 3  # lines of panels that a figure has at most
_SIDES, _TALL = 300, 400  # pixels of the largest panel of which four, or three, stand side by side
_INCHES = 0.5, 1 / 220  # of a line: whatever its panels, and per pixel of the highest of them on the page
_LOWEST, _HIGHEST = 1.2, 3.0
_TALLER = 1.3  # panels of a slide, whose type is larger
_FULL = 0.9  # of a panel's width that a title may take
_LETTER = 0.56  # of the size of type: the width of a letter of a title, on average
_KEY, _MARK, _LINE = 0.52, 4.2, 1.55  # sizes of type: a letter of the key, its mark and room, and a line


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
        with matplotlib().rc_context(style(look)):
            return self._draw(WIDTHS[width], wide=width == "double", slide=look == "slide")

    def bytes(self, kind: str = "pdf", width: str = "single", look: str = "paper") -> bytes:
        """The figure as a file holds it: pdf, svg or png; the same bytes each time."""
        if kind not in KINDS:
            raise unknown_name("format", kind, KINDS)
        figure = self.draw(width, look)
        with matplotlib().rc_context(style(look)):
            return saved(figure, kind)

    def _across(self, *, wide: bool, slide: bool) -> int:
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
        matplotlib()
        from matplotlib import pyplot

        ax = pyplot.subplots(layout="constrained")[1]
    draw(ax, chart)
    ax.spines[["top", "right"]].set_visible(False)
    keys = keys_of([ax]) if legend else {}
    if len(keys) > 1:
        marks = list(keys.values()), list(keys)
        ax.legend(*marks, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0)
    return ax


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
    columns = max(1, min(len(keys), int(inches / (size * (_MARK + _KEY * max(map(len, keys)))))))
    marks = list(keys.values()), list(keys)
    figure.legend(*marks, loc="outside lower center", ncols=columns, frameon=False)
    return -(-len(keys) // columns) * _LINE * size + 0.1


def matplotlib() -> Any:
    """The library; where it is not installed, an error says what to do."""
    try:
        import matplotlib as mpl
    except ImportError as missing:
        why = "matplotlib is not installed, and figures take it: `pip install matplotlib`."
        raise IsoscopeError(why) from missing
    return mpl
