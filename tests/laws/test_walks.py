"""The records of inputs as a walk: against all pairs by hand, and merged as whole."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isoscope.geometry.spectra import covariance_root
from isoscope.stats.walks import Increments, WalkSpread
from tests.laws.test_propagation import normal


def stream(kind: str, batch: int = 6, length: int = 33, width: int = 20) -> tuple[Tensor, Tensor]:
    steps = normal(11, batch, length, width)
    counts = torch.rand(batch, length, generator=torch.Generator().manual_seed(1)) < 0.9
    return (steps.cumsum(1) if kind == "walk" else steps) + 3, counts


def test_the_spread_is_that_of_all_pairs_that_count() -> None:
    inputs, counts = stream("walk")
    inputs[2, 5, 0], inputs[3, 7, 1] = math.nan, math.inf
    found = WalkSpread.of(inputs, counts)
    assert found.lags.tolist() == [1, 2, 4, 8, 16, 32]
    for number, lag in enumerate((1, 2, 4, 8, 16, 32)):
        moves = [
            float(((inputs[b, t + lag] - inputs[b, t]) ** 2).sum())
            for b in range(6)
            for t in range(33 - lag)
            if counts[b, t] and counts[b, t + lag]
        ]
        finite = [move for move in moves if math.isfinite(move)]
        assert found.pairs[number] == len(finite)
        assert float(found.curve[number]) == pytest.approx(sum(finite) / len(finite))


def test_a_walk_has_slope_one_and_noise_none() -> None:
    assert WalkSpread.of(*stream("walk", 20)).slope == pytest.approx(1, abs=0.05)
    assert WalkSpread.of(*stream("noise", 20)).slope == pytest.approx(0, abs=0.05)
    inputs, counts = stream("walk")
    assert math.isnan(WalkSpread.of(inputs[:, :2], counts[:, :2]).slope)
    assert math.isnan(WalkSpread.of(inputs, torch.zeros_like(counts)).slope)
    assert math.isnan(WalkSpread.of(inputs[:, :1], counts[:, :1]).slope)
    still = WalkSpread.of(torch.ones(2, 9, 3), torch.ones(2, 9).bool())
    assert math.isnan(still.slope) and not still.curve.any()


def test_parts_of_a_stream_merge() -> None:
    inputs, counts = stream("walk")
    inputs[1, 4] = math.nan
    parts = [(inputs[:2], counts[:2]), (inputs[2:3], counts[2:3]), (inputs[3:], counts[3:])]
    one, two, three = (WalkSpread.of(*part) for part in parts)
    whole = WalkSpread.of(inputs, counts)
    for merged in (one.merge(two).merge(three), three.merge(two.merge(one))):
        torch.testing.assert_close(merged.squares, whole.squares)
        assert torch.equal(merged.pairs, whole.pairs)
    short = WalkSpread.of(inputs[:, :5], counts[:, :5])
    assert torch.equal(short.merge(whole).squares, whole.merge(short).squares)
    first, second, third = (Increments.of(*part) for part in parts)
    right = Increments.of(inputs, counts)
    for merged in (first.merge(second).merge(third), third.merge(second.merge(first))):
        assert merged.number == right.number
        torch.testing.assert_close(merged.covariance, right.covariance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_covariance_of_increments_is_that_of_all_of_them(dtype: torch.dtype) -> None:
    inputs, counts = stream("walk", 5, 12, 4)
    inputs = (inputs + 1000 * torch.arange(12)[:, None]).to(dtype)  # a mean far above the spread
    moves = [
        inputs[b, t + 1].double() - inputs[b, t].double()
        for b in range(5)
        for t in range(11)
        if counts[b, t] and counts[b, t + 1]
    ]
    found = Increments.of(inputs, counts)
    torch.testing.assert_close(found.covariance, torch.cov(torch.stack(moves).T), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.mean, torch.stack(moves).mean(0))
    half = covariance_root(found.covariance)
    torch.testing.assert_close(half @ half, found.covariance, rtol=1e-6, atol=1e-6)
    assert Increments.of(inputs, torch.zeros_like(counts)).covariance.isnan().all()
