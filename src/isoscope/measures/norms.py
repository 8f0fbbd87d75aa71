"""Readings of the final norm's γ and β: what it does to every hidden state, whatever the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from torch import Tensor

from isoscope.geometry import norms as definition
from isoscope.measures.base import Measure, undefined
from isoscope.results.reading import Reading
from isoscope.stats.weights import NormWeights

_SOURCE = "after Machina & Mercer 2024; a reconstruction, as their method is not public"
_NONE = "none: weights are not a sample"
_NO_BIAS = "the norm has no β"
_NOT_FINITE = "weights that are NaN or Inf"


def _of(
    part: Callable[[NormWeights], Tensor | None], value: Callable[[Tensor], float], null: float
) -> Callable[[NormWeights], Reading]:
    """Read γ or β alone."""

    def read(record: NormWeights) -> Reading:
        vector = part(record)
        if vector is None:
            return undefined(0, _NO_BIAS)
        if not vector.isfinite().all():
            return undefined(len(vector), _NOT_FINITE)
        return Reading(value(vector.double()), len(vector), null)

    return read


def _outliers(weight: Tensor) -> float:
    sizes = weight.abs()
    return float((sizes > definition.OUTLYING * sizes.quantile(0.5)).sum())


def _against_vocabulary(part: Callable[[NormWeights], Tensor | None]) -> Callable[[NormWeights], Reading]:
    """The cosine of γ or β with the mean row of the output vocabulary."""

    def read(record: NormWeights) -> Reading:
        vector, mean = part(record), record.vocabulary_mean
        if vector is None:
            return undefined(0, _NO_BIAS)
        if mean is None:
            return undefined(len(vector), record.why_no_vocabulary)
        if len(mean) != len(vector):
            return undefined(
                len(vector), f"the vocabulary has {len(mean)} dimensions, the norm {len(vector)}"
            )
        if not (vector.isfinite().all() and mean.isfinite().all()):
            return undefined(len(vector), _NOT_FINITE)
        size = vector.double().norm() * mean.double().norm()
        if size == 0:
            return undefined(len(vector), "one of the two is zero")
        return Reading(float(vector.double() @ mean.double() / size), len(vector), 0.0)

    return read


_weight, _bias = attrgetter("weight"), attrgetter("bias")
_measure = partial(
    Measure,
    family="norm",
    stats=(NormWeights,),
    interval=_NONE,
    source=_SOURCE,
    bounds=(0.0, math.inf),
    at="norm",
)

MEASURES = (
    _measure(
        name="norm_weight_size",
        read=_of(_weight, lambda weight: float(weight.norm()) / math.sqrt(len(weight)), 1.0),
        definition=definition.weight_size,
        title="size of γ",
        formula="‖γ‖/√d",
        says="How much the norm magnifies what it standardises.",
        misleads="A few large entries make it as well as many middling ones; see the outliers.",
        null="1: γ as it is before training",
        unchanged_by=frozenset(),
    ),
    _measure(
        name="norm_weight_outliers",
        read=_of(_weight, _outliers, 0.0),
        definition=definition.weight_outliers,
        title="outliers of γ",
        formula="#{k : |γ_k| > 3·median|γ|}",
        says="How many dimensions the norm makes stand out: the cloud leans on those.",
        misleads="The threshold is ours. What enters may be small where γ is large, and cancel it.",
        null="0: γ as it is before training",
        unchanged_by=frozenset({"scale"}),
    ),
    _measure(
        name="norm_bias_size",
        read=_of(_bias, lambda bias: float(bias.norm()), 0.0),
        definition=definition.bias_size,
        title="size of β",
        formula="‖β‖",
        says="How far the norm moves every hidden state in one direction; what it moves is about ‖γ‖ long.",
        misleads="β may cancel a drift as well as make one: the data tells which.",
        null="0: β as it is before training",
        unchanged_by=frozenset({"rotation"}),
    ),
    _measure(
        name="bias_vocabulary_cosine",
        read=_against_vocabulary(_bias),
        definition=definition.cosine_with_mean,
        title="β against the vocabulary's mean",
        formula="cos(β, w̄), w̄ the mean row of the output vocabulary",
        says="Whether β lifts or lowers all logits together, which the softmax does not see.",
        misleads="It says nothing of how long either is.",
        null="0, with a deviation of 1/√d",
        bounds=(-1.0, 1.0),
        unchanged_by=frozenset({"rotation", "scale"}),
    ),
    _measure(
        name="weight_vocabulary_cosine",
        read=_against_vocabulary(_weight),
        definition=definition.cosine_with_mean,
        title="γ against the vocabulary's mean",
        formula="cos(γ, w̄), w̄ the mean row of the output vocabulary",
        says="Whether the dimensions that γ magnifies are those that all of the vocabulary leans on.",
        misleads="γ is mostly positive, w̄ need not be: the signs of dimensions are a matter of chance.",
        null="0, with a deviation of 1/√d",
        bounds=(-1.0, 1.0),
        unchanged_by=frozenset({"scale"}),
    ),
)
