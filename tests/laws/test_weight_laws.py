"""Every measure of weights equals its definition, keeps its bounds, and its null is what random ones show."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

import pytest
import torch

from isoscope.errors import IsoscopeError
from isoscope.geometry.spectra import factors
from isoscope.measures import table
from isoscope.measures.base import Measure
from isoscope.measures.table import choose, of_weights
from isoscope.results.reading import Reading
from isoscope.stats.weights import HeadWeights, NormWeights
from tests.laws.law_weights import (
    HEADS,
    KINDS,
    MEASURES,
    NORM_TAKES,
    NORMS,
    VOCABULARIES,
    heads,
    inside,
    larger,
    normal,
    turned,
    vocabulary_reading,
)

OF_HEADS, OF_VOCABULARY, OF_NORM = map(of_weights, ("query_key", "vocabulary", "norm"))


def by_name(measure: Measure) -> str:
    return measure.name


def read(measure: Measure, record: HeadWeights) -> tuple[Reading, ...]:
    found = measure.read(record)
    assert isinstance(found, tuple)
    return found


def test_every_measure_of_weights_is_classified() -> None:
    assert set(KINDS) == {measure.name for measure in MEASURES}
    assert {measure.at for measure in table.MEASURES} == {"layer", "attention", *table.OF_WEIGHTS}


@pytest.mark.parametrize("measure", MEASURES, ids=by_name)
def test_a_measure_of_weights_says_whether_it_has_a_null(measure: Measure) -> None:
    assert measure.null.startswith("none") != KINDS[measure.name].null
    assert measure.interval.startswith("none")
    assert not measure.needs and not measure.against


def test_a_pass_over_data_has_none_of_them() -> None:
    assert not {measure.name for measure in choose()} & set(KINDS)
    with pytest.raises(IsoscopeError, match="trace is read off weights: `isoscope weights MODEL` gives it"):
        choose(["drift", "trace"])


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("measure", OF_HEADS, ids=by_name)
def test_heads_agree_with_the_definition(measure: Measure, name: str) -> None:
    made = HEADS[name]
    layer, *each = read(measure, made.record)
    right = made.defined(measure)
    assert [reading.value for reading in each] == pytest.approx(right.tolist(), rel=1e-5, abs=1e-6)
    assert layer.value == pytest.approx(float(right.mean()), rel=1e-5, abs=1e-6)
    assert (layer.n, each[0].n) == (len(made.wq), made.wq.shape[1])
    for reading in (layer, *each):
        inside(measure, reading, min(made.wq.shape[1:]))
        assert math.isnan(reading.null) != KINDS[measure.name].null


def test_the_comparison_with_the_definition_can_fail() -> None:
    made = HEADS["grouped"]
    for measure in OF_HEADS:
        other = [reading.value for reading in read(measure, replace(made, wk=made.wk.flip(0)).record)[1:]]
        assert other != pytest.approx(made.defined(measure).tolist(), rel=1e-5, abs=1e-6), measure.name


@pytest.mark.parametrize("measure", OF_HEADS, ids=by_name)
def test_heads_are_invariant_as_declared(measure: Measure) -> None:
    made = HEADS["grouped"]
    before = torch.tensor([reading.value for reading in read(measure, made.record)])
    nulls = torch.tensor([reading.null for reading in read(measure, made.record)])
    assert "rotation" in measure.unchanged_by
    after = torch.tensor([reading.value for reading in read(measure, turned(made).record)])
    torch.testing.assert_close(after, before, rtol=1e-6, atol=1e-6)
    power = KINDS[measure.name].scale
    assert ("scale" in measure.unchanged_by) == (power == 0)
    scaled = read(measure, larger(made).record)
    torch.testing.assert_close(torch.tensor([each.value for each in scaled]), before * 3.7**power)
    found = torch.tensor([each.null for each in scaled])
    torch.testing.assert_close(found, nulls * 3.7**power, equal_nan=True)


@pytest.mark.parametrize(("width", "inner"), [(48, 8), (24, 24), (6, 10), (200, 32)])
def test_the_null_is_what_random_heads_show(width: int, inner: int) -> None:
    """Over 200 heads, to four standard errors, and to 4 % where it is a mean over draws or of a ratio."""
    wq, wk = (normal(seed, 200, width, inner) * 0.2 for seed in (1, 2))
    record = HeadWeights.of(factors(wq, wk), length=64)
    for measure in OF_HEADS:
        if not KINDS[measure.name].null:
            continue
        each = read(measure, record)[1:]
        values = torch.tensor([reading.value for reading in each]).double()
        null = fmean(reading.null for reading in each)
        error = float(values.std()) / math.sqrt(len(values))
        assert abs(float(values.mean()) - null) < 4 * error + 0.04 * abs(null), measure.name


def test_the_null_is_that_of_the_norms_of_the_factors() -> None:
    wq, wk = normal(1, 1, 30, 6), normal(2, 1, 30, 6)
    plain, scaled = (HeadWeights.of(factors(wq * size, wk, scale=1.0)) for size in (1.0, 5.0))
    for measure in OF_HEADS[:-1]:
        power = KINDS[measure.name].scale
        assert read(measure, scaled)[1].null == pytest.approx(5**power * read(measure, plain)[1].null)


def test_a_head_that_is_not_finite_takes_nothing_from_the_others() -> None:
    made = HEADS["grouped"]
    bad = replace(made, wq=made.wq.clone(), query_bias=made.query_bias.clone())
    bad.wq[1, 0, 0], bad.query_bias[1] = math.nan, math.nan
    for measure in OF_HEADS:
        layer, *each = read(measure, bad.record)
        whole = read(measure, made.record)[1:]
        assert math.isnan(each[1].value) and each[1].note == "weights that are NaN or Inf"
        assert [each[i].value for i in (0, 2, 3)] == pytest.approx([whole[i].value for i in (0, 2, 3)])
        assert layer.value == pytest.approx(fmean(whole[i].value for i in (0, 2, 3)))
        assert layer.n == 3 and layer.note.endswith("1 of 4 heads left out: weights that are NaN or Inf")


def test_a_head_of_zeros_has_no_shape() -> None:
    made = HEADS["one head"]
    empty = replace(made, wq=torch.zeros_like(made.wq))
    for measure in OF_HEADS:
        layer, head = read(measure, empty.record)
        if measure.name in ("symmetric_share", "query_key_rank"):
            assert math.isnan(head.value) and head.note == layer.note == "W is zero"
        elif measure.name != "key_bias_norm":
            assert head.value == 0


def test_the_trace_tells_the_regimes() -> None:
    identity = torch.eye(40).double()
    wq = torch.stack([identity / 40, -identity / 40, 1e-6 * identity])
    record = HeadWeights.of(factors(wq, identity.expand(3, -1, -1), scale=1.0), length=512)
    trace, rank = (next(m for m in OF_HEADS if m.name == name) for name in ("trace", "query_key_rank"))
    assert [reading.note for reading in read(trace, record)] == [
        "regimes: 1 late · 1 early · 1 uniform",
        "regime: late",
        "regime: early",
        "regime: uniform",
    ]
    assert read(rank, record)[1].note == "ρ(t) simulated"
    across = HeadWeights.of(factors(wq, identity.expand(3, -1, -1), scale=1.0))
    assert {reading.note for reading in read(trace, across)} == {""}


def test_heads_of_two_attentions_stand_side_by_side() -> None:
    one, other = HEADS["grouped"].record, heads(8, 2, 1, 12, 3).record
    joined = one.beside(other)
    for measure in OF_HEADS:
        apart = [reading for record in (one, other) for reading in read(measure, record)[1:]]
        assert str(list(read(measure, joined)[1:])) == str(apart)  # NaN is no number, but the same word
    assert joined.spectrum.eigenvalues.shape == (6, 5)
    assert joined.spectrum.eigenvalues[4:, 3:].isnan().all()


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize("measure", OF_VOCABULARY, ids=by_name)
def test_vocabularies_agree_with_the_definition(measure: Measure, name: str) -> None:
    matrix = VOCABULARIES[name]
    found = vocabulary_reading(measure, matrix)
    right = measure.definition(matrix)
    assert found.value == pytest.approx(right, rel=1e-5, abs=1e-6)
    inside(measure, found)
    assert found.n == len(matrix)


def test_the_null_of_singular_entropy_is_what_isotropic_rows_show() -> None:
    entropy = next(measure for measure in OF_VOCABULARY if measure.name == "singular_entropy")
    for n, width in ((60, 5), (5, 12), (40, 40)):
        found = [vocabulary_reading(entropy, normal(seed, n, width)) for seed in range(60)]
        error = float(torch.tensor([each.value for each in found]).std()) / math.sqrt(len(found))
        assert abs(fmean(each.value for each in found) - found[0].null) < 6 * error + 0.01


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("measure", OF_NORM, ids=by_name)
def test_norms_agree_with_the_definition(measure: Measure, name: str) -> None:
    made = NORMS[name]
    found = measure.read(made.record)
    assert isinstance(found, Reading)
    assert found.value == pytest.approx(measure.definition(*NORM_TAKES[measure.name](made)), rel=1e-9)
    inside(measure, found)
    assert not math.isnan(found.null)


def test_what_a_norm_lacks_is_told() -> None:
    bare = NormWeights(torch.ones(4), None, None, "it has no vocabulary head")
    other = NormWeights(torch.ones(4), torch.ones(4), torch.ones(3))
    bad = NormWeights(torch.tensor([1.0, math.nan]), torch.zeros(2), torch.ones(2))
    told = {measure.name: [measure.read(record) for record in (bare, other, bad)] for measure in OF_NORM}
    notes = {name: [each.note for each in found if isinstance(each, Reading)] for name, found in told.items()}
    assert notes == {
        "norm_weight_size": ["", "", "weights that are NaN or Inf"],
        "norm_weight_outliers": ["", "", "weights that are NaN or Inf"],
        "norm_bias_size": ["the norm has no β", "", ""],
        "bias_vocabulary_cosine": [
            "the norm has no β",
            "the vocabulary has 3 dimensions, the norm 4",
            "one of the two is zero",
        ],
        "weight_vocabulary_cosine": [
            "it has no vocabulary head",
            "the vocabulary has 3 dimensions, the norm 4",
            "weights that are NaN or Inf",
        ],
    }
