"""From numbers of every head to readings: first the layer's, the mean over its heads, then each head's."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isoscope.measures.base import Reading, undefined
from isoscope.stats.intervals import FEW, enough, jackknife


def per_head(
    value: Tensor,
    n: Tensor,
    *,
    null: Tensor | None = None,
    without: Tensor | None = None,
    size: Tensor,
    sequences: Tensor,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    why: str = "no row that counts",
) -> tuple[Reading, ...]:
    """Readings of `value` [h]: the layer's, then one a head; n [h] and `null` [h] go with it.

    `without` [G, h] is the value with each group of sequences left out; `size` [G] weighs the groups. Heads
    without a value are left out of the layer's.
    """
    value, n, size, sequences = (x.detach().cpu().double() for x in (value, n, size, sequences))
    nulls = torch.full_like(value, math.nan) if null is None else null.cpu().double()
    rest = None if without is None or not enough(sequences) else without.cpu().double()
    note = FEW if without is not None and rest is None else ""
    known = value.isfinite()
    heads = [
        _reading(
            float(value[h]),
            int(n[h]),
            float(nulls[h]),
            None if rest is None else rest[:, h],
            size,
            bounds,
            note,
        )
        if known[h]
        else undefined(int(n[h]), why)
        for h in range(len(value))
    ]
    if not bool(known.any()):
        return undefined(0, why), *heads
    together = None if rest is None else rest[:, known].mean(1)
    mean, count = float(value[known].mean()), int(n[known].sum())
    return _reading(mean, count, float(nulls[known].mean()), together, size, bounds, note), *heads


def _reading(
    value: float,
    n: int,
    null: float,
    without: Tensor | None,
    size: Tensor,
    bounds: tuple[float, float],
    note: str,
) -> Reading:
    if without is None or not bool(without[size > 0].isfinite().all()):
        return Reading(value, n, null, note=note)
    low, high = jackknife(value, without, size)
    return Reading(value, n, null, max(low, bounds[0]), min(high, bounds[1]), note)
