"""Readings of single coordinates."""

from __future__ import annotations

import math
from functools import partial

from scipy import special

from isoscope.geometry import dimensions
from isoscope.measures.base import Measure, undefined
from isoscope.results.reading import Reading
from isoscope.stats.dimensions import Dimensions


def _outlier_dimensions(record: Dimensions) -> Reading:
    n, width = int(record.count), len(record.scatter)
    if n < 2:
        return undefined(n, "needs 2 vectors")
    share = min(dimensions.OUTLIER / width, 1.0)
    # of a Gaussian cloud, the share of one dimension in the whole variance is Beta distributed
    shape = (n - 1) / 2, (width - 1) * (n - 1) / 2
    null = width * float(special.betaincc(*shape, share)) if width > 1 else 0.0
    if float(record.scatter.sum()) == 0:
        return Reading(0.0, n, null)
    out = record.scatter >= dimensions.OUTLIER * record.scatter.mean()
    which = record.scatter.argsort(descending=True)[: min(int(out.sum()), 5)].tolist()
    return Reading(float(out.sum()), n, null, note=f"dimension {_listed(which)}" if which else "")


def _massive_activations(record: Dimensions) -> Reading:
    if (n := int(record.count)) < 1:
        return undefined(0, "no vector")
    which = [k for k in record.massive.argsort(descending=True)[:5].tolist() if record.massive[k] > 0]
    return Reading(float(record.massive.sum()), n, 0.0, note=f"dimension {_listed(which)}" if which else "")


def _largest_activation(record: Dimensions) -> Reading:
    if (n := int(record.count)) < 1:
        return undefined(0, "no vector")
    return Reading(float(record.largest.max()), n, note=f"dimension {int(record.largest.argmax())}")


def _listed(which: list[int]) -> str:
    return ", ".join(map(str, which))


_measure = partial(
    Measure,
    family="dimensions",
    stats=(Dimensions,),
    interval="none: a count",
    bounds=(0.0, math.inf),
    unchanged_by=frozenset(),
)

MEASURES = (
    _measure(
        name="outlier_dimensions",
        read=_outlier_dimensions,
        definition=dimensions.outlier_dimensions,
        title="outlier dimensions",
        formula="#{k : Var x_k ≥ 5·mean_k Var x_k}",
        says="How many coordinates vary far more than the rest, and which are the first of them.",
        misleads="It depends on the axes, and on a threshold: a dimension at 4.9 times the mean is not one.",
        null="the expected number in a Gaussian cloud: d·P(Beta((n−1)/2, (d−1)(n−1)/2) ≥ 5/d)",
        source="Rudman et al. 2023, arXiv 2310.17715",
        unchanged_by=frozenset({"scale", "shift"}),
    ),
    _measure(
        name="massive_activations",
        read=_massive_activations,
        definition=dimensions.massive_activations,
        title="massive activations",
        formula="#{x_k : |x_k| > 100 and |x_k| ≥ 1000 × the median of its sequence}",
        says="How many single numbers tower over all others, and in which dimensions.",
        misleads="They tend to sit at position 0 and at special tokens, which do not count unless asked for.",
        null="0",
        source="Sun et al. 2024, arXiv 2402.17762",
    ),
    _measure(
        name="largest_activation",
        read=_largest_activation,
        definition=dimensions.largest_activation,
        title="largest activation",
        formula="max |x_k|",
        says="The largest single number, and its dimension: whether half precision is in danger.",
        misleads="A maximum grows with the number of vectors.",
        null="none: it has the units of the model",
        interval="none: a maximum",
        source="isoscope",
    ),
)
