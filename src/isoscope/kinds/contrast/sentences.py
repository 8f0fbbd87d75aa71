"""What a contrast says in words: which arms lie higher or lower, which are indistinguishable, and where."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from isoscope.formatting import short
from isoscope.lab.contrast.fit import Fitted, fit
from isoscope.results.store import RunFolder
from isoscope.show.measures import Told, name_of, title_of

LAYER = "Mean over layers"
CHANCE = "Intervals are not corrected for their number: of twenty arms that do not differ, one seems to."
_FIRST = ("relative_drift", "mean_cosine_between", "drift_share", "loss")
_FIRST_AS_THEY_CAME = (
    "loss",
    "probe_accuracy",
    "normalised_entropy",
    "relative_drift",
    "mean_cosine_between",
)
"""The quantities of the headline, in order: at matched entropy, and of arms as they came."""


def fitted(folder: RunFolder) -> Fitted:
    """Points, lines and differences of the trials in a folder, its arms in the order they were asked for."""
    facts = folder.facts().values()
    places = {(int(str(known["place"])), str(known["arm"])) for known in facts if "place" in known}
    arms = [arm for _, arm in sorted(places)]
    return fit(folder.frame(), str(folder.run.question["reference"]), arms)


def reach(line: pd.Series) -> tuple[float, float, bool]:
    """The interval of a difference, or where it has none how far its seeds reach; and whether it has one."""
    bounded = bool(pd.notna(line["low"]))
    return (line["low"], line["high"], True) if bounded else (line["least"], line["most"], False)


def as_they_came(differences: pd.DataFrame) -> bool:
    """Whether arms were driven to no entropy, and are compared at none."""
    return bool(differences["at"].isna().all() and differences["value"].notna().any())


def finding(differences: pd.DataFrame, arms: Sequence[str], told: Told) -> str:
    """The headline: the first quantity in which an arm differs from the reference, else that none does."""
    whole = differences[(differences["layer"] == 0) & differences["value"].notna()]
    asked = whole[~whole["control"].astype(bool)]  # controls are not what is asked about
    if asked.empty:
        reference = arms[0] if arms else "another"
        return f"Nothing can be compared: no arm has seeds and entropies in common with {reference}."
    if asked["low"].isna().all():
        few = f"Too few seeds for an interval ({int(asked['n'].max())})"
        return f"{few}: no arm can be compared with {arms[0]}."
    free = as_they_came(differences)
    first = _FIRST_AS_THEY_CAME if free else _FIRST
    for measure in first:
        own = asked[asked["measure"] == measure]
        if _sure(own).any():
            the = "The" if free else "At the same entropy the"
            return f"{the} {name_of(measure, told)} is {_sides(own[_sure(own)])} than with {arms[0]}."
    at = "No arm" if free else "At the same entropy, no arm"
    names = ", ".join(name_of(measure, told) for measure in first)
    return f"{at} is distinguishable from {arms[0]} ({names})."


def findings(differences: pd.DataFrame, told: Told) -> list[str]:
    """A sentence per quantity: who differs and by how much, who does not, who has no number and why.

    A quantity that no arm has in common with the reference, such as a mass that a softmax lacks, is left out.
    """
    found = []
    somewhere = differences.groupby("measure")["value"].transform("count") > 0
    shown = differences[somewhere] if somewhere.any() else differences
    for measure, own in shown.groupby("measure", sort=False):
        sure, known, bounded = _sure(own), own["value"].notna(), own["low"].notna()
        parts = [_sides(own[sure])] if sure.any() else []
        unsure = {"indistinguishable": own[~sure & known & bounded], "too few seeds": own[known & ~bounded]}
        parts += [f"{why}: {', '.join(part['arm'])}" for why, part in unsure.items() if len(part)]
        for note, lost in own[~known].groupby("note", sort=False):
            parts.append(f"no number: {', '.join(lost['arm'])} ({str(note) or 'no seed in common'})")
        found.append(f"{title_of(str(measure), told)}: {'; '.join(parts)}.")
    return found


def span(differences: pd.DataFrame) -> str:
    """Where the arms are compared."""
    if as_they_came(differences):
        return "Arms were not matched, so they differ in entropy as well."
    ranges = differences[differences["range_low"].notna() & (differences["note"] == "")]
    if ranges.empty:
        return "Not all arms have a range of entropies in common; none is shaded."
    low, high = short(float(ranges["range_low"].min())), short(float(ranges["range_high"].max()))
    return f"Shaded: the entropies that all arms reached, {low} to {high}; arms are compared in the middle."


def _sure(differences: pd.DataFrame) -> pd.Series:
    return (differences["low"] > 0) | (differences["high"] < 0)


def _sides(own: pd.DataFrame) -> str:
    """Who lies lower and who higher, each with its interval."""
    sides = []
    for word, part in (("lower", own[own["value"] < 0]), ("higher", own[own["value"] > 0])):
        each = [
            f"{arm} ({short(value, 2)} [{short(low, 2)}, {short(high, 2)}])"
            for arm, value, low, high in part[["arm", "value", "low", "high"]].itertuples(index=False)
        ]
        sides += [f"{word} with {', '.join(each)}"] if each else []
    return " and ".join(sides)
