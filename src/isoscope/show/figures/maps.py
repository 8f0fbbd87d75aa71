"""Maps of heads: one cell a head, layers down and heads across, the colour its value.

Decided here: a share or an entropy is coloured from 0 to 1, whatever is there, so that maps of two models
can be compared; masses of the sink, which are small in most models, from 0 to the largest of the section,
the same for all its maps; cosines from −1 through 0 to 1. What has no bounds goes to the largest of nineteen
heads in twenty, the rest being coloured as those are, so that one head does not bleach all others. Of several
steps the last one is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product

import pandas as pd
import plotly.graph_objects as go

from isoscope.formatting import short
from isoscope.show.colours import AMOUNT, SIGNED, Pair
from isoscope.show.draw.plotly.marks import MOST_TICKS, blank, telling
from isoscope.show.figures.panels import KINDS, Panel, heading_of
from isoscope.show.figures.trajectories import number
from isoscope.show.measures import Told, title_of
from isoscope.show.panels import MAPS
from isoscope.show.readings import SiteReading, models, read, steps

CELL = 22
"""Pixels a layer where there are few; many share `TALLEST`."""

TALLEST = 420
GAP_UNTIL = 48
"""With more layers or heads than this, cells have no gap between them."""

MOST_TOLD = 4096
"""Of more cells each tells its value and its head alone: with all, 200 layers of 128 heads took 32 MB."""

_BELOW, _ABOVE = 44, 8
_SIGNED = ("query_key_cosine", "propagation_agreement")
_TO_LARGEST = ("sink_mass", "sink_mass_without_drift")
_UNBOUNDED = {"trace": True, "frobenius": False}  # whether it has a sign
_MOST_HEADS = 0.95


def maps(rows: pd.DataFrame, family: str, told: Told | None = None) -> tuple[Panel, ...]:
    """One panel for each map of this section, model and kind of attention; none without rows of heads."""
    headed = rows["head"].notna() & rows["measure"].isin(MAPS.get(family, ()))
    readings = [r for r in read(rows[headed]) if r.kind in KINDS]
    several = len(models(readings)) > 1
    crossed = any(r.kind.startswith("cross_") for r in readings)
    drawn = []
    for measure, name, kind in product(MAPS.get(family, ()), models(readings), KINDS):
        own = [r for r in readings if (r.measure, r.model, r.kind) == (measure, name, kind)]
        last = steps(own)[-1:]
        own = [r for r in own if not last or r.step == last[0]]
        if not any(r.known for r in own):
            continue
        title = heading_of(title_of(measure, told or {}), name if several else "", kind if crossed else "")
        remark = f"by head, step {last[0]:,}" if last else "by head"
        low, high = bounds(measure, [r.value for r in readings if r.measure in alike(measure)])
        drawn.append(Panel((measure,), title, remark, _map(own, low, high)))
    return tuple(drawn)


def alike(measure: str) -> tuple[str, ...]:
    """The measures whose maps share its colours."""
    return _TO_LARGEST if measure in _TO_LARGEST else (measure,)


def _usual(sizes: list[float]) -> float:
    """The largest of all but the few that stand out."""
    return sorted(sizes)[math.ceil(_MOST_HEADS * len(sizes)) - 1] or 1.0


def bounds(measure: str, values: Iterable[float]) -> tuple[float, float]:
    """The values that the ends of the colours stand for, in maps of this measure alone."""
    found = [float(value) for value in values if math.isfinite(value)]
    if measure in _SIGNED:
        return -1.0, 1.0
    if measure in _UNBOUNDED:
        high = _usual([abs(value) for value in found])
        return (-high if _UNBOUNDED[measure] else 0.0), high
    return 0.0, min(1.0, max(found, default=1.0) or 1.0) if measure in _TO_LARGEST else 1.0


def colours(panels: tuple[Panel, ...]) -> tuple[Pair, ...]:
    """The colours these maps have, each with its pair for a dark screen."""
    return (*AMOUNT, *SIGNED) if panels else ()


def _map(own: list[SiteReading], low: float, high: float) -> go.Figure:
    layers = sorted({r.layer for r in own if r.layer is not None})
    heads = sorted({r.head for r in own if r.head is not None})
    at = {(r.layer, r.head): r for r in own}
    cells = [[at.get((layer, head)) for head in heads] for layer in layers]
    figure = blank(_ABOVE + _BELOW + min(TALLEST, max(CELL * len(layers), 4 * CELL)))
    stops = SIGNED if low < 0 else AMOUNT
    gap = 1 if max(len(layers), len(heads)) <= GAP_UNTIL else 0
    ticks = [low + (high - low) * part for part in (0, 0.5, 1)]
    values = [r.value for r in own if r.known]
    over = ["≤ " if min(values) < low else "", "", "≥ " if max(values) > high else ""]
    many = len(layers) * len(heads) > MOST_TOLD
    told: dict[str, object] = {"hovertemplate": "<b>%{z:.4g}</b>  layer %{y} head %{x}<extra></extra>"}
    if not many:
        told = {"hovertext": [[telling(r) if r else "" for r in line] for line in cells], "hoverinfo": "text"}
    digits = 4 if many else 17
    figure.add_heatmap(
        x=heads,
        y=layers,
        z=[[number(r.value, digits) if r else None for r in line] for line in cells],
        **told,
        meta={"kind": own[0].kind},  # so that a click on a cell can tell its head
        colorscale=[[i / (len(stops) - 1), pair[0]] for i, pair in enumerate(stops)],
        zmin=low,
        zmax=high,
        xgap=gap,
        ygap=gap,
        colorbar={
            "thickness": 8,
            "outlinewidth": 0,
            "tickvals": ticks,
            "ticktext": [f"{more}{short(tick, 2)}" for more, tick in zip(over, ticks, strict=True)],
            "x": 1.02,
            "xpad": 4,
            "ypad": 0,
        },
    )
    figure.update_layout(margin={"t": _ABOVE, "b": _BELOW, "r": 44})
    figure.update_xaxes(title={"text": "head", "standoff": 6}, tickangle=0, showline=False, **_ticks(heads))
    figure.update_yaxes(title={"text": "layer", "standoff": 6}, autorange="reversed", **_ticks(layers))
    return figure


def _ticks(numbers: list[int]) -> dict[str, object]:
    """At most `MOST_TICKS` of them, evenly spaced."""
    every = math.ceil(len(numbers) / MOST_TICKS)
    shown = numbers[::every]
    return {"tickvals": shown, "ticktext": list(map(str, shown)), "ticks": "", "showgrid": False}
