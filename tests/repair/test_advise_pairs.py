"""What advice reads off pairs, against plain loops; and that its intervals cover."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from isoscope.repair.advise.pairs import (
    QUANTILES,
    cosines,
    dimension_shares,
    hubs,
    nearest,
    neighbours_kept,
    quantiles,
)
from isoscope.repair.hubs import NEAREST
from isoscope.repair.impact.scores import hub_outcomes


def cone(n: int, width: int, shift: float = 1.0) -> torch.Tensor:
    return torch.randn(n, width, dtype=torch.float64) + shift * torch.randn(width, dtype=torch.float64)


def naive_cosine(x: torch.Tensor, y: torch.Tensor) -> float:
    return float(x @ y / (x.norm() * y.norm()))


@pytest.mark.parametrize(("n", "width", "units"), [(37, 5, 37), (50, 3, 9)])
def test_quantiles_are_of_pairs_of_different_units(n: int, width: int, units: int) -> None:
    points, unit = cone(n, width), torch.arange(n) % units
    pairs = [
        naive_cosine(points[i], points[j])
        for i, j in itertools.combinations(range(n), 2)
        if unit[i] != unit[j]
    ]
    found = quantiles(cosines(points, unit), unit)
    for per_cent in QUANTILES:
        assert found[per_cent].value == pytest.approx(np.quantile(pairs, per_cent / 100), abs=1e-12)
        assert found[per_cent].n == n
        assert math.isnan(found[per_cent].low)  # of so few units there is no interval


def test_intervals_of_quantiles_cover() -> None:
    truth = quantiles(cosines(points := cone(3000, 8, 0.0) + 1.0, unit := torch.arange(len(points))), unit)
    inside = []
    for _ in range(60):
        own = torch.randn(240, 8, dtype=torch.float64) + 1.0
        found = quantiles(cosines(own, torch.arange(240)), torch.arange(240))
        inside += [found[q].low <= truth[q].value <= found[q].high for q in (5, 50, 95)]
    assert 0.88 <= np.mean(inside) <= 0.995


def test_neighbours_kept_counts_those_that_stay() -> None:
    before, after = cone(60, 7), cone(60, 7)
    unit = torch.arange(60)

    def near(points: torch.Tensor, i: int) -> set[int]:
        others = [j for j in range(60) if j != i]
        return set(sorted(others, key=lambda j: -naive_cosine(points[i], points[j]))[:NEAREST])

    shares = [len(near(before, i) & near(after, i)) / NEAREST for i in range(60)]
    found = neighbours_kept(nearest(cosines(before, unit)), nearest(cosines(after, unit)), unit)
    assert found.value == pytest.approx(np.mean(shares))
    assert found.null == pytest.approx(NEAREST / 59)
    assert found.low < found.value < found.high
    spread = np.std(shares, ddof=1) / math.sqrt(60)  # of vectors that stand alone it is the plain interval
    assert (found.high - found.low) / (2 * spread) == pytest.approx(2.0, abs=0.7)


def test_nothing_changes_under_rotation_and_all_by_lot() -> None:
    points, unit = cone(80, 6), torch.arange(80)
    turn = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64))[0]
    near = nearest(cosines(points, unit))
    assert neighbours_kept(near, nearest(cosines(3 * points @ turn, unit)), unit).value == 1
    other = neighbours_kept(near, nearest(cosines(torch.randn(80, 6), unit)), unit)
    assert other.value == pytest.approx(other.null, abs=0.08)


def test_hubs_are_those_of_impact() -> None:
    points, unit = cone(90, 12), torch.arange(90)
    skew, nobody = hubs(nearest(cosines(points, unit)), unit)
    there = hub_outcomes(points.numpy(), NEAREST)
    assert (skew.value, nobody.value) == pytest.approx(tuple(each.value for each in there))
    assert skew.low < skew.value < skew.high


@pytest.mark.parametrize("units", [41, 8])
def test_shares_of_dimensions_against_the_formula(units: int) -> None:
    points, unit = cone(41, 5, 3.0), torch.arange(41) % units
    parts = np.zeros(5)
    for i, j in itertools.product(range(41), repeat=2):
        if unit[i] != unit[j]:
            parts += (points[i] / points[i].norm() * points[j] / points[j].norm()).numpy()
    order = torch.tensor([3, 0, 4])
    alone, joined = dimension_shares(points, unit, order)
    np.testing.assert_allclose([each.value for each in alone], parts[order] / parts.sum(), atol=1e-12)
    np.testing.assert_allclose([each.value for each in joined], np.cumsum(parts[order]) / parts.sum())
    assert all(each.low < each.value < each.high for each in alone)


def test_chance_of_a_dimension_is_that_of_a_random_direction() -> None:
    width, found = 40, []
    for _ in range(300):
        direction = torch.randn(width, dtype=torch.float64)
        found.append(float((direction**2).max() / (direction**2).sum()))
    alone, _ = dimension_shares(cone(64, width, 3.0), torch.arange(64), torch.tensor([0]))
    assert alone[0].null == pytest.approx(np.mean(found), rel=0.15)
