"""Which rows a figure is drawn from: those of a measure that have a value, and of one model where need be."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.formatting import listed
from isoscope.show.measures import MAIN, Told, how_shown, title_of
from isoscope.show.readings import ATTENTION, PLACES, QUERY_KEY, SiteReading, read
from isoscope.show.say.words import LIVE

PLACED = (*PLACES, *ATTENTION, *QUERY_KEY)
"""Kinds of site that stand along the layers."""


def probed(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that can be drawn: without those of batches that trained, each of which is another batch."""
    if not isinstance(frame, pd.DataFrame) or not {"measure", "kind", "value", "head"} <= set(frame.columns):
        what = type(frame).__name__
        raise IsoscopeError(
            f"a figure is drawn from rows, as `.frame()` gives them; got {what} without them."
        )
    own = frame["revision"].fillna("") != LIVE
    return frame[own] if own.any() else frame


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
    rows = probed(frame)
    rows = rows[rows["head"].notna() if heads else rows["head"].isna()]
    rows = rows[rows["kind"].isin(list(kinds))]
    if measure is None:
        there = [str(m) for m in rows.loc[_finite(rows["value"]), "measure"].drop_duplicates()]
        measure = next((m for m in prefer if m in there), next(iter(there), None))
    known = [str(m) for m in rows["measure"].drop_duplicates()]
    what = "heads" if heads else "sites"
    if measure is None:
        raise IsoscopeError(f"there is nothing to draw: these rows hold no value of {what} of this kind.")
    if measure not in known:
        if not known:
            raise IsoscopeError(f"there is nothing to draw: these rows hold no {what} of this kind.")
        raise unknown_name(f"measure of {what} in these rows", measure, known)
    found = read(rows[rows["measure"] == measure])
    if not any(r.known for r in found):
        why = listed(list(dict.fromkeys(r.note for r in found if r.note))[:2] or ["no reason is given"])
        raise IsoscopeError(f"there is nothing to draw: {measure} has no value in these rows ({why}).")
    return found


def one_model(found: Sequence[SiteReading]) -> list[SiteReading]:
    """The same, which must be of one model."""
    names = list(dict.fromkeys(r.model for r in found))
    if len(names) > 1:
        raise IsoscopeError(
            f"these rows are of {len(names)} models ({', '.join(names[:4])}); this figure is of one: give "
            "those of one, as frame[frame.model == name]."
        )
    return list(found)


def titled(measure: str, told: Told | None) -> str:
    """What a measure is called, with its unit."""
    unit = how_shown(measure).unit
    title = title_of(measure, told or {})
    return f"{title} ({unit})" if unit and unit not in title else title


def measures_with_values(frame: pd.DataFrame, kinds: Iterable[str], *, heads: bool = False) -> list[str]:
    """The measures that have a value at sites of these kinds, in the order of the rows."""
    rows = probed(frame)
    rows = rows[rows["head"].notna() if heads else rows["head"].isna()]
    rows = rows[rows["kind"].isin(list(kinds)) & _finite(rows["value"])]
    return [str(m) for m in rows["measure"].drop_duplicates()]


def _finite(values: pd.Series) -> pd.Series:
    return values.astype(float).abs() < math.inf
