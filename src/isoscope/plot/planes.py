"""The plane of trace and scale of W, every head a point in it, the regimes of Bao et al. 2024 as grounds.

The scales are those of the page (`report.planes`): asinh θ across, log ‖W‖ up. Where a ground is full the
trace and the scale decide; where it is pale tr W² does, and a head's mark says how.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.formatting import short
from isoscope.plot.axes import finished, one_model, opened, probed, readings_of
from isoscope.show.colours import INK
from isoscope.show.draw.matplotlib.style import dot, pen, small
from isoscope.show.figures.weights.planes import AREAS, EVENLY, NEVER, NOWHERE, SURE, TURN, Pairs, plane_frame
from isoscope.show.measures import Told
from isoscope.show.readings import QUERY_KEY, at_last
from isoscope.show.regimes import REGIMES, TRACES, regime_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = {
    "circle": "o", "triangle-right": ">", "diamond": "D", "triangle-left": "<", "square": "s", "cross": "P",
    "x": "X", "circle-open": "o",
}  # fmt: skip
"""The marks of regimes as matplotlib has them."""
_TICKS = (0.0, *(sign * 10.0**power for sign in (-1, 1) for power in range(6)))


def plane(
    frame: pd.DataFrame,
    *,
    measure: str = "trace",
    length: int | None = None,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the heads of one model by trace and scale of W; `measure` may be `trace_on_data`.

    `length` is the T of the regimes; without it the place of even attention, which hangs on it, is left out.
    """
    if measure not in TRACES:
        raise unknown_name("trace", measure, TRACES)
    pairs = _pairs(frame, measure)
    far, low, high = plane_frame(pairs)
    ax = opened(ax)
    _draw_grounds(ax, far, low, high, length)
    for name, one in REGIMES.items():
        mine = [pair for pair in pairs if regime_of(pair[0]) == name]
        face = "white" if one.symbol.endswith("open") else one.colour[0]
        if mine:
            x = [math.asinh(trace.value) for trace, _ in mine]
            y = [math.log10(scale.value) for _, scale in mine]
            ax.plot(
                x, y, MARKS[one.symbol], color=one.colour[0], mfc=face, mec=one.colour[0], mew=pen(0.5),
                ms=dot(1.1), label=one.label, zorder=3,
            )  # fmt: skip
    across = [tick for tick in _TICKS if abs(tick) <= far]
    up = [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    ax.set_xticks([math.asinh(tick) for tick in across], [short(tick) for tick in across])
    ax.set_yticks([math.log10(tick) for tick in up], [short(tick) for tick in up])
    ax.set(xlim=(-math.asinh(far), math.asinh(far)), ylim=(math.log10(low), math.log10(high)))
    ax.set(xlabel="trace of W", ylabel="scale of W, ‖W‖")
    return finished(ax, legend=legend)


def _pairs(frame: pd.DataFrame, measure: str) -> Pairs:
    """The trace and the scale of every head that has both."""
    traces = at_last(one_model(readings_of(frame, measure, heads=True, kinds=QUERY_KEY)))
    rows = probed(frame)
    if not (rows["measure"] == TRACES[measure]).any():
        raise IsoscopeError(f"the plane takes {TRACES[measure]} beside {measure}; these rows have none.")
    sizes = at_last(one_model(readings_of(frame, TRACES[measure], heads=True, kinds=QUERY_KEY)))
    scales = {(r.kind, r.layer, r.head): r for r in sizes if r.known and r.value > 0}
    pairs = [(r, scales[at]) for r in traces if r.known and (at := (r.kind, r.layer, r.head)) in scales]
    if not pairs:
        raise IsoscopeError(f"there is nothing to draw: no head has both {measure} and {TRACES[measure]}.")
    return pairs


def _draw_grounds(ax: Any, far: float, low: float, high: float, length: int | None) -> None:
    top = min(high, NOWHERE)
    least = 20 / length if length else 0.0
    spans = {"late": (1, least, TURN), "middle": (1, TURN, far)}
    spans |= {"early": (-1, least, TURN), "middle_early": (-1, TURN, far)}
    for at, slope in ((1, NEVER), (0, SURE)):
        for name, (sign, near, end) in spans.items():
            steps = [near + (end - near) * i / 60 for i in range(61)]
            edge = [(sign * theta, min(top, slope * theta)) for theta in steps if slope * theta > low]
            _ground(ax, [(edge[0][0], low), *edge, (edge[-1][0], low)], AREAS[name][at][0])
    if high > NOWHERE:
        around = [(-far, NOWHERE), (-far, high), (far, high), (far, NOWHERE)]
        _ground(ax, around, AREAS["vanishing"][0][0])
        _label(ax, 0, (math.log10(NOWHERE) + math.log10(high)) / 2, REGIMES["vanishing"].label)
    for name, (sign, near, end) in spans.items():
        middle = sign * (math.asinh(near) + math.asinh(end)) / 2
        _label(ax, middle, math.log10(low) + 0.22, REGIMES[name].label.replace(" the ", "\nthe "))
    _label(ax, 0, math.log10(top) - 0.2, REGIMES["undecided"].label)
    if length and 10 / length < EVENLY:
        ends = [math.log10(max(low, 10 / length)), math.log10(EVENLY)]
        ax.plot([0, 0], ends, color=REGIMES["uniform_half"].colour[0], lw=pen(2), zorder=1)
        _label(ax, 0, ends[1] + 0.16, REGIMES["uniform_half"].label.replace(", ", ",\n"))


def _ground(ax: Any, outline: Sequence[tuple[float, float]], colour: str) -> None:
    x = [math.asinh(theta) for theta, _ in outline]
    ax.fill(x, [math.log10(scale) for _, scale in outline], color=colour, lw=0, zorder=0)


def _label(ax: Any, x: float, y: float, text: str) -> None:
    ax.text(x, y, text, ha="center", va="center", fontsize=small(), color=INK[0], alpha=0.75, zorder=1)
