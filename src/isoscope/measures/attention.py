"""Readings of attention rows: how sharp attention is, where it looks, and how large the scores are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from torch import Tensor

from isoscope.geometry import sharpness
from isoscope.measures.base import Measure
from isoscope.measures.per_head import per_head
from isoscope.results.reading import Reading
from isoscope.stats.intervals import Array, array, left, quiet
from isoscope.stats.mass import Mass
from isoscope.stats.rows import Rows

INTERVAL = "jackknife over groups of whole documents, from 8 on"
_LAYER = " The layer's number is the mean over its heads."
Change = Callable[[Array], Array]


@quiet
def ratio(
    record: Rows | Mass,
    top: Tensor,
    bottom: Tensor,
    *,
    null: Tensor | None = None,
    change: Change = lambda x: x,
    bounds: tuple[float, float] = (0.0, math.inf),
    why: str = "no row that counts",
) -> tuple[Reading, ...]:
    """change(Σ top/Σ bottom) of every head, both [G, h], with its interval; `null` [G, h] is summed alike."""
    rows = left(bottom)
    return per_head(
        change(left(top) / rows),
        rows[0],
        null=None if null is None else array(null).sum(0) / rows[0],
        size=bottom,
        sequences=record.sequences,
        joint=record.joint,
        bounds=bounds,
        why=why,
    )


def _entropy(record: Rows) -> tuple[Reading, ...]:
    return ratio(record, record.entropy, record.count, null=record.log_visible)


def read_normalised_entropy(record: Rows) -> tuple[Reading, ...]:
    """Mean H/log v over rows that see two keys or more."""
    why = "no row that sees two keys"
    return ratio(record, record.normalised, record.several, null=record.several, bounds=(0.0, 1.0), why=why)


def _largest_weight(record: Rows) -> tuple[Reading, ...]:
    return ratio(record, record.largest, record.count, bounds=(0.0, 1.0))


def _effective_keys(record: Rows) -> tuple[Reading, ...]:
    return ratio(record, record.effective, record.count, bounds=(1.0, math.inf))


def _score_std(record: Rows) -> tuple[Reading, ...]:
    return ratio(record, record.variance, record.count, change=lambda x: np.sqrt(np.maximum(x, 0)))


def _attended_distance(record: Rows) -> tuple[Reading, ...]:
    return ratio(record, record.distance, record.count)


def read_sink_mass(record: Rows) -> tuple[Reading, ...]:
    """Mean weight of the first key, with chance, mean 1/v, for its null."""
    why = "no row sees the first key"
    return ratio(record, record.sink, record.sunk, null=record.chance, bounds=(0.0, 1.0), why=why)


@quiet
def _sink_rate(record: Rows) -> tuple[Reading, ...]:
    """Which heads have a sink; of the layer, their share."""
    sunk = array(record.sunk).sum(0)
    mass, chance = array(record.sink).sum(0) / sunk, array(record.chance).sum(0) / sunk
    found = np.where(np.isnan(mass), math.nan, mass > sharpness.SINK)
    return per_head(
        found[None],
        sunk,
        null=(chance > sharpness.SINK).astype(float),
        size=record.sunk,
        sequences=record.sequences,
        joint=record.joint,
        why="no row sees the first key",
    )


def _largest_score(record: Rows) -> tuple[Reading, ...]:
    count = array(record.count).sum(0)
    score = np.where(count == 0, math.nan, array(record.score))
    found = per_head(score[None], count, size=record.count, sequences=record.sequences, joint=record.joint)
    if not found[0].note:  # of a layer, the largest of its heads
        best = max(reading.value for reading in found[1:] if not math.isnan(reading.value))
        return Reading(best, found[0].n), *found[1:]
    return found


def _attention_mass(record: Mass) -> tuple[Reading, ...]:
    return ratio(record, record.mass, record.count, bounds=(-math.inf, math.inf))


def _blind_rows(record: Rows) -> tuple[Reading, ...]:
    return _counted(record, record.unseeing)


def _not_finite_rows(record: Rows) -> tuple[Reading, ...]:
    return _counted(record, record.not_finite)


def _counted(record: Rows, count: Tensor) -> tuple[Reading, ...]:
    every = record.count.sum(0) + record.unseeing + record.not_finite
    heads = [Reading(float(c), int(n), 0.0) for c, n in zip(count.tolist(), every.tolist(), strict=True)]
    return Reading(float(count.sum()), int(every.sum()), 0.0), *heads


_measure = partial(
    Measure,
    family="attention",
    stats=(Rows,),
    interval=INTERVAL,
    source="isoscope",
    bounds=(0.0, math.inf),
    unchanged_by=frozenset(),
    needs=frozenset({"attention"}),
    at="attention",
)
_count = partial(_measure, family="health", null="0", interval="none: a count")

_OF_HEADS = (
    _measure(
        name="entropy",
        read=_entropy,
        definition=sharpness.entropy,
        title="entropy of attention",
        formula="H = −Σ_j p_ij log p_ij, mean over queries, nats",
        says="How spread the weight of a query is over the keys it sees: log v when even, 0 when on one key.",
        misleads="It grows with the number of keys; compare the normalised form between lengths.",
        null="mean log v, v the keys a query sees: attention that is the same everywhere",
    ),
    _measure(
        name="normalised_entropy",
        read=read_normalised_entropy,
        definition=sharpness.normalised_entropy,
        title="normalised entropy of attention",
        formula="mean of H/log v over queries that see v ≥ 2 keys",
        says="How spread attention is whatever the length: 1 when even, 0 when on one key.",
        misleads="Early queries of a causal model see few keys and count as much as late ones.",
        null="1: attention that is the same everywhere",
        bounds=(0.0, 1.0),
    ),
    _measure(
        name="largest_weight",
        read=_largest_weight,
        definition=sharpness.largest_weight,
        title="largest weight",
        formula="mean over queries of max_j p_ij",
        says="How much of a query's attention goes to the one key it looks at most.",
        misleads="A sink takes it in many models: then it says where weight is parked, not what is read.",
        null="none: it depends on the scores' distribution even where nothing is sought",
        bounds=(0.0, 1.0),
    ),
    _measure(
        name="effective_keys",
        read=_effective_keys,
        definition=sharpness.effective_keys,
        title="effective number of keys",
        formula="mean over queries of 1/Σ_j p_ij²",
        says="How many keys a query attends to, counted by weight.",
        misleads="A mean of a skewed number: a few even rows lift it.",
        null="none: up to the number of keys",
        bounds=(1.0, math.inf),
    ),
    _measure(
        name="largest_score",
        read=_largest_score,
        definition=sharpness.largest_score,
        title="largest score",
        formula="max s_ij",
        says="How large a score gets before the softmax: beyond some 10⁴ half precision and training suffer.",
        misleads="A constant added to a row changes it and not the attention. A layer's is the "
        "largest of its heads.",
        null="none: it has the units of the scores",
        interval="none: a maximum",
        bounds=(-math.inf, math.inf),
    ),
    _measure(
        name="score_std",
        read=_score_std,
        definition=sharpness.score_std,
        title="standard deviation of the scores within rows",
        formula="√(mean_i Var_j s_ij) over the visible keys",
        says="What the softmax sees of the scores' size: near 0 attention is even, and a row condenses on a "
        "few keys when it passes √(2 log v).",
        misleads="The spread pooled over rows is larger: the part that is the same for a whole row is not "
        "seen by the softmax, and is left out here. A few sequences of large queries and keys may carry it; "
        "then its interval is too short.",
        null="none: it has the units of the scores",
        interval=f"{INTERVAL}; too short where norms are heavy-tailed: with 24 sequences whose log norms "
        "have a standard deviation of .3 it covers .85 instead of .95, with one of .4 it covers .76",
    ),
    _measure(
        name="sink_mass",
        read=read_sink_mass,
        definition=sharpness.sink_mass,
        title="sink mass",
        formula="mean over queries of p_i,first",
        says="How much attention is parked on the first token of the sequence.",
        misleads="Bidirectional models park it elsewhere, on separators: there this is the first token all "
        "the same.",
        null="mean 1/v, the share of one key by chance",
        bounds=(0.0, 1.0),
    ),
    _measure(
        name="sink_rate",
        read=_sink_rate,
        definition=sharpness.sink_rate,
        title="sink rate",
        formula=f"share of the heads whose sink mass is above {sharpness.SINK:g}",
        says="How many heads park attention on the first token; of a head, 1 or 0.",
        misleads="A threshold: heads just above and just below it are alike. See the sink mass.",
        null="the share of heads whose chance, mean 1/v, is above the threshold",
        interval="none: a count of heads",
        source="arXiv 2510.06477",
        bounds=(0.0, 1.0),
    ),
    _measure(
        name="attended_distance",
        read=_attended_distance,
        definition=sharpness.attended_distance,
        title="attended distance",
        formula="mean over queries of Σ_j p_ij |i − j|",
        says="How far away a query looks, in positions.",
        misleads="A sink at the start makes it large without anything being read there.",
        null="none: it depends on the length",
    ),
    _measure(
        name="attention_mass",
        read=_attention_mass,
        definition=sharpness.attention_mass,
        stats=(Mass,),
        title="mass of attention",
        formula="mean over queries of Σ_j w_ij",
        says="What the weights of a query add up to where they are no softmax: near 0 a head is silent. The "
        "other readings are of p = |w|/Σ|w|.",
        misleads="It says nothing of the size of the values that are weighed. A softmax has no row: "
        "it adds up to 1.",
        null="none: it depends on the map",
        bounds=(-math.inf, math.inf),
    ),
)

MEASURES = (
    *(
        replace(each, says=f"{each.says} The layer's number is the mean over its heads.")
        for each in _OF_HEADS
    ),
    _count(
        name="blind_rows",
        read=_blind_rows,
        definition=sharpness.blind_rows,
        title="queries that see no key",
        formula="#{i : v_i = 0}",
        says="How many queries that count have nothing to attend to; they are left out of the rest.",
        misleads="Anything but 0 points at a mask that does not fit the data.",
    ),
    _count(
        name="not_finite_rows",
        read=_not_finite_rows,
        definition=sharpness.not_finite_rows,
        title="rows with scores that are not finite",
        formula="#{i : some visible s_ij is NaN or infinite}",
        says="How many queries have scores that overflowed; they are left out of the rest.",
        misleads="Not at all: anything but 0 wants a look.",
    ),
)
