"""The figures of advice: where cosines lie before and after each repair, and how its numbers move.

Decided here: one line a space, `before` on top and in a colour of its own; of the cosines a hairline reaches
over 98 % of the pairs, a thin bar over 90 %, a thick one over half, and a white tick is the median.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from isoscope.kinds.advise.findings import BEFORE, MEASURES, Findings, Space
from isoscope.results.reading import Reading
from isoscope.show.charts import Axis, Chart, Series, Told
from isoscope.show.colours import MODELS, PAPER, Pair
from isoscope.show.figures.curves import Dot, rows_of_dots
from isoscope.show.figures.panels import Panel

AS_IS, REPAIRED = MODELS[1], MODELS[0]
KEY: tuple[tuple[str, Pair], ...] = (("as it is", AS_IS), ("repaired, fitted on other vectors", REPAIRED))
_BARS = ((1, 99, 1.5, 1.0), (5, 95, 6, 0.45), (25, 75, 14, 1.0))  # from, to, pixels, opacity
_LINE, _ENDS = 38, 64  # pixels a line takes, and the axis with its title
_SMALL = 24
Write = Callable[[float], str]
_ROOM = 0.055  # of the axis, kept free on the right for each letter of the longest number


def cosine_panel(found: Findings) -> Panel:
    """The quantiles of the cosines, a line for each space."""
    spaces = [space for space in (found.before, *found.after) if space.quantiles[50].known]
    series = []
    for at, space in enumerate(spaces):
        for low, high, width, opacity in _BARS:
            x = [space.quantiles[end].value for end in (low, high)]
            bar = Series(space.label, x, [-at, -at], colour=_colour(space), width=width, opacity=opacity)
            series.append(replace(bar, keyed=False))
        series.append(
            Series(
                "median", [space.quantiles[50].value], [-at], style="dots", told=[_quantiles(space)],
                mark="line-ns", size=16, colour=PAPER, opacity=1, keyed=False,
            )
        )  # fmt: skip
    remark = "line: 98 % of pairs; pale bar: 90 %; bar: half of them; tick: the median"
    reached = [0.0, *(s.quantiles[end].value for s in spaces for end in (1, 99))]
    aside = 0.03 * (max(reached) - min(reached))
    ends = min(reached) - aside, max(reached) + aside
    axis = Axis("cosine of two vectors", ends, grid=True, most=6)  # more run into each other on a phone
    rows = [(-float(at), space.label) for at, space in enumerate(spaces)]
    up = Axis(range=(0.4 - len(rows), 0.6), ticks=rows, rows=True, grid=False)
    height = _ENDS + _LINE * len(spaces)
    chart = Chart("", axis, up, series, uprights=((0.0, ""),), height=height, margin={"b": 48})
    return Panel(("cosine_quantile_95",), "Cosines of pairs", remark, chart)


def ladder(found: Findings, field: str, heading: str, remark: str, write: Write) -> list[Panel]:
    """One reading of every space as a dot with its interval and its null."""
    spaces = (found.before, *found.after)
    lines = [(space.label, getattr(space, field), _colour(space)) for space in spaces]
    return numbers_panel(lines, (MEASURES[field],), heading, remark, write)


def numbers_panel(
    lines: Sequence[tuple[str, Reading, Pair]],
    measures: tuple[str, ...],
    heading: str,
    remark: str,
    write: Write,
) -> list[Panel]:
    """Named numbers as dots with their intervals and nulls; no panel where none has a value."""
    lines = [line for line in lines if line[1].known]
    if not lines:
        return []
    dots = [Dot(at, name, n, colour, _telling(n, name)) for at, (name, n, colour) in enumerate(lines)]
    numbers = [number for _, number, _ in lines]
    reached = [x for n in numbers for x in (n.value, n.low, n.high, n.null) if x == x]
    low, high = min(0.0, *reached), max(0.0, *reached)
    high = high if high > low else 1.0
    written = [write(number.value) for number in numbers]
    wide = (high - low) / (1 - _ROOM * max(map(len, written)))
    axis = Axis(range=(low - 0.04 * wide, low + wide), most=5)
    height, names = _ENDS - 20 + _SMALL * len(lines), [name for name, _, _ in lines]
    margin = {"b": 30}
    chart = rows_of_dots(
        names, dots, axis, size=8, height=height, margin=margin, numbers=written, keyed=False
    )
    return [Panel(measures, heading, remark, chart)]


def _colour(space: Space) -> Pair:
    return AS_IS if space.name == BEFORE else REPAIRED


def _quantiles(space: Space) -> Told:
    lines = []
    for per_cent, number in space.quantiles.items():
        ends = f" ({number.low:.4g} to {number.high:.4g})" if number.bounded else ""
        lines.append(f"{per_cent} % below {number.value:.4g}{ends}")
    return Told(space.label, "", lines)


def _telling(number: Reading, name: str) -> Told:
    lines = [f"95 % interval {number.low:.6g} to {number.high:.6g}"] if number.bounded else ["no interval"]
    lines += [f"null {number.null:.6g}"] if number.null == number.null else []
    return Told(f"{number.value:.6g}", f"  {name}", [*lines, f"n {number.n:,}"])
