"""Curves along layers or steps with bars and a dashed null, and values as rows of dots beside their null."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from isoscope.results.reading import Reading
from isoscope.show import charts
from isoscope.show.charts import HEIGHT, Axis, Chart, Hover, Label, Series, turned
from isoscope.show.colours import SOFT, Pair
from isoscope.show.readings import LAYERED, SiteReading, unique

MOST_ASIDE = 0.12  # of a layer: curves further aside would look as if one followed the other
LOG_SPAN = 8.0  # counts and lengths that span more than this factor, nulls included, get a logarithmic scale
_WRAPPED = 56  # letters of a line of a note
_ROW, _ENDS = 24, 64  # pixels of a row of changes, and of its ends


def number_told(number: Reading, name: str, *more: str) -> Hover:
    """The hover text of a number: its value, interval, null and n, and what more there is to say."""
    ends = f"95 % interval {number.low:.6g} to {number.high:.6g}" if number.bounded else "no interval"
    null = [f"null {number.null:.6g}"] if math.isfinite(number.null) else []
    return Hover(f"{number.value:.6g}", f"  {name}", [ends, *null, f"n {number.n:,}", *more])


def telling(reading: SiteReading) -> Hover:
    """The hover text of a reading: that of its number, its site and its note."""
    step = f", step {reading.step:,}" if reading.step is not None else ""
    site = f"{reading.site}{step} of {reading.model}"
    return number_told(reading, reading.measure, site, *textwrap.wrap(reading.note, _WRAPPED))


def wants_log(own: Sequence[SiteReading]) -> bool:
    """Whether these values span so much that they want a logarithmic scale."""
    shown = [v for r in own for v in (r.value, r.null) if math.isfinite(v)]
    return bool(shown) and min(shown) > 0 and max(shown) > 1 and max(shown) / min(shown) > LOG_SPAN


def range_of(own: Sequence[SiteReading], log: bool) -> tuple[float, float]:
    """The range of an axis that holds values, nulls and intervals, and 0; in powers of ten where `log`."""
    shown = [v for r in own for v in (r.value, r.null, r.low, r.high) if math.isfinite(v)]
    ends = [math.log10(v) for v in shown if v > 0] if log else [0.0, *shown]
    room = 0.06 * ((max(ends) - min(ends)) or float(not log))
    return min(ends) - room, max(ends) + room


def from_zero(values: Sequence[float]) -> tuple[float, float]:
    """The range of an axis that begins or ends at 0, or holds it, with room where values are."""
    shown = [0.0, *filter(math.isfinite, values)]
    room = 0.06 * ((max(shown) - min(shown)) or 1.0)
    return min(shown) - (room if min(shown) < 0 else 0.0), max(shown) + room


def curves(
    groups: Mapping[str, Sequence[SiteReading]], colours: Mapping[str, Pair], along: str, *, up: Axis,
    beside: Sequence[SiteReading] = (), apart: float = 0.0, height: int = HEIGHT,
) -> Chart:  # fmt: skip
    """Curves along layers or steps, one per group, `apart` of the axis aside; one `beside` them, dotted."""
    own = [r for group in groups.values() for r in group]
    places = [at(r, along) for r in own]
    deepest = max((r.layer for r in own if r.kind == "layer" and r.layer is not None), default=0)
    aside = apart * (max(places) - min(places)) if own else 0.0
    aside = min(aside, MOST_ASIDE) if along == "layer" else aside
    series = _nulls(groups, along, colours)
    for i, (name, group) in enumerate(groups.items()):
        if group:
            one = _curve(name, group, along, aside * (i - (len(groups) - 1) / 2), deepest)
            series.append(replace(one, colour=colours[name], mark=turned(i)[1], dash=turned(i)[2]))
    if beside:
        line = _curve(beside[0].measure.replace("_", " "), beside, along, 0.0, deepest)
        series.append(replace(line, low=(), high=(), dash="dot", width=1.5, size=0))
    return Chart("", _axis(own, along), up, series, height=height)


def _curve(name: str, curve: Sequence[SiteReading], along: str, shift: float, deepest: int) -> Series:
    """Points in order, broken where a shallow model would be joined to the output across empty layers."""
    shown: list[SiteReading | None] = []
    for point in sorted(curve, key=lambda r: at(r, along)):
        before = shown[-1] if shown else None
        leaps = before is not None and before.kind == "layer" and before.layer != deepest
        shown += [None] if along == "layer" and leaps and point.kind != "layer" else []
        shown.append(point)
    return series_of(name, shown, [at(r, along) + shift if r else None for r in shown], SOFT)


def series_of(
    name: str, readings: Sequence[SiteReading | None], x: Sequence[float | None], colour: Pair
) -> Series:
    """Readings as a curve with their intervals and hover text; None is a gap."""
    known = [r if r and r.bounded and r.known else None for r in readings]
    return Series(
        name, x, [r.value if r else None for r in readings], [r.low if r else math.nan for r in known],
        [r.high if r else math.nan for r in known], "curve",
        [telling(r) if r else Hover("") for r in readings], colour=colour,
    )  # fmt: skip


def _nulls(
    groups: Mapping[str, Sequence[SiteReading]], along: str, colours: Mapping[str, Pair]
) -> list[Series]:
    """One dashed line where all curves have the same null, else one for each in its colour."""
    lines = {
        name: {at(r, along): r.null for r in sorted(group, key=lambda r: at(r, along))
               if math.isfinite(r.null) and r.known}
        for name, group in groups.items()
    }  # fmt: skip
    shared: dict[int, float] = {}
    for line in lines.values():
        shared = line | shared
    alike = all(
        math.isclose(null, shared[x], rel_tol=1e-2, abs_tol=1e-9)
        for line in lines.values() for x, null in line.items()
    )  # fmt: skip
    drawn = [(SOFT, dict(sorted(shared.items())))] if alike else [(colours[k], v) for k, v in lines.items()]
    return [charts.null_line(list(line), list(line.values()), pair) for pair, line in drawn if line]


def at(reading: SiteReading, along: str) -> int:
    """Where a reading stands on the axis."""
    return reading.place if along == "layer" else reading.step or 0


def _axis(own: Sequence[SiteReading], along: str) -> Axis:
    if along != "layer":
        return Axis(along)
    numbered = sorted({r.place for r in own if r.kind in LAYERED})
    after = {r.place: r.site for r in own if r.kind not in LAYERED}
    every = math.ceil(len(numbered) / charts.MOST_TICKS) or 1
    # the last number gives way to the word that stands after it
    ticks = {x: str(x) for x in numbered[::every] if not after or x <= numbered[-1] - every // 2}
    return Axis(
        "layer" if numbered else " and ".join(unique(after.values())), ticks=[*(ticks | after).items()]
    )


@dataclass(frozen=True)
class Dot:
    """A number in a row of dots: its row and series, its colour and how it looks."""

    row: float
    name: str
    number: Reading
    colour: Pair
    told: Hover
    hollow: bool = False
    mark: str = "circle"
    bar: float = 2.0


def rows_of_changes(names: Sequence[str], dots: Sequence[Dot], name: str) -> Chart:
    """Rows of differences with their intervals, around a dashed line at 0."""
    left = int(min(17 + 6.6 * max(map(len, names), default=0), 170))
    margin, axis = {"l": left, "r": 12, "t": 8, "b": 40}, Axis(name, most=6)
    height = _ENDS + _ROW * len(names)
    return rows_of_dots(names, dots, axis, size=9, height=height, margin=margin, zero=True, keyed=False)


def rows_of_dots(
    names: Sequence[str], dots: Sequence[Dot], x: Axis, *, height: int, size: float = 10,
    margin: Mapping[str, int] | None = None, zero: bool = False, numbers: Sequence[str] = (),
    keyed: bool = True,
) -> Chart:  # fmt: skip
    """Rows of dots with intervals, the null a grey bar; `zero`: a line at 0; `numbers` at the right edge."""
    nulls = [one for one in dots if math.isfinite(one.number.null)]
    at_null = Series(
        charts.NULL, [one.number.null for one in nulls], [-float(one.row) for one in nulls], style="dots",
        told=[one.told for one in nulls], colour=SOFT, mark="line-ns", opacity=1, size=2 * size,
    )  # fmt: skip
    series = [at_null] if nulls else []
    for name in unique(one.name for one in dots):
        own = [one for one in dots if one.name == name]
        hollow, numbers_ = [one.hollow for one in own], [one.number for one in own]
        series.append(
            Series(
                name, [r.value for r in numbers_], [-float(one.row) for one in own],
                [r.low if r.bounded else math.nan for r in numbers_],
                [r.high if r.bounded else math.nan for r in numbers_], "dots", [one.told for one in own],
                colour=own[0].colour, size=size, mark=own[0].mark, bar=own[0].bar, across=True, opacity=1,
                hollow=hollow[0] if len(set(hollow)) == 1 else hollow, keyed=keyed,
            )
        )  # fmt: skip
    ticks = [(-float(i), name) for i, name in enumerate(names)]
    up = Axis(range=(0.4 - max(1, len(names)), 0.6), ticks=ticks, rows=True, grid=False)
    return Chart(
        "", x, up, series, height=height, margin=margin or {"b": 26},
        labels=[Label(None, -float(i), text) for i, text in enumerate(numbers)],
        uprights=((0.0, ""),) if zero else (),
    )  # fmt: skip
