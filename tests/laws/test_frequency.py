"""Rare tokens against frequent ones: a planted effect is found, and where there is none, none is.

The null is hard: every type has a vector of its own (so that tokens of one type are alike), the mean
drifts, contexts add noise that averages out for frequent types, and frequencies fall as in a language.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch

from isoscope.measures.table import choose
from isoscope.results.reading import Reading
from isoscope.stats.seen import Vectors
from tests.laws.law_clouds import Records
from tests.laws.law_measures import read
from tests.tiers import nightly

KINDS, BANDS = ("mean_cosine", "relative_drift"), ("rare", "middle", "frequent")
NAMES = [f"{kind}_{band}" for kind in KINDS for band in BANDS]
MEASURES = choose(["frequency_correlation", *NAMES])
TYPES, LENGTH, SEQUENCES, WIDTH = 900, 60, 200, 6
over_times = pytest.mark.parametrize("times", [20, *nightly(40)])  # corpora


@dataclass(frozen=True)
class Corpus:
    """x = drift·e₀ + own vector of the type + context, and `push`·e₁ more for types below one in 2,000."""

    drift: float
    own: float
    context: float
    push: float = 0.0

    def draw(self, seed: int) -> Vectors:
        random = torch.Generator().manual_seed(seed)
        share = 1 / torch.arange(1, TYPES + 1, dtype=torch.float64)  # Zipf
        token = torch.multinomial(share, LENGTH * SEQUENCES, replacement=True, generator=random)
        table = torch.randn(TYPES, WIDTH, generator=random, dtype=torch.float64) * self.own
        points = table[token]
        points = points + self.context * torch.randn(len(token), WIDTH, generator=random, dtype=torch.float64)
        points[:, 0] += self.drift
        points[:, 1] += self.push * (share[token] / share.sum() < 1 / 2000)
        names = torch.randperm(TYPES, generator=random)  # which types are sampled is chance
        label = torch.arange(SEQUENCES).repeat_interleave(LENGTH)
        key = torch.randint(0, 2**62, (SEQUENCES,), generator=random)
        return Vectors.see(points, label, key, token=names[token] + seed * TYPES)

    @cache  # noqa: B019
    def readings(self, times: int) -> dict[str, list[Reading]]:
        found: dict[str, list[Reading]] = {measure.name: [] for measure in MEASURES}
        for seed in range(times):
            records = Records([self.draw(seed)])
            for measure in MEASURES:
                found[measure.name].append(read(measure, records))
        return found


NULLS = {
    "types and contexts": Corpus(drift=1.0, own=1.0, context=1.0),
    "types alone": Corpus(drift=1.0, own=1.0, context=0.0),
    "contexts alone": Corpus(drift=1.0, own=0.0, context=2.0),
    "no drift": Corpus(drift=0.0, own=1.0, context=1.0),
}


@over_times
@pytest.mark.parametrize("name", NULLS)
def test_in_a_null_corpus_frequency_makes_no_difference(name, times):
    """The correlation's interval holds 0 about 19 times of 20; the bands' mean cosines are the same."""
    found = NULLS[name].readings(times)
    holds = [r.low <= 0 <= r.high for r in found["frequency_correlation"]]
    assert np.mean(holds) >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / times)
    correlations = np.array([r.value for r in found["frequency_correlation"]])
    assert abs(correlations.mean()) < 3 * correlations.std() / math.sqrt(times)
    rare, frequent = (np.array([r.value for r in found[f"mean_cosine_{b}"]]) for b in ("rare", "frequent"))
    apart = rare - frequent
    assert abs(apart.mean()) < 3 * apart.std() / math.sqrt(times)


@pytest.mark.parametrize("own", [0.0, 1.0])
def test_rare_tokens_pushed_along_one_direction_are_found(own):
    corpus = Corpus(drift=0.5, own=own, context=1.0, push=2.0)
    found = corpus.readings(12)
    assert all(r.high < -0.2 for r in found["frequency_correlation"])
    for kind in KINDS:
        rare, frequent = found[f"{kind}_rare"], found[f"{kind}_frequent"]
        clear = [one.low > other.high for one, other in zip(rare, frequent, strict=True)]
        assert np.mean(clear) >= 0.9, kind


def test_frequent_tokens_pushed_are_found_with_the_other_sign():
    corpus = Corpus(drift=3.0, own=0.5, context=1.0, push=0.0)
    seen = corpus.draw(1)
    count = torch.bincount(seen.places.token)[seen.places.token]
    moved = Vectors.see(
        seen.points + 2 * (count > 12)[:, None] * torch.eye(WIDTH)[0],
        seen.sequence,
        seen.key,
        token=seen.places.token,
    )
    (measure,) = choose(["frequency_correlation"])
    assert read(measure, Records([moved])).low > 0.2


@over_times
@pytest.mark.parametrize("name", ["types and contexts", "no drift"])
def test_the_bands_intervals_cover_what_all_types_of_a_language_would_show(name, times):
    """Truth: types without end, drift δ of e₀ and own and context noise; the mean direction is along e₀."""
    corpus = NULLS[name]
    random = torch.Generator().manual_seed(5)
    spread = math.hypot(corpus.own, corpus.context)
    points = spread * torch.randn(400_000, WIDTH, generator=random, dtype=torch.float64)
    points[:, 0] += corpus.drift
    norm = points.norm(dim=1)
    truth = {"mean_cosine": float((points[:, 0] / norm).mean()) ** 2 if corpus.drift else 0.0}
    truth["relative_drift"] = corpus.drift / float(norm.mean())
    found = corpus.readings(times)
    for measure in NAMES:
        kind = measure.rsplit("_", 1)[0]
        rate = np.mean([r.low <= truth[kind] <= r.high for r in found[measure]])
        assert rate >= 0.90 - 2 * math.sqrt(0.9 * 0.1 / times), f"{measure} covers {rate:.3f}"


def test_positions_that_are_not_tokens_have_no_frequency():
    seen = NULLS["no drift"].draw(0)
    records = Records([Vectors.see(seen.points, seen.sequence, seen.key)])
    for measure in MEASURES:
        found = read(measure, records)
        assert math.isnan(found.value) and found.note == "positions here are not tokens"
