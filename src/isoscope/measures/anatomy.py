"""Readings of the anatomy of attention: what makes the scores of a row differ, and attention without it.

With mean queries and mean keys every score is the sum of four parts: position (the same for every text), key
(what all queries favour, sinks among them), query position (this query's preference for places) and content
(this query with this key). `geometry.anatomy` has them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from torch import Tensor

from isoscope.geometry import anatomy, sharpness
from isoscope.geometry.anatomy import EVEN, MIXED, PARTS
from isoscope.measures.attention import INTERVAL, ratio, read_normalised_entropy, read_sink_mass
from isoscope.measures.base import Measure, side_by_side
from isoscope.measures.per_head import SURE, of_uncertain_means, per_head
from isoscope.results.reading import Reading
from isoscope.stats.anatomy import DRAWS, Anatomy, Controls
from isoscope.stats.intervals import Array, Groups, array, enough, few, left, quiet
from isoscope.stats.rows import Rows

_EVEN = f"attention is even: its scores deviate by less than {EVEN:g} within rows"

_CROSS = (-math.inf, 0.75)  # Var s ≤ 4·(the sum of the parts' variances)


@quiet
def shares(record: Anatomy) -> Array:
    """The share of every part, over all groups of sequences and without each: [1 + G, 4, h].

    NaN for heads whose attention is even.
    """
    sums = left(record.variance.movedim(0, 1))
    least = np.maximum(anatomy.ROUNDING * (1 + np.abs(array(record.rows.score))), EVEN) ** 2
    varies = sums[0, 4] > least * array(record.split).sum(0)
    return np.where(varies, sums[:, :4] / sums[:, 4:], math.nan)


@quiet
def _chance(record: Anatomy) -> Array:
    """The shares that noise of the means makes where queries and keys have none, [4, h]."""
    return array(record.chance).sum(1) / array(record.split).sum(0)


@quiet
def _noise(record: Anatomy, found: Array) -> Array:
    """How much of every share may be noise of the means, the layer's in front: [4, 1 + h].

    Of what a part keeps of the queries (keys), one nth goes to the part with the mean of n queries (keys).
    """
    of_query, of_key = (_chance(record) / _chance(record)[3])[1:3]
    _, by_key, by_query, content = found[0]
    noise = np.stack(
        [of_query * by_query + of_key * by_key, of_query * content, of_key * content, np.zeros_like(content)]
    )
    known = ~np.isnan(found[0, 0])
    layer = noise[:, known].mean(1, keepdims=True) if known.any() else noise[:, :1]
    return np.concatenate([layer, noise], 1)


def _share(part: int) -> Callable[[Anatomy], tuple[Reading, ...]]:
    def read(record: Anatomy) -> tuple[Reading, ...]:
        found = shares(record)
        readings = _per_head(record, found[:, part], _chance(record)[part], (0.0, math.inf))
        return of_uncertain_means(readings, _noise(record, found)[part].tolist())

    return read


def _cross_term(record: Anatomy) -> tuple[Reading, ...]:
    found = 1 - shares(record).sum(1)
    return _per_head(record, found, 1 - _chance(record).sum(0), _CROSS)


def _per_head(record: Anatomy, found: Array, null: Array, bounds: tuple[float, float]) -> tuple[Reading, ...]:
    return per_head(
        found,
        array(record.split).sum(0),
        null=null,
        size=record.split,
        sequences=record.rows.sequences,
        joint=record.rows.joint,
        bounds=bounds,
        why=_EVEN if bool(record.split.any()) else "no row that counts",
    )


@quiet
def _kind(record: Anatomy) -> tuple[Reading, ...]:
    """The lead of the largest share, and its part's name for a tag where the interval lies above 0."""
    found, n = shares(record), array(record.split).sum(0)
    known = ~np.isnan(found[0, 0])
    layer = found[..., known].mean(-1, keepdims=True) if known.any() else found[..., :1]
    every = np.concatenate([layer, found], -1)
    first = every[0].argmax(0)
    largest = np.take_along_axis(every, first[None, None], 1)[:, 0]
    others = np.where(np.arange(len(PARTS))[:, None] == first, -math.inf, every)
    lead = largest - others.max(1)
    low = high = np.full_like(lead[0], math.nan)
    decides = enough(array(record.rows.sequences), record.rows.joint)
    if decides:
        ends = Groups.of(array(record.split).mean(1, keepdims=True)).interval(lead)
        both, noise = np.stack([first, others[0].argmax(0)]), _noise(record, found)
        least = np.take_along_axis(np.maximum(every[0], noise) * noise, both, 0).sum(0)
        low, high = (np.hypot(end - lead[0], 2 * SURE * np.sqrt(least)) for end in ends)
        low, high = lead[0] - low - np.take_along_axis(noise, both[:1], 0)[0], lead[0] + high
    why = "" if decides else few(record.rows.joint)
    readings = side_by_side(
        lead[0],
        np.concatenate([n[known].sum(0, keepdims=True), n]),
        null=np.full_like(lead[0], math.nan),
        low=np.maximum(low, 0),
        high=high,
        notes=[why if each else _EVEN for each in (known.any(), *known.tolist())],
    )
    names = [
        PARTS[part] if end > 0 else MIXED for part, end in zip(first.tolist(), low.tolist(), strict=True)
    ]
    return tuple(
        replace(reading, tag=name if decides or not reading.known else "")
        for reading, name in zip(readings, names, strict=True)
    )


_measure = partial(
    Measure,
    family="anatomy of attention",
    stats=(Anatomy,),
    interval=f"{INTERVAL}, widened by what noise of the means may add",
    source="isoscope",
    bounds=(0.0, math.inf),
    unchanged_by=frozenset(),
    needs=frozenset({"attention", "counterfactual"}),
    at="attention",
)

_MISLEADS = (
    "Shares under different means do not compare. Under means before rotary position a sink counts as key; "
    "under means at each position a sink that always stands at one place counts as position. The run's facts "
    "say which. A share of little variance is a share of little: see the entropy."
)
_SHARES = (
    (
        "q̄_i·k̄_j",
        "is the same for every text: preferred offsets and places, with biases that the model adds",
        "1/(nm)",
    ),
    ("q̄_i·(k_j − k̄_j)", "comes from keys that all queries favour, such as sinks and separators", "1/n"),
    ("(q_i − q̄_i)·k̄_j", "is a query's own preference for places, whatever stands there", "1/m"),
    ("(q_i − q̄_i)·(k_j − k̄_j)", "depends on this query and this key together", "the rest"),
)

_LOCAL = (
    "A local counterfactual: the layer's input is unchanged, only this attention is read again. It needs "
    "stable means: use enough sequences."
)


def _without(
    suffix: str, taken: tuple[str, ...], *, words: str, formula: str, says: str, extra: bool = False
) -> tuple[Measure, ...]:
    """The readings of rows without the parts `taken`, which the record keeps as `part`."""
    part = suffix.removeprefix("of_")

    def rows(read: Callable[[Rows], tuple[Reading, ...]]) -> Callable[[Anatomy], tuple[Reading, ...]]:
        return lambda record: read(getattr(record, part))

    def defined(of: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
        return lambda scores, parts, counts: of(anatomy.without(scores, parts, taken), counts)

    made = partial(_measure, bounds=(0.0, 1.0), misleads=_LOCAL, interval=INTERVAL)
    return (
        made(
            name=f"normalised_entropy_{suffix}",
            read=rows(read_normalised_entropy),
            definition=defined(sharpness.normalised_entropy),
            title=f"normalised entropy {words}",
            formula=f"mean of H/log v of softmax({formula})",
            says=f"How spread attention would be {words}. {says}",
            null="1",
        ),
        made(
            name=f"sink_mass_{suffix}",
            read=rows(read_sink_mass),
            definition=defined(sharpness.sink_mass),
            title=f"sink mass {words}",
            formula=f"mean of softmax({formula}) at the first key",
            says=f"The first key's share of attention {words}: at chance, what was taken made the sink.",
            null="mean 1/v, the share of one key by chance",
            extra=extra,
        ),
        made(
            name=f"largest_weight_{suffix}",
            read=rows(_largest_weight),
            definition=defined(sharpness.largest_weight),
            title=f"largest weight {words}",
            formula=f"mean of max_j softmax({formula})",
            says=f"How much of a query's attention would go to its first choice {words}.",
            null="none: as the largest weight",
            extra=True,
        ),
    )


def _largest_weight(record: Rows) -> tuple[Reading, ...]:
    return ratio(record, record.largest, record.count, bounds=(0.0, 1.0))


_NO_BIAS = (
    "Not read where the model adds biases to its scores, nor where it attends within windows as Swin does."
)


def _random(record: Controls) -> tuple[Reading, ...]:
    rows = record.rows
    return ratio(rows, record.random.mean(0), rows.several, null=rows.several, bounds=(0.0, 1.0))


@quiet
def _random_spread(record: Controls) -> tuple[Reading, ...]:
    of, rows = record.rows, array(record.rows.several).sum(0)
    found = (array(record.random).sum(1) / rows).std(0, ddof=1)
    return per_head(found[None], rows, size=of.several, sequences=of.sequences, joint=of.joint)


def _as_without(*taken: str) -> Measure:
    """The reading of rows whose scores are scaled to vary as they do without the parts `taken`."""
    part, words = "as_without_" + "_and_".join(taken), " and ".join(taken)

    def defined(scores: Tensor, parts: Sequence[Tensor], counts: Tensor) -> Tensor:
        other = anatomy.without(scores, parts, taken)
        return sharpness.normalised_entropy(anatomy.scaled(scores, other), counts)

    return _measure(
        name=f"normalised_entropy_scaled_{part}",
        stats=(Controls,),
        read=lambda record: read_normalised_entropy(getattr(record, part)),
        definition=defined,
        title=f"normalised entropy, scores scaled as without {words}",
        formula="mean of H/log v of softmax(c_i·s_ij), c_i² = Var_j s'_ij/Var_j s_ij, s' without the parts",
        says="A control: how spread attention would be were its scores scaled down to the variance that they "
        f"have without {words}. Taking variance away spreads any attention.",
        misleads=_NO_BIAS,
        interval=INTERVAL,
        bounds=(0.0, 1.0),
        null="1",
        extra=True,
    )


MEASURES = (
    *(
        _measure(
            name=f"{part.replace(' ', '_')}_share",
            read=_share(number),
            definition=lambda scores, parts, counts, at=number: anatomy.shares(scores, parts, counts)[at],
            title=f"{part} share",
            formula=f"mean_i Var_j {formula} over mean_i Var_j s_ij, means as they stand at i and j",
            says=f"How much of what sharpens attention {says}.",
            misleads=_MISLEADS,
            null=f"about {null}, n queries and m keys behind the means: the share by their noise alone",
        )
        for number, (part, (formula, says, null)) in enumerate(zip(PARTS, _SHARES, strict=True))
    ),
    _measure(
        name="anatomy_cross_term",
        read=_cross_term,
        definition=anatomy.cross_term,
        title="cross term of the anatomy",
        formula="1 − the sum of the four shares",
        says="What parts add to the variance of the scores (above 0) or take (below) that go together.",
        misleads="Far from 0 the shares are no clean split.",
        null="0; about −2/n − 2/m where means leave a sequence out",
        bounds=_CROSS,
    ),
    _measure(
        name="attention_kind",
        read=_kind,
        definition=anatomy.lead,
        title="kind of attention",
        formula="the largest share minus the second; its kind is the part with the largest",
        says="What makes the scores of a head differ most: position, key, query position or content. "
        "It is mixed where the interval reaches 0, and where attention is even.",
        misleads="The largest of four shares may be small: see all four. The layer's is that of its heads' "
        "mean shares, so heads of different kinds may make a mixed layer.",
        null="none: one of four shares is always the largest",
    ),
    *_without(
        "without_key",
        ("key",),
        words="without the part of the key",
        formula="s_ij − q̄_i·(k_j − k̄_j)",
        says="Where it rises, keys that all queries favour made attention sharp.",
    ),
    *_without(
        "without_position_and_key",
        ("position", "key"),
        words="without the parts of position and key",
        formula="(q_i − q̄_i)·k_j",
        says="This is attention without the mean query, with what the model adds for the position.",
    ),
    *_without(
        "without_position",
        ("position", "query position"),
        words="without the parts of position and query position",
        formula="q_i·(k_j − k̄_j)",
        says="Where it rises, places made attention sharp.",
        extra=True,
    ),
    *_without(
        "of_content",
        ("position", "key", "query position"),
        words="by content alone",
        formula="(q_i − q̄_i)·(k_j − k̄_j)",
        says="Compare it with the entropy as it is: the difference is made by all other parts.",
        extra=True,
    ),
    _as_without("key"),
    _as_without("position", "key"),
    _measure(
        name="normalised_entropy_without_random_draws",
        stats=(Controls,),
        read=_random,
        definition=anatomy.mean_of_draws,
        title="normalised entropy without random vectors",
        formula=f"mean over {DRAWS} random vectors of the length of q̄, each in the place of q̄",
        says="A control: how spread attention is with any vector of that length taken away from the queries.",
        misleads=_NO_BIAS,
        interval=f"{INTERVAL}, of these random vectors",
        bounds=(0.0, 1.0),
        null="1",
        extra=True,
    ),
    _measure(
        name="random_draws_spread",
        stats=(Controls,),
        read=_random_spread,
        definition=anatomy.spread_of_draws,
        title="spread of random vectors",
        formula=f"standard deviation of the normalised entropy over {DRAWS} random vectors",
        says="How far one random vector may lie from another as a control.",
        misleads=_NO_BIAS,
        interval=f"none: a standard deviation of {DRAWS} draws",
        null="none: it depends on the scores",
        extra=True,
    ),
)
