"""Rows as tests write them: typed columns are filled in from names and notes, as for runs of schema 1."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from isoscope.results import row
from isoscope.results.schema1 import COLUMNS_1, upgraded


def typed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with every typed column filled in that is empty, from their names and notes."""
    parsed = upgraded(rows[list(COLUMNS_1)].astype(COLUMNS_1), {})
    added = [name for name in row.COLUMNS if name not in COLUMNS_1]
    rows = rows.reindex(columns=[*rows.columns, *(name for name in added if name not in rows)])
    filled = {name: rows[name].where(rows[name].notna() & (rows[name] != ""), parsed[name]) for name in added}
    return rows.assign(**filled).astype({name: row.COLUMNS[name] for name in added})


def frame(rows: Iterable[row.Row]) -> pd.DataFrame:
    """A table of rows, as `results.row.frame` makes it, with every typed column filled in."""
    return typed(row.frame(rows))
