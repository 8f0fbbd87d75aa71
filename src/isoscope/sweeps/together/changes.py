"""Change points: where the trajectory of a measure jumps or turns, each with an interval for the place.

Every measure of every site is looked at along the steps, on a logarithmic axis where most were measured
early. What a change is, and what is none, is in `change_model`: a curve that bends smoothly, relaxes or
wanders is none. Decided here: a change is told where chance shows as much in one of a hundred series that
have none; at most `MOST_CHANGES` a series, the clearest first; of fewer than `LEAST` checkpoints nothing is
told. One checkpoint that lies apart from both sides is a "stray" and no change of the trajectory. Values are
taken as they are: by its logarithm a value near 0 strays whatever it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.trajectory import Trajectory, thinned
from isoscope.sweeps.together.change_model import JUMP, STRAY, TURN, Model, model

LEAST = 8  # checkpoints
MOST_STEPS = 64  # of more, so many are looked at, evenly spaced
MOST_CHANGES = 3
CHANCE = 0.01
KINDS = (JUMP, TURN, STRAY)
FEW = f"change points need {LEAST} checkpoints"
_EARLY = 0.25  # where more than half of the steps lie in so much of the way, the axis is logarithmic
_MASKS = 6  # sets of checkpoints without a value; each needs a null of its own
_FLAT = 1e-9  # of its size: a series that varies less does not vary

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """A change: its kind, the first step after it, the 95 % interval of its place in steps, p, its size.

    A size is in units of the values; of a turn it is NaN.
    """

    kind: str
    step: int
    low: int
    high: int
    chance: float
    size: float = math.nan

    @property
    def words(self) -> str:
        """What is told beside the place."""
        return f"{'' if math.isnan(self.size) else f'by {self.size:+.3g}, '}p = {self.chance:.2g}"


def find_changes(steps: Sequence[int], values: Array) -> list[list[Change]]:
    """The changes of each series of `values` [n, s] along n steps, ascending; NaN is left out."""
    every = np.array(steps)
    found: list[list[Change]] = [[] for _ in range(values.shape[1])]
    there = np.isfinite(values)
    masks, counts = np.unique(there.T, axis=0, return_counts=True)
    for mask in masks[np.argsort(-counts, kind="stable")][:_MASKS]:
        own = np.flatnonzero((mask == there.T).all(1))
        if mask.sum() < LEAST:
            continue
        for series, changes in zip(own, _of(every[mask], values[mask][:, own]), strict=True):
            found[series] = changes
    return found


def axis(steps: NDArray[np.int64]) -> Array:
    """Where steps stand: by themselves, or by log(1 + step/first) where most are early."""
    early = (steps - steps[0] <= _EARLY * (steps[-1] - steps[0])).sum()
    first = next((step for step in steps if step > 0), 1)
    return np.log1p(steps / first) if 2 * early > len(steps) else steps.astype(np.float64)


def _of(steps: NDArray[np.int64], values: Array) -> list[list[Change]]:
    chosen = thinned(range(len(steps)), MOST_STEPS)
    steps, values = steps[chosen], values[chosen]
    found: list[list[Change]] = [[] for _ in range(values.shape[1])]
    varies = np.ptp(values, axis=0) > _FLAT * np.maximum(np.abs(values).max(0), 1e-300)
    if not varies.any():
        return found
    own = np.flatnonzero(varies)
    whole = model(tuple(axis(steps).tolist()))
    values = values[:, own]
    gains, clearest, nulls = whole.score(values)
    for at, series in enumerate(own):
        if whole.chance(float(gains[at]), nulls[:, at], most=CHANCE) <= CHANCE:
            found[series] = _one(whole, nulls[:, at], int(clearest[at]), steps, values[:, at])
    return found


def _one(whole: Model, nulls: Array, clearest: int, steps: NDArray[np.int64], values: Array) -> list[Change]:
    """The changes of one series: the clearest, then the clearest beside it, as long as chance shows none."""
    now = near = whole.near(nulls, whole.changed(values, clearest))  # a jump hides which mix fits the rest
    taken: list[tuple[int, float, float]] = []
    while len(taken) < MOST_CHANGES:
        gain, where, ells = now.score(values[:, None])
        chance = whole.chance(float(gain[0]), ells[:, 0], now, most=CHANCE)
        if chance > CHANCE:
            break
        taken.append((int(where[0]), float(gain[0]), chance))
        now = now.taking(int(where[0]))
    by_chance = near.shuffled(values, [candidate for candidate, *_ in taken])
    sure = []
    for candidate, gain_, chance in taken:
        own = float((1 + (by_chance >= gain_).sum()) / (1 + len(by_chance)))
        if own > CHANCE:
            break
        sure.append((candidate, max(chance, own)))
    found = []
    for candidate, chance in sure:
        rest = near
        for other, _ in sure:
            rest = rest.taking(other) if other != candidate else rest
        found.append(_told(rest, steps, values, candidate, chance))
    return sorted(found, key=lambda change: change.step)


def _told(rest: Model, steps: NDArray[np.int64], values: Array, candidate: int, chance: float) -> Change:
    """The change with its interval, given the other changes."""
    kind, at = rest.kinds[candidate], int(rest.at[candidate])
    step, size = int(steps[at]), rest.size(values, candidate)
    if kind == STRAY:
        return Change(kind, step, step, step, chance, size)
    likely = [*rest.likely(values, kind), at]
    low = int(steps[min(likely) - 1])  # it may lie anywhere after the step before
    high = int(steps[min(max(likely) + (kind == TURN), len(steps) - 1)])
    return Change(kind, step, low, high, chance, math.nan if kind == TURN else size)


def change_rows(of: Trajectory, rows: pd.DataFrame, without: Sequence[int] = ()) -> tuple[list[Row], int]:
    """The changes of all site rows, a row each, and how many series were looked at.

    `measure` is `jump_in_…`, `turn_in_…` or `stray_in_…`, `value` the step, `low` and `high` its interval.
    Steps that are not to be trusted are left out: `without`.
    """
    own = rows[rows["head"].isna() & ~rows["step"].isin(list(without))]
    steps = sorted({int(step) for step in own["step"]})
    run, title = of.folder.run.id, of.folder.run.title
    if len(steps) < LEAST:
        nothing = Reading(math.nan, len(steps), note=f"{FEW}; there are {len(steps)}")
        return [Row.at(run, title, "", None, "checkpoints", None, None, "changes", nothing)], 0
    names, values = _table(own, steps)
    found = find_changes(steps, values)
    each = zip(names, found, strict=True)
    made = [row for place, changes in each for row in _rows(run, title, place, changes, len(steps))]
    return made, values.shape[1]


def _table(rows: pd.DataFrame, steps: list[int]) -> tuple[list[tuple[str, int | None, str]], Array]:
    """Series as columns, [steps, series], with kind, layer and measure of each."""
    at = {step: i for i, step in enumerate(steps)}
    keys = [rows["kind"].to_numpy(), rows["layer"].fillna(-1).to_numpy(np.int64), rows["measure"].to_numpy()]
    codes, names = pd.MultiIndex.from_arrays(keys).factorize()
    values = np.full((len(steps), len(names)), math.nan)
    values[[at[int(step)] for step in rows["step"]], codes] = rows["value"].to_numpy(np.float64)
    places = [(str(k), None if layer < 0 else int(layer), str(m)) for k, layer, m in names]
    return places, values


def _rows(
    run: str, title: str, place: tuple[str, int | None, str], changes: list[Change], n: int
) -> Iterator[Row]:
    kind, layer, measure = place
    for one in changes:
        where = (kind, layer, None, f"{one.kind}_in_{measure}")
        ends = (math.nan, math.nan) if one.kind == STRAY else (float(one.low), float(one.high))
        reading = Reading(float(one.step), n, math.nan, *ends, one.words, tag=one.kind, p=one.chance)
        yield Row.at(run, title, "", None, *where, reading, about=measure)
