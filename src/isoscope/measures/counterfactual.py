"""Readings of what the mean query does: its share of the scores' variance, and attention without it.

Only what differs between the keys of a row can sharpen it; of the drift, that is the score of each key under
the mean query, the same for every query. Beside attention without it stand controls: a random vector of the
same length in its place, and entropy over the keys but the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from isoscope.geometry import query_key, sharpness
from isoscope.measures.attention import INTERVAL, ratio, read_normalised_entropy, read_sink_mass
from isoscope.measures.base import Measure
from isoscope.measures.per_head import of_uncertain_means, per_head
from isoscope.results.reading import Reading
from isoscope.stats.counterfactual import Counterfactual
from isoscope.stats.intervals import Array, array, left, quiet
from isoscope.stats.rows import Rows

_LOCAL = (
    "A local counterfactual: the layer's input is as it was, and only this attention is read again. It needs "
    "a mean query that is sure, so sequences enough."
)


@quiet
def _drift_share(record: Counterfactual) -> tuple[Reading, ...]:
    drift, rows = left(record.drift), array(record.split).sum(0)
    found = _varying(record, drift / (drift + left(record.rest)))
    chance = array(record.chance).sum(0) / rows
    readings = per_head(
        found,
        rows,
        null=chance,
        size=record.split,
        sequences=record.rows.sequences,
        joint=record.rows.joint,
        bounds=(0.0, 1.0),
        why="the scores of this attention do not vary",
    )
    noise = chance / (1 - chance) * (1 - found[0])  # of the mean query: 1/n of what is left of the queries
    known = noise[~np.isnan(noise)]
    return of_uncertain_means(readings, [known.mean() if len(known) else math.nan, *noise], 1.0)


@quiet
def _cross_term(record: Counterfactual) -> tuple[Reading, ...]:
    found = _varying(record, 1 - left(record.drift + record.rest) / left(record.rows.variance))
    return per_head(
        found,
        array(record.rows.count).sum(0),
        null=np.zeros_like(found[0]),
        size=record.rows.count,
        sequences=record.rows.sequences,
        joint=record.rows.joint,
        bounds=(-math.inf, 0.5),
        why="the scores of this attention do not vary",
    )


def _varying(record: Counterfactual, value: Array) -> Array:
    """`value` […, h], NaN where the scores vary by rounding alone: by a millionth of the largest."""
    least = (query_key.ROUNDING * (1 + np.abs(array(record.rows.score)))) ** 2 * array(record.split).sum(0)
    return np.where(array(record.drift + record.rest).sum(0) > least, value, math.nan)


def _entropy_without(record: Counterfactual) -> tuple[Reading, ...]:
    rows = record.without
    return ratio(rows, rows.entropy, rows.count, null=rows.log_visible)


def _largest_without(record: Counterfactual) -> tuple[Reading, ...]:
    return ratio(record.without, record.without.largest, record.without.count, bounds=(0.0, 1.0))


def _of(
    part: str, read: Callable[[Rows], tuple[Reading, ...]]
) -> Callable[[Counterfactual], tuple[Reading, ...]]:
    return lambda record: read(getattr(record, part))


def _beside(part: str) -> Callable[[Counterfactual], tuple[Reading, ...]]:
    def read(record: Counterfactual) -> tuple[Reading, ...]:
        count = record.beside_count
        why = "no row sees the first key and two others"
        return ratio(record.rows, getattr(record, part), count, null=count, bounds=(0.0, 1.0), why=why)

    return read


_measure = partial(
    Measure,
    family="drift in attention",
    stats=(Counterfactual,),
    misleads=_LOCAL,
    interval=INTERVAL,
    source="isoscope",
    bounds=(0.0, 1.0),
    unchanged_by=frozenset(),
    needs=frozenset({"attention", "counterfactual"}),
    at="attention",
)


MEASURES = (
    _measure(
        name="drift_share",
        read=_drift_share,
        definition=query_key.drift_share,
        title="drift share",
        formula="V_d/(V_d + V_c), V_d = mean_i Var_j a_ij, V_c = mean_i Var_j (s_ij − a_ij), a_ij the mean "
        "query's scores",
        says="How much of what sharpens attention is the same for every query: the drift's own share of the "
        "variance of the scores within rows.",
        misleads="The two parts may go together or against each other: see the cross term. A share of little "
        "variance is a share of little. Noise of the mean query adds about its null.",
        null="1/(n + 1), n the effective number of queries behind the mean: their share without drift",
        interval=f"{INTERVAL}, widened by what noise of the mean query may add",
    ),
    _measure(
        name="cross_term",
        read=_cross_term,
        definition=query_key.cross_term,
        title="cross term of the drift share",
        formula="1 − (V_d + V_c)/mean_i Var_j s_ij",
        says="What the mean query's scores and the rest add (above 0) or take (below) when they go together.",
        misleads="Far from 0 the drift share is no clean split.",
        null="0",
        bounds=(-math.inf, 0.5),  # Var s ≤ 2(V_d + V_c)
    ),
    _measure(
        name="entropy_without_drift",
        read=_entropy_without,
        definition=sharpness.entropy,
        title="entropy without the mean query",
        formula="H of softmax(s_ij − a_ij), nats",
        says="How spread attention would be were the mean query taken away.",
        null="mean log v",
        bounds=(0.0, math.inf),
    ),
    _measure(
        name="normalised_entropy_without_drift",
        read=_of("without", read_normalised_entropy),
        definition=sharpness.normalised_entropy,
        title="normalised entropy without the mean query",
        formula="mean of H/log v of softmax(s_ij − a_ij)",
        says="How spread attention would be were the mean query taken away: where it rises to 1, the drift "
        "alone made attention sharp.",
        null="1",
    ),
    _measure(
        name="largest_weight_without_drift",
        read=_largest_without,
        definition=sharpness.largest_weight,
        title="largest weight without the mean query",
        formula="mean of max_j softmax(s_ij − a_ij)",
        says="How much of a query's attention would go to its first choice.",
        null="none: as the largest weight",
    ),
    _measure(
        name="sink_mass_without_drift",
        read=_of("without", read_sink_mass),
        definition=sharpness.sink_mass,
        title="sink mass without the mean query",
        formula="mean of softmax(s_ij − a_ij) at the first key",
        says="Whether the sink is carried by the mean query: at chance, it was.",
        null="mean 1/v, the share of one key by chance",
    ),
    _measure(
        name="normalised_entropy_without_random",
        read=_of("random", read_normalised_entropy),
        definition=sharpness.normalised_entropy,
        title="normalised entropy without a random vector",
        formula="the same, a random vector of the length of q̄ in its place",
        says="A control: taking any vector of that length away changes scores, and this is how much of the "
        "change is no matter of the mean.",
        null="1",
    ),
    _measure(
        name="sink_mass_without_random",
        read=_of("random", read_sink_mass),
        definition=sharpness.sink_mass,
        title="sink mass without a random vector",
        formula="the same, a random vector of the length of q̄ in its place",
        says="The control for the sink mass without the mean query.",
        null="mean 1/v, the share of one key by chance",
    ),
    _measure(
        name="normalised_entropy_beside_first",
        read=_beside("beside"),
        definition=sharpness.normalised_entropy_beside_first,
        title="normalised entropy over the keys but the first",
        formula="mean of H'/log(v − 1), the first key left out and the rest renormalised",
        says="A control: how spread attention is apart from the sink.",
        null="1",
    ),
    _measure(
        name="normalised_entropy_beside_first_without_drift",
        read=_beside("beside_without"),
        definition=sharpness.normalised_entropy_beside_first,
        title="normalised entropy over the keys but the first, without the mean query",
        formula="mean of H'/log(v − 1) of softmax(s_ij − a_ij)",
        says="Whether the mean query sharpens attention beyond the sink: where it is higher, it does.",
        null="1",
    ),
)
