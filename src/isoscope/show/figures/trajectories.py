"""One measure along the steps: a line a layer, coloured by depth, and under it layers × steps as a map.

Intervals are told on hover: bars of a dozen lines at eighty steps would hide the lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from isoscope.show.charts import Axis, Chart, Hover, Map, Series, null_line
from isoscope.show.colours import GRID, MODELS, Pair, sequence
from isoscope.show.figures.curves import range_of, series_of, wants_log
from isoscope.show.figures.maps import colour_bar
from isoscope.show.figures.step_axis import StepAxis, across_steps, spaced
from isoscope.show.readings import ATTENTION, PLACES, SiteReading

MOST_LINES = 13
MOST_KEYS = 7
HEIGHT, LARGE = 230, 390
_MARKED = 12  # up to so many steps a line has a mark at each
_ALIKE = 0.03  # nulls that differ by less of the axis are drawn as one line
OWN = MODELS[0]  # the colour of the loop's own numbers, which are of no layer


@dataclass(frozen=True)
class Depths:
    """Every place that was measured, what it is called, and its colour, the same in all figures of a page."""

    names: dict[int, str]

    @property
    def colours(self) -> dict[int, Pair]:
        """From the first layer to the last."""
        return dict(zip(self.names, sequence(len(self.names)), strict=True))

    @property
    def key(self) -> tuple[tuple[str, Pair], ...]:
        """A few of them, evenly spaced, the first and the last among them."""
        colours = self.colours
        return tuple((self.names[at], colours[at]) for at in spaced(list(self.names), MOST_KEYS))


def depths(readings: Sequence[SiteReading]) -> Depths:
    """The places of these readings, by depth; the attention of block i stands where layer i does."""
    placed = [r for r in readings if r.kind in (*PLACES, *ATTENTION)]
    names = {r.place: r.site if r.layer is None else f"layer {r.layer}" for r in placed}
    return Depths(dict(sorted(names.items())))


def trajectory(own: Sequence[SiteReading], axis: StepAxis, places: Depths, *, mapped: bool) -> Chart:
    """The chart of one measure, of sites of one kind; its remark says what to know of its scale."""
    sites = sorted({r.place for r in own})
    finite = [r for r in own if r.known]
    log = wants_log(finite)
    low, high = range_of(finite, log)
    lined = spaced(sites, MOST_LINES)
    colours, keyed = places.colours, dict(places.key)
    series = [_band(own, axis)] if len(lined) < len(sites) else []
    series += _null(finite, axis, high - low, log)
    for place in lined:
        line = [r for r in own if r.place == place]
        loop = line[0].kind == "training"  # of the loop, at no layer
        name, colour = ("", OWN) if loop else (places.names.get(place, ""), colours[place])
        series.append(replace(_line(line, axis, colour), name=name, keyed=name in keyed))
    few = f"{len(lined)} of {len(sites)} layers as lines" if len(lined) < len(sites) else ""
    return Chart(
        "", across_steps(axis), Axis(range=(low, high), log=log), series,
        map=_map(own, sites, axis, places, log) if mapped else None, digits=4,
        remark=", ".join(filter(None, [few, "log scale" if log else ""])),
        height=LARGE if mapped else HEIGHT, margin={"t": 20, "r": 48 if mapped else 12},
    )  # fmt: skip


def _line(line: list[SiteReading], axis: StepAxis, colour: Pair) -> Series:
    at = {r.step: r for r in line}
    shown = [at[step] for step in axis.steps if step in at]
    bounded = any(r.bounded for r in line)
    told = ["step {step}", *(["95 % interval {low} to {high}"] if bounded else [])]
    return replace(
        series_of("", shown, [axis.at(r.step or 0) for r in shown], colour), told=(), width=1.75, shaded=True,
        pattern=Hover("{y:.4g}", f"  {line[0].site}", told), steps=[r.step or 0 for r in shown],
        size=5 if len(axis.steps) <= _MARKED else 0,
    )  # fmt: skip


def _band(own: Sequence[SiteReading], axis: StepAxis) -> Series:
    values = {step: [r.value for r in own if r.step == step and r.known] for step in axis.steps}
    shown = [step for step in axis.steps if values[step]]
    low, high = ([pick(values[step]) for step in shown] for pick in (min, max))
    return Series("all layers", [axis.at(step) for step in shown], low, low, high, "band", colour=GRID)


def _null(own: list[SiteReading], axis: StepAxis, span: float, log: bool) -> list[Series]:
    """One dashed line where all layers have nearly the same null."""
    nulls = {step: [r.null for r in own if r.step == step and math.isfinite(r.null)] for step in axis.steps}
    shown = [step for step in axis.steps if nulls[step] and (not log or min(nulls[step]) > 0)]
    ends = [(min(nulls[step]), max(nulls[step])) for step in shown]
    if not shown or any((math.log10(b / a) if log else b - a) > _ALIKE * span for a, b in ends):
        return []
    mean = [sum(nulls[step]) / len(nulls[step]) for step in shown]
    return [replace(null_line([axis.at(step) for step in shown], mean), pattern=Hover("", "null {y:.3g}"))]


def _map(own: Sequence[SiteReading], sites: list[int], axis: StepAxis, places: Depths, log: bool) -> Map:
    at = {(r.place, r.step): r.value for r in own if r.known and (not log or r.value > 0)}
    values = [[at.get((place, step), math.nan) for step in axis.steps] for place in sites]
    cells = [[math.log10(v) if log else v for v in line] for line in values]
    found = [z for line in cells for z in line if math.isfinite(z)]
    low, high = (min(found), max(found)) if log or min(found) < 0 else (0.0, max(found) or 1.0)
    if not log and low < 0:
        low, high = -max(-low, high), max(-low, high)
    numbers = {r.place: str(r.layer) for r in own if r.layer is not None}
    names = [numbers.get(place) or places.names.get(place, str(place)) for place in sites]
    return Map(
        [axis.at(step) for step in axis.steps], names, cells, low, high if high > low else low + 1,
        Axis("layer", ticks=[(name, name) for name in spaced(names, 6)], down=True),
        colour_bar(low, high, found, log=log), signed=not log and low < 0,
        pattern=Hover("{text}" if log else "{z:.4g}", "  layer {y}", ["step {cell}"]),
        text=[["" if math.isnan(v) else f"{v:.4g}" for v in line] for line in values] if log else (),
        apart=len(axis.steps) <= _MARKED,
        meta={"steps": list(axis.steps)},  # the page's script gives each cell its step
    )  # fmt: skip
