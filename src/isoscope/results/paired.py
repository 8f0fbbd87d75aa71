"""The change from one reading to another, with its interval: paired where both read the same inputs.

Two readings of the same sequences share most of their noise, so two intervals may overlap where the change is
sure. Left out group by group, both move together: the error of the difference is that of the differences.
That also holds where one of them is of a part of the sequences. Readings of other inputs, or of folders that
do not keep what groups do, are taken as independent.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from isoscope.results.reading import Reading

LEVEL = 0.95
PAIRED, UNPAIRED = "paired", "unpaired"
"""The tags of a change: which form its interval has."""
ROUNDING = 1e-5
"""Of its size, so much of a number may depend on batch size and order: a smaller change is none."""
_FEWEST = 7.0  # degrees of an interval that does not tell them: of 8 sequences


def paired(one: Reading, other: Reading, comparisons: int = 1) -> Reading:
    """`other` less `one`, whose null is no change; `tag` says whether its interval, if any, is paired.

    The intervals of this many `comparisons` hold together with 95 % (Bonferroni).

    >>> from isoscope.results.reading import Influence
    >>> noise = np.array([0.3, -0.3, 0.3, -0.3])
    >>> a = Reading(1.0, 9, low=0, high=2, influence=Influence(1.0, 3, noise))
    >>> b = Reading(1.1, 9, low=0, high=2, influence=Influence(1.1, 3, noise + [0.01, 0, 0, -0.01]))
    >>> paired(a, b).said, paired(a, Reading(1.1, 9, low=0.1, high=2.1)).said
    ('0.1 [0.055, 0.145]', '0.1 [−1.31, 1.51]')
    """
    value, n, mine, its = other.value - one.value, min(one.n, other.n), one.influence, other.influence
    same = mine is not None and its is not None and mine.inputs == its.inputs
    if mine is not None and its is not None and same and len(mine.each) == len(its.each):
        error = float(np.linalg.norm(its.each - mine.each))
        reach = _quantile(min(mine.degrees, its.degrees), comparisons) * error
        reach = max(reach, ROUNDING * max(abs(mine.centre), abs(its.centre)))
        centre = its.centre - mine.centre
        low, high = min(centre - reach, value), max(centre + reach, value)
        return Reading(value, n, 0.0, low, high, tag=PAIRED)
    if not (one.bounded and other.bounded):
        return Reading(value, n, 0.0)
    degrees = min((each.degrees for each in (mine, its) if each is not None), default=_FEWEST)
    wider = _quantile(degrees, comparisons) / _quantile(degrees, 1)
    below = math.hypot(other.value - other.low, one.high - one.value)
    above = math.hypot(other.high - other.value, one.value - one.low)
    return Reading(value, n, 0.0, value - wider * below, value + wider * above, tag=UNPAIRED)


def _quantile(degrees: float, comparisons: int) -> float:
    return float(special.stdtrit(degrees, 1 - (1 - LEVEL) / (2 * comparisons)))
