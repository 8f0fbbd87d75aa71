"""Maps: heads × layers, and layers × steps; a cell is grey where there is no value.

Decided here: colours stand for the same values as on the page (`report.maps.bounds`): a share from 0 to 1, a
cosine from −1 to 1, what has no bounds to the largest of nineteen heads in twenty. A map of more than
`MOST_CELLS` cells is a picture inside the figure, which stays light.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isoscope.errors import unknown_name
from isoscope.formatting import short
from isoscope.plot.along_steps import along
from isoscope.plot.axes import finished, one_model, opened, readings_of, titled
from isoscope.show.colours import AMOUNT, GRID, SIGNED
from isoscope.show.draw.matplotlib.style import folded, small
from isoscope.show.figures.maps import bounds
from isoscope.show.figures.panels import KINDS, wants_log
from isoscope.show.figures.trajectories import depths, spaced
from isoscope.show.measures import Told
from isoscope.show.panels import MAPS
from isoscope.show.readings import at_last

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAPPED = tuple(dict.fromkeys(m for group in MAPS.values() for m in group))
"""Measures of heads that pages draw as maps."""
MOST_CELLS = 4000
_GAP_UNTIL = 48  # cells across or down up to which they stand apart
_TICKS = 7
_LETTERS = 40


def heads(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    kind: str | None = None,
    ax: Axes | None = None,
    told: Told | None = None,
) -> Axes:
    """Draw a map of heads, layers down and heads across; of several steps the last, of `kind` one kind."""
    found = one_model(readings_of(frame, measure, heads=True, kinds=list(KINDS), prefer=MAPPED))
    there = [name for name in KINDS if any(r.kind == name for r in found)]
    if kind is not None and kind not in there:
        raise unknown_name("kind of attention in these rows", kind, there)
    every = [r.value for r in found]
    own = at_last([r for r in found if r.kind == (kind or there[0])])
    rows, columns = (sorted({int(at) for at in places if at is not None})
                     for places in ((r.layer for r in own), (r.head for r in own)))  # fmt: skip
    at = {(r.layer, r.head): r.value for r in own if r.known}
    cells = np.array([[at.get((layer, head), math.nan) for head in columns] for layer in rows])
    low, high = bounds(own[0].measure, every)
    ax = opened(ax)
    _draw(ax, cells, _edges(range(len(columns))), (low, high), titled(own[0].measure, told))
    _tick(ax.xaxis, columns)
    _tick(ax.yaxis, rows)
    ax.set(xlabel="head", ylabel="layer")
    return finished(ax, legend=False)


def layers_by_steps(
    frame: pd.DataFrame, measure: str | None = None, *, ax: Axes | None = None, told: Told | None = None
) -> Axes:
    """Draw a map of layers and steps of one measure: every layer a line of cells, the first on top."""
    found, axis = along(frame, measure)
    found = [r for r in found if r.kind != "training"] or found
    places = depths(found)
    sites = sorted({r.place for r in found})
    finite = [r for r in found if r.known]
    log = wants_log(finite)
    at = {(r.place, r.step): r.value for r in finite if not log or r.value > 0}
    cells = np.array([[at.get((place, step), math.nan) for step in axis.steps] for place in sites])
    cells = np.log10(cells) if log else cells
    low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
    if not log:
        low, high = (-max(-low, high), max(-low, high)) if low < 0 else (0.0, high or 1.0)
    ax = opened(ax)
    x = _edges([axis.at(step) for step in axis.steps])
    _draw(ax, cells, x, (low, high), titled(found[0].measure, told), log=log)
    ticks = spaced(axis.ticks(), 5)
    ax.set_xticks([axis.at(step) for step in ticks], [f"{step:,}" for step in ticks])
    _tick(ax.yaxis, [places.names.get(place, str(place)).removeprefix("layer ") for place in sites])
    ax.set(xlabel="step, log scale" if axis.log else "step", ylabel="layer")
    return finished(ax, legend=False)


def _draw(
    ax: Any, cells: np.ndarray, x: np.ndarray, ends: tuple[float, float], title: str, *, log: bool = False
) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    low, high = ends
    stops = [pair[0] for pair in (SIGNED if low < 0 and not log else AMOUNT)]
    colours = LinearSegmentedColormap.from_list("isoscope", stops)
    apart = max(cells.shape) <= _GAP_UNTIL
    ax.set_facecolor(GRID[0])
    mesh = ax.pcolormesh(
        x, _edges(range(len(cells))), np.ma.masked_invalid(cells), cmap=colours, vmin=low,
        vmax=high if high > low else low + 1, edgecolors="white" if apart else "face",
        linewidth=0.4 if apart else 0, antialiased=apart, rasterized=cells.size > MOST_CELLS,
    )  # fmt: skip
    ax.set_ylim(len(cells) - 0.5, -0.5)
    ax.set_xlim(x[0], x[-1])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.06, pad=0.02, aspect=18)
    ticks = [low, (low + high) / 2, high if high > low else low + 1]
    there = cells[np.isfinite(cells)]
    over = ["≤ " if there.min() < low else "", "", "≥ " if there.max() > high else ""]
    written = [f"{more}{short(10**tick if log else tick, 2)}" for more, tick in zip(over, ticks, strict=True)]
    bar.set_ticks(ticks, labels=written)
    bar.ax.tick_params(length=0, labelsize=small(0.9))
    bar.outline.set_visible(False)
    ax.set_title(folded(title, _LETTERS), loc="left", fontsize=small(1.0))


def _edges(centres: Sequence[float] | range) -> np.ndarray:
    """Where cells end: half way between their middles."""
    at = np.asarray(list(centres), float)
    if len(at) == 1:
        return np.array([at[0] - 0.5, at[0] + 0.5])
    middle = (at[1:] + at[:-1]) / 2
    return np.concatenate([[at[0] - (middle[0] - at[0])], middle, [at[-1] + (at[-1] - middle[-1])]])


def _tick(side: Any, names: Sequence[object]) -> None:
    shown = range(0, len(names), max(1, math.ceil(len(names) / _TICKS)))
    side.set_ticks(shown, labels=[str(names[i]) for i in shown])
