"""Readings of queries and keys: how far their means lie from the origin, and whether along one direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import fmean

import numpy as np
import torch
from torch import Tensor

from isoscope.geometry import query_key
from isoscope.measures.base import Measure, undefined
from isoscope.measures.cosine import mean_cosines_between
from isoscope.measures.drift import drifts, relative_drifts
from isoscope.measures.per_head import per_head
from isoscope.results.reading import Reading
from isoscope.stats.intervals import Array, array, left, product, quiet
from isoscope.stats.queries import HeadSums, Queries, QueryProducts

NOT_SHOWN = "queries and keys of this attention cannot be seen"
_INTERVAL = "jackknife over groups of whole documents, from 8 on"
_OF_LAYER = (
    "none for the layer, whose number is the mean over its heads; of a head, a jackknife over sequences"
)


def _of(
    part: str, read: Callable[[HeadSums], tuple[Reading, ...]]
) -> Callable[[Queries], tuple[Reading, ...]]:
    """A reading of every head, and the mean over them for the layer, without an interval."""

    def each(record: Queries) -> tuple[Reading, ...]:
        sums: HeadSums = getattr(record, part)
        if not record.shown:
            return (undefined(0, NOT_SHOWN),) * (1 + sums.count.shape[1])
        heads = read(sums)
        known = [reading for reading in heads if not math.isnan(reading.value)]
        if not known:
            return undefined(0, heads[0].note), *heads
        value, null = (fmean(getattr(reading, name) for reading in known) for name in ("value", "null"))
        return Reading(value, sum(reading.n for reading in known), null), *heads

    return each


@quiet
def _pairs(
    record: Queries, of: Callable[[Array, Array], Array], low: float, *, interval: bool = True
) -> tuple[Reading, ...]:
    """A number of q̄ and k̄ [h, e] of every head, key heads repeated for the query heads they serve."""
    heads, groups = record.query.count.shape[1], record.key.count.shape[1]
    if not record.shown or groups == 0:
        return (undefined(0, NOT_SHOWN),) * (1 + heads)
    query, key = (left(part.total) / left(part.count)[..., None] for part in (record.query, record.key))
    found = of(query, key[:, np.arange(heads) // (heads // groups)])
    return per_head(
        found if interval else found[:1],
        array(record.query.count).sum(0),
        null=np.zeros(heads),
        size=record.query.count,
        sequences=record.query.sequences.amax(1),
        joint=record.query.joint,
        bounds=(low, -low),
        why="a mean is zero",
    )


def _cosine(one: Array, other: Array) -> Array:
    return product(one, other) / np.sqrt(product(one, one) * product(other, other))


def _query_key_cosine(record: Queries) -> tuple[Reading, ...]:
    return _pairs(record, _cosine, -1.0)


def _query_key_product(record: Queries) -> tuple[Reading, ...]:
    return _pairs(record, product, -math.inf)


def _joint_direction(record: QueryProducts) -> tuple[Reading, ...]:
    along = array(torch.linalg.eigh(record.products).eigenvectors[..., -1])
    read = partial(_along, along=along)
    # an interval that takes v as known covers .4: v is not found again without each group
    return _pairs(record.queries, read, -1.0, interval=False)


def _along(one: Array, other: Array, *, along: Array) -> Array:
    return _cosine(one, along) * _cosine(other, along)


_measure = partial(
    Measure,
    family="queries",
    stats=(Queries,),
    interval=_INTERVAL,
    source="Godey, de la Clergerie & Sagot 2024, arXiv 2401.12143",
    unchanged_by=frozenset(),
    needs=frozenset({"attention"}),
    at="attention",
)


def _of_both(
    suffix: str,
    part: str,
    read: Callable[[HeadSums], tuple[Reading, ...]],
    definition: Callable[..., Tensor],
    *,
    says: str,
    formula: str,
    null: str,
    bounds: tuple[float, float],
) -> tuple[Measure, ...]:
    """The same measure of queries and of keys."""
    return tuple(
        _measure(
            name=f"{side}_{suffix}",
            read=_of(f"{side}{part}", read),
            definition=definition,
            title=f"{suffix.replace('_', ' ')} of {'queries' if side == 'query' else 'keys'}",
            formula=formula.replace("x", side[0]),
            says=says.format("queries" if side == "query" else "keys"),
            misleads="Read as they enter the scores: rotary position turns a mean away, plane by plane, so "
            "it reads lower than before it.",
            null=null,
            interval=_OF_LAYER,
            bounds=bounds,
        )
        for side in ("query", "key")
    )


MEASURES = (
    *_of_both(
        "drift",
        "",
        lambda heads: drifts(heads.sums),
        query_key.drift,
        says="How far the mean of a head's {} lies from the origin.",
        formula="‖x̄‖",
        null="the noise of the mean",
        bounds=(0.0, math.inf),
    ),
    *_of_both(
        "relative_drift",
        "",
        lambda heads: relative_drifts(heads.sums, heads.norms),
        query_key.relative_drift,
        says="How far the mean of a head's {} lies from the origin, in mean norms: near 1 all point one way.",
        formula="‖x̄‖ / mean ‖x‖",
        null="the noise of the mean",
        bounds=(0.0, 1.0),
    ),
    *_of_both(
        "anisotropy",
        "_unit",
        lambda heads: mean_cosines_between(heads.sums),
        query_key.anisotropy,
        says="How alike a head's {} of different sequences point.",
        formula="mean cos(x_i, x_j) between sequences",
        null="0",
        bounds=(-1.0, 1.0),
    ),
    _measure(
        name="query_key_cosine",
        read=_query_key_cosine,
        definition=query_key.query_key_cosine,
        title="cosine of the mean query and the mean key",
        formula="cos(q̄, k̄)",
        says="Whether queries and keys drift along parallel directions; the sign differs by head, and the "
        "layer's mean over heads hides that.",
        misleads="A constant part of the keys cancels in the softmax: a large cosine alone sharpens nothing.",
        null="0",
        bounds=(-1.0, 1.0),
    ),
    _measure(
        name="query_key_product",
        read=_query_key_product,
        definition=query_key.query_key_product,
        title="product of the mean query and the mean key",
        formula="q̄·k̄",
        says="What the two means add to every score, before the scale.",
        misleads="The same for every key, so the softmax does not see it.",
        null="0",
        bounds=(-math.inf, math.inf),
    ),
    _measure(
        name="joint_direction",
        read=_joint_direction,
        definition=query_key.joint_direction,
        title="joint direction of queries and keys",
        formula="cos(q̄, v)·cos(k̄, v), v the first right-singular vector of Q",
        says="How far both means lie along the main direction of the queries, and whether on the same side "
        "(above 0) or opposite (below).",
        misleads="v leans on the mean of the queries by construction.",
        null="0",
        interval="none: v is not found again without each group of sequences",
        bounds=(-1.0, 1.0),
        stats=(QueryProducts,),
        extra=True,
    ),
)
