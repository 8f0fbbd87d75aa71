"""Nulls of dependent vectors: what isotropic populations read whose vectors are alike inside sequences.

The five populations are those in which readings lay furthest from the null of independent vectors: IsoScore
.465 beside .914 in the widest. Seen with 3 draws of each: every reading within 3 % of its null (stable rank,
TwoNN; the others within 1 %).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pytest
import torch
from torch import Tensor

from isoscope.data.keys import content_keys
from isoscope.geometry import cosine, spectrum
from isoscope.measures.neighbours import kernel_of_alike
from isoscope.measures.null import Dependence, expected, expected_of_dependent, limiting_spectrum
from isoscope.measures.spectrum import entropic_rank, participation, stable_rank, top_share
from isoscope.measures.table import choose
from isoscope.results.reading import Reading
from isoscope.stats.centre import Centre
from isoscope.stats.moments import Moments
from isoscope.stats.seen import Vectors
from isoscope.stats.sums import Sums
from tests.laws.law_clouds import ODD, Cloud, Records, cloud, gaussian, rotation
from tests.tiers import nightly

BY_LARGEST = ("isoscore", "isoscore_star", "participation_ratio", "stable_rank", "top_share")
SPECTRAL = (*BY_LARGEST, "effective_rank", "rankme")
SAMPLED = ("intrinsic_dimension", "local_dimension", "uniformity")
SPARSE = {"fewer degrees of freedom than dimensions": (8, 4, 40, 0.5), "one dimension": (20, 5, 1, 0.5)}


@dataclass(frozen=True)
class Population:
    """Sequences of vectors √ρ·a_s + √(1 − ρ)·e, where from one e to the next the correlation is `decay`.

    `widths` scales the dimensions; `spread` is the standard deviation of the log norms of sequences.
    """

    sequences: int
    length: int
    width: int
    alike: float = 0.0
    decay: float = 0.0
    widths: Tensor | float = 1.0
    spread: float = 0.0

    def draw(self, seed: int) -> Vectors:
        random = torch.Generator().manual_seed(seed)
        own = torch.randn(self.sequences, self.length, self.width, generator=random)
        for i in range(1, self.length if self.decay else 0):
            own[:, i] = self.decay * own[:, i - 1] + math.sqrt(1 - self.decay**2) * own[:, i]
        shared = torch.randn(self.sequences, 1, self.width, generator=random)
        points = math.sqrt(self.alike) * shared + math.sqrt(1 - self.alike) * own
        points *= (self.spread * torch.randn(self.sequences, 1, 1, generator=random)).exp()
        key = torch.randint(0, 2**62, (self.sequences,), generator=random)
        label = torch.arange(self.sequences).repeat_interleave(self.length)
        return Vectors.see((points * self.widths).flatten(0, 1), label, key)

    def readings(self, names: tuple[str, ...], times: int) -> dict[str, list[Reading]]:
        found: dict[str, list[Reading]] = {name: [] for name in names}
        for seed in range(times):
            records = Records([self.draw(seed)])
            for measure in choose(names):
                found[measure.name].append(
                    measure.reading({stat: records[stat, 2] for stat in measure.stats}, {})
                )
        return found


FIVE = {
    "independent": Population(64, 64, 64),
    "alike .2": Population(64, 64, 64, 0.2),
    "alike .5": Population(64, 64, 64, 0.5),
    "long sequences, alike .3": Population(64, 256, 64, 0.3),
    "few sequences of many dimensions, alike .3": Population(32, 128, 384, 0.3),
}
over_five = pytest.mark.parametrize("which", FIVE)


def ratio(readings: list[Reading]) -> float:
    """The mean over draws of a reading over its null."""
    return fmean(reading.value / reading.null for reading in readings)


@pytest.mark.parametrize("times", [1, *nightly(6)])
@over_five
def test_an_isotropic_population_reads_its_null(which: str, times: int) -> None:
    allowed = 0.05 if times > 1 else 0.08  # of one draw, TwoNN and the largest eigenvalue vary by 2 to 3 %
    for name, readings in FIVE[which].readings((*SPECTRAL, *SAMPLED), times).items():
        assert ratio(readings) == pytest.approx(1, abs=allowed), name
        if name == "uniformity":  # it is a logarithm: the mean it is of must agree as well
            means = fmean(math.exp(each.value - each.null) for each in readings)
            assert means == pytest.approx(1, abs=allowed)


def test_the_null_of_independent_vectors_is_not_that_of_dependent_ones() -> None:
    few = FIVE["few sequences of many dimensions, alike .3"]
    n, width = few.sequences * few.length, few.width
    read = few.readings(("participation_ratio", "stable_rank", "local_dimension"), 1)
    assert read["participation_ratio"][0].null < 0.55 * Dependence().free(n) * width / (n + width)
    assert read["stable_rank"][0].null < 0.3 * expected(stable_rank, n, width)
    alone = few.draw(0)
    seen = Vectors.see(alone.points, None, content_keys(alone.points, 0))
    (measure,) = choose(["local_dimension"])
    there = measure.reading({stat: Records([seen])[stat, 2] for stat in measure.stats}, {})
    assert read["local_dimension"][0].null < 0.6 * there.null


@pytest.mark.parametrize("which", ["alike .2", *nightly(*(name for name in FIVE if name != "alike .2"))])
def test_an_anisotropic_population_is_told_from_its_null_which_is_the_isotropic_one(which: str) -> None:
    """Standard deviations fall as 1/√k over the dimensions; all depend on each other as much.

    Every reading is further from its null than those of isotropic populations may be.
    """
    made = FIVE[which]
    names = (*SPECTRAL, *SAMPLED)
    planted = Population(
        made.sequences, made.length, made.width, made.alike, widths=torch.arange(1, made.width + 1) ** -0.5
    )
    anisotropic, isotropic = planted.readings(names, 2), made.readings(names, 2)
    for name in names:
        nulls = [fmean(each.null for each in some[name]) for some in (anisotropic, isotropic)]
        assert nulls[0] == pytest.approx(nulls[1], rel=0.06), name
        for each in anisotropic[name]:
            apart = each.value - each.null if name == "uniformity" else math.log(each.value / each.null)
            assert abs(apart) > 0.05, name


@pytest.mark.parametrize(
    "made",
    [
        Population(32, 128, 384, decay=0.8),
        *nightly(
            Population(32, 128, 384, decay=0.5),
            Population(32, 128, 384, 0.2, decay=0.8),
            Population(32, 128, 384, decay=0.95),
            Population(200, 16, 100, 0.1, decay=0.6),
        ),
    ],
)
def test_vectors_that_are_alike_when_close_in_a_sequence_read_their_null(made: Population) -> None:
    """The null has blocks that are shorter than sequences. An entropy over all directions takes sequences."""
    readings = made.readings(SPECTRAL, 2)
    for name in BY_LARGEST:
        assert ratio(readings[name]) == pytest.approx(1, abs=0.05), name
    assert ratio(readings["effective_rank"]) > (0.95 if made.decay < 0.9 else 0.85)


def test_norms_that_differ_by_sequence_lower_the_null_of_the_participation_ratio() -> None:
    readings = Population(32, 128, 384, 0.3, spread=0.4).readings(SPECTRAL, 4)
    for name in ("isoscore", "participation_ratio"):
        assert ratio(readings[name]) == pytest.approx(1, abs=0.06), name
    assert ratio(readings["effective_rank"]) == pytest.approx(1, abs=0.03)


def pairwise(made: Cloud) -> Dependence:
    """Share and mean inner product of the pairs inside sequences, pair by pair, from the definition."""
    points = made.points.double() - made.points.double().mean(0)
    inside, inner = made.label[:, None] == made.label[None, :], points @ points.T
    self = torch.eye(len(points), dtype=torch.bool)
    across, within = inner[~inside].mean(), inner[inside & ~self].mean()
    alike = float((within - across) / (inner[self].mean() - across))
    return Dependence(float((inside & ~self).double().sum() / (~self).double().sum()), min(max(alike, 0), 1))


@pytest.mark.parametrize("shift", [0.0, 1000.0])
@pytest.mark.parametrize("lengths", [[4] * 12, [1, 2, 3, 14, 20, 20], [20, 1, 1, 2, 9, 4]])
def test_dependence_is_that_of_all_pairs(lengths: list[int], shift: float) -> None:
    shared = gaussian(len(lengths), 5, 1).repeat_interleave(torch.tensor(lengths), 0)
    made = cloud(gaussian(sum(lengths), 5, 2) + shared + shift, lengths)
    found, expect = Dependence.of(made.records[Centre, 2].sums), pairwise(made)  # type: ignore[attr-defined]
    assert found.pairs == pytest.approx(expect.pairs, rel=1e-12)
    assert found.alike == pytest.approx(expect.alike, rel=1e-7)
    assert 0.2 < found.alike < 0.9


def test_dependence_is_nearly_unbiased() -> None:
    """Of ragged sequences, too. It is a ratio of unbiased means, so of very few sequences it is low."""
    random = np.random.default_rng(0)
    for sequences, alike, allowed in ((6, 0.3, 0.05), (40, 0.3, 0.015), (20, 0.8, 0.03)):
        found = []
        for _ in range(200):
            sizes = torch.from_numpy(random.integers(1, 30, sequences))
            points = torch.from_numpy(random.standard_normal((int(sizes.sum()), 8)))
            shared = torch.from_numpy(random.standard_normal((sequences, 8))).repeat_interleave(sizes, 0)
            key = torch.from_numpy(random.integers(0, 2**62, sequences))
            label = torch.arange(sequences).repeat_interleave(sizes)
            vectors = math.sqrt(alike) * shared + math.sqrt(1 - alike) * points + 3
            found.append(Dependence.of(Sums.of(Vectors.see(vectors, label, key))).alike)
        assert fmean(found) == pytest.approx(alike, abs=allowed)


@pytest.mark.parametrize(
    "name",
    [
        *("one vector", "two vectors", "one sequence", "one vector a sequence", "zero rows"),
        *("nothing but zero rows", "one half all the same", "one row over and over, many times"),
    ],
)
def test_without_pairs_of_both_kinds_vectors_are_independent(name: str) -> None:
    records = ODD[name].records
    sums, spread = records[Centre, 2].sums, records[Moments, 2]  # type: ignore[attr-defined]
    assert Dependence.of(sums) == Dependence.of_spread(sums, spread) == Dependence()
    for reading in (entropic_rank, stable_rank):
        null = expected_of_dependent(reading, 30, 4, Dependence(), centred=True)
        assert null == expected(reading, 29, 4)


def test_the_noise_of_a_covariance_is_that_of_its_halves() -> None:
    """Gaussian vectors have n of it; it does not change under a shift, a scale or a rotation."""
    made = cloud(gaussian(4000, 20, 3), [20] * 200)
    first, second = (made.points[made.half == half].double() for half in (0, 1))
    one, two = (spectrum.covariance(half) * (len(half) - 1) / len(half) for half in (first, second))
    apart = float((one - two).square().sum()) * len(first) * len(second) / 4000**2
    noise = apart / float(one.trace() * two.trace() + (one * two).sum())
    spread = made.records[Moments, 2]
    assert spread.noise == pytest.approx(noise, rel=1e-9)  # type: ignore[attr-defined]
    assert 1 / noise == pytest.approx(4000, rel=0.15)
    moved = made.changed(lambda points: 3 * points @ rotation(20) + 7).records[Moments, 2]
    assert moved.noise == pytest.approx(noise, rel=1e-7)  # type: ignore[attr-defined]
    assert math.isnan(made.records[Moments, 1].noise)  # type: ignore[attr-defined]
    assert math.isnan(ODD["two vectors"].records[Moments, 2].noise)  # type: ignore[attr-defined]


def test_more_noise_makes_blocks_shorter_within_limits() -> None:
    made = Population(40, 50, 30, 0.3).draw(0)
    sums, spread = Centre.of(made).sums, Moments.of(made)
    whole = Dependence.of(sums)
    lengthened = (whole.length(2000) - 1) * whole.alike
    for squares, block in (
        (0.0, 1 + lengthened / whole.alike),
        (lengthened / 2, 1 + 2 * lengthened),
        (1e9, 1 + lengthened),
    ):
        spread.__dict__["noise"] = (1 + squares) / 2000
        found = Dependence.of_spread(sums, spread)
        assert found.length(2000) == pytest.approx(block, rel=1e-9)
        assert (found.length(2000) - 1) * found.alike == pytest.approx(lengthened, rel=1e-9)
    spread.__dict__["noise"] = math.nan
    assert Dependence.of_spread(sums, spread) == whole


@pytest.mark.parametrize(
    ("sequences", "length", "width", "alike"),
    [
        (8, 16, 4, 0.5),
        (12, 10, 3, 0.5),
        *SPARSE.values(),
        (40, 8, 120, 0.5),
        (100, 20, 30, 0.9),
        (10, 100, 50, 0.99),
        (10, 10, 50, 1.0),
    ],
)
def test_null_spectra_are_those_of_dependent_gaussian_clouds(
    sequences: int, length: int, width: int, alike: float
) -> None:
    """The limit in n and d holds to 3 % from a few dimensions on; the participation ratio to 2 %."""
    random = torch.Generator().manual_seed(1)
    n, known = sequences * length, Dependence((length - 1) / (sequences * length - 1), alike)
    found: dict[str, list[float]] = {}
    for _ in range(60 if width > 30 else 300):
        shared = torch.randn(sequences, 1, width, generator=random, dtype=torch.float64)
        own = torch.randn(sequences, length, width, generator=random, dtype=torch.float64)
        points = (math.sqrt(alike) * shared + math.sqrt(1 - alike) * own).flatten(0, 1)
        values = torch.linalg.eigvalsh(spectrum.covariance(points))
        values = torch.where(values > 1e-12 * values[-1], values, 0)
        for reading in (participation, entropic_rank, stable_rank, top_share):
            found.setdefault(reading.__name__, []).append(reading(values))
    free = known.free(n)
    nulls = {
        each.__name__: expected_of_dependent(each, n, width, known, centred=True)
        for each in (entropic_rank, stable_rank, top_share)
    } | {"participation": (width * free + 2) / (free + width + 1)}
    for name, values in found.items():
        error = 4 * float(np.std(values)) / math.sqrt(len(values))
        assert nulls[name] == pytest.approx(fmean(values), rel=0.03, abs=error), name


def test_the_limit_of_independent_vectors_is_the_law_of_marchenko_and_pastur() -> None:
    values = limiting_spectrum((800.0, 1.0), (0.0, 1.0), 200)
    assert float(values.mean()) == pytest.approx(4, rel=1e-3)
    assert float(values.var()) == pytest.approx(4, rel=0.02)
    assert values[0] > (2 - 1) ** 2 * 0.99
    assert values[-1] < (2 + 1) ** 2 * 1.01
    assert (limiting_spectrum((50.0, 1.0), (0.0, 1.0), 200)[:150] == 0).all()


@pytest.mark.parametrize(("width", "alike"), [(1, 0.4), (3, 0.7), (64, 0.3), (64, 1.0)])
def test_the_kernel_of_alike_vectors_is_that_of_pairs(width: int, alike: float) -> None:
    one, two = gaussian(200_000, width, 1), gaussian(200_000, width, 2)
    other = alike * one + math.sqrt(1 - alike**2) * two
    means = (4 * torch.cosine_similarity(one, other)).exp()
    assert kernel_of_alike(width, alike) == pytest.approx(float(means.mean()), rel=0.03)
    assert cosine.uniformity(torch.stack([one[0], one[0]])) == pytest.approx(0, abs=1e-12)
