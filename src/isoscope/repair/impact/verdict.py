"""What a repair did to a score: helped, hurt, no difference at this n, or it cannot matter."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from isoscope.repair.impact.outcome import Outcome, ends
from isoscope.results.reading import Reading

HELPED, HURT, SAME, CANNOT, UNDEFINED = "helped", "hurt", "no difference", "cannot matter", "undefined"
EQUAL = 1e-5  # of 1: how far what a reader gives may be off where a map cannot matter: a search ends near


@dataclass(frozen=True)
class Change:
    """How a repair changed a score: `by` is after less before with its paired 95 % interval; the verdict."""

    measure: str
    by: Reading
    per: str
    verdict: str
    why: str = ""

    @property
    def least(self) -> float:
        """The smallest difference that would have shown: half of the interval's width."""
        return (self.by.high - self.by.low) / 2

    def said(self) -> str:
        """The verdict in words.

        >>> Change("spearman", Reading(0.001, 1379, 0.0, -0.002, 0.004), "pairs", SAME).said()
        'no difference at n = 1,379 pairs (one of 0.003 would have shown)'
        """
        if self.verdict == SAME:
            shown = f"one of {self.least:.2g} would have shown" if self.least else "all are alike"
            told = f"{SAME} at n = {self.by.n:,} {self.per} ({shown})"
            return f"{told}; {self.why}" if self.why else told
        return f"{self.verdict}: {self.why}" if self.why else self.verdict

    def noted(self) -> Reading:
        """The difference with the verdict as its note."""
        return replace(self.by, note=self.said())


def changed(before: Outcome, after: Outcome, reason: str, seed: int) -> Change:
    """Hold one outcome against another of the same units; `reason` is why the map cannot matter, or empty.

    A reason alone is no verdict: what the reader gave must be equal. Where it is not, the measured difference
    counts, and the contradiction is told.
    """
    value = after.value - before.value
    if math.isnan(value) or before.n != after.n:
        difference = Reading(value, after.n, 0.0)
        return Change(before.measure, difference, after.per, UNDEFINED, "a score has no value")
    low, high = ends(after.drawn(seed) - before.drawn(seed))
    found = Change(before.measure, Reading(value, after.n, 0.0, low, high), after.per, SAME)
    if reason:
        off = float(np.abs(after.seen - before.seen).max(initial=0.0))
        if off <= EQUAL * float(np.abs(before.seen).max(initial=1.0)):
            return replace(found, verdict=CANNOT, why=f"{reason}; found equal to {max(off, 1e-16):.0e}")
        reason = f"{reason} should not matter, yet what the reader gives differs by {off:.1e}"
    if math.isnan(low):
        return replace(found, verdict=UNDEFINED, why=f"{after.n:,} {after.per} are too few for an interval")
    if low <= 0 <= high:
        return replace(found, why=reason)
    return replace(found, verdict=HELPED if low * after.sign > 0 else HURT, why=reason)
