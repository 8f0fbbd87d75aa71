"""What the judges of this paper share: which rows, of which checkpoint, and intervals by group of models.

A model of the lab is a group over its seeds; the public models, without seeds, are one over models.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Literal

import pandas as pd

from isoscope.formatting import short, spread
from isoscope.papers.claims import Verdict, all_of, lacking
from isoscope.papers.intervals import over, paired
from isoscope.results.reading import Reading

PUBLIC = "the public models"

Values = dict[str, dict[Hashable, float]]


def pick(
    rows: pd.DataFrame, kinds: str | Iterable[str], measure: str, at: Literal["first", "last", "all"] = "last"
) -> pd.DataFrame:
    """The rows of a measure at sites of these kinds, that are numbers, at an end of each model's training."""
    asked = [kinds] if isinstance(kinds, str) else list(kinds)
    found = rows[rows["kind"].isin(asked) & (rows["measure"] == measure) & rows["value"].notna()]
    if at == "all" or found.empty:
        return found
    steps = found.groupby(["model", "revision"])["step"]
    end = steps.transform("max" if at == "last" else "min")
    return found[(found["step"] == end).fillna(False) | (found["step"].isna() & (at == "last"))]


def by_group(rows: pd.DataFrame) -> Values:
    """One value a seed (of the lab), or a model (of the public ones), by group."""
    found: Values = {}
    for (model, revision), own in rows.groupby(["model", "revision"], sort=False):
        seeded = own["seed"].notna().all()
        group, key = (str(model), str(revision)) if seeded else (PUBLIC, str(model))
        found.setdefault(group, {})[key] = float(own["value"].mean())
    return found


def levels(rows: pd.DataFrame) -> dict[str, Reading]:
    """The interval of every group."""
    return {group: over(list(own.values())) for group, own in by_group(rows).items()}


def changes(first: pd.DataFrame, second: pd.DataFrame) -> dict[str, Reading]:
    """Second less first, paired by seed or model, of every group that has both."""
    one, other = by_group(first), by_group(second)
    return {group: paired(one[group], other[group]) for group in other if group in one}


def brief(found: Mapping[str, Reading]) -> str:
    """The range of the groups' values, and all that their intervals cover.

    >>> brief({"small": Reading(0.5, 3, low=0.25, high=0.75), "large": Reading(0.6, 3, low=0.5, high=0.7)})
    '0.5–0.6 [0.25, 0.75]'
    """
    each = list(found.values())
    if not each:
        return "not known"
    ends = "no interval"
    if all(one.bounded for one in each):
        ends = f"{short(min(one.low for one in each))}, {short(max(one.high for one in each))}"
    return f"{spread([one.value for one in each])} [{ends}]"


def concluded(
    parts: Iterable[Verdict], said: str, rows: pd.DataFrame, details: Mapping[str, Mapping[str, Reading]]
) -> Verdict:
    """Held where every part is; `said` with who was not measured, and every group's numbers behind it."""
    listed = [f"{name}: {told(found)}." for name, found in details.items() if found]
    whole = all_of(list(parts), said)
    return Verdict(whole.held, whole.said + lacking(rows), " ".join(listed))


def told(found: Mapping[str, Reading]) -> str:
    """Every group with its interval."""
    return ", ".join(f"{group} {each.said}" for group, each in found.items()) or "nothing"


def every(
    found: Iterable[Mapping[str, Reading]], against: Callable[[Reading, float, str], Verdict], level: float
) -> list[Verdict]:
    """A verdict for every group of every one of these."""
    return [against(each, level, group) for one in found for group, each in one.items()]
