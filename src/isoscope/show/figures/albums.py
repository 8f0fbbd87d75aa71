"""What albums of pictures share: one head is picked, and panels show its points.

An album holds the points of all its heads once, rounded to three digits; a script fills empty panels with the
head that is picked. Of more units than a page can carry so many are kept as fit, evenly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pandas as pd

MOST = 60_000
"""Points of one album that a page carries."""

Head = tuple[int, str, int, int]
"""A head: the number of its unit, the kind of site, layer and head."""


def fitting(points: pd.DataFrame, most: int) -> list[str]:
    """The units to show: all, or so many as fit, the first and the last among them."""
    sizes = points.groupby("unit", sort=False).size()
    units = list(map(str, sizes.index))
    if not units or int(sizes.sum()) <= most:
        return units
    room = max(1, most // int(sizes.max()))
    last = len(units) - 1
    return [units[round(last * i / (room - 1))] for i in range(room)] if room > 1 else units[-1:]


def called(units: Sequence[str]) -> tuple[str, ...]:
    """The units as a list shows them: a step by its number.

    >>> called(["step 000040", "pythia"])
    ('40', 'pythia')
    """
    return tuple(re.sub(r"^step 0*(?=\d)", "", unit) for unit in units)


def along(names: Sequence[str]) -> str:
    """What the units are: steps of training, or something else."""
    return "step" if all(name.isdigit() for name in names) else "unit"


def rounded(value: float) -> float | None:
    """Three digits, which a picture shows; None for what is not a number."""
    return float(f"{value:.3g}") if math.isfinite(value) else None
