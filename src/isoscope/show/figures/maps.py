"""Maps of heads: one cell a head, layers down and heads across, coloured by value; of several steps the last.

Shares and cosines have the same colours in every model; what has no bounds goes to the 95th percentile.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import product

import pandas as pd

from isoscope.formatting import short
from isoscope.show.charts import MOST_TICKS, Axis, Chart, Map
from isoscope.show.charts import Told as Hover
from isoscope.show.figures.curves import telling
from isoscope.show.figures.panels import KINDS, Panel, heading_of
from isoscope.show.measures import MAPS, SHOWN, Told, how_shown, title_of
from isoscope.show.readings import SiteReading, at_last, models, read

CELL = 22  # pixels a layer where there are few; many share `TALLEST`
TALLEST = 420
GAP_UNTIL = 48  # with more layers or heads than this, cells have no gap between them
MOST_TOLD = 4096
"""Of more cells each tells its value and its head alone: with all, 200 layers of 128 heads took 32 MB."""

_BELOW, _ABOVE = 44, 8
_MOST_HEADS = 0.95


def maps(rows: pd.DataFrame, family: str, told: Told | None = None) -> tuple[Panel, ...]:
    """One panel for each map of this section, model and kind of attention; none without rows of heads."""
    return maps_of(rows, MAPS.get(family, ()), told or {})


def maps_of(rows: pd.DataFrame, measures: Collection[str], told: Told) -> tuple[Panel, ...]:
    """One panel for each of these measures, model and kind of attention."""
    headed = rows["head"].notna() & rows["measure"].isin(list(measures))
    readings = [r for r in read(rows[headed]) if r.kind in KINDS]
    several = len(models(readings)) > 1
    crossed = any(r.kind.startswith("cross_") for r in readings)
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
        high = sizes[math.ceil(_MOST_HEADS * len(sizes)) - 1] or 1.0  # of all but the few that stand out
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
    height = _ABOVE + _BELOW + min(TALLEST, max(CELL * len(layers), 4 * CELL))
    across = Axis("head", ticks=ticks_of(heads))
    return Chart("", across, "", map=found, height=height, margin={"t": _ABOVE, "b": _BELOW, "r": 44})


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
