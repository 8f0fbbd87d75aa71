"""The plane of trace and scale of W, every head a point in it, with the regimes of Bao et al. 2024 drawn in.

A head is localised where |θ|/2 exceeds √(‖W‖²/3 + tr W²/4), θ = tr W; since −‖W‖² ≤ tr W² ≤ ‖W‖² that is
sure where ‖W‖ < √(3/7)·|θ| and never so where ‖W‖ > √3·|θ|. The axes are asinh θ and log ‖W‖.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product

import pandas as pd

from isoscope.formatting import short
from isoscope.show.charts import Axis, Chart, Ground, Hover, Label, Series
from isoscope.show.colours import INK, Pair
from isoscope.show.figures.panels import Panel, heading_of
from isoscope.show.readings import QUERY_KEY, SiteReading, at_last, models, read
from isoscope.show.regimes import REGIMES, TRACES, regime_of

HEIGHT = 460
REMARKS = {"trace": "a mark is a head, W its W_Q W_Kᵀ / √(width of a head)", "trace_on_data": ""}
HEADINGS = {"trace": "Every head by its weights", "trace_on_data": "Every head, the inputs’ increments in"}
SURE, NEVER = math.sqrt(3 / 7), math.sqrt(3)
"""‖W‖/|θ| under which a head is localised whatever tr W², and above which it never is."""

NOWHERE = 10 * math.sqrt(12)  # from this ‖W‖ on the signal vanishes: ≫ √12, taken as ten times
TURN = 2.0  # |θ| up to which the late or early half is attended to, and above which places near the middle
EVENLY = 0.1  # up to this ‖W‖, and from 10/T on, half the signal passes everywhere where θ is nearly 0
LEAST, MOST, FAR = 0.03, 60.0, 12.0
"""‖W‖ and |θ| that are in the picture whatever the heads, so that the regimes around them are."""

_EVEN = 0.012  # half the width of the area of even attention, of asinh θ
Pairs = list[tuple[SiteReading, SiteReading]]  # the trace and the scale of each head

_RING = Series(  # which the page's script puts around the head that is picked
    "chosen", [None], [None], style="dots", size=18, hollow=True, colour=INK, opacity=1, keyed=False
)
_TICKS = [sign * lead * 10.0**power for sign in (-1, 1) for power in range(6) for lead in (1, 3)]

AREAS: dict[str, tuple[Pair, Pair]] = {
    "late": (("#d9e9f5", "#193043"), ("#eef5fa", "#182129")),
    "middle": (("#e6f3fb", "#1d3d4f"), ("#f4fafe", "#19252c")),
    "early": (("#fae0cf", "#432a19"), ("#fdf2ea", "#241d19")),
    "middle_early": (("#fbf0d6", "#40361a"), ("#fef9ee", "#23211a")),
    "vanishing": (("#ececea", "#26292e"), ("#ececeb", "#26292f")),
}
"""The ground of each area: where the regime is sure, and where tr W² decides."""


def planes(rows: pd.DataFrame, length: int | None) -> tuple[Panel, ...]:
    """A panel per model, kind of attention and trace; `length` is the T of the area of even attention."""
    asked = [*TRACES, *TRACES.values()]
    readings = read(rows[rows["head"].notna() & rows["measure"].isin(asked) & rows["kind"].isin(QUERY_KEY)])
    readings = [r for r in readings if r.known]
    several, both = len(models(readings)) > 1, len({r.kind for r in readings}) > 1
    found: list[tuple[str, str, Pairs]] = []
    for across, name, kind in product(TRACES, models(readings), QUERY_KEY):
        own = at_last([r for r in readings if (r.model, r.kind) == (name, kind)])
        scales = {r.site: r for r in own if r.measure == TRACES[across] and r.value > 0}
        pairs = [(r, scales[r.site]) for r in own if r.measure == across and r.site in scales]
        title = heading_of(HEADINGS[across], name if several else "", kind if both else "")
        found += [(across, title, pairs)] if pairs else []
    every = [pair for _, _, pairs in found for pair in pairs]
    far = max((FAR, *(1.3 * abs(trace.value) for trace, _ in every)))
    low = min((LEAST, *(scale.value / 1.4 for _, scale in every)))
    high = max((MOST, *(1.4 * scale.value for _, scale in every)))
    panels = []
    for across, title, pairs in found:
        chart, there = plane(pairs, (far, low, high), length), {regime_of(trace) for trace, _ in pairs}
        key = tuple((one.label, one.colour) for name, one in REGIMES.items() if name in there)
        panels.append(Panel((across, TRACES[across]), title, REMARKS[across], chart, key))
    return tuple(panels)


def plane(pairs: Pairs, frame: tuple[float, float, float], length: int | None) -> Chart:
    """Every head by its trace and scale, a series per regime, on the grounds of the regimes."""
    far, low, high = frame
    series = []
    for name, one in REGIMES.items():
        mine = [pair for pair in pairs if regime_of(pair[0]) == name]
        told = [
            Hover(f"layer {trace.layer}, head {trace.head}", f": {one.label}",
                 [f"trace of W {trace.value:.4g}", f"‖W‖ {scale.value:.4g}", trace.model])
            for trace, scale in mine
        ]  # fmt: skip
        dots = Series(
            one.label, [math.asinh(trace.value) for trace, _ in mine],
            [math.log10(scale.value) for _, scale in mine], style="dots", size=8, opacity=1, told=told,
            colour=one.colour, edge=one.colour, mark=one.symbol.removesuffix("-open"),
            hollow=one.symbol.endswith("-open"), ids=[(r.kind, r.layer, r.head) for r, _ in mine],
        )  # fmt: skip
        series += [dots] if mine else []
    across = [tick for tick in (0.0, *_TICKS) if abs(tick) <= far]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    up = [10.0**power for power in powers if low <= 10.0**power <= high]
    grounds, labels = _areas(far, low, high, length)
    return Chart(
        "", Axis("trace of W", (-math.asinh(far), math.asinh(far)), zero=True,
                 ticks=[(math.asinh(tick), short(tick)) for tick in across]),
        Axis("scale of W, ‖W‖", (math.log10(low), math.log10(high)), grid=False,
             ticks=[(math.log10(tick), short(tick)) for tick in up]),
        [*series, _RING], grounds=grounds, labels=labels, height=HEIGHT,
    )  # fmt: skip


def _areas(far: float, low: float, high: float, length: int | None) -> tuple[list[Ground], list[Label]]:
    """The grounds of the regimes, pale ones first, and what they are called."""
    top = min(high, NOWHERE)
    least = 20 / length if length else 0.0
    spans = {"late": (1, least, TURN), "middle": (1, TURN, far)}
    spans |= {"early": (-1, least, TURN), "middle_early": (-1, TURN, far)}
    grounds, labels = [], []
    for at, slope in ((1, NEVER), (0, SURE)):
        for name, (sign, near, end) in spans.items():
            along = [near + (end - near) * i / 60 for i in range(61)]
            edge = [(sign * theta, min(top, slope * theta)) for theta in along if slope * theta > low]
            grounds.append(_ground([(edge[0][0], low), *edge, (edge[-1][0], low)], AREAS[name][at]))
    around = [(-far, NOWHERE), (-far, high), (far, high), (far, NOWHERE)]
    grounds.append(_ground(around, AREAS["vanishing"][0]))
    for name, (sign, near, end) in spans.items():
        middle = sign * (math.asinh(near) + math.asinh(end)) / 2
        labels.append(Label(middle, math.log10(low) + 0.16, REGIMES[name].label.replace(" the ", "\nthe ")))
    labels.append(Label(0, (math.log10(NOWHERE) + math.log10(high)) / 2, REGIMES["vanishing"].label))
    labels.append(Label(0, math.log10(top) - 0.2, REGIMES["undecided"].label))
    if length and 10 / length < EVENLY:
        ends = [math.log10(max(low, 10 / length)), math.log10(EVENLY)]
        sides = [-_EVEN, _EVEN, _EVEN, -_EVEN], [ends[0], ends[0], ends[1], ends[1]]
        grounds.append(Ground(*sides, REGIMES["uniform_half"].colour))
        labels.append(Label(0, ends[1] + 0.14, REGIMES["uniform_half"].label.replace(", ", ",\n")))
    return grounds, labels


def _ground(outline: Iterable[tuple[float, float]], colour: Pair) -> Ground:
    points = [(math.asinh(theta), math.log10(scale)) for theta, scale in outline]
    x, y = zip(*points, strict=True)
    return Ground(x, y, colour)
