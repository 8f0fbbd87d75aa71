"""Maps of heads: at one step a cell a head, layers down and heads across; along steps a line of cells a head.

Shares and cosines have the same colours in every model; what has no bounds goes to the 95th percentile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd

from isoscope.formatting import short
from isoscope.show.charts import MOST_TICKS, Axis, Chart, Hover, Map
from isoscope.show.figures.curves import telling
from isoscope.show.figures.panels import KINDS, Panel, heading_of
from isoscope.show.figures.step_axis import StepAxis, across_steps, spaced
from isoscope.show.measures import MAPS, MAPS_OVER_STEPS, SHOWN, Told, how_shown, title_of
from isoscope.show.readings import SiteReading, at_last, models, read

CELL, TALLEST = 22, 420  # pixels a layer where there are few, and of all together
GAP_UNTIL = 48  # with more layers or heads than this, cells have no gap between them
MOST_TOLD = 4096  # of more cells each tells its value and head alone: 200 layers of 128 heads took 32 MB
MOST_HEADS = 192  # heads in one map along the steps; of more, a list picks which layers are shown
_CELL, _LEAST, _TALLEST = 9, 3, 460  # pixels of a head along the steps: of few, of many, and all
_MARGIN = 44  # pixels below a map
_MOST = 0.95  # of the heads: the colours of what has no bounds are spread over so many


def maps(rows: pd.DataFrame, family: str, told: Told | None = None) -> tuple[Panel, ...]:
    """One panel for each map of this section, model and kind of attention; none without rows of heads."""
    return maps_of(rows, MAPS.get(family, ()), told or {})


def maps_of(rows: pd.DataFrame, measures: Collection[str], told: Told) -> tuple[Panel, ...]:
    """One panel for each of these measures, model and kind of attention."""
    headed = rows["head"].notna() & rows["measure"].isin(list(measures))
    readings = [r for r in read(rows[headed]) if r.kind in KINDS]
    several = len(models(readings)) > 1
    crossed = any(KINDS[r.kind] == KINDS["cross_attention"] for r in readings)
    drawn = []
    for measure, name, kind in product(measures, models(readings), KINDS):
        own = [r for r in readings if (r.measure, r.model, r.kind) == (measure, name, kind)]
        own = at_last(own)
        if any(r.known for r in own):
            title = heading_of(title_of(measure, told), name if several else "", kind if crossed else "")
            remark = "by head" if own[0].step is None else f"by head, step {own[0].step:,}"
            low, high = bounds(measure, [r.value for r in readings if r.measure in alike(measure)])
            drawn.append(Panel((measure,), title, remark, head_map(own, low, high)))
    return tuple(drawn)


def alike(measure: str) -> tuple[str, ...]:
    """The measures whose maps share its colours."""
    if how_shown(measure).colours != "to the largest":
        return (measure,)
    return tuple(name for name, how in SHOWN.items() if how.colours == "to the largest")


def bounds(measure: str, values: Iterable[float]) -> tuple[float, float]:
    """The values that the ends of the colours stand for, in maps of this measure alone."""
    found = [float(value) for value in values if math.isfinite(value)]
    colours = how_shown(measure).colours
    if colours == "signed":
        return -1.0, 1.0
    if colours in ("unbounded", "unbounded, signed"):
        sizes = sorted(map(abs, found))
        high = sizes[math.ceil(_MOST * len(sizes)) - 1] or 1.0  # of all but the few that stand out
        return (-high if colours == "unbounded, signed" else 0.0), high
    return 0.0, min(1.0, max(found, default=1.0) or 1.0) if colours == "to the largest" else 1.0


def head_map(own: Sequence[SiteReading], low: float, high: float) -> Chart:
    """The map of these readings of heads, layers down and heads across."""
    layers = sorted({r.layer for r in own if r.layer is not None})
    heads = sorted({r.head for r in own if r.head is not None})
    at = {(r.layer, r.head): r for r in own}
    cells = [[at.get((layer, head)) for head in heads] for layer in layers]
    many = len(layers) * len(heads) > MOST_TOLD
    values = [r.value for r in own if r.known]
    found = Map(
        heads, layers, [[r.value if r else math.nan for r in line] for line in cells], low, high,
        Axis("layer", ticks=ticks_of(layers), down=True), colour_bar(low, high, values), signed=low < 0,
        told=() if many else [[telling(r) if r else None for r in line] for line in cells],
        pattern=Hover("{z:.4g}", "  layer {y} head {x}"), digits=4 if many else 0,
        apart=max(len(layers), len(heads)) <= GAP_UNTIL,
        meta={"kind": own[0].kind},  # so that a click on a cell can tell its head
    )  # fmt: skip
    height = _MARGIN + 8 + min(TALLEST, max(CELL * len(layers), 4 * CELL))
    margin = {"t": 8, "b": _MARGIN, "r": 44}
    return Chart("", Axis("head", ticks=ticks_of(heads)), "", map=found, height=height, margin=margin)


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
    """The maps of a section along the steps, a line of cells a head; None without rows of heads."""
    asked = MAPS_OVER_STEPS.get(family, ())
    own = rows[rows["head"].notna() & rows["measure"].isin(list(asked)) & rows["kind"].isin(list(KINDS))]
    own = own[own["value"].map(math.isfinite).astype(bool)]
    if own.empty:
        return None
    several = own["kind"].nunique() > 1
    layers = sorted({int(layer) for layer in own["layer"].dropna()})
    room = max(1, MOST_HEADS // (int(own["head"].max()) + 1))
    size = -(-len(layers) // -(-len(layers) // room))  # groups of like size, as many as the room asks for
    found = []
    for group in (layers[at : at + size] for at in range(0, len(layers), size)):
        panels = []
        for measure, kind in product(asked, KINDS):
            mine = own[(own["measure"] == measure) & (own["kind"] == kind) & own["layer"].isin(group)]
            if len(mine):
                of = kind if several else ""
                title = heading_of(title_of(measure, told), "", of)
                low, high = bounds(measure, own.loc[own["measure"].isin(alike(measure)), "value"])
                panels.append(
                    Panel((measure,), title, "by head", _along_steps(mine, axis, low, high), kind=of)
                )
        name = str(group[0]) if len(group) == 1 else f"{group[0]}–{group[-1]}"
        found += [(name, tuple(panels))] if panels else []
    return HeadsOverSteps(tuple(found))


def _along_steps(own: pd.DataFrame, axis: StepAxis, low: float, high: float) -> Chart:
    table = own.pivot_table("value", ["layer", "head"], "step", aggfunc="last").reindex(columns=axis.steps)
    cells, layers = table.to_numpy(float).tolist(), [int(layer) for layer, _ in table.index]
    names = [f"layer {int(layer)} head {int(head)}" for layer, head in table.index]
    firsts = [i for i, layer in enumerate(layers) if not i or layer != layers[i - 1]]
    middle = {i: (i + end - 1) // 2 for i, end in zip(firsts, [*firsts[1:], len(layers)], strict=True)}
    ticks = [(names[middle[i]], str(layers[i])) for i in spaced(firsts, 12)]
    found = Map(
        [axis.at(step) for step in axis.steps], names, cells, low, high,
        Axis("layer", ticks=ticks, down=True), colour_bar(low, high, [v for line in cells for v in line]),
        signed=low < 0, pattern=Hover("{z:.4g}", "  {y}", ["step {cell}"]), digits=3, cuts=firsts[1:],
        meta={"steps": list(axis.steps)},  # the page's script gives each cell its step
    )  # fmt: skip
    size = max(_LEAST, min(_CELL, _TALLEST // len(names)))
    height, margin = _MARGIN + 20 + max(120, size * len(names)), {"t": 20, "b": _MARGIN, "r": 48}
    return Chart("", across_steps(axis), "", map=found, height=height, margin=margin)


def colour_bar(
    low: float, high: float, values: Iterable[float], *, log: bool = False
) -> list[tuple[float, str]]:
    """The ticks of a bar of colours; a sign at its ends where values lie beyond them."""
    there = [value for value in values if math.isfinite(value)]
    over = "≤ " if min(there, default=low) < low else "", "", "≥ " if max(there, default=high) > high else ""
    ticks = [low + (high - low) * part for part in (0, 0.5, 1)]
    written = [short(10**tick if log else tick, 2) for tick in ticks]
    return [(tick, f"{more}{text}") for tick, more, text in zip(ticks, over, written, strict=True)]


def ticks_of(places: Sequence[float | str]) -> list[tuple[float | str, str]]:
    """At most `MOST_TICKS` of them, evenly spaced."""
    return [(at, str(at)) for at in places[:: math.ceil(len(places) / MOST_TICKS) or 1]]
