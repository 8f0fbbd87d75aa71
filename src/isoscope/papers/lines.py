"""Rows of several seeds as series of a chart: the mean over seeds with its interval, by layer or step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import pandas as pd

from isoscope.papers.intervals import of_row, over_seeds, within
from isoscope.results.reading import Reading
from isoscope.show.charts import Series


def series(
    name: str, x: Sequence[float | str], found: Sequence[Reading], style: Literal["line", "dots"] = "line"
) -> Series:
    """Intervals as a series."""
    parts = ([each.value for each in found], [each.low for each in found], [each.high for each in found])
    return Series(name, list(x), *parts, style=style)


def along(
    rows: pd.DataFrame, column: Literal["layer", "step"], name: str,
    bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Series:  # fmt: skip
    """The mean over seeds at each layer or step (of one seed its rows' intervals), cut to `bounds`."""
    there = rows[rows[column].notna() & rows["value"].notna()]
    places = sorted(int(place) for place in there[column].unique())
    found = [within(at_place(there[there[column] == place]), *bounds) for place in places]
    return series(name, [float(place) for place in places], found)


def curves(
    rows: pd.DataFrame, column: Literal["layer", "step"], by: Literal["model", "layer"] = "model",
    bounds: tuple[float, float] = (-math.inf, math.inf)
) -> list[Series]:  # fmt: skip
    """A curve per model or per layer, each as `along` has it."""
    groups = rows.groupby(by, sort=by == "layer")
    names = {key: f"layer {key}" if by == "layer" else str(key) for key, _ in groups}
    return [along(part, column, names[key], bounds) for key, part in groups]


def dots(name: str, points: pd.DataFrame, x: str, y: str, told: str = "") -> Series:
    """Rows of a table as dots by two of its columns; `told` is hover text with names of columns in braces."""
    words = [told.format_map(each) for each in points.to_dict("records")] if told else ()
    return Series(name, points[x].tolist(), points[y].tolist(), style="dots", told=words)


def at_place(rows: pd.DataFrame) -> Reading:
    """The mean over seeds of rows of one place; of a single row, its own interval."""
    return of_row(rows.iloc[0]) if len(rows) == 1 else over_seeds(rows)
