"""What is read of many heads at once is what a plain loop reads of each: over heads, and over groups."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from isoscope.measures.attention import read_normalised_entropy
from isoscope.measures.cosine import mean_cosines_between, read_mean_cosine_between
from isoscope.measures.drift import drifts, read_drift, read_relative_drift, relative_drifts
from isoscope.results.reading import Reading
from isoscope.stats.centre import Centre
from isoscope.stats.directions import Directions
from isoscope.stats.intervals import FEW, Groups, enough
from isoscope.stats.queries import HeadSums, Queries
from isoscope.stats.rows import Rows
from isoscope.stats.sums import Sums
from tests.laws.law_heads import SCENES

SAME = 1e-12


def plain(value: float, without: list[float], count: list[float]) -> tuple[float, float]:
    """The jackknife with unequal groups, group by group, in Python's own numbers."""
    whole = math.fsum(count)
    used = [(size, left) for size, left in zip(count, without, strict=True) if 0 < size < whole]
    if len(used) < 2:
        return math.nan, math.nan
    centre = len(used) * value - math.fsum((1 - size / whole) * left for size, left in used)
    squares = [
        (whole / size * value - (whole / size - 1) * left - centre) ** 2 / (whole / size - 1)
        for size, left in used
    ]
    weights = [(size / whole) ** 2 for size, _ in used]
    degrees = max(math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights) - 1, 1)
    reach = stats.t.ppf(0.975, degrees) * math.sqrt(math.fsum(squares) / len(used))
    return value - reach, value + reach


def near(one: float, other: float, size: float = 1.0) -> bool:
    return (math.isnan(one) and math.isnan(other)) or abs(one - other) <= SAME * max(size, abs(one))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("numbers", [1, 2, 13])
def test_many_intervals_are_those_of_a_loop(numbers: int, shared: bool) -> None:
    random = np.random.default_rng(31 * numbers + shared)
    count = random.integers(0, 9, (32, 1 if shared else numbers)).astype(float)
    count[3] = 0
    found = random.normal(size=(33, numbers))
    found[1:][np.broadcast_to(count == 0, (32, numbers))] = np.nan  # of a group that is empty, anything
    low, high = Groups.of(count).interval(found)
    for m in range(numbers):
        sizes = count[:, 0 if shared else m].tolist()
        ends = plain(found[0, m], found[1:, m].tolist(), sizes)
        assert near(low[m], ends[0])
        assert near(high[m], ends[1])
        assert ends[0] < ends[1]


@pytest.mark.parametrize("sizes", [[0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
def test_fewer_than_two_groups_have_no_interval(sizes: list[float]) -> None:
    ends = Groups.of(np.array(sizes)[:, None]).interval(np.ones((4, 2)))
    assert all(np.isnan(end).all() for end in ends)


def test_a_group_that_is_not_known_has_no_interval() -> None:
    found = np.random.default_rng(0).normal(size=(7, 2))
    found[4, 1] = np.inf
    low, high = Groups.of(np.ones((6, 1))).interval(found)
    assert np.isfinite([low[0], high[0]]).all()
    assert np.isnan([low[1], high[1]]).all()


def one_head(heads: HeadSums, number: int) -> tuple[Sums, Tensor]:
    """The sums of one head as those of a cloud, and its norms."""
    kept = {each.name: getattr(heads, each.name) for each in fields(Sums)}
    cut = {"counted_total": lambda x: x[number], "joint": lambda x: x}
    alone = {name: cut.get(name, lambda x: x[:, number])(x) for name, x in kept.items()}
    return Sums(**alone), heads.norms[:, number]


def agree(one: Reading, other: Reading) -> bool:
    numbers = all(near(getattr(one, name), getattr(other, name)) for name in ("value", "null", "low", "high"))
    return numbers and (one.n, one.note) == (other.n, other.note)


def differing(heads: HeadSums, unit: HeadSums) -> list[str]:
    """Where a reading of all heads is not that of the head by itself."""
    zero = torch.zeros(())
    found = drifts(heads.sums), relative_drifts(heads.sums, heads.norms), mean_cosines_between(unit.sums)
    wrong = []
    for number in range(heads.count.shape[1]):
        centre = Centre(*one_head(heads, number), zero)
        sums, _ = one_head(unit, number)
        alone = (
            read_drift(centre),
            read_relative_drift(centre),
            read_mean_cosine_between(Directions(sums, zero)),
        )
        for name, all_heads, by_itself in zip(("drift", "relative", "cosine"), found, alone, strict=True):
            wrong += [] if agree(all_heads[number], by_itself) else [f"{name} of head {number}"]
    return wrong


@pytest.mark.parametrize("name", SCENES)
def test_heads_at_once_are_each_head_alone(name: str) -> None:
    record = Queries.of(SCENES[name].heads)
    assert differing(record.query, record.query_unit) == []
    assert differing(record.key, record.key_unit) == []


def test_a_head_in_the_wrong_place_is_noticed() -> None:
    record = Queries.of(SCENES["many sequences"].heads).query
    turned = replace(record, total=record.total.roll(1, 1))
    assert [drift.value for drift in drifts(turned.sums)] != [drift.value for drift in drifts(record.sums)]
    spoilt = replace(record, counted_total=record.counted_total.flip(0))
    nulls = [[drift.null for drift in drifts(each.sums)] for each in (spoilt, record)]
    assert not all(near(*pair) for pair in zip(*nulls, strict=True))


def head_by_head(record: Rows) -> list[Reading]:
    """The normalised entropy of the layer and its heads, by loops."""
    top, bottom, size = record.normalised, record.several, record.several.mean(1).tolist()
    why = "no row that sees two keys"

    def left(group: int | None, head: int) -> float:
        rest = [g for g in range(len(bottom)) if g != group]
        rows = float(bottom[rest, head].sum())
        return float(top[rest, head].sum()) / rows if rows else math.nan

    def reading(heads: list[int]) -> Reading:
        def mean(group: int | None) -> float:
            return math.fsum(left(group, head) for head in heads) / len(heads)

        n, value = int(bottom[:, heads].sum()), mean(None)
        if not enough(record.sequences):
            return Reading(value, n, 1.0, note=FEW)
        without = [mean(group) for group in range(len(bottom))]
        if not all(math.isfinite(each) for each, weight in zip(without, size, strict=True) if weight):
            return Reading(value, n, 1.0)
        low, high = plain(value, without, size)
        return Reading(value, n, 1.0, max(low, 0.0), min(high, 1.0))

    known = [head for head in range(bottom.shape[1]) if math.isfinite(left(None, head))]
    heads = [
        reading([head]) if head in known else Reading(math.nan, int(bottom[:, head].sum()), note=why)
        for head in range(bottom.shape[1])
    ]
    return [reading(known) if known else Reading(math.nan, 0, note=why), *heads]


@pytest.mark.parametrize("name", SCENES)
def test_a_layer_and_its_heads_are_those_of_a_loop(name: str) -> None:
    record = Rows.of(SCENES[name].heads)
    found, expected = read_normalised_entropy(record), head_by_head(record)
    assert len(found) == len(expected)
    assert all(agree(*pair) for pair in zip(found, expected, strict=True)), (found, expected)
