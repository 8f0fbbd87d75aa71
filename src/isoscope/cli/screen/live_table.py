"""The table of a live view: a line a layer, a few measures, each with its value and its way so far.

Decided here: all sparklines of a column share one scale, from the least to the largest that any layer has
shown, so that layers can be held against each other and not only against their own past.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.table import Table

from isoscope.formatting import number

MEASURES = {  # what stands in a column, the first matter most
    "mean_cosine_between": "cosine\nbetween",
    "relative_drift": "relative\ndrift",
    "normalised_entropy": "attention\nentropy",
    "largest_score": "largest\nscore",
    "drift_share": "drift\nshare",
    "rank_residual": "rank\nresidual",
}
LENGTH = 8  # looks that a sparkline shows
_BARS = "▁▂▃▄▅▆▇█"
_SITE, _COLUMN = 7, 6 + 1 + LENGTH + 1  # columns of the terminal

Line = tuple[str, int | None]
"""A line of the table: a layer with the attention of its block, or what has no layer."""


@dataclass(frozen=True)
class History:
    """What the last looks saw: of each line and measure its values, and the loop's own numbers by name."""

    looks: int = 0
    values: Mapping[str, Mapping[Line, Sequence[float]]] = field(default_factory=dict)
    own: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def with_look(self, rows: pd.DataFrame) -> History:
        """The same with the rows of one look more."""
        whole = rows[rows["head"].isna()]
        values = {name: dict(lines) for name, lines in self.values.items()}
        told = whole[whole["measure"].isin(list(MEASURES))]
        columns = (told["kind"], told["layer"].astype(object), told["measure"], told["value"])
        for kind, layer, measure, value in zip(*columns, strict=True):
            line = "layer" if kind == "attention" else str(kind), None if layer is pd.NA else int(layer)
            lines = values.setdefault(str(measure), {})
            lines[line] = _last(lines.get(line, ()), float(value))
        own = dict(self.own)
        mine = whole[whole["kind"] == "training"]
        for measure, value in zip(mine["measure"], mine["value"], strict=True):
            own[str(measure)] = _last(own.get(str(measure), ()), float(value), 3 * LENGTH)
        return History(self.looks + 1, values, own)

    def lines(self) -> list[Line]:
        """All lines, by depth, what has no layer last."""
        found = {line for lines in self.values.values() for line in lines}
        return sorted(found, key=lambda line: (line[1] is None, line[0] != "layer", line[1] or 0, line[0]))


def layers_table(history: History, width: int, most: int) -> Table:
    """The table, as many columns as are wide enough and at most so many lines, evenly spaced."""
    room = max(1, (width - _SITE) // _COLUMN)
    names = [name for name in MEASURES if name in history.values][:room]
    every = history.lines()
    lines = every if len(every) <= most else [every[i * (len(every) - 1) // (most - 1)] for i in range(most)]
    fewer = f"{len(lines)} of {len(every)} layers" if len(lines) < len(every) else None
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        caption=fewer,
        caption_justify="left",
    )
    table.add_column("layer", no_wrap=True)
    scales = {name: _scale(history.values[name].values()) for name in names}
    for name in names:
        table.add_column(MEASURES[name], no_wrap=True, justify="right")
    for line in lines:
        kind, layer = line
        cells = [_cell(history.values[name].get(line), scales[name]) for name in names]
        table.add_row(str(layer) if kind == "layer" else kind if layer is None else f"{kind} {layer}", *cells)
    return table


def sparkline(values: Sequence[float], scale: tuple[float, float] | None = None) -> str:
    """The way of these values as bars, a blank where there is none.

    >>> sparkline([0.0, 0.5, float("nan"), 1.0])
    '▁▅ █'
    """
    low, high = _scale([values]) if scale is None else scale
    span = (high - low) or 1.0
    return "".join(
        _BARS[round((value - low) / span * (len(_BARS) - 1))] if math.isfinite(value) else " "
        for value in values
    )


def _cell(values: Sequence[float] | None, scale: tuple[float, float]) -> str:
    if not values:
        return ""
    value = "NaN" if math.isnan(values[-1]) else number(values[-1])
    return f"[bold]{value}[/] [cyan]{sparkline(values, scale):<{LENGTH}}[/]"


def _scale(lines: Iterable[Sequence[float]]) -> tuple[float, float]:
    found = [value for line in lines for value in line if math.isfinite(value)]
    return (min(found), max(found)) if found else (0.0, 1.0)


def _last(before: Sequence[float], value: float, most: int = LENGTH) -> tuple[float, ...]:
    return (*before, value)[-most:]
