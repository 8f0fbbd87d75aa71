"""Heads along the steps of training: a line of cells a head, layer under layer, the colour its value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, product

import pandas as pd

from isoscope.show.charts import Axis, Chart, Map
from isoscope.show.charts import Told as Hover
from isoscope.show.figures.maps import alike, bounds, colour_bar
from isoscope.show.figures.panels import KINDS, Panel, heading_of
from isoscope.show.figures.step_axis import StepAxis, across_steps, spaced
from isoscope.show.measures import MAPS, Told, title_of

MOST_HEADS = 192
ALONG = {"queries": ("query_relative_drift", "key_relative_drift")}
"""Measures that are drawn along the steps beside those of `MAPS`."""
_AGAIN = {"drift in attention": ("sink_mass",)}  # shown with attention already
_CELL, _LEAST, _TALLEST = 9, 3, 460  # pixels: a head where there are few, where there are many, and all
_BELOW, _ABOVE = 44, 20
Cells = dict[tuple[int, int], list[float]]  # of each layer and head, its value at every step


@dataclass(frozen=True)
class HeadsOverSteps:
    """Groups of layers, what each is called, and the panels of each group."""

    groups: tuple[tuple[str, tuple[Panel, ...]], ...]

    @property
    def panels(self) -> list[Panel]:
        """Those of all groups."""
        return [panel for _, panels in self.groups for panel in panels]

    def each(self, change: Callable[[Panel], Panel]) -> HeadsOverSteps:
        """The maps with every panel changed."""
        return HeadsOverSteps(tuple((name, tuple(map(change, panels))) for name, panels in self.groups))


def heads_over_steps(rows: pd.DataFrame, family: str, axis: StepAxis, told: Told) -> HeadsOverSteps | None:
    """The maps of a section; None without rows of heads."""
    asked = [m for m in (*MAPS.get(family, ()), *ALONG.get(family, ())) if m not in _AGAIN.get(family, ())]
    own = rows[rows["head"].notna() & rows["measure"].isin(asked) & rows["kind"].isin(list(KINDS))]
    own = own[own["value"].map(math.isfinite).astype(bool)]
    if own.empty:
        return None
    several = own["kind"].nunique() > 1
    layers = sorted({int(layer) for layer in own["layer"].dropna()})
    heads = int(own["head"].max()) + 1
    found = []
    for group in _groups(layers, max(1, MOST_HEADS // heads)):
        panels = []
        for measure, kind in product(asked, KINDS):
            mine = own[(own["measure"] == measure) & (own["kind"] == kind) & own["layer"].isin(group)]
            if len(mine):
                title = heading_of(title_of(measure, told), "", kind if several else "")
                low, high = bounds(measure, own.loc[own["measure"].isin(alike(measure)), "value"])
                chart = _map(_cells(mine, axis), axis, low, high)
                panels.append(Panel((measure,), title, "by head", chart))
        name = str(group[0]) if len(group) == 1 else f"{group[0]}–{group[-1]}"
        found += [(name, tuple(panels))] if panels else []
    return HeadsOverSteps(tuple(found))


def _groups(layers: list[int], room: int) -> list[list[int]]:
    """Layers in groups of like size, as many as the room asks for.

    >>> _groups([1, 2, 3, 4, 5], 3)
    [[1, 2, 3], [4, 5]]
    """
    count = -(-len(layers) // room)
    size = -(-len(layers) // count)
    rest = iter(layers)
    return [list(islice(rest, size)) for _ in range(count)]


def _cells(own: pd.DataFrame, axis: StepAxis) -> Cells:
    table = own.pivot_table("value", ["layer", "head"], "step", aggfunc="last").reindex(columns=axis.steps)
    lines = table.to_numpy(float).tolist()
    return {(int(layer), int(head)): line for (layer, head), line in zip(table.index, lines, strict=True)}


def _map(cells: Cells, axis: StepAxis, low: float, high: float) -> Chart:
    places, names = list(cells), [f"layer {layer} head {head}" for layer, head in cells]
    size = max(_LEAST, min(_CELL, _TALLEST // len(names)))
    firsts = [i for i, (layer, _) in enumerate(places) if not i or layer != places[i - 1][0]]
    lasts = [*firsts[1:], len(places)]
    middle = {first: (first + last - 1) // 2 for first, last in zip(firsts, lasts, strict=True)}
    found = Map(
        [axis.at(step) for step in axis.steps], names, list(cells.values()), low, high,
        Axis("layer", ticks=[(names[middle[i]], str(places[i][0])) for i in spaced(firsts, 12)], down=True),
        colour_bar(low, high, [v for line in cells.values() for v in line]), signed=low < 0,
        pattern=Hover("{z:.4g}", "  {y}", ["step {cell}"]), digits=3, cuts=firsts[1:],
        meta={"steps": list(axis.steps)},  # the page's script gives each cell its step
    )  # fmt: skip
    height = _ABOVE + _BELOW + max(120, size * len(names))
    margin = {"t": _ABOVE, "b": _BELOW, "r": 48}
    return Chart("", across_steps(axis), "", map=found, height=height, margin=margin)
