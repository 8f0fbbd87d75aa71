"""Hubs have one definition, which advice and impact share: they differ only in which pairs count."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from isoscope.repair import hubs as definitions
from isoscope.repair.advise import pairs
from isoscope.repair.impact import scores as impact

COUNTS = np.random.default_rng(0).poisson(10, (5, 200))


def test_the_skewness_is_scipys() -> None:
    np.testing.assert_allclose(definitions.hub_skewness(COUNTS), stats.skew(COUNTS, axis=1))


def test_the_skewness_of_moments_is_the_skewness() -> None:
    moments = [(COUNTS.astype(float) ** power).mean(1) for power in (1, 2, 3)]
    found = definitions.skewness_of_moments(*moments)
    np.testing.assert_allclose(found, definitions.hub_skewness(COUNTS), rtol=1e-9)


def circle(n: int) -> np.ndarray:
    """Points evenly on a circle: each is the neighbour of as many."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_both_say_0_where_nothing_varies() -> None:
    alike = np.full(50, 10.0)
    assert definitions.hub_skewness(alike) == 0
    assert definitions.skewness_of_moments(*(np.array(10.0**power) for power in (1, 2, 3))) == 0
    near = (torch.arange(40)[:, None] + torch.arange(1, 11)) % 40
    skew, nobody = pairs.hubs(near, torch.arange(40))
    assert (skew.value, nobody.value) == (0, 0)
    assert impact.neighbours(circle(12), k=2)[0].tolist() == [2] * 12
    assert [each.value for each in impact.hub_outcomes(circle(40), k=2)] == [0, 0]


@pytest.mark.parametrize("units", [90, 30])
def test_advice_and_impact_differ_only_in_which_pairs_count(units: int) -> None:
    points = torch.randn(90, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.5
    unit = torch.arange(90) % units
    near = pairs.nearest(pairs.cosines(points, unit))
    skew, nobody = pairs.hubs(near, unit)
    counts = definitions.occurrences(near.numpy(), 90)
    assert skew.value == pytest.approx(definitions.hub_skewness(counts))
    assert nobody.value == pytest.approx(definitions.anti_hubs(counts))
    whole, _ = impact.neighbours(points.numpy(), definitions.NEAREST)
    assert (counts.tolist() == whole.tolist()) == (units == 90)
    assert (skew.null, nobody.null) == tuple(each.null for each in impact.hub_outcomes(points.numpy()))
