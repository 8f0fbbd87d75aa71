"""From numbers of every head to readings: first the layer's, the mean over its heads, then each head's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from torch import Tensor

from isoscope.measures.base import side_by_side, undefined
from isoscope.results.reading import Influence, Reading
from isoscope.stats.intervals import Array, Groups, array, enough, few, quiet

SURE = 1.96  # standard errors of a normal distribution in 95 %


@quiet
def per_head(
    found: Array,
    n: Array,
    *,
    null: Array | None = None,
    size: Tensor,
    sequences: Tensor,
    joint: Tensor,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    why: str = "no row that counts",
) -> tuple[Reading, ...]:
    """Readings of a number of every head: the layer's, then one a head; n [h] and `null` [h] go with it.

    `found` [1 + G, h] is the number over all sequences, then with each group of them left out; [1, h] where
    there is to be no interval. `size` [G, h] and `sequences` [G] are the groups', and `joint` sequences share
    their unit with others. Heads without a number are left out of the layer's.
    """
    found = np.where(np.isfinite(found), found, math.nan)
    known = ~np.isnan(found[0])
    if not known.any():
        return undefined(0, why), *(undefined(int(each), why) for each in n.tolist())
    some = slice(None) if known.all() else known

    def with_layer(x: Array) -> Array:
        """[…, h] to […, 1 + h]: in front the mean over the heads that are known."""
        return np.concatenate([x[..., some].mean(-1, keepdims=True), x], -1)

    every = with_layer(found)
    low = high = nothing = np.full_like(every[0], math.nan)
    note, moved = "", None
    if len(every) > 1 and not enough(array(sequences), joint):
        note = few(joint)
    elif len(every) > 1:
        groups = Groups.of(array(size).mean(1, keepdims=True))
        (low, high), moved = groups.interval(every), Influence.of(*groups.moves(every[:, :1]))
    return side_by_side(
        every[0],
        np.concatenate([n[some].sum(0, keepdims=True), n]),
        null=nothing if null is None else with_layer(null),
        low=np.maximum(low, bounds[0]),
        high=np.minimum(high, bounds[1]),
        notes=[note, *(note if each else why for each in known.tolist())],
        influence=moved,
    )


def of_uncertain_means(
    readings: Iterable[Reading], noise: Iterable[float], most: float = math.inf
) -> tuple[Reading, ...]:
    """Shares of variance, up to `most`, with intervals that hold the noise of the means they are of.

    A mean that is off by δ adds to a share P the `noise` N of δ, and twice the covariance of both, whose
    standard error is at most 2√(P·N) by Cauchy-Schwarz. Leaving out groups does not show that: the
    readings are not paired.
    """
    return tuple(_widened(*each, most) for each in zip(readings, noise, strict=True))


def _widened(reading: Reading, noise: float, most: float) -> Reading:
    reading = replace(reading, influence=None)
    if not reading.bounded or not noise > 0:
        return reading
    apart = 2 * SURE * math.sqrt(max(reading.value, noise) * noise)
    below, above = (math.hypot(end - reading.value, apart) for end in (reading.low, reading.high))
    return replace(
        reading, low=max(0.0, reading.value - below - noise), high=min(most, reading.value + above)
    )
