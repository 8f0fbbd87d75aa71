"""Documents are the units of intervals: chunks of one document depend on each other.

2 or 10 % of the variance belongs to the document, documents have 1 to 12 chunks and norms of their own, and
their chunks are spread over two batches. Seen with 150 streams: .94 to .99 by document, .48 to .96 by chunk.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.geometry import cosine
from isoscope.stats.centre import Centre
from isoscope.stats.counterfactual import Counterfactual
from isoscope.stats.directions import Directions
from isoscope.stats.intervals import FEW, FEW_UNITS
from isoscope.stats.mass import Mass
from isoscope.stats.moments import Moments
from isoscope.stats.queries import Queries
from isoscope.stats.rows import Rows
from isoscope.stats.seen import GROUPS, Vectors
from isoscope.stats.sums import Sums
from isoscope.stats.within import Within
from tests.laws.law_heads import RECORDS, scene
from tests.laws.law_units import ATTENTION, VECTORS, Corpus, Reader, rates
from tests.tiers import nightly

LEAST = 0.92
CASES = [(0.1, 24, 60), *nightly((0.02, 24, 400), (0.02, 60, 400), (0.1, 24, 400), (0.1, 60, 400))]


def least(streams: int) -> float:
    """The lowest rate that passes: two standard errors of few streams below it."""
    return LEAST - (2 * math.sqrt(LEAST * (1 - LEAST) / streams) if streams < 100 else 0)


@pytest.mark.parametrize("stream", [Corpus, Reader])
@pytest.mark.parametrize(("shared", "documents", "streams"), CASES)
def test_intervals_cover_by_document(shared, documents, streams, stream):
    found = rates(stream(shared, most=12, norms=0.15), documents, streams, by_document=True)
    assert set(found) == set(VECTORS if stream is Corpus else ATTENTION)
    assert min(found.values()) >= least(streams), found


@pytest.mark.parametrize("stream", [Corpus, Reader])
def test_by_chunk_they_do_not(stream):
    """So the simulation can fail."""
    found = rates(stream(0.1, most=12, norms=0.15), 24, 60, by_document=False)
    assert min(found.values()) < least(60), found


def cloud(n: int = 60, sequences: int = 20, documents: int = 7, seed: int = 0):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=random, dtype=torch.float64) + 0.5
    sequence = torch.arange(n) % sequences
    document = torch.randint(documents, (sequences,), generator=random)
    return x, sequence, document[sequence]


def test_pairs_are_from_different_documents():
    """Of few documents all pairs; of many, those in one of the 32 groups are left out."""
    x, sequence, document = cloud()
    found = isoscope.describe(x, sequence=sequence, groups=document, measures=["mean_cosine_between"])
    expected = cosine.mean_cosine_between(x, sequence=document)
    assert float(found.frame().value[0]) == pytest.approx(expected, rel=1e-9)
    x, sequence, document = cloud(600, 200, 80)
    found = isoscope.describe(x, sequence=sequence, groups=document, measures=["mean_cosine_between"])
    sums = next(iter(found.records.values()))[Directions].sums
    total, count = sums.total, sums.count
    assert int((count > 0).sum()) == GROUPS
    pairs = (total.sum(0) @ total.sum(0) - (total**2).sum()) / (count.sum() ** 2 - (count**2).sum())
    assert float(found.frame().value[0]) == pytest.approx(float(pairs), rel=1e-12)
    expected = cosine.mean_cosine_between(x, sequence=document)
    assert float(found.frame().value[0]) == pytest.approx(expected, rel=0.05)


def test_groups_of_single_sequences_change_nothing():
    x, sequence, _ = cloud()
    plain = isoscope.describe(x, sequence=sequence).frame()
    grouped = isoscope.describe(x, sequence=sequence, groups=sequence).frame()
    assert plain.equals(grouped)


def test_groups_without_sequences_are_the_sequences_of_pairs():
    x, _, document = cloud()
    measures = ["mean_cosine_between", "drift", "mean_norm"]
    one = isoscope.describe(x, groups=document, measures=measures).frame()
    other = isoscope.describe(x, sequence=document, measures=measures).frame()
    assert one.equals(other)
    assert "rank_residual" not in set(isoscope.describe(x, groups=document).frame().measure)


def test_what_stays_of_sequences():
    """The residual inside a sequence and what is sampled are of sequences, whatever they were cut from."""
    x, sequence, document = cloud(400, 100, 40)
    one = isoscope.describe(x, sequence=sequence, groups=document).frame().set_index("measure")
    other = isoscope.describe(x, sequence=sequence).frame().set_index("measure")
    same = [
        "rank_residual",
        "intra_similarity",
        "mean_cosine",
        "drift",
        "mean_norm",
        "uniformity",
        "isoscore",
    ]
    np.testing.assert_allclose(one.value[same], other.value[same], rtol=1e-12)
    assert (one.low[["rank_residual", "drift"]] != other.low[["rank_residual", "drift"]]).all()


def test_a_sequence_lies_in_one_group():
    x, sequence, _ = cloud()
    with pytest.raises(
        IsoscopeError, match="a sequence lies in several groups; every sequence belongs to one"
    ):
        isoscope.describe(x, sequence=sequence, groups=torch.arange(len(x)) % 7)


def test_too_few_documents_give_no_interval():
    x, sequence, document = cloud(60, 20, 3)
    few = isoscope.describe(x, sequence=sequence, groups=document).frame().set_index("measure")
    names = [
        "mean_cosine_between",
        "drift",
        "relative_drift",
        "mean_norm",
        "rank_residual",
        "intra_similarity",
    ]
    assert few.low[names].isna().all() and (few.note[names] == FEW_UNITS).all()
    alone = isoscope.describe(x[:5], sequence=range(5)).frame().set_index("measure")
    assert alone.note["drift"] == FEW
    one = isoscope.describe(x, sequence=sequence, groups=torch.zeros(60)).frame().set_index("measure")
    assert math.isnan(one.value["mean_cosine_between"]) and math.isnan(one.null["drift"])


def folded(part: slice, x, sequence, key, unit, records):
    rows = (sequence >= part.start) & (sequence < part.stop)
    seen = Vectors.see(x[rows], sequence[rows] - part.start, key[part], units=unit[part])
    return [record.of(seen) for record in records]


def test_a_document_spread_over_batches():
    """Two batches that share documents make the record of one batch."""
    x, sequence, _ = cloud(400, 100, 40)
    random = torch.Generator().manual_seed(1)
    key, unit = torch.randint(2**40, (100,), generator=random), torch.arange(100) % 40 * 7919
    records = (Centre, Directions, Within, Moments)
    whole = folded(slice(0, 100), x, sequence, key, unit, records)
    parts = [folded(part, x, sequence, key, unit, records) for part in (slice(0, 37), slice(37, 100))]
    for record, one, other in zip(whole, *parts, strict=True):
        made = one.merge(other)
        for name in (field.name for field in fields(record)):
            mine, its = getattr(made, name), getattr(record, name)
            for a, b in zip(
                *(vars(each).values() if not torch.is_tensor(each) else [each] for each in (mine, its)),
                strict=True,
            ):
                torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [Rows, Queries, Counterfactual, Mass])
def test_records_of_heads_group_by_unit(kind):
    """A record of chunks by unit has the groups of one whose keys are the units."""
    made = scene(size=12)
    unit = torch.arange(12) // 3 * 104729
    record = next(each for each in RECORDS if each.kind is kind)
    one, other = record.fold(replace(made, units=unit)), record.fold(replace(made, key=unit))

    def tensors(of):
        for name, value in vars(of).items():
            if torch.is_tensor(value):
                if name != "joint":
                    yield value
            elif hasattr(value, "__dict__"):
                yield from tensors(value)

    for mine, its in zip(tensors(one), tensors(other), strict=True):
        torch.testing.assert_close(mine, its, rtol=0, atol=0)


def test_a_unit_that_is_its_key_is_alone():
    made = scene(size=12)
    same = Queries.of(replace(made, units=made.key).heads)
    assert float(same.query.joint) == 0
    some = Queries.of(replace(made, units=torch.where(torch.arange(12) < 3, 5, made.key)).heads)
    assert float(some.query.joint) == 3
    assert isinstance(some.query.sums.by_unit, Sums)
    assert torch.equal(some.query.sums.by_unit.sequences, (some.query.count > 0).double())


def test_the_same_vectors_in_other_documents_are_not_paired():
    """Their groups differ, so what one group does to both says nothing of the difference."""
    x, sequence, document = cloud(400, 100, 40)
    one, same = (isoscope.describe(x, sequence=sequence, groups=document) for _ in range(2))
    other = isoscope.describe(x, sequence=sequence, groups=document.flip(0)[sequence])
    assert one.inputs == same.inputs != other.inputs
    plain = isoscope.describe(x, sequence=sequence)
    assert one.inputs != plain.inputs == isoscope.describe(x, sequence=sequence, groups=sequence).inputs
