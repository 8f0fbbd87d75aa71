"""What a contrast says in words: which arms lie higher or lower, which cannot be told apart, and where."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from isoscope.formatting import short
from isoscope.show.measures import Told, name_of, title_of

LAYER = "Mean over layers"
CHANCE = "Every interval stands for itself: of twenty arms that do not differ, one is told apart by chance."
_FIRST = ("relative_drift", "mean_cosine_between", "drift_share", "loss")  # what the headline speaks of
_FIRST_AS_THEY_CAME = (
    "loss",
    "probe_accuracy",
    "normalised_entropy",
    "relative_drift",
    "mean_cosine_between",
)


def as_they_came(differences: pd.DataFrame) -> bool:
    """Whether arms were driven to no entropy, and are compared at none."""
    return bool(differences["at"].isna().all() and differences["value"].notna().any())


def finding(differences: pd.DataFrame, arms: Sequence[str], told: Told) -> str:
    """The headline: the first quantity in which an arm differs from the reference, else that none does."""
    whole = differences[differences["layer"] == 0]
    if not len(whole):
        return "Nothing can be compared yet."
    known = whole[whole["value"].notna()]
    if known.empty and (whole["note"] == "").all():
        return f"No arm has a seed in common with {arms[0]}: nothing can be compared."
    if known.empty:
        return f"No arm has entropies in common with {arms[0]}: nothing can be compared."
    if known["low"].isna().all():
        count = int(known["n"].max())
        seeds = f"{count} seed{'' if count == 1 else 's'}"
        return f"{seeds}: too few for an interval, so no arm can be told from {arms[0]}."
    free = as_they_came(differences)
    asked = known[~known["control"].astype(bool)]  # controls are not what is asked about
    if asked.empty:
        return f"No arm has an entropy at which it could be held against {arms[0]}."
    for measure in _FIRST_AS_THEY_CAME if free else _FIRST:
        own = asked[asked["measure"] == measure]
        if _sure(own).any():
            the = "The" if free else "At the same entropy the"
            return f"{the} {name_of(measure, told)} is {_sides(own[_sure(own)])} than with {arms[0]}."
    if free:
        return f"No arm can be told from {arms[0]} by its loss, its entropy, its drift or its anisotropy."
    return f"At the same entropy no arm can be told from {arms[0]} by its drift, its anisotropy or its loss."


def findings(differences: pd.DataFrame, told: Told) -> list[str]:
    """A sentence a quantity: who differs and by how much, who does not, who has no number and why.

    Of what nobody has in common with the reference, such as a mass that a softmax has not, nothing is said.
    """
    found = []
    somewhere = differences.groupby("measure")["value"].transform("count") > 0
    told_apart = differences if not somewhere.any() else differences[somewhere]
    for measure, own in told_apart.groupby("measure", sort=False):
        sure = _sure(own)
        parts = [_sides(own[sure])] if sure.any() else []
        unsure = own[~sure & own["value"].notna()]
        for why, part in (
            ("not told apart", unsure[unsure["low"].notna()]),
            ("too few seeds to tell", unsure[unsure["low"].isna()]),
        ):
            parts += [f"{why}: {', '.join(part['arm'])}"] if len(part) else []
        for note, lost in own[own["value"].isna()].groupby("note", sort=False):
            parts.append(f"no number: {', '.join(lost['arm'])} ({str(note) or 'no seed in common'})")
        found.append(f"{title_of(str(measure), told)}: {'; '.join(parts)}.")
    return found


def span(differences: pd.DataFrame) -> str:
    """Where the arms are compared."""
    if as_they_came(differences):
        return "Every trial lies at the entropy that it came to: arms differ in that as well."
    ranges = differences[differences["range_low"].notna() & (differences["note"] == "")]
    if ranges.empty:
        return "Not all arms have a range of entropies in common; none is shaded."
    low, high = short(float(ranges["range_low"].min())), short(float(ranges["range_high"].max()))
    return (
        f"Shaded: the entropies that every arm reached from every seed, {low} to {high}; arms are compared "
        "in its middle."
    )


def _sure(differences: pd.DataFrame) -> pd.Series:
    return (differences["low"] > 0) | (differences["high"] < 0)


def _sides(own: pd.DataFrame) -> str:
    """Who lies lower and who higher, each with its interval."""
    sides = []
    for word, part in (("lower", own[own["value"] < 0]), ("higher", own[own["value"] > 0])):
        if len(part):
            each = [f"{line['arm']} ({_bounded(line)})" for _, line in part.iterrows()]
            sides.append(f"{word} with {', '.join(each)}")
    return " and ".join(sides)


def _bounded(line: pd.Series) -> str:
    value, low, high = (short(line[name], 2) for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"
