"""The course of a training run: where it broke, up to which step it is whole, and what looking at it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf

import numpy as np
import pandas as pd

from isoscope.show.readings import ATTENTION, SiteReading

NOT_FINITE = ("not_finite", "not_finite_rows")
Facts = Mapping[str, Mapping[str, object]]  # what is known of each unit of a run


def first_not_finite(readings: Iterable[SiteReading]) -> SiteReading | None:
    """Where NaN or Inf was first seen: at the first step, first along the way of the data."""
    bad = [r for r in readings if r.measure in NOT_FINITE and r.head is None and r.value > 0]
    return min(bad, key=lambda r: (r.step or 0, r.place, r.kind not in ATTENTION), default=None)


def not_finite(first: SiteReading) -> str:
    """Where NaN or Inf was first seen, as a sentence without its point."""
    what = "attention rows" if first.measure == "not_finite_rows" else "vectors"
    at = "" if first.step is None else f" at step {first.step:,},"
    return f"NaN or Inf was first seen{at} in {first.site} ({first.value:,.0f} of {first.n:,} {what})"


def while_whole(readings: list[SiteReading]) -> list[SiteReading]:
    """Without the steps after the last one that has all the values that any step has: the run broke there."""
    values = Counter(r.step for r in readings if r.known and r.kind != "training" and r.step is not None)
    most = max(values.values(), default=0)
    last = max((step for step, count in values.items() if count == most), default=None)
    return [r for r in readings if last is None or r.step is None or r.step <= last]


def rows_while_whole(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows without the steps after the last whole one; in a long run they are too many to read one by one."""
    values = rows.loc[np.isfinite(rows["value"].astype(float)) & (rows["kind"] != "training"), "step"]
    counts = values.value_counts()
    if counts.empty:
        return rows
    return rows[rows["step"].isna() | (rows["step"] <= counts[counts == counts.max()].index.max())]


def cost(facts: Facts) -> str:
    """How much looking added to the time of training; empty where that is not recorded."""
    booked = [unit for unit, known in facts.items() if known.get("budget")]
    last = max(booked, key=_step, default="")
    budget = facts[last]["budget"] if last else None
    share = budget.get("share spent") if isinstance(budget, Mapping) else None
    if not isinstance(share, float | int):
        return ""
    until = "" if _step(last) == inf else f" up to step {_step(last):,.0f}, the last look"
    return f"Looking added {100 * share:.{0 if share >= 0.1 else 1}f} % to the time of training{until}."


def told_once(facts: Facts) -> dict[str, dict[str, object]]:
    """Facts with the note on the budget at the last unit only: every unit repeats it, with newer numbers."""
    last = max((unit for unit, known in facts.items() if known.get("budget note")), key=_step, default="")
    left = {unit: None if unit == last else known.get("budget note") for unit, known in facts.items()}
    return {
        unit: {**known, "notes": [note for note in notes_of(known) if note != left[unit]]}
        for unit, known in facts.items()
    }


def _step(unit: str) -> float:
    """The step of a unit by its name, as a number: as text, "step 1000000" stands before "step 999999"."""
    number = unit.rpartition(" ")[2]
    return int(number) if number.isdecimal() else inf


def notes_of(known: Mapping[str, object]) -> list[object]:
    """The notes that a unit recorded."""
    told = known.get("notes")
    return [told] if isinstance(told, str) else list(told) if isinstance(told, list | tuple) else []
