"""A run that broke: where NaN or Inf was first seen, and the steps up to which it can be spoken of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd

from isoscope.show.readings import ATTENTION, SiteReading

NOT_FINITE = ("not_finite", "not_finite_rows")


def first_not_finite(readings: Iterable[SiteReading]) -> SiteReading | None:
    """Where NaN or Inf was first seen: at the first step, first along the way of the data."""
    bad = [r for r in readings if r.measure in NOT_FINITE and r.head is None and r.value > 0]
    return min(bad, key=lambda r: (r.step or 0, r.place, r.kind not in ATTENTION), default=None)


def not_finite(first: SiteReading) -> str:
    """The same as a sentence, without its point."""
    what = "attention rows" if first.measure == "not_finite_rows" else "vectors"
    of = f" of {first.n:,}"
    at = "" if first.step is None else f" at step {first.step:,},"
    return f"NaN or Inf was first seen{at} in {first.site} ({first.value:,.0f}{of} {what})"


def while_whole(readings: list[SiteReading]) -> list[SiteReading]:
    """Without the steps after the last one that has all the values that any step has.

    A run that ends in NaN is told by what it was before, not by the few sites that are left.
    """
    values = Counter(r.step for r in readings if r.known and r.kind != "training" and r.step is not None)
    most = max(values.values(), default=0)
    last = max((step for step, count in values.items() if count == most), default=None)
    return [r for r in readings if last is None or r.step is None or r.step <= last]


def rows_while_whole(rows: pd.DataFrame) -> pd.DataFrame:
    """The same of rows: of a long run they are too many to be read one by one."""
    values = rows.loc[np.isfinite(rows["value"].astype(float)) & (rows["kind"] != "training"), "step"]
    counts = values.value_counts()
    if counts.empty:
        return rows
    return rows[rows["step"].isna() | (rows["step"] <= counts[counts == counts.max()].index.max())]
