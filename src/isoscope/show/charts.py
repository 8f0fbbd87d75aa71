"""A figure as plain data, in pixels of the page; `show.draw` renders it with plotly or matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from isoscope.formatting import short
from isoscope.show.colours import ALARM, AMOUNT, MODELS, SIGNED, SOFT, Pair, sequence

HEIGHT, LARGE = 240, 360  # pixels of a panel, and of one that stands out
NULL = "null"  # what the null is called in a key
MARKS = ("circle", "square", "diamond")
DASHES = ("solid", "dash", "dot")  # when colours come again, marks and dashes do not
MOST_TICKS = 8
LAYER = "layer"
Style = Literal["line", "curve", "dots", "thin", "steps", "band", "arrow", "stack"]
_PENS = {
    "line": 2.0,
    "curve": 2.0,
    "dots": 0.0,
    "thin": 1.0,
    "steps": 1.6,
    "band": 0.0,
    "stack": 0.0,
    "arrow": 1.8,
}
_DOTS = {"curve": 6.0, "dots": 6.0}


@dataclass(frozen=True)
class Hover:
    """Hover text: bold, the rest of its line, further lines; in patterns `{x:.3g}`, `{step}` and so on."""

    bold: str
    rest: str = ""
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Series:
    """Points in order with their intervals, where they have some (NaN: not that one).

    `x` are numbers, names for places side by side, or None for a gap. A `curve` always has dots, a
    `line` only with intervals; `steps` is the outline of a histogram, a `band` the area from low to
    high, a `stack` bars of height y on each `base`. Intervals lie along y, or `across`; `shaded` ones are a
    pale band in print and told on hover on the page. `ids` is what a script knows points by.
    """

    name: str
    x: Sequence[float | str | None]
    y: Sequence[float | None]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    style: Style = "line"
    told: Sequence[Hover | str] = ()
    pattern: Hover | None = None
    colour: Pair | None = None
    mark: str = "circle"
    hollow: bool | Sequence[bool] = False
    dash: str = "solid"
    width: float | None = None
    size: float | None = None
    opacity: float | None = None
    edge: Pair | None = None
    bar: float = 1.5
    across: bool = False
    shaded: bool = False
    keyed: bool = True
    steps: Sequence[int] = ()
    ids: Sequence[Sequence[object]] = ()
    base: Sequence[float] = ()

    def __post_init__(self) -> None:
        rest = (self.low, self.high, self.told, self.steps, self.ids)
        lengths = {len(self.y), *(len(each) for each in rest if len(each))}
        if lengths != {len(self.x)}:
            raise ValueError(f"{self.name}: {len(self.x)} x and {sorted(lengths)} of the others")

    @property
    def has_intervals(self) -> bool:
        """Whether any point has an interval."""
        return any(math.isfinite(end) for end in self.low)

    @property
    def pen(self) -> float:
        """The width of its line; 0 without one."""
        return _PENS[self.style] if self.width is None else self.width

    @property
    def dot(self) -> float:
        """The size of its marks; 0 without them."""
        own = 6.0 if self.style == "line" and self.has_intervals else _DOTS.get(self.style, 0.0)
        return own if self.size is None else self.size

    @property
    def alpha(self) -> float:
        """How opaque it is."""
        own = {"thin": 0.55, "dots": 1.0 if self.has_intervals else 0.75}.get(self.style, 1.0)
        return own if self.opacity is None else self.opacity

    @property
    def paint(self) -> str:
        """Its colour on paper."""
        return (self.colour or SOFT)[0]

    @property
    def rim(self) -> str:
        """The colour of the edges of its marks on paper."""
        return (self.edge or self.colour or SOFT)[0]

    @property
    def hollows(self) -> list[bool]:
        """Whether the mark of each point is hollow."""
        return [self.hollow] * len(self.x) if isinstance(self.hollow, bool) else list(self.hollow)


@dataclass(frozen=True)
class Axis:
    """An axis: its name, range (powers of ten where `log`) and ticks, each a place and its text.

    `floor`: it begins at 0. `zero`: a soft line stands at 0. `rows`: ticks name rows. `most`: about how
    many ticks it has where none are given. `down`: it runs from top to bottom.
    """

    name: str = ""
    range: tuple[float, float] | None = None
    log: bool = False
    ticks: Sequence[tuple[float | str, str]] | None = None
    grid: bool | None = None
    zero: bool = False
    floor: bool = False
    rows: bool = False
    line: bool = True
    most: int = 6
    down: bool = False


@dataclass(frozen=True)
class Map:
    """Cells in lines, coloured from `low` to `high`: an amount, or `signed` around 0. NaN is an empty cell.

    `bar` are the ticks of the colour bar. `told` is hover text per cell, else `pattern` that of all,
    with `text` for a cell's. Before the lines in `cuts` a gap is drawn; `meta` is for the page's
    scripts. Of cells that number `classes` each has a name and a colour.
    """

    x: Sequence[float | str]
    y: Sequence[float | str]
    cells: Sequence[Sequence[float]]
    low: float
    high: float
    up: Axis
    bar: Sequence[tuple[float, str]]
    signed: bool = False
    told: Sequence[Sequence[Hover | None]] = ()
    pattern: Hover | None = None
    text: Sequence[Sequence[str]] = ()
    digits: int = 4
    apart: bool = False
    cuts: Sequence[int] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    classes: Mapping[str, Pair] = field(default_factory=dict)

    @property
    def stops(self) -> tuple[Pair, ...]:
        """The colours from `low` to `high`."""
        classes = (*self.classes.values(), *self.classes.values())[: max(2, len(self.classes))]
        return classes or (SIGNED if self.signed else AMOUNT)


@dataclass(frozen=True)
class Ground:
    """An area behind the series: an outline, or without `y` a span from the first x to the last."""

    x: Sequence[float]
    y: Sequence[float]
    colour: Pair
    opacity: float = 1.0


@dataclass(frozen=True)
class Label:
    """Text in a figure; without `x` it stands at the right edge."""

    x: float | None
    y: float
    text: str


@dataclass(frozen=True)
class Alarm:
    """A mark above a place of the axis, with its words; `line` where a line leads down from it."""

    x: float
    words: Sequence[str] = ()
    line: bool = True


@dataclass(frozen=True)
class Chart:
    """Series on one pair of axes, `levels` and `uprights` dashed across by their names, or a map, or both.

    Series of one name have one colour and one line in the key, the same in all charts of a claim; where
    they are `ordered` the colours are too. A `centred` chart has the origin in its middle, an `equal`
    one a single scale. `digits` are those that the page writes of y, `margin` its room there, and
    `meta` is for its scripts.
    """

    title: str
    x: str | Axis
    y: str | Axis
    series: Sequence[Series] = ()
    log_x: bool = False
    log_y: bool = False
    levels: Sequence[tuple[float, str]] = ()
    remark: str = ""
    ordered: bool = False
    centred: bool = False
    equal: bool = False
    map: Map | None = None
    uprights: Sequence[tuple[float, str]] = ()
    grounds: Sequence[Ground] = ()
    labels: Sequence[Label] = ()
    alarms: Sequence[Alarm] = ()
    height: int = HEIGHT
    digits: int = 0
    margin: Mapping[str, int] = field(default_factory=dict)
    meta: Mapping[str, object] = field(default_factory=dict)

    @property
    def across(self) -> Axis:
        """The axis of x."""
        return self.x if isinstance(self.x, Axis) else Axis(self.x, log=self.log_x)

    @property
    def up(self) -> Axis:
        """The axis of y."""
        return self.y if isinstance(self.y, Axis) else Axis(self.y, log=self.log_y)

    @property
    def places(self) -> list[str]:
        """The names of places side by side, where x are names."""
        return list(dict.fromkeys(x for one in self.series for x in one.x if isinstance(x, str)))

    @property
    def colours(self) -> list[Pair]:
        """The colours of all that it shows, each with its pair for a dark screen."""
        pairs = [pair for one in self.series for pair in (one.colour, one.edge) if pair]
        pairs += [one.colour for one in self.grounds]
        return [*pairs, *(self.map.stops if self.map else ()), *([ALARM] if self.alarms else [])]

    @property
    def filled(self) -> bool:
        """Whether any point has two finite coordinates, or any cell of a map is a number."""
        points = [pair for one in self.series for pair in zip(one.x, one.y, strict=True)]
        cells = [z for line in self.map.cells for z in line] if self.map else []
        return any(_there(x) and _there(y) for x, y in points) or any(map(_there, cells))

    def named(self, title: str = "", y: str = "") -> Chart:
        """The chart with a title and a name of its axis of y, where they are given."""
        return replace(self, title=title or self.title, y=replace(self.up, name=y) if y else self.y)


def _there(at: float | str | None) -> bool:
    return isinstance(at, str) or (at is not None and math.isfinite(at))


def turned(at: int) -> tuple[Pair, str, str]:
    """The colour of the series at this place among others, its mark and its dash."""
    turn = at // len(MODELS)
    return MODELS[at % len(MODELS)], MARKS[turn % len(MARKS)], DASHES[turn % len(DASHES)]


def prepared(charts: Sequence[Chart]) -> list[Chart]:
    """The charts of a claim with what they leave open: colours by name, hover text, scales and ticks."""
    names = dict.fromkeys(one.name for chart in charts if not chart.ordered for one in chart.series)
    shared = {name: turned(at) for at, name in enumerate(names)}
    return [_prepared(chart, shared) for chart in charts]


def _prepared(chart: Chart, shared: Mapping[str, tuple[Pair, str, str]]) -> Chart:
    own = list(dict.fromkeys(one.name for one in chart.series))
    shades = [(pair, MARKS[0], DASHES[0]) for pair in sequence(len(own))] if own else []
    looks = dict(zip(own, shades, strict=True)) if chart.ordered else shared
    many = len(chart.series)
    # along layers curves stand a little aside, so that bars do not hide each other
    aside = 0.3 / many if chart.across.name == LAYER and many > 2 else 0.0
    series = []
    for at, one in enumerate(chart.series):
        colour, mark, dash = looks[one.name]
        shift = aside * (at - (many - 1) / 2)
        x = [v + shift if isinstance(v, int | float) else v for v in one.x]
        told = [_told(one, i) for i in range(len(one.x))]
        drawn: dict[str, Any] = {} if one.style == "arrow" else {"x": x, "mark": mark, "dash": dash}
        series.append(replace(one, told=told, colour=one.colour or colour, **drawn))
    across, up = chart.across, chart.up
    if across.name == LAYER and not chart.places:
        there = sorted({int(x) for one in chart.series for x in one.x if isinstance(x, int | float)})
        every = math.ceil(len(there) / MOST_TICKS) or 1
        across = replace(across, ticks=[(x, str(x)) for x in there[::every]])
    elif across.log:
        across = _log(across, [x for one in chart.series for x in one.x])
    if up.log:
        up = _log(up, [y for one in chart.series for y in (*one.y, *one.low, *one.high)])
    if chart.centred:
        sizes = [abs(v) for one in chart.series for v in (*one.x, *one.y) if isinstance(v, int | float)]
        far = 1.05 * max(filter(math.isfinite, sizes), default=1.0) or 1.0
        across, up = (replace(axis, range=(-far, far)) for axis in (across, up))
    remark = ", ".join(filter(None, [chart.remark, "log scale" if chart.up.log else ""]))
    height = chart.height + (30 if chart.places else 0)
    return replace(chart, x=across, y=up, series=series, remark=remark, height=height)


def _log(axis: Axis, values: Sequence[float | str | None]) -> Axis:
    """The axis with its range; what is not positive has no place on it."""
    there = [math.log10(v) for v in values if isinstance(v, int | float) and 0 < v < math.inf]
    if not there:
        return replace(axis, log=False)
    room = max(0.04 * (max(there) - min(there)), 0.02)
    return replace(axis, range=(min(there) - room, max(there) + room))


def _told(one: Series, i: int) -> Hover:
    more, x, y = (one.told[i] if one.told else ""), one.x[i], one.y[i]
    if isinstance(more, Hover):
        return more
    lines = []
    if one.low and not math.isnan(one.low[i]):
        lines.append(f"95 % interval {one.low[i]:.6g} to {one.high[i]:.6g}")
    lines.append(x if isinstance(x, str) else f"at {x:.6g}")
    return Hover(f"{y:.6g}", f"  {one.name}", [*lines, *([more] if more else [])])


def null_line(x: Sequence[float], y: Sequence[float], colour: Pair = SOFT) -> Series:
    """The null: a dashed line, or where it is known at one place a short one."""
    lone = len(x) == 1
    return Series(
        NULL, x, y, style="dots" if lone else "line", colour=colour, dash="dash", width=None if lone else 1.5,
        mark="line-ew" if lone else "circle", size=16 if lone else 0, opacity=1, edge=colour,
    )  # fmt: skip


def log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """The ticks of a logarithmic axis between two powers of ten: with 2 and 5 where it is short."""
    leads = (1, 2, 5) if high - low < 2.2 else (1,)
    ticks = [lead * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for lead in leads]
    return [(tick, short(tick)) for tick in ticks if low <= math.log10(tick) <= high]


def rounded(value: float | None, digits: int = 0) -> float | None:
    """A number as JSON has it, in as many digits as a figure shows; None for what is not one."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}") if digits else value
