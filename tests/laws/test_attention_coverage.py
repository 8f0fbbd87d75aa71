"""Intervals of attention cover the truth in streams whose rows depend on each other; a null that holds there.

Half of the variance of queries and keys is the sequence's. Lowest seen, with 200 streams: .89.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from isoscope.results.reading import Reading
from isoscope.stats.queries import HeadSums, Queries
from isoscope.stats.rows import Rows
from tests.laws.law_heads import KINDS, RECORDS, Scene
from tests.laws.test_attention_laws import MEASURES
from tests.tiers import nightly

FEW = 60
over_streams = pytest.mark.parametrize("streams", [FEW, *nightly(200)])
INTERVALS = [measure for measure in MEASURES if KINDS[measure.name].interval != "none"]


def stream(size: int, drift: float, random: torch.Generator) -> Scene:
    """Causal attention of two heads in which half the variance of queries and keys is the sequence's."""

    def cloud() -> Tensor:
        own = torch.randn(size, 2, 6, 4, generator=random, dtype=torch.float64)
        shared = torch.randn(size, 2, 1, 4, generator=random, dtype=torch.float64)
        return (shared + own) / math.sqrt(2)

    query, keys = cloud(), cloud()
    query[..., 0] += drift
    keys[..., 0] += drift / 2
    query[:, 1] *= 2
    keys[:, :, 0] += 0.7
    counts = torch.rand(size, 6, generator=random) < 0.8
    made = Scene(query, keys, counts, torch.randint(0, 2**40, (size,), generator=random), causal=True)
    known = Queries.of(made.heads)
    chance = torch.tensor([[0.0, drift, 0.0, 0.0]] * 2, dtype=torch.float64)
    means = {"mean": known.mean_query, "key_mean": known.mean_key, "behind": known.behind_mean}
    return replace(made, **means, random=chance)


def least(streams: int) -> float:
    """The lowest rate that passes for .90: two standard errors of the simulation below it."""
    return 0.90 - 2 * math.sqrt(0.9 * 0.1 / streams)


@cache
def simulated(
    size: int, drift: float, times: int = FEW, only: str = ""
) -> dict[str, list[tuple[Reading, ...]]]:
    random = torch.Generator().manual_seed(size)
    found: dict[str, list[tuple[Reading, ...]]] = {}
    for _ in range(times):
        made = stream(size, drift, random)
        records = {record.kind: record.fold(made) for record in RECORDS if record.kind is not HeadSums}
        for measure in (measure for measure in MEASURES if only in measure.name):
            read = measure.read(records[measure.stats[0]])
            assert isinstance(read, tuple)
            found.setdefault(measure.name, []).append(read)
    return found


@over_streams
@pytest.mark.parametrize(("size", "drift"), [(12, 0.5), (40, 2.0)])
def test_intervals_cover(size: int, drift: float, streams: int) -> None:
    """Of the heads and, where it has one, of the layer."""
    truth = {name: each[0] for name, each in simulated(20_000, drift, 1).items()}
    for measure in INTERVALS:
        each = simulated(size, drift, streams)[measure.name]
        first = 0 if KINDS[measure.name].interval == "all" else 1
        for place in range(first, 3):
            true = truth[measure.name][place].value
            rate = sum(found[place].low <= true <= found[place].high for found in each) / len(each)
            assert rate >= least(streams), f"{measure.name} of {place or 'the layer'} covers {rate}"


def coverage_of_score_std(spread: float, streams: int, size: int = 24) -> float:
    """How often the interval of the first head covers, where the log norms of sequences vary by `spread`.

    Norms multiply scores by e^(2·spread·z), and the mean variance of scores by e^(8·spread²).
    """
    true = simulated(20_000, 0.5, 1)["score_std"][0][1].value * math.exp(4 * spread**2)
    (measure,) = (measure for measure in MEASURES if measure.name == "score_std")
    (record,) = (record for record in RECORDS if record.kind is Rows)
    random, inside = torch.Generator().manual_seed(size), 0
    for _ in range(streams):
        made = stream(size, 0.5, random)
        factor = (spread * torch.randn(size, 1, 1, 1, generator=random, dtype=torch.float64)).exp()
        found = measure.read(record.fold(replace(made, query=made.query * factor, keys=made.keys * factor)))
        inside += found[1].low <= true <= found[1].high
    return inside / streams


@over_streams
def test_the_interval_of_score_std_covers_where_norms_are_alike(streams: int) -> None:
    for spread in (0.0, 0.15):
        assert coverage_of_score_std(spread, streams) >= least(streams)


@pytest.mark.nightly
def test_the_interval_of_score_std_is_too_short_where_norms_are_heavy_tailed() -> None:
    """As its words say. An interval that covers here may take them away."""
    (words,) = (measure.interval for measure in MEASURES if measure.name == "score_std")
    for spread, covers in ((0.3, 0.85), (0.4, 0.76)):
        assert coverage_of_score_std(spread, 600) == pytest.approx(covers, abs=0.04)
        assert f"{covers:.2f}"[1:] in words
        assert f" of {spread:.1f}".replace("0", "") in words


def test_a_drift_share_without_drift_is_its_null() -> None:
    """Queries of one sequence depend on each other: the null takes the effective number of them."""
    for size in (12, 40):
        each = simulated(size, 0.0, 150, "drift_share")["drift_share"]
        share, null, plain = (
            sum(number(found) for found in each) / len(each)
            for number in (lambda f: f[0].value, lambda f: f[0].null, lambda f: 2 / f[0].n)
        )
        assert share == pytest.approx(null, rel=0.15)
        assert share > 2 * plain


def test_the_simulation_can_fail() -> None:
    """An interval a quarter as wide does not cover."""
    each = simulated(12, 0.5)["entropy"]
    true = simulated(20_000, 0.5, 1)["entropy"][0][1].value
    narrow = [abs(found[1].value - true) <= (found[1].high - found[1].low) / 8 for found in each]
    assert sum(narrow) / len(narrow) < least(FEW)
