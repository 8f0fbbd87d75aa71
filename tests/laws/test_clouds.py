"""The record of clouds obeys the laws of records of heads, and is the sample that its definition says."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import pytest
import torch
from torch import Tensor

from isoscope.stats.clouds import SIZE, Clouds, Sample
from isoscope.stats.heads import Positions
from isoscope.stats.seen import mix
from tests.laws import test_attention_laws as laws
from tests.laws.law_heads import SCENES, HeadRecord, Scene, scene

RECORD = HeadRecord("clouds", Clouds, lambda made: Clouds.of(made.heads))
LAWS = (
    laws.test_merging_is_associative_and_commutative,
    laws.test_the_record_of_nothing_is_neutral,
    laws.test_any_batches_in_any_order_make_the_same_record,
    laws.test_heads_stand_side_by_side,
)
LARGE = scene(size=30, heads=4, groups=2, rows=9, width=3, seed=21)  # more positions than are kept


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_laws_of_records_of_heads(law) -> None:
    law(RECORD)


def test_the_laws_can_fail() -> None:
    def by_arrival(made: Scene) -> Clouds:
        found = Clouds.of(made.heads)
        arrived = torch.arange(len(found.query.place))[:, None].expand_as(found.query.place)
        return replace(found, query=replace(found.query, place=arrived))

    with pytest.raises(AssertionError):
        laws.test_any_batches_in_any_order_make_the_same_record(replace(RECORD, fold=by_arrival))


def by_hand(vectors: Tensor, made: Scene, head: int) -> Tensor:
    """The finite ones among the `SIZE` counted vectors with the smallest places, one by one."""
    found: list[tuple[int, Tensor]] = []
    for sequence, counts in enumerate(made.counts.tolist()):
        number = 0
        for position, counted in enumerate(counts):
            number += counted
            if counted:
                place = int(mix(made.key[sequence] + mix(torch.tensor(number))))
                found.append((place, vectors[sequence, head, position]))
    kept = [vector for _, vector in sorted(found, key=lambda each: each[0])[:SIZE] if vector.isfinite().all()]
    return torch.stack(kept) if kept else vectors.new_zeros(0, vectors.shape[-1])


@pytest.mark.parametrize("made", [*SCENES.values(), LARGE], ids=[*SCENES, "more than are kept"])
def test_the_sample_is_that_of_the_smallest_places(made: Scene) -> None:
    found = Clouds.of(made.heads)
    shared = made.query.shape[1] // made.keys.shape[1]
    assert found.heads == made.query.shape[1]
    for head in range(found.heads):
        query, key = found.pair(head)
        assert torch.equal(query, by_hand(made.query, made, head))
        assert torch.equal(key, by_hand(made.keys, made, head // shared))
        assert torch.equal(found.pair(head, most=3)[0], query[:3])


def test_at_most_so_many_in_whatever_batches() -> None:
    assert int(LARGE.counts.sum()) > SIZE
    whole = Clouds.of(LARGE.heads)
    parts = [Clouds.of(LARGE.take(range(i, min(i + 7, 30))).heads) for i in range(0, 30, 7)]
    merged = reduce(lambda one, other: one.merge(other), reversed(parts))
    assert len(whole.pair(0)[0]) == len(merged.pair(0)[0]) == SIZE
    for head in range(4):
        for one, other in zip(whole.pair(head), merged.pair(head), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("before", [0, 4])
def test_padding_moves_nothing(before: int) -> None:
    """The same sequences with four positions more, before or after, that do not count and are not finite."""
    made = SCENES["no mask"]
    wider = [
        x.new_full((*x.shape[:2], x.shape[2] + 4, x.shape[3]), torch.nan) for x in (made.query, made.keys)
    ]
    counts = torch.zeros(len(made.key), 9, dtype=torch.bool)
    counts[:, before : before + 5] = made.counts
    for wide, own in zip(wider, (made.query, made.keys), strict=True):
        wide[:, :, before : before + 5] = own
    where = Positions(counts, made.key)
    seen = replace(made.heads, query=wider[0], keys=wider[1], positions=where, key_positions=where)
    for head in range(2):
        for one, other in zip(Clouds.of(made.heads).pair(head), Clouds.of(seen).pair(head), strict=True):
            assert torch.equal(one, other)


def test_one_head_that_is_not_finite_takes_nothing_from_another() -> None:
    made = SCENES["a head without a finite query"]
    first = replace(made.heads, query=made.query[:, :1], keys=made.keys[:, :1])
    whole, alone = Clouds.of(made.heads), Clouds.of(first)
    assert len(whole.pair(1)[0]) == 0 < len(whole.pair(0)[0])
    assert torch.equal(whole.pair(0)[0], alone.pair(0)[0])


def test_attention_that_shows_no_queries_has_an_empty_record() -> None:
    bare = replace(SCENES["causal"].heads, query=None, keys=None, key_positions=None)
    found = Clouds.of(bare).merge(Clouds.of(bare))
    assert found.heads == 2
    assert [len(part) for part in found.pair(1)] == [0, 0]


def test_samples_of_different_lengths_stand_side_by_side() -> None:
    one, other = (Clouds.of(scene(size=size, rows=5, seed=size).heads) for size in (2, 9))
    both = one.beside_heads(other)
    assert both.heads == 4
    for head, (alone, at) in enumerate([(one, 0), (one, 1), (other, 0), (other, 1)]):
        for mine, its in zip(both.pair(head), alone.pair(at), strict=True):
            assert torch.equal(mine, its)


def test_the_size_is_that_of_the_tensors() -> None:
    where = Positions(torch.ones(1, SIZE, dtype=torch.bool), torch.zeros(1, dtype=torch.int64))
    made = Sample.of(torch.randn(1, 3, SIZE, 64), where)
    taken = sum(x.numel() * x.element_size() for x in vars(made).values())
    assert 2 * taken == Clouds.size(3 * 64, 2)


def test_nothing_is_asked_of_the_device() -> None:
    """On tensors that hold no numbers, whatever needs one to go on fails: so no GPU is waited for."""
    made = LARGE.heads
    where = Positions(made.counts.to("meta"), made.key.to("meta"))
    vectors = {name: getattr(made, name).to("meta") for name in ("query", "keys")}
    bare = replace(made, positions=where, key_positions=where, **vectors)
    joined = Clouds.of(bare).merge(Clouds.of(bare))
    joined = joined.beside_heads(joined)
    assert joined.query.vectors.shape == (SIZE, 8, 3)
    with pytest.raises((NotImplementedError, RuntimeError)):  # reading does need them
        joined.pair(0)
