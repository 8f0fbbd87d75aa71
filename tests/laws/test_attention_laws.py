"""Records of heads obey the laws of records; attention measures equal their definitions, per head.

The laws run over every scene of `law_heads.SCENES` by table, and forgetting to classify a measure fails.
One tolerance: 1e-5 relative and 1e-6 absolute, 1e-9 for what is merged.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, reduce
from typing import Any

import pytest
import torch

import isoscope.stats
from isoscope.measures import table
from isoscope.measures.base import Measure
from isoscope.stats.anatomy import Anatomy, Controls
from isoscope.stats.clouds import Clouds
from isoscope.stats.counterfactual import Counterfactual
from isoscope.stats.mass import Mass
from isoscope.stats.queries import Queries, QueryProducts
from isoscope.stats.rows import Rows
from tests.laws.law_heads import KINDS, RECORDS, SCENES, HeadRecord, defined, readings, scene
from tests.laws.law_measures import MERGED, close
from tests.laws.law_stats import agree, numbers
from tests.laws.test_tables_are_complete import records_of

MEASURES = tuple(measure for measure in table.MEASURES if measure.at == "attention")
over_measures = pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
over_records = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)


def joined(records: Iterable[Any]) -> Any:
    return reduce(lambda one, other: one.merge(other), records)


@cache
def in_parts(kind: type, name: str) -> tuple[Any, Any]:
    """The record of a scene, and the same merged from its sequences one by one, from the last."""
    fold, made = next(record.fold for record in RECORDS if record.kind is kind), SCENES[name]
    return fold(made), joined(fold(made.take([i])) for i in reversed(range(len(made.key))))


def alike(one: Any, other: Any) -> None:
    """Two records hold the same numbers; a largest score of nothing is left aside once it is the same."""
    for each in (one, other):
        for field in dataclasses.fields(each):
            if isinstance(getattr(each, field.name), Rows):
                alike(getattr(one, field.name), getattr(other, field.name))
    if isinstance(one, Rows):
        assert torch.equal(one.score, other.score)
    agree(_tame(one), _tame(other))


def _tame(record: Any) -> Any:
    """Without the lowest number, beside which every other would agree, and without a null that is NaN."""
    if isinstance(record, Rows):
        return replace(record, score=torch.zeros_like(record.score))
    if isinstance(record, Counterfactual | Anatomy | Controls):
        rows = {name: _tame(each) for name, each in vars(record).items() if isinstance(each, Rows)}
        known = {} if isinstance(record, Controls) else {"chance": record.chance.nan_to_num(7.0)}
        return replace(record, **rows, **known)
    return record


@over_records
def test_merging_is_associative_and_commutative(record: HeadRecord) -> None:
    for made in SCENES.values():
        a, b, c = (record.fold(made.take(range(start, len(made.key), 3))) for start in range(3))
        alike(a.merge(b).merge(c), a.merge(b.merge(c)))
        alike(a.merge(b), b.merge(a))


@over_records
def test_the_record_of_nothing_is_neutral(record: HeadRecord) -> None:
    for made in SCENES.values():
        nothing, something = record.fold(made.take([])), record.fold(made)
        alike(nothing.merge(something), something)
        alike(something.merge(nothing), something)
        assert all(float(x.abs().sum()) == 0 for x in numbers(_tame(nothing.merge(nothing))))


@over_records
def test_any_batches_in_any_order_make_the_same_record(record: HeadRecord) -> None:
    for made in SCENES.values():
        for size in (1, 2, 4):
            order = torch.randperm(len(made.key), generator=torch.Generator().manual_seed(size)).tolist()
            parts = [record.fold(made.take(order[i : i + size])) for i in range(0, len(order), size)]
            alike(joined(parts), record.fold(made))


@over_records
def test_heads_stand_side_by_side(record: HeadRecord) -> None:
    """Two attentions of one head each, joined, are the attention of two heads."""
    whole = SCENES["causal"]
    assert whole.mean is not None and whole.random is not None and whole.behind is not None
    assert whole.key_mean is not None
    halves = [
        replace(
            whole,
            query=whole.query[:, [h]],
            keys=whole.keys[:, [h]],
            mean=whole.mean[[h]],
            random=whole.random[[h]],
            behind=whole.behind[[h]],
            key_mean=whole.key_mean[[h]],
        )
        for h in (0, 1)
    ]
    first, second = (record.fold(half) for half in halves)
    alike(first.beside_heads(second), record.fold(whole))


def test_every_record_of_heads_and_every_measure_of_attention_is_in_its_table() -> None:
    found = {kind for kind in records_of(isoscope.stats) if "Heads" in _taken(kind)}
    assert found == {Rows, Mass, Queries, QueryProducts, Clouds, Counterfactual, Anatomy, Controls}
    assert found < {record.kind for record in RECORDS}
    assert set(KINDS) == {measure.name for measure in MEASURES}
    with pytest.raises(AssertionError):  # as it would, were one forgotten
        assert set(KINDS) - {"sink_mass"} == {measure.name for measure in MEASURES}


def _taken(kind: type) -> str:
    """The type that a record folds; a Counterfact holds Heads, and so does what was Dissected."""
    (seen, *_) = inspect.signature(kind.of).parameters.values()  # type: ignore[attr-defined]
    return (
        str(seen.annotation)
        .replace("Counterfact", "Heads")
        .replace("Dissected", "Heads")
        .replace("Controlled", "Heads")
    )


@over_measures
def test_a_measure_equals_its_definition(measure: Measure) -> None:
    for name in SCENES:
        agrees(measure, name)


def agrees(measure: Measure, name: str) -> None:
    found = measure.read(in_parts(measure.stats[0], name)[0])
    assert isinstance(found, tuple)
    layer, *heads = found
    expected = defined(measure, SCENES[name]).tolist()
    assert len(heads) == len(expected)
    for head, (found, number) in enumerate(zip(heads, expected, strict=True)):
        assert close(found.value, number), f"{name}: head {head} reads {found.value!r}, not {number!r}"
    known = [number for number in expected if not math.isnan(number)]
    if measure.name == "attention_kind":  # of a layer, that of its heads' mean shares
        return
    together = {"largest_score": max, "blind_rows": sum, "not_finite_rows": sum}
    of = together.get(measure.name, lambda each: sum(each) / len(each))
    assert close(layer.value, of(known) if known else math.nan)


def test_the_law_of_definitions_can_fail() -> None:
    by_name = {measure.name: measure for measure in MEASURES}
    for name, wrong in (
        ("entropy", "normalised_entropy"),
        ("score_std", "entropy"),
        ("key_drift", "query_drift"),
    ):
        mixed = replace(by_name[name], read=by_name[wrong].read)
        with pytest.raises(AssertionError):
            agrees(mixed, "causal")


@over_measures
def test_a_measure_keeps_its_bounds_and_says_why_where_it_is_undefined(measure: Measure) -> None:
    low, high = measure.bounds
    read = [measure.read(in_parts(measure.stats[0], name)[0]) for name in SCENES]
    for found in (reading for each in read for reading in each):  # type: ignore[union-attr]
        for part in ("value", "null", "low", "high"):
            number = getattr(found, part)
            inside = low - MERGED <= number <= high + MERGED
            assert math.isnan(number) or inside, f"{part} {number!r} is not in [{low}, {high}]"
        assert math.isnan(found.low) == math.isnan(found.high)
        assert math.isnan(found.low) or found.low <= found.value <= found.high
        assert not math.isnan(found.value) or found.note
        assert found.n >= 0


@over_measures
def test_a_measure_has_the_null_and_the_interval_that_it_says(measure: Measure) -> None:
    kind = KINDS[measure.name]
    layer, *heads = readings(measure, SCENES["many sequences"])
    assert math.isnan(layer.low) != (kind.interval == "all")
    assert all(math.isnan(head.low) != (kind.interval != "none") for head in heads)
    assert measure.interval.startswith("none") != (kind.interval == "all")
    assert math.isnan(layer.null) != kind.null
    assert measure.null.startswith("none") != kind.null
    assert measure.needs >= {"attention"}


@over_measures
def test_fewer_than_eight_sequences_have_no_interval(measure: Measure) -> None:
    few = scene(size=7, rows=9, causal=True, seed=20)
    assert all(math.isnan(found.low) for found in readings(measure, few))


@over_measures
def test_merged_records_read_the_same(measure: Measure) -> None:
    for name in SCENES:
        whole, merged = (measure.read(record) for record in in_parts(measure.stats[0], name))
        assert isinstance(whole, tuple) and isinstance(merged, tuple)
        for one, other in zip(merged, whole, strict=True):
            for part in ("value", "null", "low", "high"):
                assert close(getattr(one, part), getattr(other, part), MERGED, MERGED), (measure.name, part)
            assert (one.n, one.note) == (other.n, other.note)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@over_measures
def test_a_measure_reads_lower_precision_as_the_numbers_it_holds(
    measure: Measure, dtype: torch.dtype
) -> None:
    made = SCENES["grouped key heads"]
    low = replace(made, query=made.query.to(dtype), keys=made.keys.to(dtype))
    same = replace(low, query=low.query.double(), keys=low.keys.double())
    for one, other in zip(readings(measure, low), readings(measure, same), strict=True):
        assert close(one.value, other.value, absolute=1e-5)


def test_keys_that_shift_change_no_row() -> None:
    """A constant added to the keys of a head as they enter the scores cancels in the softmax."""
    made = SCENES["causal"]
    shift = torch.randn(1, 2, 1, 3, dtype=torch.float64) * 5
    assert made.key_mean is not None
    moved = replace(made, keys=made.keys + shift, key_mean=made.key_mean + shift[0, :, 0])
    for measure in MEASURES:
        if measure.name in ("largest_score", "query_key_cosine", "query_key_product", "joint_direction"):
            continue
        if measure.name.startswith("key_") or measure.stats == (Mass,):  # which is of no softmax
            continue
        for one, other in zip(readings(measure, made), readings(measure, moved), strict=True):
            assert close(one.value, other.value, 1e-12, 1e-12), measure.name
