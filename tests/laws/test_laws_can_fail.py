"""The laws are tested too: for each there is a record or a measure that is wrong, and it is caught."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
import torch

import isoscope.stats
from isoscope.measures.table import choose
from isoscope.results.reading import Reading
from isoscope.stats.centre import Centre
from isoscope.stats.directions import Directions
from isoscope.stats.moments import Moments
from isoscope.stats.seen import Vectors
from tests.laws import law_stats
from tests.laws.law_clouds import ODD, Records, cloud, gaussian
from tests.laws.law_measures import (
    agrees_with_definition,
    any_dtype,
    invariant_as_declared,
    leaves_out_not_finite,
    merged_as_whole,
    read,
    within_bounds,
    witness,
)
from tests.laws.law_sampling import Stream, covers, isotropic_readings, null_holds, simulate
from tests.laws.test_tables_are_complete import KNOWN, records_of

SAMPLE = cloud(gaussian(40, 4, 50) + 2, [3, 7, 1, 9, 2, 5, 6, 4, 3])


@dataclass(frozen=True)
class AveragesTheMeans(Moments):
    """Takes the plain average of two means, however many vectors each is of."""

    def merge(self, other):
        return replace(super().merge(other), mean=(self.mean + other.mean) / 2)


@dataclass(frozen=True)
class KeepsItsOwnNorms(Centre):
    """Forgets the norms of the other."""

    def merge(self, other):
        return replace(super().merge(other), norms=self.norms)


@dataclass(frozen=True)
class CountsMerges(Directions):
    """Has one more vector of norm zero with every merge."""

    def merge(self, other):
        return replace(super().merge(other), zeros=self.zeros + other.zeros + 1)


@dataclass(frozen=True)
class DividesByOneLess(Moments):
    """Keeps a covariance over n−1, which one row has not."""

    @classmethod
    def of(cls, seen, parts=2):
        made = super().of(seen, parts)
        return replace(made, scatter=made.scatter / (made.count - 1)[:, None, None])


@dataclass(frozen=True)
class ForgetsChan(Moments):
    """Adds the scatters and not what the means lie apart."""

    def merge(self, other):
        return replace(super().merge(other), scatter=self.scatter + other.scatter)


@pytest.mark.parametrize(
    ("law", "broken"),
    [
        (law_stats.associative, AveragesTheMeans),
        (law_stats.commutative, KeepsItsOwnNorms),
        (law_stats.empty, CountsMerges),
        (law_stats.one_row, DividesByOneLess),
        (law_stats.batching, ForgetsChan),
    ],
    ids=lambda part: part.__name__,
)
def test_every_law_of_records_rejects_a_broken_record(law, broken):
    with pytest.raises(AssertionError):
        law(broken.of, SAMPLE)
    law(broken.__bases__[0].of, SAMPLE)


def test_every_law_of_records_has_its_mutant():
    assert len(law_stats.LAWS) == 5


def broken(name: str, read=None, **changes):
    (measure,) = choose([name])
    return replace(measure, read=read or measure.read, **changes)


def with_value(name: str, change, **changes):
    """The measure with its value changed by a function of the reading and the record."""
    (measure,) = choose([name])

    def read(record, *others) -> Reading:
        found = measure.read(record, *others)
        return replace(found, value=change(found, record))

    return broken(name, read, **changes)


def test_a_mean_cosine_that_includes_self_pairs_is_not_its_definition():
    wrong = with_value("mean_cosine", lambda found, record: found.value + (1 - found.value) / found.n)
    with pytest.raises(AssertionError, match="its definition says"):
        agrees_with_definition(wrong, SAMPLE)


def test_an_undefined_value_that_reads_zero_is_not_its_definition():
    wrong = with_value("mean_cosine", lambda found, _: 0.0 if math.isnan(found.value) else found.value)
    with pytest.raises(AssertionError):
        agrees_with_definition(wrong, ODD["one vector"])


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("relative_drift", Reading(1.2, 9)),
        ("relative_drift", Reading(0.5, 9, null=-0.1)),
        ("relative_drift", Reading(0.5, 9, low=0.4, high=1.1)),
        ("relative_drift", Reading(0.5, 9, low=0.6, high=0.9)),
        ("relative_drift", Reading(0.5, 9, low=0.4)),
        ("relative_drift", Reading(math.nan, 9)),
        ("effective_rank", Reading(4.5, 9)),
    ],
    ids=str,
)
def test_what_lies_outside_its_bounds_or_gives_no_reason_is_rejected(name, reading):
    with pytest.raises(AssertionError):
        within_bounds(broken(name, lambda *_: reading), SAMPLE)


def test_a_measure_that_depends_on_batches_is_rejected():
    with pytest.raises(AssertionError, match="merged"):
        merged_as_whole(broken("participation_ratio", stats=(ForgetsChan, Centre)), SAMPLE)


@pytest.mark.parametrize(
    "wrong",
    [
        with_value("relative_drift", lambda found, record: float(record.sums.mean.norm())),
        with_value("drift", lambda found, record: float(record.sums.mean[0])),
        with_value("isoscore", lambda found, record: found.value + float(record.whole.mean.norm())),
        broken("mean_cosine", unchanged_by=frozenset({"rotation", "scale", "shift"})),
        broken("isoscore", unchanged_by=frozenset({"rotation", "shift"})),
        broken("drift", unchanged_by=frozenset()),
    ],
    ids=["scale", "rotation", "shift", "declares too much", "declares too little", "declares nothing"],
)
def test_a_measure_that_is_not_as_invariant_as_declared_is_rejected(wrong):
    with pytest.raises(AssertionError, match=r"changes|leave"):
        invariant_as_declared(wrong, witness())


@dataclass(frozen=True)
class SumsInHalf(Centre):
    """Sums in the dtype of the vectors."""

    @classmethod
    def of(cls, seen, parts=2):
        made = super().of(seen, parts)
        rough = seen.points.sum(0).double()
        total = torch.zeros_like(made.sums.total)
        total[0] = rough
        return replace(made, sums=replace(made.sums, total=total))


def test_sums_in_the_dtype_of_the_vectors_are_rejected():
    with pytest.raises(AssertionError):
        any_dtype(broken("drift", stats=(SumsInHalf,)), cloud(gaussian(900, 3, 51) + 3))


@dataclass(frozen=True)
class AveragesNaN(Centre):
    """Counts what is not finite as vectors of norm zero."""

    @classmethod
    def of(cls, seen, parts=2):
        made = super().of(seen, parts)
        count = made.sums.count.clone()
        count[0] += seen.not_finite
        return replace(made, sums=replace(made.sums, count=count))


def test_a_measure_that_averages_in_what_is_not_finite_is_rejected():
    with pytest.raises(AssertionError):
        leaves_out_not_finite(broken("mean_norm", stats=(AveragesNaN,)), SAMPLE)


def readings_at(n: int, width: int, name: str, change) -> list[Reading]:
    found = isotropic_readings(choose([name]), n, width, 200)[name]
    return [change(reading) for reading in found]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mean_cosine", lambda found: replace(found, value=found.value + (1 - found.value) / found.n)),
        ("participation_ratio", lambda found: replace(found, null=5.0)),
        ("drift", lambda found: replace(found, null=0.0)),
        ("rogue_contribution", lambda found: replace(found, null=0.0)),
        ("effective_rank", lambda found: replace(found, null=5.0)),
        ("mean_norm", lambda found: replace(found, null=1.0)),
    ],
)
def test_a_null_that_isotropic_clouds_do_not_show_is_rejected(name, change):
    null_holds(name, readings_at(20, 5, name, lambda found: found), 20, 5)
    with pytest.raises(AssertionError):
        null_holds(name, readings_at(20, 5, name, change), 20, 5)


def half_as_wide(found: Reading) -> Reading:
    centre, reach = (found.low + found.high) / 2, (found.high - found.low) / 4
    return replace(found, low=centre - reach, high=centre + reach)


def test_an_interval_half_as_wide_does_not_cover():
    stream = Stream(4.0, (1.0,) * 8, "even")
    names = ["mean_cosine_between", "drift", "relative_drift", "mean_norm"]
    found = simulate(choose(names), stream, 40, 300)
    covers(found, stream.truth())
    for name in names:
        with pytest.raises(AssertionError, match="covers"):
            covers({name: [half_as_wide(reading) for reading in found[name]]}, stream.truth())


def test_an_interval_that_takes_every_vector_for_itself_does_not_cover():
    """Without the sequences, the vectors count as independent and the interval is too short."""
    stream, random = Stream(4.0, (1.0,) * 8, "even"), torch.Generator().manual_seed(1)
    (measure,) = choose(["mean_norm"])
    found = []
    for _ in range(300):
        seen = stream.draw(40, random)
        key = torch.randint(0, 2**62, (len(seen.points),), generator=random)
        found.append(read(measure, Records([Vectors.see(seen.points, None, key)])))
    with pytest.raises(AssertionError, match="covers"):
        covers({"mean_norm": found}, stream.truth())


def test_a_record_left_out_of_the_table_is_found(monkeypatch):
    @dataclass(frozen=True)
    class Forgotten(Moments):
        pass

    Forgotten.__module__ = "isoscope.stats.moments"
    monkeypatch.setattr(isoscope.stats.moments, "Forgotten", Forgotten, raising=False)
    assert records_of(isoscope.stats) - KNOWN == {Forgotten}
