"""The newest rows of a run in one line of numbers, for who watches it: 10 ms, where a page takes a second."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from isoscope.results.row import COLUMNS
from isoscope.results.store import read_unit
from isoscope.show.say.words import CLAIM

_MOST = 2  # numbers of the loop's own


def newest_file(rows: Path) -> tuple[float, Path] | None:
    """The file of rows that came last, and when, in seconds; None where there is none."""
    with os.scandir(rows) as entries:
        found = [(e.stat().st_mtime_ns / 1e9, e.name) for e in entries if e.name.endswith(".parquet")]
    if not found:
        return None
    when, name = max(found)
    return when, rows / name


def told_of(file: Path) -> str:
    """What a unit is called, what its loop tells of it, and its largest mean cosine."""
    table, known = read_unit(file, COLUMNS)
    own = table[table["value"].notna() & table["head"].isna()]
    loop = own[own["kind"] == "training"].head(_MOST)
    parts = [f"{name} {value:.4g}" for name, value in zip(loop["measure"], loop["value"], strict=True)]
    cosines = own.loc[own["measure"] == CLAIM, "value"]
    parts += [f"mean cosine up to {cosines.max():.3g}"] if len(cosines) else []
    return f"{_called(table, str(known['unit']))} has come{': ' if parts else ''}{', '.join(parts)}"


def _called(table: pd.DataFrame, unit: str) -> str:
    """A step by its number, anything else by its name."""
    steps = table["step"].dropna().unique()
    return f"step {int(steps[0]):,}" if len(steps) == 1 and unit.startswith("step ") else unit
