"""Which rows a figure is drawn from: those of a measure that have a value, and of one model where need be."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.formatting import listed
from isoscope.show.measures import MAIN, Told, how_shown, title_of
from isoscope.show.readings import ATTENTION, PLACES, QUERY_KEY, SiteReading, models, read, unique
from isoscope.show.say.words import LIVE

PLACED = (*PLACES, *ATTENTION, *QUERY_KEY)
"""Kinds of site that stand along the layers."""
OF_STEPS = (*PLACED, "training")
"""Kinds of rows that run along the steps; `training` are the loop's own numbers, such as its loss."""


def probed(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that can be drawn: without those of batches that trained, each of which is another batch."""
    if not isinstance(frame, pd.DataFrame) or not {"measure", "kind", "value", "head"} <= set(frame.columns):
        what = type(frame).__name__
        raise IsoscopeError(
            f"a figure is drawn from rows, as `.frame()` gives them; got {what} without them."
        )
    own = frame["revision"].fillna("") != LIVE
    return frame[own] if own.any() else frame


def rows_at(frame: pd.DataFrame, kinds: Collection[str], heads: bool) -> pd.DataFrame:
    """The rows that can be drawn of sites of these kinds, or of their heads."""
    rows = probed(frame)
    return rows[(rows["head"].notna() == heads) & rows["kind"].isin(list(kinds))]


def measures_with_values(frame: pd.DataFrame, kinds: Collection[str], *, heads: bool = False) -> list[str]:
    """The measures that have a value at sites of these kinds, in the order of the rows."""
    rows = rows_at(frame, kinds, heads)
    return names_in(rows[rows["value"].astype(float).abs() < math.inf], "measure")


def names_in(rows: pd.DataFrame, column: str) -> list[str]:
    """What is in a column, without repeats, in the order of the rows."""
    return list(map(str, rows[column].drop_duplicates()))


def readings_of(
    frame: pd.DataFrame,
    measure: str | None,
    *,
    heads: bool = False,
    kinds: Collection[str] = PLACED,
    prefer: Sequence[str] = MAIN,
) -> list[SiteReading]:
    """The readings of one measure at sites of these kinds, or at their heads; at least one has a value.

    Without a measure it is the first of those to `prefer` that has a value, else the first of all.
    """
    rows, what = rows_at(frame, kinds, heads), "heads" if heads else "sites"
    known = names_in(rows, "measure")
    if measure is None:
        there = measures_with_values(rows, kinds, heads=heads)
        if not there:
            raise IsoscopeError(f"there is nothing to draw: these rows hold no value of {what} of this kind.")
        measure = next((m for m in prefer if m in there), there[0])
    elif not known:
        raise IsoscopeError(f"there is nothing to draw: these rows hold no {what} of this kind.")
    elif measure not in known:
        raise unknown_name(f"measure of {what} in these rows", measure, known)
    readings = read(rows[rows["measure"] == measure])
    if not any(r.known for r in readings):
        why = listed(unique(r.note for r in readings if r.note)[:2] or ["no reason is given"])
        raise IsoscopeError(f"there is nothing to draw: {measure} has no value in these rows ({why}).")
    return readings


def one_model(readings: Sequence[SiteReading]) -> list[SiteReading]:
    """These readings, which must be of one model."""
    names = models(readings)
    if len(names) > 1:
        raise IsoscopeError(
            f"these rows are of {len(names)} models ({', '.join(names[:4])}); this figure is of one: give "
            "those of one, as frame[frame.model == name]."
        )
    return list(readings)


def titled(measure: str, told: Told | None) -> str:
    """What a measure is called, with its unit."""
    unit, title = how_shown(measure).unit, title_of(measure, told or {})
    return f"{title} ({unit})" if unit and unit not in title else title
