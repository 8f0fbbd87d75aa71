"""Every measure equals its definition, keeps its bounds and declared invariances, in every dtype.

One tolerance everywhere: 1e-5 relative and 1e-6 absolute; 1e-9 for records that were merged.
"""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings

from tests.laws.law_clouds import ODD, Cloud, cloud, clouds, gaussian
from tests.laws.law_measures import (
    KINDS,
    MEASURES,
    agrees_with_definition,
    any_dtype,
    invariant_as_declared,
    leaves_out_not_finite,
    merged_as_whole,
    reading,
    within_bounds,
)

LENGTHS = [20, 9, 6, 5, 7, 3, 12, 8]
over_measures = pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)


@over_measures
def test_a_measure_equals_its_definition(measure):
    for odd in ODD.values():
        agrees_with_definition(measure, odd)


@over_measures
def test_a_measure_keeps_its_bounds(measure):
    for odd in ODD.values():
        within_bounds(measure, odd)


@over_measures
def test_merged_records_read_the_same(measure):
    for odd in ODD.values():
        if odd.points.numel() <= 1000:
            merged_as_whole(measure, odd)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cloud=clouds())
def test_on_any_cloud_every_measure_equals_its_definition_and_keeps_its_bounds(cloud: Cloud):
    for measure in MEASURES:
        agrees_with_definition(measure, cloud)
        within_bounds(measure, cloud)
        merged_as_whole(measure, cloud)


@over_measures
def test_a_measure_changes_under_what_it_declares_and_under_nothing_else(measure):
    invariant_as_declared(measure, KINDS[measure.name].witness())


@over_measures
def test_a_measure_reads_every_dtype_as_the_numbers_it_holds(measure):
    any_dtype(measure, cloud(gaussian(70, 5, 40) * 3 + 1, LENGTHS))


@over_measures
def test_a_measure_never_averages_in_what_is_not_finite(measure):
    leaves_out_not_finite(measure, cloud(gaussian(70, 5, 41) + 0.5, LENGTHS))
    leaves_out_not_finite(measure, cloud(gaussian(70, 5, 42) + 0.5))


@over_measures
def test_of_nothing_a_measure_is_undefined_and_says_why(measure):
    found = reading(measure, ODD["two vectors"].take([]))
    assert found.n == 0
    assert found.value == 0 if measure.family == "health" else math.isnan(found.value) and found.note


@over_measures
def test_of_nothing_finite_a_measure_is_undefined_and_says_why(measure):
    found = reading(measure, cloud(torch.full((3, 2), math.nan)))
    if measure.name == "not_finite":
        assert (found.value, found.n) == (3, 3)
    elif measure.family != "health":
        assert math.isnan(found.value) and found.note


@over_measures
def test_moments_in_one_part_read_the_same_but_for_the_halves(measure):
    whole = ODD["ragged sequences"]
    one, two = reading(measure, whole, parts=1), reading(measure, whole, parts=2)
    if measure.name == "participation_ratio_split":
        assert math.isnan(one.value) and "memory" in one.note
    else:
        assert one.value == pytest.approx(two.value, rel=1e-9, abs=1e-9, nan_ok=True)


def test_vectors_that_stand_alone_are_sequences_of_one():
    points = gaussian(11, 4, 43)
    alone, apart = cloud(points), cloud(points, [1] * 11)
    for measure in MEASURES:
        one, other = reading(measure, alone), reading(measure, apart)
        for part in ("value", "null", "low", "high"):
            assert getattr(one, part) == pytest.approx(getattr(other, part), rel=1e-9, abs=1e-9, nan_ok=True)


def test_fewer_than_eight_sequences_have_no_interval():
    for measure in MEASURES:
        assert math.isnan(reading(measure, cloud(gaussian(70, 4, 44), [10] * 7)).low)
