"""The axis of steps that all figures of a training run share: which steps are drawn, and where each stands.

Of a schedule that is dense at first a step stands at log(1 + step/first), `first` the smallest step above
0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from isoscope.show.charts import Axis

Item = TypeVar("Item")
MOST_STEPS = 80
MOST_TICKS = 8
_EARLY = 0.25  # where more than half of the steps lie in so much of the way, the axis is logarithmic
_APART = 0.09  # of the axis: ticks nearer than that would run into each other


@dataclass(frozen=True)
class StepAxis:
    """The steps that are drawn, ascending, and of how many."""

    steps: tuple[int, ...]
    measured: int
    log: bool

    def at(self, step: int) -> float:
        """Where a step stands."""
        if not self.log:
            return float(step)
        first = next((s for s in self.steps if s > 0), 1)
        return round(math.log10(1 + step / first), 4)

    @property
    def range(self) -> tuple[float, float]:
        """From a little before the first step to a little after the last."""
        low, high = self.at(self.steps[0]), self.at(self.steps[-1])
        room = 0.02 * ((high - low) or 1.0)
        return low - room, high + room

    def ticks(self) -> list[int]:
        """Round numbers, or the steps themselves where they are few; none runs into the next."""
        last = self.steps[-1]
        if len(self.steps) <= MOST_TICKS:
            return self._apart([last, self.steps[0], *reversed(self.steps[1:-1])])
        if not self.log:
            about = (last - self.steps[0]) / 5
            power = 10 ** math.floor(math.log10(max(about, 1)))
            unit = next(lead * power for lead in (1, 2, 5, 10) if lead * power >= about)
            return list(range(math.ceil(self.steps[0] / unit) * unit, last + 1, unit))
        round_ = [lead * 10**power for lead in (1, 3) for power in range(len(str(last)))]
        return self._apart([0, *(tick for tick in round_ if self.steps[0] <= tick <= last)])

    def said(self) -> str:
        """What a reader must know of it."""
        few = (
            f"Figures show {len(self.steps)} of the {self.measured:,} steps that were measured, evenly "
            "spaced, and every step at which an alarm went off; all are in rows/*.parquet."
        )
        scale = "Steps stand on a logarithmic scale, since most were measured early."
        return " ".join([few] * (len(self.steps) < self.measured) + [scale] * self.log)

    def _apart(self, candidates: Iterable[int]) -> list[int]:
        """Those of them, the first preferred, that have room."""
        low, high = self.range
        kept: list[int] = []
        for tick in candidates:
            if all(abs(self.at(tick) - self.at(other)) >= _APART * (high - low) for other in kept):
                kept.append(tick)
        return sorted(kept)


def step_axis(measured: Iterable[int], keep: Iterable[int] = ()) -> StepAxis:
    """The axis of a run that was measured at these steps; those to `keep` are drawn whatever happens."""
    every = sorted(set(measured))
    shown = set(every)
    if len(every) > MOST_STEPS:
        wanted = sorted(set(keep) & shown)[: MOST_STEPS // 2]
        shown = {*spaced(every, MOST_STEPS - len(wanted)), *wanted}
    early = sum(step - every[0] <= _EARLY * (every[-1] - every[0]) for step in every)
    return StepAxis(tuple(sorted(shown)), len(every), len(every) > 3 and early > len(every) / 2)


def across_steps(axis: StepAxis) -> Axis:
    """The axis as a chart has it."""
    return Axis("step", range=axis.range, ticks=[(axis.at(step), f"{step:,}") for step in axis.ticks()])


def spaced(items: Sequence[Item], most: int) -> list[Item]:
    """At most `most` items, evenly spaced, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]
