"""Readings of what sequences are like inside."""

from __future__ import annotations

import math
from functools import partial

from isoscope.geometry import within
from isoscope.measures.base import Measure, undefined
from isoscope.measures.cosine import read_mean_cosine_between
from isoscope.results.reading import Influence, Reading
from isoscope.stats.directions import Directions
from isoscope.stats.intervals import Array, Groups, array, enough, few, left, quiet
from isoscope.stats.within import PerSequence, Within

_INTERVAL = "jackknife over groups of whole documents, from 8 on"


def _mean(n: int, each: PerSequence, low: float) -> Reading:
    sequences = float(each.sequences.sum())
    if sequences == 0:
        return undefined(n, "needs a sequence of 2 vectors that are not zero")
    value, null = float(each.total.sum()) / sequences, float(each.null.sum()) / sequences
    if not enough(each.sequences, each.joint):
        return Reading(value, n, null, note=few(each.joint))
    groups, found = Groups.of(array(each.sequences)), _means(each)
    ends, moved = groups.interval(found), Influence.of(*groups.moves(found))
    return Reading(value, n, null, max(float(ends[0]), low), min(float(ends[1]), 1.0), influence=moved)


@quiet
def _means(each: PerSequence) -> Array:
    return left(each.total) / left(each.sequences)


def _intra_similarity(record: Within) -> Reading:
    return _mean(int(record.n), record.similarity, -1.0)


def _intra_similarity_adjusted(record: Within, directions: Directions) -> Reading:
    raw, each, base = _intra_similarity(record), record.similarity, read_mean_cosine_between(directions)
    if math.isnan(raw.value) or math.isnan(base.value):
        return undefined(raw.n, raw.note or base.note)
    value = raw.value - base.value
    if not enough(each.sequences, each.joint):
        return Reading(value, raw.n, raw.null, note=few(each.joint))
    apart = _means(each) - directions.sums.left_out.between
    groups = Groups.of(array(each.sequences))
    low, high = map(float, groups.interval(apart))
    # near its noise the baseline's interval reaches further than its jackknife: so must the difference's
    below = math.hypot(raw.value - raw.low, base.high - base.value)
    above = math.hypot(raw.high - raw.value, base.value - base.low)
    ends, moved = (min(low, value - below), max(high, value + above)), Influence.of(*groups.moves(apart))
    return Reading(value, raw.n, raw.null, *ends, influence=moved)


def _rank_residual(record: Within) -> Reading:
    return _mean(int(record.n), record.residual, 0.0)


_measure = partial(
    Measure,
    family="sequences",
    stats=(Within,),
    interval=_INTERVAL,
    source="Ethayarajh 2019",
    unchanged_by=frozenset({"rotation", "scale"}),
    needs=frozenset({"sequences"}),
)

MEASURES = (
    _measure(
        name="intra_similarity",
        read=_intra_similarity,
        definition=within.intra_similarity,
        title="similarity inside a sequence",
        formula="mean over sequences of mean_i cos(x_i, x̄_s)",
        says="How alike the vectors of one sequence are to their mean.",
        misleads="In an anisotropic space all vectors are alike, those of one sequence too: read it beside "
        "the mean cosine between sequences. Short sequences read higher; see the null.",
        null="1/√n_s, for sequences of n_s isotropic vectors in many dimensions",
        bounds=(-1.0, 1.0),
    ),
    _measure(
        name="intra_similarity_adjusted",
        stats=(Within, Directions),
        read=_intra_similarity_adjusted,
        definition=within.intra_similarity_adjusted,
        title="similarity inside a sequence, adjusted",
        formula="intra-sequence similarity − mean cosine between sequences",
        says="How much more alike vectors of one sequence are than any two of the space.",
        misleads="Short sequences read higher; see the null.",
        null="that of the similarity inside a sequence",
        bounds=(-2.0, 2.0),
    ),
    _measure(
        name="rank_residual",
        read=_rank_residual,
        definition=within.rank_residual,
        title="rank-collapse residual",
        formula="mean over sequences of ‖X_s − 1x̄_sᵀ‖ / ‖X_s‖",
        says="What is left of a sequence when its mean is taken away: 0 when attention has mixed all its "
        "positions into one vector, near 1 when it has no mean to speak of.",
        misleads="A drift common to all sequences lowers it as well, without any collapse inside them.",
        null="√(1 − 1/n_s), for sequences of n_s isotropic vectors",
        source="Dong, Cordonnier & Loukas 2021",
        bounds=(0.0, 1.0),
    ),
)
